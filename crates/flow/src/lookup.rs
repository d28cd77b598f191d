//! Lookups, one by one and in batches.
//!
//! A batch is gone through twice. First all its keys are looked up, without a branch on what is
//! found, which nobody could foretell; then the hits teach who shall leave next. What a hit moves it
//! moves within a bucket, where no two keys have the same tag, so that no answer depends on it.

use std::slice;

use crate::buckets::{Buckets, lowest};
use crate::entry::Slot;
use crate::layout::Shape;
use crate::matching::{Job, Matcher};

/// Keys of a batch whose lines are under way while one is compared.
const AHEAD: usize = 16;

/// Keys that are looked up before their hits teach: a bit for each in a word.
const BATCH: usize = 64;

/// What was found of a key.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// Whether it is there.
    pub hit: bool,
    /// Its value, or 0.
    pub value: u64,
    /// The slot in which it was seen; some slot or other if it was not.
    pub slot: usize,
}

impl Found {
    /// True if it was found, and not at the top of its bucket.
    #[inline(always)]
    fn is_below<L: Shape>(&self) -> bool {
        self.hit & !self.slot.is_multiple_of(L::SLOTS)
    }
}

/// Up to 64 lookups, to learn from.
pub(crate) struct Seen<'a> {
    /// What was looked up.
    pub hashes: &'a [u64],
    /// Where each was found.
    pub slots: &'a [usize],
    /// Bit `i` is set if `hashes[i]` was found.
    pub hits: u64,
    /// And here if another key of its bucket stands above it.
    pub below: u64,
}

impl<'a> Seen<'a> {
    /// A single one.
    #[inline(always)]
    pub fn one<L: Shape>(hash: &'a u64, found: &'a Found) -> Self {
        Self {
            hashes: slice::from_ref(hash),
            slots: slice::from_ref(&found.slot),
            hits: u64::from(found.hit),
            below: u64::from(found.is_below::<L>()),
        }
    }
}

/// How a table is read, and what its hits teach.
pub(crate) trait Access<L: Shape, T: Slot> {
    /// True if hits teach anything.
    const LEARNS: bool;

    /// Looks for a key.
    fn find<M: Matcher>(&self, buckets: &Buckets<L, T>, hash: u64) -> Found;

    /// Learns from lookups.
    fn learn(&mut self, buckets: &Buckets<L, T>, seen: &Seen<'_>);
}

/// A table of one thread that learns nothing from hits.
pub(crate) struct Plain;

impl<L: Shape, T: Slot> Access<L, T> for Plain {
    const LEARNS: bool = false;

    #[inline(always)]
    fn find<M: Matcher>(&self, buckets: &Buckets<L, T>, hash: u64) -> Found {
        find_alone::<L, T, M>(buckets, hash)
    }

    #[inline(always)]
    fn learn(&mut self, _: &Buckets<L, T>, _: &Seen<'_>) {}
}

/// Looks for a key in a table that no other thread changes: without a branch.
#[inline(always)]
pub(crate) fn find_alone<L: Shape, T: Slot, M: Matcher>(
    buckets: &Buckets<L, T>,
    hash: u64,
) -> Found {
    let (at, tag) = buckets.candidates(hash);
    let matches = buckets.matches::<M>(at, tag);
    // Where none matched some slot is read all the same, and what it holds masked out.
    let number = lowest(matches) & (L::CANDIDATES - 1);
    let hit = matches != 0;
    Found {
        hit,
        value: buckets.load(at, number).value & u64::from(hit).wrapping_neg(),
        slot: at.slot::<L>(number),
    }
}

/// Looks one key up.
pub(crate) struct One<'a, L, T, A> {
    pub buckets: &'a Buckets<L, T>,
    pub access: A,
    pub hash: u64,
}

impl<L: Shape, T: Slot, A: Access<L, T>> Job for One<'_, L, T, A> {
    type Output = Option<u64>;

    #[inline(always)]
    fn run<M: Matcher>(mut self) -> Option<u64> {
        let found = self.access.find::<M>(self.buckets, self.hash);
        let seen = Seen::one::<L>(&self.hash, &found);
        self.access.learn(self.buckets, &seen);
        found.hit.then_some(found.value)
    }
}

/// Looks many keys up.
pub(crate) struct Many<'a, L, T, A> {
    pub buckets: &'a Buckets<L, T>,
    pub access: A,
    pub hashes: &'a [u64],
    pub values: &'a mut [u64],
    pub hits: &'a mut [u64],
}

impl<L: Shape, T: Slot, A: Access<L, T>> Job for Many<'_, L, T, A> {
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
            let (mut bits, mut below) = (0, 0);
            let answers = values.iter_mut().zip(&mut slots);
            for (index, (&hash, (value, slot))) in hashes.iter().zip(answers).enumerate() {
                if let Some(&hash) = later.next() {
                    self.buckets.prefetch(hash);
                }
                let found = self.access.find::<M>(self.buckets, hash);
                bits |= u64::from(found.hit) << index;
                *value = found.value;
                if A::LEARNS {
                    *slot = found.slot;
                    below |= u64::from(found.is_below::<L>()) << index;
                }
            }
            *hits = bits;
            sum += bits.count_ones() as usize;
            let seen = Seen {
                hashes,
                slots: &slots[..hashes.len()],
                hits: bits,
                below,
            };
            self.access.learn(self.buckets, &seen);
        }
        sum
    }
}

/// Panics unless there is room for the answers to `keys` keys.
#[inline(always)]
pub(crate) fn check_room(keys: usize, values: &[u64], hits: &[u64]) {
    assert!(values.len() >= keys, "values: one for each key");
    assert!(
        hits.len() >= keys.div_ceil(64),
        "hits: one bit for each key"
    );
}
