//! Lookups of one key and of batches.
//!
//! A batch takes two passes. The first looks up all its keys, without branches on what is found,
//! which the processor could not predict. The second applies the eviction's rule for hits. A hit moves
//! an entry within its bucket, and no two entries of a bucket have the same tag, so no result depends
//! on the order of the passes.

use std::slice;

use crate::buckets::{Buckets, lowest};
use crate::entry::Slot;
use crate::layout::Shape;
use crate::matching::{Job, Matcher};

/// How many keys ahead of the one that is compared cache lines are prefetched.
const AHEAD: usize = 16;

/// Keys of a pass: a bit for each in a word.
const BATCH: usize = 64;

/// The result of looking a key up.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// Whether the key was found.
    pub hit: bool,
    /// Its value, or 0.
    pub value: u64,
    /// The slot in which it was found; any slot if it was not.
    pub slot: usize,
}

impl Found {
    /// True if it was found, and not in the first slot of its bucket.
    #[inline(always)]
    fn can_move_up<L: Shape>(&self) -> bool {
        self.hit & !self.slot.is_multiple_of(L::SLOTS)
    }
}

/// Up to 64 lookups and their results.
pub(crate) struct Lookups<'a> {
    /// The keys.
    pub hashes: &'a [u64],
    /// The slot of each one that was found.
    pub slots: &'a [usize],
    /// Bit `i` is set if `hashes[i]` was found.
    pub hits: u64,
    /// Bit `i` is set if `hashes[i]` was found, and not in the first slot of its bucket.
    pub can_move_up: u64,
}

impl<'a> Lookups<'a> {
    /// A single lookup.
    #[inline(always)]
    pub fn one<L: Shape>(hash: &'a u64, found: &'a Found) -> Self {
        Self {
            hashes: slice::from_ref(hash),
            slots: slice::from_ref(&found.slot),
            hits: u64::from(found.hit),
            can_move_up: u64::from(found.can_move_up::<L>()),
        }
    }
}

/// How a table is read, and what its hits change.
pub(crate) trait Access<L: Shape, T: Slot> {
    /// True if hits change anything.
    const USES_HITS: bool;

    /// Looks for a key.
    fn find<M: Matcher>(&self, buckets: &Buckets<L, T>, hash: u64) -> Found;

    /// Applies the eviction's rule to the hits among these lookups.
    fn on_hits(&mut self, buckets: &Buckets<L, T>, lookups: &Lookups<'_>);
}

/// A table of one thread that learns nothing from hits.
pub(crate) struct ReadOnlyAccess;

impl<L: Shape, T: Slot> Access<L, T> for ReadOnlyAccess {
    const USES_HITS: bool = false;

    #[inline(always)]
    fn find<M: Matcher>(&self, buckets: &Buckets<L, T>, hash: u64) -> Found {
        find_alone::<L, T, M>(buckets, hash)
    }

    #[inline(always)]
    fn on_hits(&mut self, _: &Buckets<L, T>, _: &Lookups<'_>) {}
}

/// Looks for a key in a table that no other thread changes: without a branch.
#[inline(always)]
pub(crate) fn find_alone<L: Shape, T: Slot, M: Matcher>(
    buckets: &Buckets<L, T>,
    hash: u64,
) -> Found {
    let (at, tag) = buckets.candidates(hash);
    let matches = buckets.matches::<M>(at, tag);
    // If none matched, a slot is read all the same, and its value masked out.
    let number = lowest(matches) & (L::CANDIDATES - 1);
    let hit = matches != 0;
    Found {
        hit,
        value: buckets.load(at, number).value & u64::from(hit).wrapping_neg(),
        slot: at.slot::<L>(number),
    }
}

/// Looks one key up.
pub(crate) struct LookupOne<'a, L, T, A> {
    pub buckets: &'a Buckets<L, T>,
    pub access: A,
    pub hash: u64,
}

impl<L: Shape, T: Slot, A: Access<L, T>> Job for LookupOne<'_, L, T, A> {
    type Output = Option<u64>;

    #[inline(always)]
    fn run<M: Matcher>(mut self) -> Option<u64> {
        let found = self.access.find::<M>(self.buckets, self.hash);
        let lookups = Lookups::one::<L>(&self.hash, &found);
        self.access.on_hits(self.buckets, &lookups);
        found.hit.then_some(found.value)
    }
}

/// Looks many keys up.
pub(crate) struct LookupMany<'a, L, T, A> {
    pub buckets: &'a Buckets<L, T>,
    pub access: A,
    pub hashes: &'a [u64],
    pub values: &'a mut [u64],
    pub hits: &'a mut [u64],
}

impl<L: Shape, T: Slot, A: Access<L, T>> Job for LookupMany<'_, L, T, A> {
    type Output = usize;

    #[inline(always)]
    fn run<M: Matcher>(mut self) -> usize {
        for &hash in self.hashes.iter().take(AHEAD) {
            self.buckets.prefetch(hash);
        }
        let mut later = self.hashes.iter().skip(AHEAD);
        let mut slots = [0; BATCH];
        let mut sum = 0;
        let batches = self.hashes.chunks(BATCH).zip(self.values.chunks_mut(BATCH));
        for ((hashes, values), hits) in batches.zip(self.hits) {
            let (mut bits, mut can_move_up) = (0, 0);
            let results = values.iter_mut().zip(&mut slots);
            for (index, (&hash, (value, slot))) in hashes.iter().zip(results).enumerate() {
                if let Some(&hash) = later.next() {
                    self.buckets.prefetch(hash);
                }
                let found = self.access.find::<M>(self.buckets, hash);
                bits |= u64::from(found.hit) << index;
                *value = found.value;
                if A::USES_HITS {
                    *slot = found.slot;
                    can_move_up |= u64::from(found.can_move_up::<L>()) << index;
                }
            }
            *hits = bits;
            sum += bits.count_ones() as usize;
            let lookups = Lookups {
                hashes,
                slots: &slots[..hashes.len()],
                hits: bits,
                can_move_up,
            };
            self.access.on_hits(self.buckets, &lookups);
        }
        sum
    }
}

/// Panics unless there is room for the results of `keys` keys.
#[inline(always)]
pub(crate) fn check_room(keys: usize, values: &[u64], hits: &[u64]) {
    assert!(values.len() >= keys, "values: one for each key");
    assert!(
        hits.len() >= keys.div_ceil(64),
        "hits: one bit for each key"
    );
}
