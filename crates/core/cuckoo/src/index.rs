//! The index of the cuckoo engine: buckets of slots, their stripes, and the geometry. It contains slots, not items. That of
//! another process ([`Viewed`]) is read by the same code, and has no other.
//!
//! The protocol between readers, writers and the doubling is here and in [`super::grow`]; each loom
//! model drives these functions.

use std::hint::select_unpredictable;
use std::io;
use std::sync::Arc;

use nuthatch_base::hash::split;
use nuthatch_base::memory::Source;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};
use nuthatch_base::sync::stripes::{Pair, PairGuard, Snapshot};

use super::layout::{Geometry, SlotWord, Variant};
use super::matching::{Mask, Matching};
use super::parts::{Own, Parts, Viewed};
use nuthatch_store::item::Header;
use nuthatch_store::item::unlinked::Unlinked;
use nuthatch_store::prefetch::{self, Level};
use nuthatch_store::shared::{Plan, SharedPage};

/// Buckets, stripes and geometry of one table.
pub struct Index<D, P = Own> {
    parts: P,
    matching: Matching,
    level: Level,
    buckets_max: u64,
    design: std::marker::PhantomData<D>,
}

/// Where a key may be: everything that follows from its hash alone.
#[derive(Clone, Copy, Debug)]
pub struct Candidates {
    /// All bits of the first position.
    pub first: u64,
    /// All bits of the second position.
    pub second: u64,
    /// Its tag.
    pub tag: u64,
}

/// A slot of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The bucket.
    pub bucket: u64,
    /// The slot in it.
    pub slot: usize,
}

impl Position {
    /// The first of the slots that matched in two buckets.
    #[inline(always)]
    pub fn matched<D: Variant>(buckets: [u64; 2], mask: Mask) -> Self {
        let number = mask.trailing_zeros() as usize;
        // A select in arithmetic, for the reason given at `Index::matches`.
        let second = u64::from(number >= D::SLOTS).wrapping_neg();
        Self {
            bucket: buckets[0] ^ ((buckets[0] ^ buckets[1]) & second),
            slot: number % D::SLOTS,
        }
    }
}

/// Both buckets of a key, locked against other writers and, by version, against readers.
pub struct LockedBuckets<'a, D> {
    index: &'a Index<D>,
    guard: PairGuard<'a>,
    /// The key's place.
    pub place: Candidates,
    /// Its first bucket.
    pub first: u64,
    /// Its second bucket.
    pub second: u64,
}

/// How a move ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The item is in its other bucket.
    Done,
    /// Another thread changed one of the two slots, or the table's geometry, since the path was found.
    Stale,
}

impl<D: Variant> Index<D> {
    /// A table of `buckets` (a power of two, at least 2) that can double up to `buckets_max`.
    pub fn new(buckets: u64, buckets_max: u64, stripes: usize) -> io::Result<Self> {
        Self::new_in(&Source::Private, None, buckets, buckets_max, stripes)
    }

    /// The same, with memory from `source`, and a page on which its geometry is told.
    pub fn new_in(
        source: &Source,
        told: Option<Arc<SharedPage>>,
        buckets: u64,
        buckets_max: u64,
        stripes: usize,
    ) -> io::Result<Self> {
        assert!(buckets.is_power_of_two() && buckets_max.is_power_of_two());
        assert!(stripes as u64 <= buckets && buckets <= buckets_max);
        let words = |buckets: u64| buckets as usize * D::SLOTS;
        let parts = Own::reserve(words(buckets_max), words(buckets), stripes, source, told)?;
        parts.publish(Geometry {
            mask: buckets - 1,
            growing: false,
            split: 0,
        });
        Ok(Self::of(parts, buckets_max))
    }

    /// Notes in a plan for readers where it lies.
    pub fn note_parts(&self, plan: &mut Plan) {
        plan.stripes = self.parts.stripes().part();
        plan.stripe_count = self.parts.stripes().count() as u64;
        plan.index = self.parts.words().part();
    }

    /// Bytes of `buckets` buckets.
    pub fn bytes(buckets: u64) -> usize {
        buckets as usize * D::SLOTS * size_of::<u64>()
    }

    /// Bytes that it takes: all buckets of the doubling included, and a word of 32 bits a stripe.
    pub fn bytes_taken(&self) -> usize {
        Self::bytes(self.geometry().allocated_buckets())
            + self.parts.stripes().count() * size_of::<u32>()
    }

    /// Changes the geometry. Called by the one thread that splits, while it holds the lock of the
    /// stripe whose bucket it has split (or when the mapping does not change).
    pub fn publish(&self, geometry: Geometry) {
        let doubled = if geometry.growing { 2 } else { 1 };
        assert!(
            doubled * geometry.buckets() <= self.buckets_max
                && geometry.split <= geometry.buckets()
        );
        if geometry.growing && geometry.split == 0 {
            let buckets = geometry.allocated_buckets();
            self.parts.words().expect(buckets as usize * D::SLOTS);
        }
        self.parts.publish(geometry);
    }

    /// Stores a slot; the caller holds the lock of its stripe.
    #[inline(always)]
    pub fn store(&self, at: Position, slot: SlotWord) {
        // Relaxed: published by the Release of the stripe lock.
        self.bucket(at.bucket)[at.slot].store(slot.0, Ordering::Relaxed);
    }

    /// Backs buckets with memory ahead of their use.
    pub fn populate(&self, bucket: u64, count: u64) {
        let count = count.min(self.buckets_max - bucket);
        self.parts
            .words()
            .populate(bucket as usize * D::SLOTS, count as usize * D::SLOTS);
    }

    /// Locks both buckets of a key.
    #[inline]
    pub fn lock(&self, place: &Candidates) -> LockedBuckets<'_, D> {
        let guard = self.parts.stripes().lock(self.stripes_of(place));
        let geometry = self.geometry();
        let (first, second) = (geometry.locate(place.first), geometry.locate(place.second));
        LockedBuckets {
            index: self,
            guard,
            place: *place,
            first,
            second,
        }
    }

    /// Moves an item to its other bucket: one step of a cuckoo path, executed from its end. Both
    /// buckets are locked, everything the path assumed is checked again, and the item is never
    /// missing: a reader sees it in one bucket or the other, or reads again.
    ///
    /// `candidates_of` returns the candidates of an item's key; see [`Index::partner`].
    pub fn relocate(
        &self,
        from: Position,
        to: Position,
        item: SlotWord,
        candidates_of: impl Fn(SlotWord) -> Option<Candidates>,
    ) -> Moved {
        let guard = self
            .parts
            .stripes()
            .lock(self.parts.stripes().pair(from.bucket, to.bucket));
        let still = self.load(from) == item
            && self.load(to).is_empty()
            && self.partner(self.geometry(), from.bucket, item, candidates_of) == Some(to.bucket);
        if !still {
            guard.release_unmodified();
            return Moved::Stale;
        }
        self.store(to, item);
        self.store(from, SlotWord::EMPTY);
        Moved::Done
    }

    /// The other candidate bucket of an item in `bucket`. The table alone gives it, except while it doubles and only
    /// the other bucket is split. Then `candidates_of` gives it, from the key. Its answer may be wrong without the lock
    /// of the item's bucket; then `relocate` refuses it.
    #[inline]
    pub fn partner(
        &self,
        geometry: Geometry,
        bucket: u64,
        item: SlotWord,
        candidates_of: impl Fn(SlotWord) -> Option<Candidates>,
    ) -> Option<u64> {
        super::layout::partner(geometry, bucket, item.tag::<D>()).or_else(|| {
            let place = candidates_of(item)?;
            let (one, other) = (geometry.locate(place.first), geometry.locate(place.second));
            match bucket {
                _ if bucket == one => Some(other),
                _ if bucket == other => Some(one),
                _ => None,
            }
        })
    }

    /// Locks one bucket for the doubling: `bucket` and the one it splits into share a stripe.
    pub fn lock_bucket(&self, bucket: u64) -> PairGuard<'_> {
        // Its partner stripe is taken too: the lock only takes pairs, and one more stripe for the moment of a split
        // does no harm.
        self.parts
            .stripes()
            .lock(self.parts.stripes().pair(bucket, bucket ^ 1))
    }
}

impl<D: Variant> Index<D, Viewed> {
    /// A table of another process, to read. `None` if it cannot be one.
    pub fn view(parts: Viewed) -> Option<Self> {
        let buckets = parts.words().len() / D::SLOTS;
        let is_whole = buckets.is_power_of_two() && parts.words().len() == buckets * D::SLOTS;
        is_whole.then(|| Self::of(parts, buckets as u64))
    }
}

impl<D: Variant, P: Parts> Index<D, P> {
    fn of(parts: P, buckets_max: u64) -> Self {
        // A mask has a bit for each slot of two buckets, and `bytes` must not wrap.
        const { assert!(D::SLOTS >= 1 && 2 * D::SLOTS <= Mask::BITS as usize) };
        const { assert!(D::TAG_BITS == 8 || D::TAG_BITS == 16) };
        prefetch::tune();
        Self {
            parts,
            matching: Matching::detect(),
            level: Level::tuned(),
            buckets_max,
            design: std::marker::PhantomData,
        }
    }

    /// Where a key with this hash may be.
    #[inline(always)]
    pub fn place(&self, hash: u64) -> Candidates {
        let tag = D::tag(hash);
        let second = hash ^ split::partner_offset(tag);
        Candidates {
            first: hash,
            second,
            tag,
        }
    }

    /// The stripes of a key's both positions.
    #[inline(always)]
    fn stripes_of(&self, place: &Candidates) -> Pair {
        self.parts.stripes().pair(place.first, place.second)
    }

    /// The geometry. A reader must have taken its snapshot before: if a bucket was split before the snapshot, the
    /// split's release of the stripe lock makes the split visible to this load; if after, the version check fails.
    #[inline(always)]
    pub fn geometry(&self) -> Geometry {
        // Relaxed: ordered by the Acquire of the snapshot or of the lock taken before, which pairs
        // with the release of the lock under which `publish` stored it.
        Geometry::unpack(self.parts.geometry().load(Ordering::Relaxed))
    }

    /// The most buckets that the table can have.
    pub fn buckets_max(&self) -> u64 {
        self.buckets_max
    }

    /// The slots of a bucket.
    #[inline(always)]
    pub fn bucket(&self, bucket: u64) -> &[AtomicU64] {
        let bucket = match P::CHECKED {
            // A power of two. A wrong number is then another bucket, which no version check lets pass for this one.
            true => bucket & (self.buckets_max - 1),
            false => bucket,
        };
        let start = bucket as usize * D::SLOTS;
        debug_assert!(bucket < self.buckets_max);
        // SAFETY: `words` has room for `buckets_max` buckets. In an index of this process every number comes from
        // `Geometry::locate` or `partner`, which mask it by the table's size or twice that while it doubles; `publish`
        // lets neither pass `buckets_max`. In another process' it was just masked. Every lookup does this three times, and in
        // a get each instruction less lets the processor run further ahead.
        unsafe { self.parts.words().get_unchecked(start..start + D::SLOTS) }
    }

    /// A slot's word: valid only under a lock or after a version check.
    #[inline(always)]
    pub fn load(&self, at: Position) -> SlotWord {
        SlotWord(self.bucket(at.bucket)[at.slot].load(Ordering::Relaxed))
    }

    /// Starts loading both buckets of a key.
    #[inline(always)]
    pub fn prefetch(&self, place: &Candidates) {
        let geometry = self.geometry();
        self.level.soon(self.address(geometry.locate(place.first)));
        self.level.soon(self.address(geometry.locate(place.second)));
    }

    /// Prefetches a key's first bucket alone.
    #[inline(always)]
    pub fn prefetch_first(&self, hash: u64) {
        self.level.soon(self.address(self.geometry().locate(hash)));
    }

    /// Prefetches a key's second bucket alone.
    #[inline(always)]
    pub fn prefetch_second(&self, place: &Candidates) {
        self.level
            .soon(self.address(self.geometry().locate(place.second)));
    }

    /// The level of the cache into which lines are prefetched.
    #[inline(always)]
    pub fn level(&self) -> Level {
        self.level
    }

    /// The address of a bucket, for prefetching. It wraps: another process' geometry may give any number.
    #[inline(always)]
    pub fn address(&self, bucket: u64) -> *const AtomicU64 {
        self.parts
            .words()
            .as_ptr()
            .wrapping_add((bucket as usize).wrapping_mul(D::SLOTS))
    }

    /// Begins a read: the versions, and the two buckets under them.
    #[inline(always)]
    pub fn begin(&self, place: &Candidates) -> (Snapshot, [u64; 2]) {
        let snapshot = self.parts.stripes().snapshot(self.stripes_of(place));
        let geometry = self.geometry();
        let buckets = [geometry.locate(place.first), geometry.locate(place.second)];
        (snapshot, buckets)
    }

    /// Begins a read if no change of the buckets is under way.
    #[inline(always)]
    pub fn try_begin(&self, place: &Candidates) -> Option<(Snapshot, [u64; 2])> {
        let snapshot = self
            .parts
            .stripes()
            .snapshot_at_rest(self.stripes_of(place))?;
        let geometry = self.geometry();
        Some((
            snapshot,
            [geometry.locate(place.first), geometry.locate(place.second)],
        ))
    }

    /// Begins a read if nothing is under way, neither a change of the buckets nor a doubling.
    #[inline(always)]
    pub fn begin_at_rest(&self, place: &Candidates) -> Option<(Snapshot, [u64; 2])> {
        let snapshot = self
            .parts
            .stripes()
            .snapshot_at_rest(self.stripes_of(place))?;
        let geometry = self.geometry();
        let buckets = [place.first & geometry.mask, place.second & geometry.mask];
        (!geometry.growing).then_some((snapshot, buckets))
    }

    /// Begins a read of the first bucket alone: the version of its stripe, and the bucket under it.
    ///
    /// That is enough for a hit. Whoever writes a slot of the bucket, or an item to which one refers, holds the bucket's
    /// stripe (invariant 3 of the crate), and a bucket that is split has it in common with its other half. So if the
    /// version has not changed at the end, the bucket's slot has referred to the item all the time, and the item has
    /// not changed. A miss takes both buckets, under both versions.
    #[inline(always)]
    pub fn begin_first(&self, place: &Candidates) -> (Snapshot, u64) {
        let snapshot = self.parts.stripes().snapshot_one(place.first);
        (snapshot, self.geometry().locate(place.first))
    }

    /// The first slot of a bucket whose tag is `tag`.
    #[inline(always)]
    pub fn match_in(&self, bucket: u64, tag: u64) -> Option<SlotWord> {
        let bucket = self.bucket(bucket);
        let number = self.matching.first_in::<D>(bucket, tag)?;
        Some(SlotWord(bucket[number % D::SLOTS].load(Ordering::Relaxed)))
    }

    /// Ends a read: true if all values loaded since `begin` were valid at one moment, now.
    #[inline(always)]
    pub fn unchanged(&self, snapshot: &Snapshot) -> bool {
        self.parts.stripes().unchanged(snapshot)
    }

    /// Slots of two buckets whose tag is `tag`, the second bucket's above the first's; tag 0 finds the empty ones. Both
    /// buckets are always compared. Nearly every key that is there lies in its first one: of 262,144 slots in use 99.1 %
    /// at a load of 0.5, 97.8 at 0.6, 92.1 at 0.8, 87.1 at 0.9, 83.3 at 0.95. But a branch on that, which batches take
    /// ([`Index::begin_first`]), has a get alone wait for two memory misses in turn where it finds nothing: gets alone
    /// are as fast with it where all hit, and take 1.2 times as long where 60 % miss, 1.3 where 95 % do.
    #[inline(always)]
    pub fn matches(&self, buckets: [u64; 2], tag: u64) -> Mask {
        let [first, second] = buckets.map(|bucket| self.bucket(bucket));
        self.matching.matches::<D>(first, second, tag)
    }

    /// The first slot of two buckets whose tag is `tag`. It may have changed since its tag matched: then it
    /// is checked like any other.
    #[inline(always)]
    pub fn first_match(&self, buckets: [u64; 2], tag: u64) -> Option<SlotWord> {
        let mask = self.matches(buckets, tag);
        if mask == 0 {
            return None;
        }
        let number = mask.trailing_zeros() as usize;
        let [first, second] = buckets.map(|bucket| self.bucket(bucket));
        // Not a branch, for the reason given at `matches`.
        let bucket = select_unpredictable(number < D::SLOTS, first, second);
        Some(SlotWord(bucket[number % D::SLOTS].load(Ordering::Relaxed)))
    }
}

impl<D: Variant> LockedBuckets<'_, D> {
    /// Unlocks without a change: readers need not read again.
    #[inline]
    pub fn release_unmodified(self) {
        self.guard.release_unmodified();
    }

    /// Takes the item that a slot refers to, whose header is given, out of the table, and unlocks.
    #[inline]
    pub fn take_out(self, at: Position, header: Header) -> Unlinked {
        let item = Unlinked::new(self.load(at).address::<D>(), header);
        self.store(at, SlotWord::EMPTY);
        item
    }

    /// The first empty slot.
    #[inline]
    pub fn free_slot(&self) -> Option<Position> {
        // An empty slot is the only one whose tag is 0.
        let buckets = [self.first, self.second];
        let mask = self.index.matches(buckets, 0);
        (mask != 0).then(|| Position::matched::<D>(buckets, mask))
    }

    /// The position that refers to the same item as this slot word.
    #[inline]
    pub fn find(&self, slot: SlotWord) -> Option<Position> {
        self.positions()
            .find(|&at| self.index.load(at).refers_like::<D>(slot))
    }

    /// All slots of both buckets.
    pub fn positions(&self) -> impl Iterator<Item = Position> + use<D> {
        let (first, second) = (self.first, self.second);
        (0..2 * D::SLOTS).map(move |number| Position {
            bucket: if number < D::SLOTS { first } else { second },
            slot: number % D::SLOTS,
        })
    }

    /// Stores a slot.
    #[inline]
    pub fn store(&self, at: Position, slot: SlotWord) {
        debug_assert!(at.bucket == self.first || at.bucket == self.second);
        self.index.store(at, slot);
    }

    /// A slot's word.
    #[inline]
    pub fn load(&self, at: Position) -> SlotWord {
        self.index.load(at)
    }
}
