//! Reading: MemC3's optimistic lookup, and the reads that also change the item.

use nuthatch_sync::clock::Time;
use nuthatch_sync::shim::Ordering;
use nuthatch_sync::stripes::Snapshot;

use super::count::Count;
use super::index::{Locked, Place, Position};
use super::layout::Design;
use super::local::Local;
use super::matching::{BASELINE, Mask, Matcher};
use super::value::CuckooValue;
use super::write::Fresh;
use super::{Cuckoo, Found, plain_item};
use crate::engine::Handle;
use crate::item::{Fields, HEADER, Header};
use crate::prefetch;
use crate::reply::{Item, Replies, Reply};
use crate::request::{Expiry, Key, Read};
use crate::slab::arena::{self, Chunk, WORD};
use std::sync::Arc;

/// One request of a batch.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The batch's moment.
    pub now: Time,
    /// Whom it is about.
    pub key: &'a Key<'a>,
    /// Where that key may be.
    pub place: &'a Place,
    /// Its number in the batch.
    pub index: usize,
}

/// What the second stage of a batch leaves for the third: a lookup that has seen the tags and waits
/// for the item's line.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    snapshot: Snapshot,
    /// The first item whose tag matched.
    candidate: Option<Chunk>,
}

/// How an optimistic attempt ended.
enum Attempt {
    Done,
    /// Something moved.
    Again,
    /// A hit on a value too large to copy: it must be pinned under the lock.
    Large,
}

impl<D: Design> Cuckoo<D> {
    /// Second stage: compares tags and starts loading the item.
    #[inline(always)]
    pub(super) fn probe<M: Matcher>(&self, matcher: M, place: &Place) -> Probe {
        let (snapshot, first, second) = self.index.begin(place);
        let mask = self.matches(matcher, place.tag, [first, second]);
        // The slot may have changed since its tag matched: then it is checked like any other.
        let candidate = (mask != 0).then(|| {
            let at = position::<D>([first, second], mask);
            let chunk = self.index.load(at).chunk::<D>();
            prefetch::read(self.store.arena.address(chunk));
            prefetch::read(self.store.recency.address(chunk));
            chunk
        });
        Probe {
            snapshot,
            candidate,
        }
    }

    /// Third stage of a plain get.
    #[inline(always)]
    pub(super) fn get_probed<M: Matcher>(
        self: &Arc<Self>,
        local: &Local,
        matcher: M,
        asked: &Asked<'_>,
        probe: &Probe,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        let Asked {
            now, key, index, ..
        } = *asked;
        let answered = match probe.candidate {
            Some(chunk) => self.answer_usual(now, key, chunk, &probe.snapshot, index, replies),
            None => self.answer_miss(&probe.snapshot, index, replies),
        };
        if !answered {
            self.get_any(local, matcher, asked, replies);
        }
    }

    /// A plain get.
    #[inline(always)]
    pub(super) fn get<M: Matcher>(
        self: &Arc<Self>,
        local: &Local,
        matcher: M,
        asked: &Asked<'_>,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        if !self.get_usual(matcher, asked, replies) {
            self.get_any(local, matcher, asked, replies);
        }
    }

    /// A plain get for which nothing is out of the ordinary. False, with nothing answered, if
    /// something is. Without loops, and with no branch that is not nearly always taken the same
    /// way: the processor runs on into the next get while this one waits for memory.
    #[inline(always)]
    fn get_usual<M: Matcher>(
        &self,
        matcher: M,
        asked: &Asked<'_>,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> bool {
        let Asked {
            now,
            key,
            place,
            index,
        } = *asked;
        let Some((snapshot, first, second)) = self.index.begin_at_rest(place) else {
            return false;
        };
        let mask = self.matches(matcher, place.tag, [first, second]);
        if mask == 0 {
            return self.answer_miss(&snapshot, index, replies);
        }
        let at = position::<D>([first, second], mask);
        let chunk = self.index.load(at).chunk::<D>();
        self.answer_usual(now, key, chunk, &snapshot, index, replies)
    }

    #[inline(always)]
    fn answer_miss(
        &self,
        snapshot: &Snapshot,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> bool {
        let unchanged = self.index.unchanged(snapshot);
        if unchanged {
            replies.done(index, Reply::Miss);
        }
        unchanged
    }

    /// Answers with the item in a chunk if it is this key's, alive, with the usual header, not too
    /// large to copy, and not moved meanwhile. False, with nothing answered, otherwise.
    #[inline(always)]
    fn answer_usual(
        &self,
        now: Time,
        key: &Key<'_>,
        chunk: Chunk,
        snapshot: &Snapshot,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> bool {
        let arena = &self.store.arena;
        let Some([word0, word1]) = arena.words(chunk, 2) else {
            return false;
        };
        let (word0, word1) = (word0.load(Ordering::Relaxed), word1.load(Ordering::Relaxed));
        let key_len = key.bytes().len();
        let Some(header) = Header::usual(word0, word1, key_len) else {
            return false;
        };
        let item = plain_item(&header);
        let words = (HEADER + key_len + item.value_len).div_ceil(WORD);
        let Some(words) = arena.words(chunk, words) else {
            return false;
        };
        let same = arena::equal(&words[HEADER / WORD..], key.bytes());
        if !same || !self.is_live(&header, now) || item.value_len > super::handle::COPY_MAX {
            return false;
        }
        let into = replies.begin(index, &item);
        arena::copy_out(&words[(HEADER + key_len) / WORD..], key_len % WORD, into);
        let unchanged = self.index.unchanged(snapshot);
        if unchanged {
            replies.commit(index);
            self.store.recency.hit(chunk);
        } else {
            replies.retract(index);
        }
        unchanged
    }

    /// A plain get, whatever may be in its way.
    #[cold]
    #[inline(never)]
    fn get_any<M: Matcher>(
        self: &Arc<Self>,
        local: &Local,
        matcher: M,
        asked: &Asked<'_>,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        let Asked {
            now,
            key,
            place,
            index,
        } = *asked;
        // Each turn but the last means that a writer finished something meanwhile.
        loop {
            let (snapshot, first, second) = self.index.begin(place);
            let found = self.find(local, matcher, place.tag, [first, second], key);
            let found = found.map(|found| (found.chunk, found.header));
            match self.answer(now, found, &snapshot, index, replies) {
                Attempt::Done => return,
                Attempt::Large => return self.get_large(asked, replies),
                Attempt::Again => local.counters.one(Count::Retries),
            }
        }
    }

    /// Lays the value down, and keeps it if nothing moved.
    #[inline(always)]
    fn answer(
        &self,
        now: Time,
        found: Option<(Chunk, Header)>,
        snapshot: &Snapshot,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> Attempt {
        let Some((chunk, header)) = found.filter(|(_, header)| self.is_live(header, now)) else {
            return self.settle(snapshot, || replies.done(index, Reply::Miss));
        };
        let item = plain_item(&header);
        if item.value_len > super::handle::COPY_MAX {
            return if self.index.unchanged(snapshot) {
                Attempt::Large
            } else {
                Attempt::Again
            };
        }
        let shape = header.shape(self.store.chunk_max());
        let into = replies.begin(index, &item);
        self.store.read_value(chunk, &shape, 0, into);
        if self.index.unchanged(snapshot) {
            replies.commit(index);
            self.store.recency.hit(chunk);
            Attempt::Done
        } else {
            replies.retract(index);
            Attempt::Again
        }
    }

    #[inline(always)]
    fn settle(&self, snapshot: &Snapshot, done: impl FnOnce()) -> Attempt {
        if self.index.unchanged(snapshot) {
            done();
            Attempt::Done
        } else {
            Attempt::Again
        }
    }

    /// True if the chunk holds this key's item (under a lock, or as far as a reader can tell).
    #[inline(always)]
    fn is_key(&self, chunk: Chunk, header: &Header, key: &Key<'_>) -> bool {
        header.key_len() == key.bytes().len()
            && self
                .store
                .arena
                .equals(chunk, header.key_start() / WORD, key.bytes())
    }

    /// Looks for the key's item in two buckets. Believe it only under a lock or a version check.
    #[inline(always)]
    fn find<M: Matcher>(
        &self,
        local: &Local,
        matcher: M,
        tag: u64,
        buckets: [u64; 2],
        key: &Key<'_>,
    ) -> Option<Found> {
        let mut mask = self.matches(matcher, tag, buckets);
        while mask != 0 {
            let at = position::<D>(buckets, mask);
            mask &= mask - 1;
            let slot = self.index.load(at);
            if slot.is_empty() {
                continue;
            }
            let chunk = slot.chunk::<D>();
            let header = Header::load(&self.store.arena, chunk);
            if self.is_key(chunk, &header, key) {
                return Some(Found { at, chunk, header });
            }
            local.counters.one(Count::FalseTags);
        }
        None
    }

    /// Slots of both buckets whose tag matches, the second bucket's above the first's. Both are
    /// always looked at: which of them holds a key is a coin toss, and a branch on it would be
    /// mispredicted, with a memory miss to wait for, every other time.
    #[inline(always)]
    fn matches<M: Matcher>(&self, matcher: M, tag: u64, buckets: [u64; 2]) -> Mask {
        self.index.matches(matcher, buckets[0], tag)
            | self.index.matches(matcher, buckets[1], tag) << D::SLOTS
    }

    /// Looks for the key's item under its lock, dead or alive.
    #[inline]
    pub(super) fn find_locked(
        &self,
        local: &Local,
        locked: &Locked<'_, D>,
        key: &Key<'_>,
    ) -> Option<Found> {
        self.find(
            local,
            BASELINE,
            locked.place.tag,
            [locked.first, locked.second],
            key,
        )
    }

    /// A get of a value too large to copy.
    #[cold]
    fn get_large(self: &Arc<Self>, asked: &Asked<'_>, replies: &mut impl Replies<CuckooValue<D>>) {
        let Asked {
            now,
            key,
            place,
            index,
        } = *asked;
        let locked = self.index.lock(place);
        let found = self
            .find_unbumped(&locked, key)
            .filter(|found| self.is_live(&found.header, now));
        match found {
            None => {
                locked.release_unmodified();
                replies.done(index, Reply::Miss);
            }
            Some(found) => {
                let item = plain_item(&found.header);
                self.hand_out(locked, found.chunk, &found.header, item, index, replies);
            }
        }
    }

    fn find_unbumped(&self, locked: &Locked<'_, D>, key: &Key<'_>) -> Option<Found> {
        locked.positions().find_map(|at| {
            let slot = locked.load(at);
            if slot.is_empty() || slot.tag::<D>() != locked.place.tag {
                return None;
            }
            let chunk = slot.chunk::<D>();
            let header = Header::load(&self.store.arena, chunk);
            self.is_key(chunk, &header, key)
                .then_some(Found { at, chunk, header })
        })
    }

    /// Answers with the value of an item whose lock is held, and releases it.
    fn hand_out(
        self: &Arc<Self>,
        locked: Locked<'_, D>,
        chunk: Chunk,
        header: &Header,
        item: Item,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        let shape = header.shape(self.store.chunk_max());
        if item.value_len > super::handle::COPY_MAX {
            self.store.pins.pin(chunk);
            drop(locked);
            let value = CuckooValue::new(Arc::clone(self), chunk, *header);
            replies.large(index, &item, value);
        } else {
            // Copied under the lock: what was changed and what is answered are one.
            let into = replies.begin(index, &item);
            self.store.read_value(chunk, &shape, 0, into);
            drop(locked);
            replies.commit(index);
        }
    }

    /// A read with options.
    pub(super) fn read(
        self: &Arc<Self>,
        local: &mut Local,
        asked: &Asked<'_>,
        read: &Read,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        if !self.read_unchanged(local, asked, read, replies) {
            self.read_changing(local, asked, read, replies);
        }
    }

    /// Answers a read that changes nothing, without a lock. False if it may have to change
    /// something, or must hold a large value in place.
    fn read_unchanged(
        &self,
        local: &Local,
        asked: &Asked<'_>,
        read: &Read,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> bool {
        let Asked {
            now,
            key,
            place,
            index,
        } = *asked;
        if read.touch.is_some() {
            return false;
        }
        loop {
            let (snapshot, first, second) = self.index.begin(place);
            let found = self.find(local, BASELINE, place.tag, [first, second], key);
            let Some(found) = found.filter(|found| self.is_live(&found.header, now)) else {
                if read.vivify.is_some() {
                    return false;
                }
                match self.settle(&snapshot, || replies.done(index, Reply::Miss)) {
                    Attempt::Done => return true,
                    _ => continue,
                }
            };
            let item = self.item(found.chunk, &found.header, now);
            let value = read.value && read.unless_cas != Some(item.cas);
            let wins =
                read.may_win && !item.won_before && (item.stale || needs_recache(&item, read, now));
            if wins || (value && item.value_len > super::handle::COPY_MAX) {
                return false;
            }
            if value {
                let shape = found.header.shape(self.store.chunk_max());
                self.store
                    .read_value(found.chunk, &shape, 0, replies.begin(index, &item));
            }
            match (self.index.unchanged(&snapshot), value) {
                (true, true) => replies.commit(index),
                (true, false) => replies.done(index, Reply::Found(item)),
                (false, laid_down) => {
                    if laid_down {
                        replies.retract(index);
                    }
                    local.counters.one(Count::Retries);
                    continue;
                }
            }
            if read.bump {
                self.store.recency.hit(found.chunk);
            }
            return true;
        }
    }

    /// A read that changes the item, or creates it, under its lock.
    fn read_changing(
        self: &Arc<Self>,
        local: &mut Local,
        asked: &Asked<'_>,
        read: &Read,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        let Asked {
            now,
            key,
            place,
            index,
        } = *asked;
        let mut spare = None;
        loop {
            let locked = self.index.lock(place);
            let found = self.find_locked(local, &locked, key);
            let live = found.filter(|found| self.is_live(&found.header, now));
            if let Some(found) = live {
                self.read_hit(locked, now, &found, read, index, replies);
                break;
            }
            let Some(expiry) = read.vivify else {
                locked.release_unmodified();
                replies.done(index, Reply::Miss);
                break;
            };
            let Some(fresh) = spare.take() else {
                locked.release_unmodified();
                match self.allocate(local, now, key, 0, read.new_cas.is_some()) {
                    Ok(fresh) => spare = Some(fresh),
                    Err(refusal) => return replies.done(index, refusal),
                }
                continue;
            };
            match self.vivify(local, locked, found, fresh, now, expiry, read) {
                Ok(item) => {
                    self.answer_vivified(item, read, index, replies);
                    break;
                }
                Err(fresh) => {
                    spare = Some(fresh);
                    if !self.make_room(local, now, place) {
                        local.counters.one(Count::OutOfMemory);
                        replies.done(index, Reply::OutOfMemory);
                        break;
                    }
                }
            }
        }
        if let Some(fresh) = spare {
            self.discard(fresh);
        }
        self.help_growth();
    }

    fn answer_vivified(
        &self,
        item: Item,
        read: &Read,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        if read.value {
            replies.begin(index, &item);
            replies.commit(index);
        } else {
            replies.done(index, Reply::Found(item));
        }
    }

    /// Links an empty item that its creator has won. Gives the memory back if there is no slot.
    #[expect(clippy::too_many_arguments, reason = "one call, from the loop above")]
    fn vivify(
        &self,
        local: &mut Local,
        locked: Locked<'_, D>,
        dead: Option<Found>,
        fresh: Fresh,
        now: Time,
        expiry: Expiry,
        read: &Read,
    ) -> Result<Item, Fresh> {
        self.note_expiry(expiry);
        let above = dead.map_or(0, |found| found.header.sequence());
        let fields = Fields {
            flags: 0,
            expiry,
            sequence: self.next_sequence(local, now, above),
            cas: read.new_cas,
            stale: false,
            won: true,
        };
        let header = self.link(local, locked, dead, fresh, &fields)?;
        Ok(Item {
            won: true,
            won_before: false,
            ..plain_item(&header)
        })
    }

    /// A hit under the lock: everything that the read decides and changes.
    fn read_hit(
        self: &Arc<Self>,
        locked: Locked<'_, D>,
        now: Time,
        found: &Found,
        read: &Read,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        let mut item = self.item(found.chunk, &found.header, now);
        let mut fields = found.header.fields();
        let mut changed = false;
        if read.may_win && !item.won_before && (item.stale || needs_recache(&item, read, now)) {
            item.won = true;
            fields.won = true;
            changed = true;
        }
        if let Some(expiry) = read.touch {
            item.expiry = expiry;
            fields.expiry = expiry;
            changed = true;
            self.note_expiry(expiry);
        }
        if changed {
            let shape = found.header.shape(self.store.chunk_max());
            Header::new(&shape, &fields).store(&self.store.arena, found.chunk);
        }
        if read.bump {
            self.store.recency.hit(found.chunk);
        }
        let header = Header::load(&self.store.arena, found.chunk);
        if read.value && read.unless_cas != Some(item.cas) {
            self.hand_out(locked, found.chunk, &header, item, index, replies);
        } else if changed {
            drop(locked);
            replies.done(index, Reply::Found(item));
        } else {
            locked.release_unmodified();
            replies.done(index, Reply::Found(item));
        }
    }
}

/// True if the item's remaining life is shorter than the reader bears.
fn needs_recache(item: &Item, read: &Read, now: Time) -> bool {
    match (read.recache_below, item.expiry) {
        (Some(below), Expiry::At(at)) => at.since(now).as_secs() < u64::from(below),
        _ => false,
    }
}

/// The first matching slot.
#[inline(always)]
fn position<D: Design>(buckets: [u64; 2], mask: Mask) -> Position {
    let number = mask.trailing_zeros() as usize;
    // A select in arithmetic, for the reason given at `matches`.
    let second = u64::from(number >= D::SLOTS).wrapping_neg();
    let bucket = buckets[0] ^ ((buckets[0] ^ buckets[1]) & second);
    Position {
        bucket,
        slot: number % D::SLOTS,
    }
}

/// Proves that the limit of this engine's handle is the one used here.
const _: () =
    assert!(<super::CuckooHandle<super::EightWay> as Handle>::COPY_MAX == super::handle::COPY_MAX);
