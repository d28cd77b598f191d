//! Plain gets: MemC3's optimistic lookup.
//!
//! A get is answered on one of three ways: on the fast path, straight through; on the second half of it, in a batch
//! that has compared the tags before; or on the slow path, for all unusual cases.

use std::sync::Arc;

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::stripes::Snapshot;

use super::find::Lookup;
use super::handle::{COPY_MAX, CuckooValue};
use super::index::Candidates;
use super::layout::{SlotWord, Variant};
use super::local::Local;
use super::read::Change;
pub use super::reading::FastPath;
use super::reading::InWindow;
use super::{Cuckoo, plain_item};
use nuthatch_engine::reply::{Replies, Reply};
use nuthatch_engine::request::Key;
use nuthatch_store::count::Count;
use nuthatch_store::item::Header;
use nuthatch_store::memory::arena::Address;
use nuthatch_store::reclaim::Reclaim;

/// A lookup between the second and the third stage of a batch: its tags have been compared, and it waits for the item's
/// line.
#[derive(Clone, Copy, Default)]
pub(super) struct Probe {
    snapshot: Snapshot,
    /// The first item whose tag matched, or [`Probe::NOTHING`], or [`Probe::STRAY`]. (An `Option` would be a word more.)
    candidate: Address,
}

impl Probe {
    const NOTHING: Address = Address(u64::MAX);
    /// No item's address either.
    const STRAY: Address = Address(u64::MAX - 1);

    /// True if the first bucket does not hold the key, and the second was not looked into.
    #[inline(always)]
    pub fn is_stray(&self) -> bool {
        self.candidate == Self::STRAY
    }
}

/// Attempts of a reader without a lock, before it takes the lock. Each failed attempt was spoiled by a writer that
/// finished a change. So many in a row happen only where writers take turns at one key. Then the reader waits for the
/// lock like a writer, and no writer can spoil what it reads under it.
pub(super) const ATTEMPTS: usize = if cfg!(loom) { 1 } else { 16 };

/// How an optimistic attempt ended.
pub(super) enum Attempt {
    Done,
    /// A writer changed something.
    Again,
    /// A hit on a value too large to copy: it must be pinned under the lock.
    LockedBuckets,
}

impl<D: Variant> Cuckoo<D> {
    /// Second stage: compares tags and starts loading the item.
    #[inline(always)]
    pub(super) fn probe(&self, place: &Candidates) -> Probe {
        let (snapshot, buckets) = self.index.begin(place);
        let candidate = match self.index.first_match(buckets, place.tag) {
            Some(slot) => self.expect(slot),
            None => Probe::NOTHING,
        };
        Probe {
            snapshot,
            candidate,
        }
    }

    /// Second stage with the first bucket alone: the same if a tag matches there. Else it starts loading the second
    /// bucket, and the result is a stray.
    #[inline(always)]
    pub(super) fn probe_first(&self, hash: u64) -> Probe {
        let place = &self.index.place(hash);
        let (snapshot, bucket) = self.index.begin_first(place);
        let candidate = match self.index.match_in(bucket, place.tag) {
            Some(slot) => self.expect(slot),
            None => {
                self.index.prefetch_second(place);
                Probe::STRAY
            }
        };
        Probe {
            snapshot,
            candidate,
        }
    }

    /// Starts loading the item of a slot.
    #[inline(always)]
    fn expect(&self, slot: SlotWord) -> Address {
        let address = slot.address::<D>();
        let first = self.store.arena.pointer(address);
        let level = self.index.level();
        level.lines_soon(first, slot.more_lines::<D>());
        level.soon(self.store.recency.pointer(address));
        address
    }

    /// Third stage of a plain get, on the fast path only.
    #[inline(always)]
    pub(super) fn get_probed(
        &self,
        lookup: &Lookup<'_>,
        probe: &Probe,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> FastPath {
        match probe.candidate {
            Probe::NOTHING => self
                .reading()
                .answer_miss(lookup.index, &probe.snapshot, replies),
            // A stray is out of the arena: an unusual case.
            address => {
                let live = |header: &Header| self.is_live(header, lookup.now);
                let Lookup { ref key, index, .. } = *lookup;
                let at = (index, address, &probe.snapshot);
                self.reading()
                    .answer_hit(key, at, live, replies, self.on_hit())
            }
        }
    }

    /// A plain get alone that needs no handle, on the fast path only, at a moment that is read from a clock only if
    /// something depends on it. The engine does not count it.
    ///
    /// At a hit `replies` was called for `begin` and `commit`, at a miss for `done`. Else it may have been called for
    /// `begin`, nothing that it was given counts, and a handle has to answer.
    #[inline(always)]
    pub fn get_at_once(
        &self,
        clock: impl Fn() -> Time,
        key: &Key<'_>,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> FastPath {
        self.timestamps.apply_flush_by(&clock);
        let live = |header: &Header| self.timestamps.flushes().is_live_by(header, &clock);
        self.get_fast(key, live, replies)
    }

    /// A plain get alone, for the usual case: see [`Reading::get_fast`](super::reading::Reading::get_fast).
    #[inline(always)]
    pub(super) fn get_fast(
        &self,
        key: &Key<'_>,
        live: impl FnOnce(&Header) -> bool,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> FastPath {
        self.reading().get_fast(key, live, replies, self.on_hit())
    }

    /// Notes a hit on the fast path.
    #[inline(always)]
    fn on_hit(&self) -> impl FnOnce(InWindow) {
        // SAFETY: the address has a window, so it begins in the arena, or at its end; the store reserved the bits
        // for that arena.
        |hit| unsafe { self.store.recency.hit_within(hit.address()) }
    }

    /// A plain get, in every case.
    #[cold]
    #[inline(never)]
    pub(super) fn get_slow(
        self: &Arc<Self>,
        local: &Local,
        lookup: Lookup<'_>,
        replies: &mut dyn Replies<CuckooValue<D>>,
    ) {
        let Lookup {
            now,
            ref key,
            index,
        } = lookup;
        let place = &self.index.place(key.hash());
        for _ in 0..ATTEMPTS {
            let (snapshot, buckets) = self.index.begin(place);
            let found = self.find(local, place.tag, buckets, key);
            let found = found.map(|found| (found.address, found.header));
            match self.answer(local, now, found, &snapshot, index, replies) {
                Attempt::Done => return,
                Attempt::LockedBuckets => break,
                Attempt::Again => local.counters.one(Count::Retries),
            }
        }
        self.get_locked(local, &lookup, replies);
    }

    /// Copies the value into the caller's output, and keeps it if nothing changed.
    #[inline(always)]
    fn answer(
        &self,
        local: &Local,
        now: Time,
        found: Option<(Address, Header)>,
        snapshot: &Snapshot,
        index: usize,
        replies: &mut dyn Replies<CuckooValue<D>>,
    ) -> Attempt {
        let Some((address, header)) = found.filter(|(_, header)| self.is_live(header, now)) else {
            return self.done_if_unchanged(snapshot, || {
                if let Some((_, dead)) = &found {
                    local.counters.read_dead(dead, now);
                }
                replies.done(index, Reply::Miss);
            });
        };
        let item = plain_item(&header);
        if item.value_len > COPY_MAX {
            return if self.index.unchanged(snapshot) {
                Attempt::LockedBuckets
            } else {
                Attempt::Again
            };
        }
        let shape = header.shape(self.store.cut());
        let into = replies.begin(index, &item);
        self.store.read_value(address, &shape, 0, into);
        if self.index.unchanged(snapshot) {
            replies.commit(index);
            self.store.hit(address, &header);
            Attempt::Done
        } else {
            replies.retract(index);
            Attempt::Again
        }
    }

    /// Validates a snapshot: if nothing changed, `done` answers.
    #[inline(always)]
    pub(super) fn done_if_unchanged(&self, snapshot: &Snapshot, done: impl FnOnce()) -> Attempt {
        if self.index.unchanged(snapshot) {
            done();
            Attempt::Done
        } else {
            Attempt::Again
        }
    }

    /// A get under the lock, of a value too large to copy, or after writers spoiled all attempts.
    #[cold]
    fn get_locked(
        self: &Arc<Self>,
        local: &Local,
        lookup: &Lookup<'_>,
        replies: &mut dyn Replies<CuckooValue<D>>,
    ) {
        let Lookup {
            now,
            ref key,
            index,
        } = *lookup;
        let place = &self.index.place(key.hash());
        let locked = self.index.lock(place);
        let met = self.find_locked(local, &locked, key);
        let found = met.filter(|found| self.is_live(&found.header, now));
        match found {
            None => {
                if let Some(dead) = &met {
                    local.counters.read_dead(&dead.header, now);
                }
                locked.release_unmodified();
                replies.done(index, Reply::Miss);
            }
            Some(found) => {
                let item = plain_item(&found.header);
                self.store.hit(found.address, &found.header);
                let found = (found.address, &found.header, item);
                self.hand_out(locked, Change::None, found, index, replies);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::super::layout::EightWay;
    use super::super::{Cuckoo, CuckooConfig};
    use nuthatch_engine::reply::{LastReply, Reply};
    use nuthatch_engine::request::{Key, Op, Request, Store};
    use nuthatch_engine::{Engine, Handle, KeyHasher, Time};

    /// A batch looks into first buckets alone, because nearly all items lie there.
    #[test]
    fn most_items_lie_in_their_first_bucket() {
        let config = CuckooConfig {
            memory_limit: 64 << 20,
            initial_items: Some(200_000),
            // With one seed in many no path is found at the last load, and the index doubles.
            hasher: KeyHasher::seeded(1),
            ..CuckooConfig::default()
        };
        let engine: Arc<Cuckoo<EightWay>> = Arc::new(Cuckoo::new(config).unwrap());
        let slots = engine.stats().index_slots;
        let mut handle = engine.handle();
        let mut stored = 0_u64;
        for (load, least) in [(50, 98), (60, 97), (70, 95), (80, 91), (90, 86), (95, 82)] {
            while stored * 100 < slots * load {
                let name = stored.to_le_bytes();
                let key = Key::new(&name, engine.hasher());
                let op = Op::Store(Store::set(b"v"));
                let mut last = LastReply(Reply::Miss);
                handle.execute(Time(1), &[Request { key, op }], &mut last);
                stored += 1;
            }
            let first = |number: &u64| {
                let place = engine
                    .index
                    .place(engine.hasher().hash(&number.to_le_bytes()));
                let (_, bucket) = engine.index.begin_first(&place);
                engine.index.match_in(bucket, place.tag).is_some()
            };
            let share = 1000 * (0..stored).filter(first).count() as u64 / stored;
            assert!(share >= 10 * least, "{share} of 1000 at a load of {load} %");
        }
        assert_eq!(engine.stats().index_slots, slots);
    }
}
