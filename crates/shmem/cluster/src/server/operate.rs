//! The operations of the engine's seam, as a server carries them out for a session.
//!
//! Each first locks the key's block, if it has one, and changes nothing before that. It takes effect when the block that
//! it makes is readable, or, if it makes none, at the lock.

use std::sync::atomic::Ordering;

use nuthatch_engine::semantics::{
    Concatenated, Rewrite, allows, apply, concatenated, left, permit, permit_touch, wants_value,
    wins,
};
use nuthatch_engine::{
    Delta, Item, Key, Leave, Op, Read, Removal, Reply, Request, Store, StoreMode, Time, number,
};
use nuthatch_fabric::Fabric;

use super::evict::NoBlock;
use super::pages::Block;
use super::shard::{LockedBlock, Pin, Shard, Wait};
use crate::block::{self, Header, STALE, WON, expiry_to_tick};
use crate::bucket::Pointer;
use crate::message::{BlockState, INLINE_MAX};

/// Epochs after which the server checks whether the holder of a block is gone.
const LONG: u32 = 2;

/// The answer of an operation.
pub enum Outcome {
    /// A read that returns the value, whose words are in the scratch words with this header.
    Value(Item, BlockState, Header),
    /// A read whose value is too long for a message.
    At(Item, BlockState),
    /// A read that changes the pair, whose value is too long for a message: only [`Shard::copy_value`] carries it out.
    Long,
    /// A read whose value is kept for the session.
    Copied(Item, BlockState),
    /// Anything else, and where the pair is.
    Done(Reply, Option<BlockState>),
}

/// What a change says about a pair.
pub struct Change<'v> {
    pub rewrite: Rewrite<'v>,
    /// The pair counts as read by a get.
    pub was_read: bool,
    /// A block in the caller's hands that has key and value already, and the value's length.
    pub reserved: Option<(LockedBlock, usize)>,
}

impl<'v> Change<'v> {
    fn of(rewrite: Rewrite<'v>) -> Self {
        Self {
            rewrite,
            was_read: false,
            reserved: None,
        }
    }
}

/// A key, its words, and the locked block of its pair, if it has one; dead pairs included.
struct Target<'k> {
    key: Key<'k>,
    held: Option<(LockedBlock, Header)>,
}

/// The result of an attempt.
type Attempt<T> = Result<T, Wait>;

impl<F: Fabric> Shard<F> {
    /// Carries out a request.
    pub fn operate(&mut self, now: Time, request: &Request<'_>) -> Attempt<Outcome> {
        let key = &request.key;
        match &request.op {
            Op::Get => self.read_op(now, key, &Read::default(), false),
            Op::Read(read) => self.read_op(now, key, read, false),
            Op::Store(store) => self.store_op(now, key, store, None),
            Op::Remove(removal) => self.remove_op(now, key, removal),
            Op::Delta(delta) => self.delta_op(now, key, delta),
        }
    }

    /// A read that is carried out whatever the value's length. A long value is kept for the session until it has taken
    /// all pieces: no writer can take it away, and it needs no block.
    pub fn copy_value(
        &mut self,
        now: Time,
        key: &Key<'_>,
        read: &Read,
        session: usize,
    ) -> Attempt<Outcome> {
        self.copies.drop_of(session);
        if !self.copies.has_room(self.epoch) {
            // Other sessions are taking their copies.
            return Err(Wait::Block);
        }
        let outcome = self.read_op(now, key, read, true)?;
        let Outcome::At(item, known) = outcome else {
            return Ok(outcome);
        };
        let header = Header::read(&self.scratch);
        let value = block::value_bytes(&self.scratch, &header);
        self.copies.keep(session, value.into(), self.epoch);
        Ok(Outcome::Copied(item, known))
    }

    /// A read, with all its options. A value stays in the scratch words.
    fn read_op(&mut self, now: Time, key: &Key<'_>, read: &Read, copies: bool) -> Attempt<Outcome> {
        let key_words = Self::key_words(key);
        let Some(pointer) = self.find(key, &key_words) else {
            return self.read_missed(now, key, read);
        };
        let header = self.read(pointer, key.bytes())?;
        if !self.is_live(&header, now) {
            return self.read_missed(now, key, read);
        }
        let version = self.scratch[block::HEAD];
        let mut item = self.describe(pointer, &header, version, now);
        if !read.idle {
            item.idle = Default::default();
        }
        if let Err(refusal) = permit_touch(read, &item) {
            return Ok(Outcome::Done(refusal, None));
        }
        if read.touch.is_some() || wins(read, &item, now) {
            let is_long = read.value && item.value_len > INLINE_MAX;
            return match is_long && !copies {
                true => Ok(Outcome::Long),
                false => self.read_and_mark(now, pointer, read),
            };
        }
        if read.bump && !(item.fetched && self.recency(pointer).epoch() == self.epoch) {
            self.mark_used(pointer, version, true);
        }
        let known = self.known_now(pointer, version);
        Ok(Self::found(item, known, header, read))
    }

    fn found(item: Item, known: BlockState, header: Header, read: &Read) -> Outcome {
        if !wants_value(read, &item) {
            Outcome::Done(Reply::Found(item), Some(known))
        } else if item.value_len <= INLINE_MAX {
            Outcome::Value(item, known, header)
        } else {
            Outcome::At(item, known)
        }
    }

    /// Where a pair is whose last writer may have been a client.
    fn known_now(&self, pointer: Pointer, version: u64) -> BlockState {
        let tail = self.tail(pointer);
        let mut known = self.known(pointer, version);
        if tail.version() == version {
            known.tail = tail.0;
        }
        known
    }

    /// A read that changes the pair's expiry or status.
    fn read_and_mark(&mut self, now: Time, pointer: Pointer, read: &Read) -> Attempt<Outcome> {
        let seen = Header::read(&self.scratch);
        let held = self.lock(pointer)?;
        let header = self.header(pointer);
        let before = self.describe(pointer, &header, held.version - 1, now);
        if header != seen || !self.is_live(&header, now) || permit_touch(read, &before).is_err() {
            // A session wrote meanwhile: start again.
            self.abort(held);
            return Err(Wait::Block);
        }
        let won = wins(read, &before, now);
        let mut item = Item { won, ..before };
        if !read.idle {
            item.idle = Default::default();
        }
        let mut new = header;
        if let Some(expiry) = read.touch {
            item.expiry = expiry;
            new.expiry = expiry_to_tick(expiry);
        }
        if won {
            new.status |= WON;
        }
        self.write_header(held, &new);
        self.mark_used(pointer, held.version, before.fetched || read.bump);
        // The copy is made before another writer may lock the block.
        self.copy(pointer);
        self.finish(held);
        let known = self.known(pointer, held.version);
        Ok(Self::found(item, known, new, read))
    }

    /// A read that found nothing.
    fn read_missed(&mut self, now: Time, key: &Key<'_>, read: &Read) -> Attempt<Outcome> {
        let Some(expiry) = read.vivify else {
            return Ok(Outcome::Done(Reply::Miss, None));
        };
        let target = self.target(key)?;
        let rewrite = Rewrite {
            before: b"",
            keep: false,
            after: b"",
            flags: 0,
            expiry,
            new_cas: read.new_cas,
            stale: false,
            won: true,
        };
        let change = Change {
            was_read: read.bump,
            ..Change::of(rewrite)
        };
        match self.put(now, target, change)? {
            Ok((item, known)) => {
                let item = Item {
                    won: true,
                    won_before: false,
                    fetched: false,
                    ..item
                };
                // It is empty, so any words have its value.
                self.scratch.clear();
                self.scratch.resize(self.layout.classes.largest(), 0);
                let header = Header {
                    key_len: key.bytes().len() as u8,
                    ..Header::default()
                };
                Ok(match read.value {
                    true => Outcome::Value(item, known, header),
                    false => Outcome::Done(Reply::Found(item), Some(known)),
                })
            }
            Err(refusal) => Ok(Outcome::Done(refusal, None)),
        }
    }

    /// Finds a key's block, and locks it.
    fn target<'k>(&mut self, key: &Key<'k>) -> Attempt<Target<'k>> {
        let key_words = Self::key_words(key);
        let held = match self.find(key, &key_words) {
            None => None,
            Some(pointer) => {
                let held = self.lock(pointer)?;
                Some((held, self.header(pointer)))
            }
        };
        Ok(Target { key: *key, held })
    }

    /// The target's pair, if it is live, as the rules see it.
    fn live(&self, target: &Target<'_>, now: Time) -> Option<Item> {
        let (held, header) = target.held.as_ref()?;
        let was_read = self.recency(held.pointer).was_read(held.version - 1);
        self.is_live(header, now).then(|| header.item(was_read))
    }

    /// Leaves the pair as it is.
    fn leave(&mut self, target: &Target<'_>, reply: Reply) -> Attempt<Outcome> {
        if let Some((held, _)) = target.held {
            self.abort(held);
        }
        Ok(Outcome::Done(reply, None))
    }

    /// Replaces the target's pair by a changed one, and answers by `reply`.
    fn put_and_reply(
        &mut self,
        now: Time,
        target: Target<'_>,
        change: Change<'_>,
        reply: impl FnOnce(Item) -> Reply,
    ) -> Attempt<Outcome> {
        Ok(match self.put(now, target, change)? {
            Ok((item, known)) => Outcome::Done(reply(item), Some(known)),
            Err(refusal) => Outcome::Done(refusal, None),
        })
    }

    /// A store, whose value may lie in a reserved block.
    pub fn store_op(
        &mut self,
        now: Time,
        key: &Key<'_>,
        store: &Store<'_>,
        reserved: Option<(LockedBlock, usize)>,
    ) -> Attempt<Outcome> {
        let value_len = reserved.map_or(store.value.len(), |(_, len)| len);
        if self.is_too_large(key.bytes().len(), value_len) {
            return Ok(Outcome::Done(Reply::TooLarge, None));
        }
        let target = self.target(key)?;
        let live = self.live(&target, now);
        if matches!(store.mode, StoreMode::Append | StoreMode::Prepend) {
            return self.concatenate(now, target, live, store, reserved);
        }
        let stale = match allows(store, live.as_ref()) {
            Ok(stale) => stale,
            Err(refusal) => return self.leave(&target, refusal),
        };
        let kept = live.filter(|_| stale);
        let rewrite = Rewrite {
            before: b"",
            keep: false,
            after: store.value,
            flags: store.flags,
            expiry: kept.map_or(store.expiry, |old| old.expiry),
            new_cas: store.new_cas,
            stale,
            won: kept.is_some_and(|old| old.won_before),
        };
        let change = Change {
            reserved,
            ..Change::of(rewrite)
        };
        let outcome = self.put_and_reply(now, target, change, Reply::Stored)?;
        self.count_stored(&outcome);
        Ok(outcome)
    }

    fn count_stored(&mut self, outcome: &Outcome) {
        if matches!(outcome, Outcome::Done(Reply::Stored(_), _)) {
            self.counts.stored += 1;
        }
    }

    fn concatenate(
        &mut self,
        now: Time,
        target: Target<'_>,
        live: Option<Item>,
        store: &Store<'_>,
        reserved: Option<(LockedBlock, usize)>,
    ) -> Attempt<Outcome> {
        let piece = match reserved {
            None => store.value.to_vec(),
            Some((held, len)) => self.bytes_of(held.pointer, target.key.bytes().len(), len),
        };
        let (before, after): (&[u8], &[u8]) = match store.mode {
            StoreMode::Append => (b"", &piece),
            _ => (&piece, b""),
        };
        let refusal = match &live {
            None => Reply::NotFound,
            Some(old) => match permit(store.condition, old) {
                Err(refusal) => refusal,
                Ok(()) => {
                    let mut rewrite = Rewrite::of(old, before, true, after);
                    rewrite.new_cas = store.new_cas;
                    let change = Change {
                        was_read: old.fetched,
                        ..Change::of(rewrite)
                    };
                    let outcome = self.put_and_reply(now, target, change, Reply::Stored)?;
                    self.count_stored(&outcome);
                    return Ok(outcome);
                }
            },
        };
        match concatenated(Err(refusal), store) {
            Concatenated::AddInstead(add) => {
                let rewrite = Rewrite {
                    before,
                    keep: false,
                    after,
                    flags: add.flags,
                    expiry: add.expiry,
                    new_cas: add.new_cas,
                    stale: false,
                    won: false,
                };
                let outcome =
                    self.put_and_reply(now, target, Change::of(rewrite), Reply::Stored)?;
                self.count_stored(&outcome);
                Ok(outcome)
            }
            Concatenated::Refused(reply) => self.leave(&target, reply),
            Concatenated::Stored(_) => unreachable!("it was refused"),
        }
    }

    /// The value's bytes in a block that no other writer changes.
    fn bytes_of(&self, pointer: Pointer, key_len: usize, len: usize) -> Vec<u8> {
        let start = block::KEY + block::words_of(key_len);
        let words = self.words(pointer)[start..][..block::words_of(len)].iter();
        let words: Vec<u64> = words.map(|word| word.load(Ordering::Relaxed)).collect();
        bytemuck::cast_slice::<u64, u8>(&words)[..len].to_vec()
    }

    fn remove_op(&mut self, now: Time, key: &Key<'_>, removal: &Removal) -> Attempt<Outcome> {
        let target = self.target(key)?;
        let Some(old) = self.live(&target, now) else {
            return self.leave(&target, Reply::NotFound);
        };
        if removal.leave == Leave::Nothing {
            if let Err(refusal) = permit(removal.condition, &old) {
                return self.leave(&target, refusal);
            }
            if let Some((held, _)) = target.held {
                self.remove(held);
            }
            return Ok(Outcome::Done(Reply::Removed, None));
        }
        match left(removal, &old) {
            Err(refusal) => self.leave(&target, refusal),
            Ok(rewrite) => {
                let change = Change {
                    was_read: old.fetched,
                    ..Change::of(rewrite)
                };
                self.put_and_reply(now, target, change, |_| Reply::Removed)
            }
        }
    }

    fn delta_op(&mut self, now: Time, key: &Key<'_>, delta: &Delta) -> Attempt<Outcome> {
        let target = self.target(key)?;
        let mut digits = number::Digits::default();
        let Some(old) = self.live(&target, now) else {
            let Some((first, expiry)) = delta.vivify else {
                return self.leave(&target, Reply::NotFound);
            };
            let rewrite = Rewrite {
                before: b"",
                keep: false,
                after: digits.write(first),
                flags: 0,
                expiry,
                new_cas: delta.new_cas,
                stale: false,
                won: false,
            };
            let change = Change::of(rewrite);
            return self.put_and_reply(now, target, change, |item| Reply::Created(first, item));
        };
        if let Err(refusal) = permit(delta.condition, &old) {
            return self.leave(&target, refusal);
        }
        let present = match &target.held {
            Some((held, header)) if old.value_len <= number::LEN_MAX => {
                let key_len = header.key_len.into();
                number::parse(&self.bytes_of(held.pointer, key_len, old.value_len))
            }
            _ => None,
        };
        let Some(present) = present else {
            return self.leave(&target, Reply::NotNumeric);
        };
        let changed = apply(present, delta);
        let rewrite = Rewrite {
            before: b"",
            keep: false,
            after: digits.write(changed),
            flags: old.flags,
            expiry: delta.touch.unwrap_or(old.expiry),
            new_cas: delta.new_cas,
            stale: old.stale,
            won: old.won_before,
        };
        let change = Change {
            was_read: old.fetched,
            ..Change::of(rewrite)
        };
        self.put_and_reply(now, target, change, |item| Reply::Number(changed, item))
    }

    /// True if there is no block for such a pair, or it is over the limit.
    pub fn is_too_large(&self, key_len: usize, value_len: usize) -> bool {
        let words = block::pair_words(key_len, value_len);
        words * 8 > self.config.item_size_max || words > self.layout.classes.largest()
    }

    /// Replaces the target's pair by a changed one. On a refusal, and when it is to be tried again, nothing has
    /// changed.
    fn put(
        &mut self,
        now: Time,
        target: Target<'_>,
        change: Change<'_>,
    ) -> Attempt<Result<(Item, BlockState), Reply>> {
        let old_len = target
            .held
            .as_ref()
            .map_or(0, |(_, old)| old.value_len as usize);
        let rewrite = &change.rewrite;
        let value_len = match change.reserved {
            Some((_, len)) => len,
            None => {
                rewrite.before.len() + if rewrite.keep { old_len } else { 0 } + rewrite.after.len()
            }
        };
        let key_len = target.key.bytes().len();
        if self.is_too_large(key_len, value_len) {
            self.leave(&target, Reply::TooLarge)?;
            return Ok(Err(Reply::TooLarge));
        }
        let class = self
            .layout
            .classes
            .class_of(block::pair_words(key_len, value_len));
        let class = class.expect("it is not too large");
        let in_place = target
            .held
            .filter(|(held, _)| held.pointer.class() == class && change.reserved.is_none());
        let new = match (in_place, change.reserved) {
            (Some((held, _)), _) => held,
            (None, Some((held, _))) => {
                let above = target.held.map_or(0, |(old, _)| old.version);
                self.raise(held, above)
            }
            (None, None) => match self.new_block(&target, class, now)? {
                Ok(held) => held,
                Err(refusal) => return Ok(Err(refusal)),
            },
        };
        let header = self.header_of(&target, &change, new.version, value_len);
        self.fill(&target, &change, new, &header);
        self.count_made(&target, new);
        self.finish(new);
        if let Some((old, _)) = target.held.filter(|(old, _)| old.pointer != new.pointer) {
            self.drop_block(old);
        }
        let item = Item {
            fetched: change.was_read,
            ..header.item(false)
        };
        Ok(Ok((item, self.known(new.pointer, new.version))))
    }

    /// A locked block for a new pair, which the table does not have yet.
    fn new_block(
        &mut self,
        target: &Target<'_>,
        class: usize,
        now: Time,
    ) -> Attempt<Result<LockedBlock, Reply>> {
        let above = target.held.map_or(0, |(held, _)| held.version);
        match self.allocate(class, now) {
            Ok(block) => Ok(Ok(self.begin(block, above))),
            Err(NoBlock::Wait) => {
                if let Some((held, _)) = target.held {
                    self.abort(held);
                }
                Err(Wait::Memory)
            }
            Err(NoBlock::Full) => {
                self.counts.out_of_memory += 1;
                self.leave(target, Reply::OutOfMemory)?;
                Ok(Err(Reply::OutOfMemory))
            }
        }
    }

    fn header_of(
        &self,
        target: &Target<'_>,
        change: &Change<'_>,
        version: u64,
        value_len: usize,
    ) -> Header {
        let rewrite = &change.rewrite;
        Header {
            key_len: target.key.bytes().len() as u8,
            status: if rewrite.stale { STALE } else { 0 } | if rewrite.won { WON } else { 0 },
            generation: self.flushes.generation,
            value_len: value_len as u32,
            flags: rewrite.flags,
            expiry: expiry_to_tick(rewrite.expiry),
            cas: rewrite.new_cas.unwrap_or(version),
        }
    }

    /// Writes the pair.
    fn fill(
        &mut self,
        target: &Target<'_>,
        change: &Change<'_>,
        new: LockedBlock,
        header: &Header,
    ) {
        if change.reserved.is_some() {
            self.write_header(new, header);
            return self.mark_used(new.pointer, new.version, change.was_read);
        }
        let rewrite = &change.rewrite;
        let kept = match target.held.filter(|_| rewrite.keep) {
            Some((old, before)) => self.bytes_of(
                old.pointer,
                before.key_len.into(),
                before.value_len as usize,
            ),
            None => Vec::new(),
        };
        let value = [rewrite.before, &kept, rewrite.after];
        self.write(new, header, target.key.bytes(), &value, change.was_read);
    }

    /// The table leads to the pair's block, which is not readable yet.
    fn count_made(&mut self, target: &Target<'_>, new: LockedBlock) {
        let hash = target.key.hash();
        match target.held {
            Some((old, _)) if old.pointer == new.pointer => return,
            Some((old, _)) => self.move_entry(hash, old.pointer, new.pointer),
            None => self.put_entry(hash, new.pointer),
        }
        self.note_made(new.pointer);
    }

    /// Locks a block for a session, which writes key and value.
    pub fn reserve(
        &mut self,
        now: Time,
        key: &Key<'_>,
        value_len: usize,
        session: usize,
    ) -> Attempt<Result<Pointer, Reply>> {
        if self.is_too_large(key.bytes().len(), value_len) {
            return Ok(Err(Reply::TooLarge));
        }
        let words = block::pair_words(key.bytes().len(), value_len);
        let class = self.layout.classes.class_of(words);
        let class = class.expect("it is not too large");
        match self.allocate(class, now) {
            Ok(block) => {
                let held = self.begin(block, 0);
                self.pin(block, session);
                Ok(Ok(held.pointer))
            }
            Err(NoBlock::Wait) => Err(Wait::Memory),
            Err(NoBlock::Full) => {
                self.counts.out_of_memory += 1;
                Ok(Err(Reply::OutOfMemory))
            }
        }
    }

    /// Notes that a session holds a block.
    fn pin(&mut self, block: Block, session: usize) {
        let since = self.epoch;
        self.pins.insert(block, Pin { session, since });
    }

    /// A block that a session holds, which is locked.
    pub fn reserved(&self, pointer: Pointer, session: usize) -> Option<LockedBlock> {
        let is_held = self.pages.is_held(pointer);
        let block = is_held.then(|| self.pages.block(pointer))?;
        let pin = self.pins.get(&block)?;
        (pin.session == session).then(|| LockedBlock::of_locked(pointer, self.tail(pointer)))
    }

    /// Takes back what a session held that is given up. Its last words may still arrive in its blocks.
    pub fn forsake(&mut self, session: usize) {
        let pins: Vec<_> = (self.pins.extract_if(|_, pin| pin.session == session)).collect();
        for (block, _) in pins {
            let pointer = self.pages.pointer(block);
            self.abandon(LockedBlock::of_locked(pointer, self.tail(pointer)));
        }
        self.copies.drop_of(session);
    }

    /// Sessions that have held blocks or copies for so long that they may be gone.
    pub fn long_holders(&self) -> Vec<usize> {
        let pins = self.pins.values();
        let long = pins.filter(|pin| self.epoch.saturating_sub(pin.since) >= LONG);
        let mut sessions: Vec<_> = long.map(|pin| pin.session).collect();
        sessions.extend(self.copies.held_since(self.epoch.saturating_sub(LONG)));
        sessions.sort_unstable();
        sessions.dedup();
        sessions
    }

    /// A session no longer holds a block: it is free, unless its pair is in the table.
    pub fn unpin(&mut self, pointer: Pointer, session: usize) {
        let Some(held) = self.reserved(pointer, session) else {
            return;
        };
        self.pins.remove(&self.pages.block(pointer));
        self.bury(held);
    }

    /// Stores a pair whose key and value lie in a block that the session holds. Unless it is to be tried again, the
    /// session no longer holds the block.
    pub fn commit(
        &mut self,
        now: Time,
        key: &Key<'_>,
        store: &Store<'_>,
        value_len: usize,
        pointer: Pointer,
        session: usize,
    ) -> Attempt<Outcome> {
        let Some(held) = self.reserved(pointer, session) else {
            return Ok(Outcome::Done(Reply::OutOfMemory, None));
        };
        let outcome = self.store_op(now, key, store, Some((held, value_len)))?;
        let block = self.pages.block(pointer);
        if self.pages.is_held(pointer) {
            self.unpin(pointer, session);
        } else {
            self.pins.remove(&block);
        }
        Ok(outcome)
    }
}
