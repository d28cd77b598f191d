//! Direct operations: a session reads and writes blocks itself.
//!
//! A get that the directory has a hint for is one Get of the block; without one it is a Get of the bucket, and one of
//! the block. A set of a known pair, if its block is of the new value's class, is a compare-swap, a Put, and a set of
//! the head (read-friendly exclusive write).
//!
//! When a read takes effect, and why it misses no pair: `block`, invariants 1 to 3. With equal versions at both ends
//! and the right checksum the words are those of one version. Its head was stored when the head was read, and its
//! successor had not begun when the tail was read. Whichever of the two was read first, there is a moment in between at
//! which the version was the key's.

use std::sync::atomic::Ordering;

use nuthatch_base::sync::versioned::load_in_order;
use nuthatch_engine::request::Condition;
use nuthatch_engine::{Item, Key, Op, Read, Reply, Store, StoreMode, Time};
use nuthatch_fabric::{Address, Fabric, Gone};

use super::Client;
use super::batch::{Answer, Step, Used, Wrote};
use super::directory::{At, Hint};
use crate::bars::{self, Bars};
use crate::block::{
    self, CHECK, Found, HEAD, Header, KEY, KEY_READ, META, RECENCY, Recency, STALE, Tail,
    VERSION_MAX, WON,
};
use crate::bucket::{self, Lookup, Pointer};
use crate::checksum::Checksum;
use crate::config::Fault;
use crate::control::Control;
use crate::stats::Count;

/// How often a block is read again because it was being written, before the server is asked.
const READS: u32 = 3;

/// How often a block is locked in vain before the server is asked.
const LOCKS: u32 = 3;

/// A read that a session can carry out itself: it changes nothing but the recency.
pub fn is_plain_read(op: &Op<'_>) -> Option<Read> {
    match op {
        Op::Get => Some(Read::default()),
        Op::Read(read)
            if read.touch.is_none()
                && read.vivify.is_none()
                && read.recache_below.is_none()
                && !read.idle =>
        {
            Some(*read)
        }
        _ => None,
    }
}

/// A store that a session can carry out itself if the pair is there.
pub fn is_plain_set(store: &Store<'_>) -> bool {
    store.mode == StoreMode::Set && store.condition == Condition::None && store.new_cas.is_none()
}

impl<F: Fabric> Client<F> {
    /// The directory's hint for a key, if the pointer is not stale: its page is still of its class, and eviction has not
    /// come to the epoch in which this session used the pair last.
    #[inline]
    pub(super) fn hint(&mut self, server: usize, hash: u64, epoch: u32) -> Option<(At, Hint)> {
        let (at, hint) = self.directory.find(hash)?;
        let page = self.layout.page_of(hint.pointer);
        let bar = self.bars(server).of(hint.pointer.class());
        if self.page_changes(server, page) != hint.generation
            || self.directory.is_below(at, epoch, bar)
        {
            self.directory.forget(at);
            self.count(Count::StalePointers);
            return None;
        }
        Some((at, hint))
    }

    /// Reads the block that the directory has for a key into `self.block`. Returns the item, its header, and the number
    /// of words. `None` if that does not answer a plain get.
    #[inline]
    pub(super) fn read_known(
        &mut self,
        now: Time,
        server: usize,
        control: &Control,
        key: &Key<'_>,
    ) -> Option<(Item, Header, usize)> {
        let (at, hint) = self.hint(server, key.hash(), control.epoch)?;
        let first = self.layout.block(hint.pointer);
        let len = self.layout.block_words(hint.pointer);
        if self.block.len() < len {
            self.block.resize(len, 0);
        }
        let reachable = self.channels[server].reachable;
        let checksum = match reachable {
            true => {
                let theirs = self.fabric.direct(server, first, len)?;
                load_in_order(theirs, &mut self.block[..len]);
                // Read from the head to the tail, equal versions suffice if the writers' words are seen in order.
                // OpenSHMEM does not define that for a reader that loads them.
                (!self.in_order).then_some(&self.checksum)
            }
            false => {
                let words = &mut self.block[..len];
                self.fabric.get(server, first, words).ok()?;
                self.checksum_used()
            }
        };
        let words = &self.block[..len];
        let Found::Pair(header) = block::judge(words, key.bytes(), checksum) else {
            return None;
        };
        if !header.is_live(now, control.flushes.generation) || control.flushes.may_be_over(now) {
            return None;
        }
        let (version, recency, tail) = (words[HEAD], Recency(words[RECENCY]), words[len - 1]);
        let item = header.item(recency.was_read(version));
        self.directory.touch(at, control.epoch);
        if tail != hint.tail {
            self.directory.set_tail(at, tail);
        }
        if !(item.fetched && recency.epoch() == control.epoch) {
            let new = Recency::new(control.epoch, version, true);
            self.mark_used(server, hint.pointer, recency, new);
        }
        Some((item, header, len))
    }

    /// The checksum by which readers check words.
    #[inline(always)]
    fn checksum_used(&self) -> Option<&Checksum> {
        match self.config.fault {
            Fault::NoChecksum => None,
            _ => Some(&self.checksum),
        }
    }

    /// Notes in the block that its version was read in this epoch.
    pub(super) fn mark_used(
        &mut self,
        server: usize,
        pointer: Pointer,
        before: Recency,
        new: Recency,
    ) {
        self.count(Count::RecencySwaps);
        let at = self.layout.block(pointer).plus(RECENCY);
        // It may fail because of another reader, or because the server is gone: the recency is a hint.
        let _ = self.fabric.compare_swap(server, at, before.0, new.0);
    }

    /// Judges a block that was read into the wave's words. Returns the request's next step.
    pub(super) fn judge_block(
        &mut self,
        now: Time,
        key: &Key<'_>,
        read: &Read,
        fetched: Fetched,
    ) -> Step {
        let Fetched {
            server,
            pointer,
            generation,
            start,
            hinted,
            tries,
        } = fetched;
        let checksum = self.checksum_used();
        let len = self.layout.block_words(pointer);
        let words = &self.wave.words[start..start + len];
        match block::judge(words, key.bytes(), checksum) {
            Found::Pair(header) => {
                let (version, recency) = (words[HEAD], Recency(words[RECENCY]));
                let tail = words[len - 1];
                let found = InBlock {
                    server,
                    pointer,
                    generation,
                    start,
                    header,
                    version,
                    recency,
                    tail,
                };
                self.accept(now, key, read, found, hinted)
            }
            Found::Torn if tries < READS => {
                self.count(Count::Torn);
                Step::ReadBlock {
                    pointer,
                    generation,
                    hinted,
                    tries: tries + 1,
                }
            }
            Found::Torn => Step::Send,
            Found::Other if hinted => {
                // The pair is no longer here. Its new place takes another Get, or a message.
                self.directory.forget_key(key.hash());
                self.count(Count::StalePointers);
                match self.channels[server].selector.reads_buckets() {
                    true => Step::ReadBucket,
                    false => Step::Send,
                }
            }
            // The tag was another key's, or the pair moved meanwhile: the server knows which.
            Found::Other => Step::Send,
        }
    }

    /// Accepts a whole pair of the key that was read.
    fn accept(
        &mut self,
        now: Time,
        key: &Key<'_>,
        read: &Read,
        found: InBlock,
        hinted: bool,
    ) -> Step {
        let InBlock {
            server,
            pointer,
            generation,
            start,
            header,
            version,
            recency,
            tail,
        } = found;
        let control = self.control(server);
        if !header.is_live(now, control.flushes.generation) {
            return Step::Answered(Answer::Done(Reply::Miss));
        }
        if control.flushes.may_be_over(now) {
            return Step::Send;
        }
        if read.may_win && header.status & (STALE | WON) == STALE {
            return Step::Send;
        }
        let item: Item = header.item(recency.was_read(version));
        let hint = Hint {
            pointer,
            generation,
            tail,
        };
        let bars = Bars::new(self.fabric.local(self.layout.bars(server), bars::WORDS));
        self.directory
            .learn(key.hash(), hint, control.epoch, bars, read.bump);
        if read.bump && !(item.fetched && recency.epoch() == control.epoch) {
            let new = Recency::new(control.epoch, version, true);
            match self.channels[server].reachable {
                true => self.mark_used(server, pointer, recency, new),
                // It is changed together with others.
                false => self.wave.used.push(Used {
                    server,
                    pointer,
                    before: recency,
                    new,
                }),
            }
        }
        self.count(Count::DirectGets);
        if hinted {
            self.count(Count::DirectoryHits);
        }
        Step::Answered(match nuthatch_engine::semantics::wants_value(read, &item) {
            true => Answer::Value {
                item,
                at: start + header.value_at(),
            },
            false => Answer::Done(Reply::Found(item)),
        })
    }

    /// Judges a bucket that was read into the wave's words. Returns the next step of the key's request.
    pub(super) fn judge_bucket(&mut self, server: usize, key: &Key<'_>, start: usize) -> Step {
        let words = &self.wave.words[start..start + bucket::WORDS];
        match bucket::lookup(words, key.hash()) {
            // The generation must not be younger than the pair that will be read: once a page has left its class, none
            // of its pairs is readable until this session has left the blocks. A generation that is looked up after the
            // read may be that of the page's next class, and the directory would take a stale pointer for a fresh one.
            Lookup::One(pointer) if self.layout.is_block(pointer) => Step::ReadBlock {
                pointer,
                generation: self.page_changes(server, self.layout.page_of(pointer)),
                hinted: false,
                tries: 0,
            },
            Lookup::Miss => {
                self.count(Count::DirectMisses);
                Step::Answered(Answer::Done(Reply::Miss))
            }
            Lookup::One(_) | Lookup::Unclear => Step::Send,
        }
    }

    /// The step of a set whose pair's block is known and fits the new value.
    pub(super) fn block_to_set(
        &mut self,
        server: usize,
        key: &Key<'_>,
        store: &Store<'_>,
        epoch: u32,
    ) -> Option<Step> {
        let (at, hint) = self.hint(server, key.hash(), epoch)?;
        let words = block::pair_words(key.bytes().len(), store.value.len());
        let fits = words * 8 <= self.config.item_size_max
            && self.layout.classes.class_of(words) == Some(hint.pointer.class());
        fits.then_some(Step::Write(at, hint))
    }

    /// Sets a pair whose block is known and fits. `None`: the session must ask the server.
    pub(super) fn direct_set(
        &mut self,
        server: usize,
        key: &Key<'_>,
        store: &Store<'_>,
        at: At,
        hint: Hint,
    ) -> Result<Option<Reply>, Gone> {
        let pointer = hint.pointer;
        // The key is compared before the lock, or, where that takes a round trip, together with it.
        let mut is_same = !self.begin_key_read(server, key, pointer)?;
        if is_same && !self.holds_key(server, key, pointer)? {
            return Ok(self.not_here(at));
        }
        let last = self.layout.block_words(pointer) - 1;
        let mut tail = Tail(hint.tail);
        for _ in 0..LOCKS {
            let version = tail.version() + 1;
            if version >= VERSION_MAX {
                return Ok(None);
            }
            // The content is made before the lock, which is held for as short a time as possible.
            let header = self.lay(server, key, store, version);
            let locked = Tail::new(version, self.session);
            let tail_at = self.layout.block(pointer).plus(last);
            let found = self
                .fabric
                .compare_swap(server, tail_at, tail.0, locked.0)?;
            is_same = is_same || self.has_read_key(key);
            if found == tail.0 {
                if !is_same && !self.holds_key(server, key, pointer)? {
                    self.give_back(server, pointer, version)?;
                    return Ok(self.not_here(at));
                }
                self.write_locked(server, at, pointer, version)?;
                return Ok(Some(Reply::Stored(header.item(false))));
            }
            self.count(Count::LocksLost);
            match self.tail_seen(server, key, at, pointer)? {
                // With a tail, the block's key was read, too.
                Some(seen) => (tail, is_same) = (seen, true),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The hint leads to another key's block. The set is the server's.
    fn not_here(&mut self, at: At) -> Option<Reply> {
        self.directory.forget(at);
        self.count(Count::StalePointers);
        None
    }

    /// Where a block's memory cannot be loaded: begins to get the words that show its key, which the compare-swap of the
    /// lock then waits for, too. If it locks the block from the hint's tail, the block has held one key from before the
    /// Get until now, and does until this session writes to it: a tail never comes back. So these words show whose pair is
    /// locked, whichever of the two came first. False: they have to be read before the lock.
    fn begin_key_read(
        &mut self,
        server: usize,
        key: &Key<'_>,
        pointer: Pointer,
    ) -> Result<bool, Gone> {
        if self.channels[server].reachable || self.key_is_coming {
            return Ok(false);
        }
        let from = self.layout.block(pointer).plus(META);
        let into = self.layout.key_seen(self.session);
        // They lie in the block: it has room for a pair of this key.
        let (expected, len) = key_words(key);
        self.key_is_coming = true;
        for (word, expected) in self.fabric.local(into, len).iter().zip(&expected) {
            // Release: earlier loads of the words do not move behind this.
            word.store(!expected, Ordering::Release);
        }
        self.fabric.get_nbi(server, from, into, len)?;
        Ok(true)
    }

    /// True if the words of [`begin_key_read`](Self::begin_key_read) have come, and show this key. If some have not come
    /// yet, no other ones are got there until a `quiet` has completed them.
    fn has_read_key(&mut self, key: &Key<'_>) -> bool {
        let (expected, len) = key_words(key);
        let into = self.fabric.local(self.layout.key_seen(self.session), len);
        let (mut is_same, mut have_come) = (true, true);
        for (index, (word, expected)) in into.iter().zip(&expected).enumerate() {
            if (1..KEY - META).contains(&index) {
                // Nothing about the key.
                continue;
            }
            // Acquire: the content is put behind it.
            let word = word.load(Ordering::Acquire);
            have_come &= word != !expected;
            is_same &= match index {
                0 => word as u8 == *expected as u8,
                _ => word == *expected,
            };
        }
        self.key_is_coming = !have_come;
        is_same && have_come
    }

    /// Unlocks a block whose pair is another key's, which is only known under the lock if two keys have one hash: its
    /// content becomes the lock's version.
    #[cold]
    fn give_back(&mut self, server: usize, pointer: Pointer, version: u64) -> Result<(), Gone> {
        // Nobody else writes, and this session's words have arrived: those there are of the version before.
        self.complete_writes(|_| true);
        let start = self.get_block(server, pointer)?;
        let words = &self.wave.words[start..];
        let end = Header::read(words).content_end().min(words.len() - 1);
        let check = self.checksum.of(version, &words[META..end]);
        self.wave.words.truncate(start);
        let first = self.layout.block(pointer);
        self.fabric.put(server, first.plus(CHECK), &[check])?;
        self.unlock(server, first, version)
    }

    /// True if a block holds this key: the directory finds another key's hint if both have one hash. The lock proves that
    /// the block held this key all the time: a tail never comes back, and with the hint's tail it has the hint's key.
    fn holds_key(&self, server: usize, key: &Key<'_>, pointer: Pointer) -> Result<bool, Gone> {
        let from = self.layout.block(pointer).plus(META);
        let mut words = [0; KEY_READ];
        let len = (KEY - META + block::words_of(key.bytes().len()))
            .min(self.layout.block_words(pointer) - META);
        let words = &mut words[..len];
        match self.fabric.direct(server, from, len) {
            Some(theirs) => {
                for (into, word) in words.iter_mut().zip(theirs) {
                    // Acquire: the compare-swap does not move before it.
                    *into = word.load(Ordering::Acquire);
                }
            }
            None => self.fabric.get(server, from, words)?,
        }
        let bytes: &[u8] = bytemuck::cast_slice(&words[KEY - META..]);
        let key_len = usize::from(words[0] as u8);
        Ok(key_len == key.bytes().len() && bytes.get(..key_len) == Some(key.bytes()))
    }

    /// Lays the content of a version, from its checksum to its value, into `self.block`.
    fn lay(&mut self, server: usize, key: &Key<'_>, store: &Store<'_>, version: u64) -> Header {
        let header = Header {
            key_len: key.bytes().len() as u8,
            status: 0,
            generation: self.generation(server),
            value_len: store.value.len() as u32,
            flags: store.flags,
            expiry: block::expiry_to_tick(store.expiry),
            cas: version,
        };
        block::lay(
            &mut self.block,
            &self.checksum,
            version,
            &header,
            key.bytes(),
            &[store.value],
        );
        header
    }

    /// Writes the content in `self.block` to a block that is locked.
    fn write_locked(
        &mut self,
        server: usize,
        at: At,
        pointer: Pointer,
        version: u64,
    ) -> Result<(), Gone> {
        // The content lies behind the lock: pairs with the fence in `load_in_order`.
        self.fabric.fence();
        let first = self.layout.block(pointer);
        self.fabric.put(server, first.plus(CHECK), &self.block)?;
        let epoch = self.control(server).epoch;
        if self.directory.touch(at, epoch) {
            let recency = Recency::new(epoch, version, false);
            // A Put, though readers compare and swap the word: a `set` may wait for the PE, and any of them may be lost.
            self.fabric.put(server, first.plus(RECENCY), &[recency.0])?;
        }
        self.unlock(server, first, version)?;
        let tail = Tail::new(version, self.session);
        self.directory.set_tail(at, tail.0);
        self.count(Count::DirectSets);
        Ok(())
    }

    /// Invariant 2: the head lies behind the content, and unlocks the block. It is the last word: once a block's head has
    /// arrived, nothing more is under way to the block, even if this PE is gone then.
    fn unlock(&mut self, server: usize, first: Address, version: u64) -> Result<(), Gone> {
        self.fabric.fence();
        let head = first.plus(HEAD);
        self.fabric.put(server, head, &[version])?;
        self.wave.wrote.push(Wrote {
            server,
            head,
            version,
        });
        Ok(())
    }

    /// Another writer has changed the block. The tail from which it is locked next must have been seen with an equal
    /// head (invariant 1), and with this key: reads such a tail. `None`: the session must ask the server.
    fn tail_seen(
        &mut self,
        server: usize,
        key: &Key<'_>,
        at: At,
        pointer: Pointer,
    ) -> Result<Option<Tail>, Gone> {
        let start = self.get_block(server, pointer)?;
        let words = &self.wave.words[start..];
        let judged = block::judge(words, key.bytes(), Some(&self.checksum));
        let tail = Tail(words[words.len() - 1]);
        self.wave.words.truncate(start);
        Ok(match judged {
            Found::Pair(_) => Some(tail),
            Found::Torn => {
                self.count(Count::Torn);
                (self.config.fault == Fault::LockBeforeHead).then_some(tail)
            }
            Found::Other => {
                self.directory.forget(at);
                self.count(Count::StalePointers);
                None
            }
        })
    }
}

/// The words from META on that show this key, and how many there are. Of the first one only the key's length is known: all
/// others of its bits set would be those of no pair, whose value would be too long.
fn key_words(key: &Key<'_>) -> ([u64; KEY_READ], usize) {
    let mut words = [0; KEY_READ];
    words[0] = key.bytes().len() as u64;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words[KEY - META..]);
    bytes[..key.bytes().len()].copy_from_slice(key.bytes());
    (words, KEY - META + block::words_of(key.bytes().len()))
}

/// A block that was read.
#[derive(Clone, Copy)]
pub struct Fetched {
    pub server: usize,
    pub pointer: Pointer,
    /// The generation of its page, read before the block was.
    pub generation: u64,
    /// Where its words are in the wave's.
    pub start: usize,
    /// The directory led there.
    pub hinted: bool,
    pub tries: u32,
}

/// A whole pair that was read.
struct InBlock {
    server: usize,
    pointer: Pointer,
    generation: u64,
    start: usize,
    header: Header,
    version: u64,
    recency: Recency,
    tail: u64,
}
