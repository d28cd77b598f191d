//! Lookups, one by one and in batches.

use crate::buckets::{Buckets, lowest};
use crate::entry::Slot;
use crate::layout::{Candidates, Shape};
use crate::matching::{Job, Matcher};

/// Keys of a batch whose lines are under way while one is compared.
const AHEAD: usize = 16;

/// What happens around a lookup: hits that teach, misses that must be made sure of.
pub(crate) trait Access<L: Shape, T: Slot> {
    /// True if neither is so: a lookup then runs without a branch on its outcome, which nobody
    /// could foretell.
    const PLAIN: bool;

    /// True if other threads may change a slot between two looks at it.
    const SHARED: bool;

    /// Candidate `number` matched.
    fn hit(&mut self, buckets: &Buckets<L, T>, at: Candidates, number: usize, tag: u64);

    /// No candidate matched: the value, if one does when looked at closely.
    fn missed(&mut self, buckets: &Buckets<L, T>, at: Candidates, tag: u64) -> Option<u64>;
}

/// A table of one thread that learns nothing from hits.
pub(crate) struct Plain;

impl<L: Shape, T: Slot> Access<L, T> for Plain {
    const PLAIN: bool = true;
    const SHARED: bool = false;

    #[inline(always)]
    fn hit(&mut self, _: &Buckets<L, T>, _: Candidates, _: usize, _: u64) {}

    #[inline(always)]
    fn missed(&mut self, _: &Buckets<L, T>, _: Candidates, _: u64) -> Option<u64> {
        None
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
        let (found, value) = find::<L, T, M, A>(self.buckets, &mut self.access, self.hash);
        found.then_some(value)
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
        let mut found = 0;
        let batches = self.hashes.chunks(64).zip(self.values.chunks_mut(64));
        for ((hashes, values), hits) in batches.zip(self.hits) {
            let mut bits = 0;
            for (index, (&hash, value)) in hashes.iter().zip(values).enumerate() {
                if let Some(&hash) = later.next() {
                    self.buckets.prefetch(hash);
                }
                let (hit, found) = find::<L, T, M, A>(self.buckets, &mut self.access, hash);
                bits |= u64::from(hit) << index;
                *value = found;
            }
            *hits = bits;
            found += bits.count_ones() as usize;
        }
        found
    }
}

/// Whether a key is there, and its value, or 0.
#[inline(always)]
fn find<L: Shape, T: Slot, M: Matcher, A: Access<L, T>>(
    buckets: &Buckets<L, T>,
    access: &mut A,
    hash: u64,
) -> (bool, u64) {
    let (at, tag) = buckets.candidates(hash);
    let matches = buckets.matches::<M>(at, tag);
    if A::PLAIN {
        // Where none matched some slot is read all the same, and what it holds masked out.
        let number = lowest(matches) & (L::CANDIDATES - 1);
        let found = matches != 0;
        let value = buckets.load(at, number).value & u64::from(found).wrapping_neg();
        return (found, value);
    }
    let answer = if matches == 0 {
        access.missed(buckets, at, tag)
    } else {
        let number = lowest(matches);
        let content = buckets.load(at, number);
        if A::SHARED && content.tag != tag {
            // It left since it was compared: this word is another key's.
            access.missed(buckets, at, tag)
        } else {
            access.hit(buckets, at, number, tag);
            Some(content.value)
        }
    };
    (answer.is_some(), answer.unwrap_or(0))
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
