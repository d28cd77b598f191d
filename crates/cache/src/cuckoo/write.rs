//! Writing: stores, removals, numbers.
//!
//! A store fills its chunk first, while nobody else knows of it, and takes the lock only to look at
//! what is there and to swap one word. What the chunk's size depends on (append) is looked at under
//! the lock, memory is fetched without it, and then it is looked at again: no memory is ever
//! allocated, and so nothing evicted, under a lock.

use std::cell::Cell;
use std::mem::MaybeUninit;

use nuthatch_sync::clock::Time;
use nuthatch_sync::shim::Ordering;

use super::count::{ClassCount, Count, class_count};
use super::index::Locked;
use super::layout::{Design, Slot};
use super::local::Local;
use super::read::Asked;
use super::{Cuckoo, Found, plain_item};
use crate::item::{Fields, Header, Shape};
use crate::number;
use crate::reply::{Item, Reply};
use crate::request::{Condition, Delta, Expiry, Key, Leave, Removal, Store, StoreMode};
use crate::slab::arena::{Chunk, WORD};

/// An item that no slot refers to yet: all its memory, its key written, its value to come.
#[derive(Debug)]
pub(super) struct Fresh {
    pub chunk: Chunk,
    pub shape: Shape,
}

/// What an item is to become, told from what it is.
struct Rewrite<'v> {
    before: &'v [u8],
    keep: bool,
    after: &'v [u8],
    flags: u32,
    expiry: Expiry,
    new_cas: Option<u64>,
    stale: bool,
    won: bool,
}

impl<'v> Rewrite<'v> {
    /// The same flags and expiry, another value.
    fn of(header: &Header, before: &'v [u8], keep: bool, after: &'v [u8]) -> Self {
        Self {
            before,
            keep,
            after,
            flags: header.flags(),
            expiry: header.expiry(),
            new_cas: None,
            stale: false,
            won: false,
        }
    }

    fn value_len(&self, old: &Header) -> usize {
        self.before.len() + if self.keep { old.value_len() } else { 0 } + self.after.len()
    }
}

/// A condition's verdict on an item.
enum Verdict {
    Met,
    /// Met by an older cas: the new item is stale.
    Older,
    Refused,
}

fn judge(condition: Condition, header: &Header) -> Verdict {
    match condition {
        Condition::None => Verdict::Met,
        Condition::Cas(cas) | Condition::CasOrStale(cas) if cas == header.cas() => Verdict::Met,
        Condition::CasOrStale(cas) if cas < header.cas() => Verdict::Older,
        _ => Verdict::Refused,
    }
}

impl<D: Design> Cuckoo<D> {
    /// A store of any mode.
    pub(super) fn store(&self, local: &mut Local, asked: &Asked<'_>, store: &Store<'_>) -> Reply {
        let reply = match store.mode {
            StoreMode::Append => self.concatenate(local, asked, store, b"", store.value),
            StoreMode::Prepend => self.concatenate(local, asked, store, store.value, b""),
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => self.put(local, asked, store),
        };
        self.help_growth();
        reply
    }

    fn put(&self, local: &mut Local, asked: &Asked<'_>, store: &Store<'_>) -> Reply {
        let Asked { now, key, .. } = *asked;
        let wide = Shape::needs_wide(store.flags, store.new_cas);
        match self.allocate(local, now, key, store.value.len(), wide) {
            Ok(fresh) => {
                self.store
                    .write_value(fresh.chunk, &fresh.shape, 0, store.value);
                self.publish(local, asked, fresh, store)
            }
            Err(refusal) => refusal,
        }
    }

    /// Makes a complete item the key's item, if the store's mode and condition allow it.
    pub(super) fn publish(
        &self,
        local: &mut Local,
        asked: &Asked<'_>,
        mut fresh: Fresh,
        store: &Store<'_>,
    ) -> Reply {
        let Asked {
            now, key, place, ..
        } = *asked;
        self.note_expiry(store.expiry);
        // Ends when there is room: each turn either finds a slot or makes one.
        loop {
            let locked = self.index.lock(place);
            let found = self.find_locked(local, &locked, key);
            let live = found.filter(|found| self.is_live(&found.header, now));
            let stale = match allows(store, live.as_ref().map(|found| &found.header)) {
                Ok(stale) => stale,
                Err(refusal) => {
                    locked.release_unmodified();
                    self.discard(fresh);
                    return refusal;
                }
            };
            let old = live.map(|found| found.header);
            let fields = Fields {
                flags: store.flags,
                expiry: match old {
                    Some(old) if stale => old.expiry(),
                    _ => store.expiry,
                },
                sequence: self.next_sequence(local, now, found.map_or(0, |f| f.header.sequence())),
                cas: store.new_cas,
                stale,
                won: stale && old.is_some_and(|old| old.is_won()),
            };
            match self.link(local, locked, found, fresh, &fields) {
                Ok(header) => {
                    local.counters.one(Count::Stored);
                    return Reply::Stored(plain_item(&header));
                }
                Err(unlinked) => fresh = unlinked,
            }
            if !self.make_room(local, now, place) {
                self.discard(fresh);
                local.counters.one(Count::OutOfMemory);
                return Reply::OutOfMemory;
            }
        }
    }

    /// Finishes the header and stores the slot: the moment from which readers find the item. Takes
    /// the place of `found`, or a free slot; gives the item back if there is none.
    pub(super) fn link(
        &self,
        local: &mut Local,
        locked: Locked<'_, D>,
        found: Option<Found>,
        fresh: Fresh,
        fields: &Fields,
    ) -> Result<Header, Fresh> {
        let Some(at) = found.map(|found| found.at).or_else(|| locked.free_slot()) else {
            locked.release_unmodified();
            return Err(fresh);
        };
        let header = Header::new(&fresh.shape, fields);
        header.store(&self.store.arena, fresh.chunk);
        self.store.recency.start(fresh.chunk);
        locked.store(at, Slot::new::<D>(locked.place.tag, fresh.chunk));
        drop(locked);
        match found {
            Some(found) => {
                self.count_swap(local, &found.header, &header);
                self.store.retire(found.chunk, &found.header);
            }
            None => self.count_in(local, &header),
        }
        Ok(header)
    }

    /// Append and prepend.
    fn concatenate(
        &self,
        local: &mut Local,
        asked: &Asked<'_>,
        store: &Store<'_>,
        before: &[u8],
        after: &[u8],
    ) -> Reply {
        let Asked { key, .. } = *asked;
        let alone = self.shape(key.bytes().len(), store.value.len(), false);
        if alone.total_bytes() > self.item_size_max {
            return Reply::TooLarge;
        }
        let reply = self.rewrite(local, asked, |header| {
            permit(store.condition, header)?;
            Ok(Rewrite {
                new_cas: store.new_cas,
                ..Rewrite::of(header, before, true, after)
            })
        });
        match (reply, store.vivify) {
            (Ok(item), _) => {
                local.counters.one(Count::Stored);
                Reply::Stored(item)
            }
            (Err(Reply::NotFound), Some(expiry)) => {
                // Between the miss and the add another client may have stored: then append to that.
                let add = Store {
                    mode: StoreMode::Add,
                    expiry,
                    condition: Condition::None,
                    ..*store
                };
                match self.put(local, asked, &add) {
                    Reply::NotStored => self.concatenate(local, asked, store, before, after),
                    reply => reply,
                }
            }
            (Err(Reply::NotFound), None) if store.condition == Condition::None => Reply::NotStored,
            (Err(refusal), _) => refusal,
        }
    }

    /// Replaces the key's item by one made from it. `plan` is asked under the lock and may refuse.
    /// Missing items are answered with `Reply::NotFound`.
    fn rewrite<'v>(
        &self,
        local: &mut Local,
        asked: &Asked<'_>,
        plan: impl Fn(&Header) -> Result<Rewrite<'v>, Reply>,
    ) -> Result<Item, Reply> {
        let Asked {
            now, key, place, ..
        } = *asked;
        let mut spare: Option<Fresh> = None;
        let reply = loop {
            let locked = self.index.lock(place);
            let found = self.find_locked(local, &locked, key);
            let Some(found) = found.filter(|found| self.is_live(&found.header, now)) else {
                locked.release_unmodified();
                break Err(Reply::NotFound);
            };
            let rewrite = match plan(&found.header) {
                Ok(rewrite) => rewrite,
                Err(refusal) => {
                    locked.release_unmodified();
                    break Err(refusal);
                }
            };
            let value_len = rewrite.value_len(&found.header);
            let wide = Shape::needs_wide(rewrite.flags, rewrite.new_cas);
            let shape = self.shape(key.bytes().len(), value_len, wide);
            if let Some(fresh) = spare.take_if(|fresh| fresh.shape == shape) {
                let item = self.finish_rewrite(local, now, locked, &found, fresh, &rewrite);
                break Ok(item);
            }
            locked.release_unmodified();
            if let Some(unfit) = spare.take() {
                self.discard(unfit);
            }
            match self.allocate(local, now, key, value_len, wide) {
                Ok(fresh) => spare = Some(fresh),
                Err(refusal) => break Err(refusal),
            }
        };
        if let Some(unused) = spare {
            self.discard(unused);
        }
        reply
    }

    fn finish_rewrite(
        &self,
        local: &mut Local,
        now: Time,
        locked: Locked<'_, D>,
        found: &Found,
        fresh: Fresh,
        rewrite: &Rewrite<'_>,
    ) -> Item {
        let mut offset = 0;
        let mut put = |bytes: &[u8]| {
            self.store
                .write_value(fresh.chunk, &fresh.shape, offset, bytes);
            offset += bytes.len();
        };
        put(rewrite.before);
        if rewrite.keep {
            self.each_piece(found, &mut put);
        }
        put(rewrite.after);
        let fields = Fields {
            flags: rewrite.flags,
            expiry: rewrite.expiry,
            sequence: self.next_sequence(local, now, found.header.sequence()),
            cas: rewrite.new_cas,
            stale: rewrite.stale,
            won: rewrite.won,
        };
        self.note_expiry(rewrite.expiry);
        self.store.recency.carry(found.chunk, fresh.chunk);
        let header = Header::new(&fresh.shape, &fields);
        header.store(&self.store.arena, fresh.chunk);
        locked.store(found.at, Slot::new::<D>(locked.place.tag, fresh.chunk));
        drop(locked);
        self.count_swap(local, &found.header, &header);
        self.store.retire(found.chunk, &found.header);
        plain_item(&header)
    }

    /// The value of a locked item, piece by piece.
    fn each_piece(&self, found: &Found, put: &mut impl FnMut(&[u8])) {
        const PIECE: usize = 1024;
        let shape = found.header.shape(self.store.chunk_max());
        let mut buffer = [MaybeUninit::new(0); PIECE];
        let mut offset = 0;
        while offset < shape.value_len {
            let piece = &mut buffer[..(shape.value_len - offset).min(PIECE)];
            self.store.read_value(found.chunk, &shape, offset, piece);
            // SAFETY: the buffer started initialised, and `read_value` only writes.
            put(unsafe { piece.assume_init_ref() });
            offset += piece.len();
        }
    }

    /// A removal of any kind.
    pub(super) fn remove(&self, local: &mut Local, asked: &Asked<'_>, removal: &Removal) -> Reply {
        let outcome = match removal.leave {
            Leave::Nothing => return self.delete(local, asked, removal.condition),
            Leave::Stale { expiry, new_cas } => self.rewrite(local, asked, |header| {
                permit(removal.condition, header)?;
                Ok(Rewrite {
                    expiry: expiry.unwrap_or(header.expiry()),
                    new_cas,
                    stale: true,
                    ..Rewrite::of(header, b"", true, b"")
                })
            }),
            Leave::Empty {
                stale,
                expiry,
                new_cas,
            } => self.rewrite(local, asked, |header| {
                permit(removal.condition, header)?;
                Ok(Rewrite {
                    flags: 0,
                    expiry: expiry.unwrap_or(header.expiry()),
                    new_cas,
                    stale,
                    ..Rewrite::of(header, b"", false, b"")
                })
            }),
        };
        match outcome {
            Ok(_) => Reply::Removed,
            Err(refusal) => refusal,
        }
    }

    fn delete(&self, local: &mut Local, asked: &Asked<'_>, condition: Condition) -> Reply {
        let Asked {
            now, key, place, ..
        } = *asked;
        let locked = self.index.lock(place);
        let Some(found) = self.find_locked(local, &locked, key) else {
            locked.release_unmodified();
            return Reply::NotFound;
        };
        let live = self.is_live(&found.header, now);
        if live && permit(condition, &found.header).is_err() {
            locked.release_unmodified();
            return Reply::Exists;
        }
        // A dead item is taken out as well: its memory comes back at once.
        locked.store(found.at, Slot::EMPTY);
        drop(locked);
        self.count_out(local, &found.header);
        self.store.retire(found.chunk, &found.header);
        if live {
            Reply::Removed
        } else {
            Reply::NotFound
        }
    }

    /// incr and decr.
    pub(super) fn delta(&self, local: &mut Local, asked: &Asked<'_>, delta: &Delta) -> Reply {
        loop {
            let reply = match self.delta_in_place(local, asked, delta) {
                Some(reply) => reply,
                None => self.delta_rewritten(local, asked, delta),
            };
            let (Reply::NotFound, Some((initial, expiry))) = (reply, delta.vivify) else {
                return reply;
            };
            let mut digits = number::Digits::default();
            let add = Store {
                mode: StoreMode::Add,
                expiry,
                new_cas: delta.new_cas,
                ..Store::set(digits.write(initial))
            };
            match self.put(local, asked, &add) {
                Reply::Stored(item) => return Reply::Number(initial, item),
                // Another client was faster: count on from its number.
                Reply::NotStored => continue,
                refusal => return refusal,
            }
        }
    }

    /// Writes the new number over the old one, under the lock. `None` if it must move: it does not
    /// fit, or the header must widen.
    fn delta_in_place(&self, local: &mut Local, asked: &Asked<'_>, delta: &Delta) -> Option<Reply> {
        let Asked {
            now, key, place, ..
        } = *asked;
        let locked = self.index.lock(place);
        let found = self.find_locked(local, &locked, key);
        let found = match found.filter(|found| self.is_live(&found.header, now)) {
            Some(found) => found,
            None => {
                locked.release_unmodified();
                return Some(Reply::NotFound);
            }
        };
        let number = permit(delta.condition, &found.header)
            .and_then(|()| self.number_of(&found).map(|number| apply(number, delta)));
        let number = match number {
            Ok(number) => number,
            Err(refusal) => {
                locked.release_unmodified();
                return Some(refusal);
            }
        };
        let mut digits = number::Digits::default();
        let digits = digits.write(number);
        let old = found.header.shape(self.store.chunk_max());
        let shape = Shape {
            value_len: digits.len(),
            ..old
        };
        let same_class = self.store.sizes.class_of(shape.head_bytes())
            == self.store.sizes.class_of(old.head_bytes());
        if !same_class || delta.new_cas.is_some() && !old.wide {
            locked.release_unmodified();
            return None;
        }
        let fields = Fields {
            expiry: delta.touch.unwrap_or(found.header.expiry()),
            sequence: self.next_sequence(local, now, found.header.sequence()),
            cas: delta.new_cas,
            ..found.header.fields()
        };
        self.note_expiry(fields.expiry);
        self.store.write_value(found.chunk, &shape, 0, digits);
        let header = Header::new(&shape, &fields);
        header.store(&self.store.arena, found.chunk);
        self.store.recency.hit(found.chunk);
        drop(locked);
        self.count_swap(local, &found.header, &header);
        Some(Reply::Number(number, plain_item(&header)))
    }

    fn delta_rewritten(&self, local: &mut Local, asked: &Asked<'_>, delta: &Delta) -> Reply {
        // The digits are made from the number seen here, without memory to write them to; if the item
        // has changed by the time there is, the number is made again.
        loop {
            let Some((seen, number)) = self.peek_number(local, asked) else {
                return Reply::NotFound;
            };
            let number = match number {
                Ok(number) => apply(number, delta),
                Err(refusal) => return refusal,
            };
            let mut digits = number::Digits::default();
            let digits = digits.write(number);
            let changed = Cell::new(false);
            let outcome = self.rewrite(local, asked, |header| {
                changed.set(header.sequence() != seen);
                if changed.get() {
                    return Err(Reply::Exists);
                }
                permit(delta.condition, header)?;
                Ok(Rewrite {
                    expiry: delta.touch.unwrap_or(header.expiry()),
                    new_cas: delta.new_cas,
                    stale: header.is_stale(),
                    won: header.is_won(),
                    ..Rewrite::of(header, digits, false, b"")
                })
            });
            match outcome {
                Ok(item) => return Reply::Number(number, item),
                Err(_) if changed.get() => continue,
                Err(refusal) => return refusal,
            }
        }
    }

    /// The sequence of the key's live item and the number in it, at one moment.
    fn peek_number(&self, local: &Local, asked: &Asked<'_>) -> Option<(u64, Result<u64, Reply>)> {
        let Asked {
            now, key, place, ..
        } = *asked;
        let locked = self.index.lock(place);
        let found = self.find_locked(local, &locked, key);
        let found = found.filter(|found| self.is_live(&found.header, now));
        let seen = found.map(|found| (found.header.sequence(), self.number_of(&found)));
        locked.release_unmodified();
        seen
    }

    /// The number in an item, or why there is none.
    fn number_of(&self, found: &Found) -> Result<u64, Reply> {
        let shape = found.header.shape(self.store.chunk_max());
        let mut buffer = [MaybeUninit::new(0); number::DIGITS_MAX];
        let Some(text) = buffer.get_mut(..shape.value_len) else {
            return Err(Reply::NotNumeric);
        };
        self.store.read_value(found.chunk, &shape, 0, text);
        // SAFETY: the buffer started initialised, and `read_value` only writes.
        number::parse(unsafe { text.assume_init_ref() }).ok_or(Reply::NotNumeric)
    }

    /// Memory for an item, with its key written. Evicts if it must.
    pub(super) fn allocate(
        &self,
        local: &mut Local,
        now: Time,
        key: &Key<'_>,
        value_len: usize,
        wide: bool,
    ) -> Result<Fresh, Reply> {
        let shape = self.shape(key.bytes().len(), value_len, wide);
        if shape.total_bytes() > self.item_size_max {
            return Err(Reply::TooLarge);
        }
        let chunk = self.allocate_shape(local, now, &shape)?;
        self.store.begin_fill();
        self.store
            .arena
            .write(chunk, shape.key_start(), key.bytes());
        Ok(Fresh { chunk, shape })
    }

    fn allocate_shape(&self, local: &mut Local, now: Time, shape: &Shape) -> Result<Chunk, Reply> {
        let class = self.store.sizes.class_of(shape.head_bytes());
        let refused = |local: &Local| {
            local.counters.one(Count::OutOfMemory);
            local.counters.one_in(class, ClassCount::OutOfMemory);
            Reply::OutOfMemory
        };
        let Some(head) = self.allocate_chunk(local, now, class) else {
            return Err(refused(local));
        };
        for index in 0..shape.segments() {
            let class = self.store.sizes.class_of(shape.segment_bytes(index));
            let Some(segment) = self.allocate_chunk(local, now, class) else {
                for taken in 0..index {
                    self.store
                        .free_chunk(self.store.segment(head, shape, taken));
                }
                self.store.free_chunk(head);
                return Err(refused(local));
            };
            self.store.begin_fill();
            Header::store_segment(&self.store.arena, segment, head);
            self.store
                .arena
                .store(head, shape.segments_start() / WORD + index, segment.0);
        }
        Ok(head)
    }

    /// Frees an item that was never linked.
    pub(super) fn discard(&self, fresh: Fresh) {
        for index in 0..fresh.shape.segments() {
            self.store
                .free_chunk(self.store.segment(fresh.chunk, &fresh.shape, index));
        }
        self.store.free_chunk(fresh.chunk);
    }

    /// There is something for the sweep to find.
    pub(super) fn note_expiry(&self, expiry: Expiry) {
        // Relaxed: the sweep will see it sooner or later.
        if expiry != Expiry::Never && self.sweeping.load(Ordering::Relaxed) == 0 {
            self.sweeping.store(1, Ordering::Relaxed);
        }
    }

    /// One item in the place of another: usually of the same size, which changes no sum.
    #[inline]
    fn count_swap(&self, local: &Local, old: &Header, new: &Header) {
        let chunk_max = self.store.chunk_max();
        if old.shape(chunk_max) != new.shape(chunk_max) {
            self.count_out(local, old);
            self.count_in(local, new);
        }
    }

    fn count_in(&self, local: &Local, header: &Header) {
        local.counters.one(Count::Linked);
        self.count_bytes(local, header, 1);
    }

    pub(super) fn count_out(&self, local: &Local, header: &Header) {
        local.counters.one(Count::Unlinked);
        self.count_bytes(local, header, u64::MAX);
    }

    /// Adds an item's bytes `times` (1 or, wrapping, minus 1) to the engine's and the class's.
    fn count_bytes(&self, local: &Local, header: &Header, times: u64) {
        let shape = header.shape(self.store.chunk_max());
        let bytes = (shape.total_bytes() as u64).wrapping_mul(times);
        local.counters.add(Count::Bytes as usize, bytes);
        let class = self.store.sizes.class_of(shape.head_bytes());
        let head = (shape.head_bytes() as u64).wrapping_mul(times);
        local
            .counters
            .add(class_count(class, ClassCount::Bytes), head);
        for index in 0..shape.segments() {
            let bytes = shape.segment_bytes(index);
            let class = self.store.sizes.class_of(bytes);
            let bytes = (bytes as u64).wrapping_mul(times);
            local
                .counters
                .add(class_count(class, ClassCount::Bytes), bytes);
        }
    }
}

/// What a store's mode and condition say to the live item that is there: whether the new item is
/// stale, or the refusal.
fn allows(store: &Store<'_>, live: Option<&Header>) -> Result<bool, Reply> {
    match (store.mode, live) {
        (StoreMode::Add, Some(_)) => Err(Reply::NotStored),
        (StoreMode::Replace, None) if store.condition == Condition::None => Err(Reply::NotStored),
        (StoreMode::Add, None) => Ok(false),
        (_, None) if store.condition != Condition::None => Err(Reply::NotFound),
        (_, None) => Ok(false),
        (_, Some(header)) => match judge(store.condition, header) {
            Verdict::Met => Ok(false),
            Verdict::Older => Ok(true),
            Verdict::Refused => Err(Reply::Exists),
        },
    }
}

fn permit(condition: Condition, header: &Header) -> Result<(), Reply> {
    match judge(condition, header) {
        Verdict::Met => Ok(()),
        Verdict::Older | Verdict::Refused => Err(Reply::Exists),
    }
}

fn apply(number: u64, delta: &Delta) -> u64 {
    if delta.down {
        number.saturating_sub(delta.by)
    } else {
        number.wrapping_add(delta.by)
    }
}
