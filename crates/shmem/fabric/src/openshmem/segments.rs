//! Which words were allocated, and where they lie: a table that only grows.
//!
//! Words are numbered from 0 on in the order of their allocation. Every PE allocates the same in the same order, so
//! a number means the same word on each. A range of words must lie in one segment.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use crate::Address;

/// Allocations of one job; the store takes a handful.
const MOST: usize = 32;

/// The memory of one call of `allocate`.
pub struct Segment {
    /// The number of its first word.
    first: u64,
    words: usize,
    /// Where it lies on this PE. The library takes this address for any PE.
    mine: *mut AtomicU64,
    /// Where this PE finds each PE's, null where it cannot load and store it.
    theirs: Box<[*mut AtomicU64]>,
}

// SAFETY: the pointers are to words that are only accessed as atomics or by the library.
unsafe impl Send for Segment {}
// SAFETY: the same.
unsafe impl Sync for Segment {}

impl Segment {
    /// Where a PE's words begin, as this PE can load and store them. `at` comes from [`Segments::find`].
    pub fn direct(&self, pe: usize, at: *mut AtomicU64) -> Option<*mut AtomicU64> {
        let theirs = self.theirs[pe];
        // SAFETY: `at` points into this segment, which begins at `mine`.
        let offset = unsafe { at.offset_from_unsigned(self.mine) };
        // SAFETY: a peer's segment is as long as ours.
        (!theirs.is_null()).then(|| unsafe { theirs.add(offset) })
    }
}

/// The table.
pub struct Segments {
    table: [OnceLock<Segment>; MOST],
}

impl Segments {
    pub fn new() -> Self {
        Self {
            table: [const { OnceLock::new() }; MOST],
        }
    }

    /// Whether there is room for another.
    pub fn is_full(&self) -> bool {
        self.table[MOST - 1].get().is_some()
    }

    /// Adds a segment behind the others. Callers come one after the other. Panics if the table is full.
    ///
    /// # Safety
    /// `mine`, and each of `theirs` that is not null, point to so many words, which stay as long as the table.
    pub unsafe fn add(
        &self,
        words: usize,
        mine: *mut AtomicU64,
        theirs: Box<[*mut AtomicU64]>,
    ) -> Address {
        let last = self.iter().last();
        // Lines begin at multiples of eight in every segment.
        let first = last.map_or(0, |last| last.first + last.words.next_multiple_of(8) as u64);
        let segment = Segment {
            first,
            words,
            mine,
            theirs,
        };
        let empty = self.table.iter().find(|place| place.get().is_none());
        let added = empty.expect("room in the table").set(segment);
        assert!(added.is_ok(), "callers come one after the other");
        Address(first)
    }

    /// Where words lie on this PE, in which segment. Panics if they were not allocated, before the library sees such an
    /// address.
    #[inline]
    pub fn find(&self, at: Address, words: usize) -> (&Segment, *mut AtomicU64) {
        for segment in self.iter() {
            let offset = at.0.wrapping_sub(segment.first);
            let room = (segment.words as u64).checked_sub(offset);
            if room.is_some_and(|room| words as u64 <= room) {
                // SAFETY: the offset is at most the segment's length.
                return (segment, unsafe { segment.mine.add(offset as usize) });
            }
        }
        panic!("{words} words from {} on were not allocated", at.0);
    }

    /// Where each segment begins, the last first.
    pub fn backwards(&self) -> impl Iterator<Item = *mut AtomicU64> {
        let table = self.table.iter().rev();
        table.filter_map(|place| place.get().map(|segment| segment.mine))
    }

    fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.table.iter().map_while(OnceLock::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 10 and of 4 words; PE 0 is this one, PE 1 is reachable, PE 2 is not.
    fn table(memory: &[Vec<AtomicU64>; 4]) -> Segments {
        let [a, b, c, d] = memory.each_ref().map(|words| words.as_ptr().cast_mut());
        let segments = Segments::new();
        let nowhere = std::ptr::null_mut();
        // SAFETY: the memory is there for as long as the tests look at the table.
        unsafe {
            assert_eq!(segments.add(10, a, Box::new([a, b, nowhere])), Address(0));
            assert_eq!(segments.add(4, c, Box::new([c, d, nowhere])), Address(16));
        }
        segments
    }

    fn memory() -> [Vec<AtomicU64>; 4] {
        [10, 10, 4, 4].map(|words| (0..words).map(|_| AtomicU64::new(0)).collect())
    }

    #[test]
    fn finds_words_of_every_segment() {
        let memory = memory();
        let segments = table(&memory);
        let (first, at) = segments.find(Address(3), 7);
        assert_eq!(at.cast_const(), &raw const memory[0][3]);
        assert_eq!(
            first.direct(1, at).map(|at| at.cast_const()),
            Some(&raw const memory[1][3])
        );
        assert_eq!(first.direct(2, at), None);
        let (second, at) = segments.find(Address(16), 4);
        assert_eq!(at.cast_const(), &raw const memory[2][0]);
        assert!(second.direct(1, at).is_some());
    }

    #[test]
    #[should_panic(expected = "8 words from 3 on were not allocated")]
    fn refuses_what_passes_the_end_of_a_segment() {
        table(&memory()).find(Address(3), 8);
    }

    #[test]
    #[should_panic(expected = "not allocated")]
    fn refuses_the_gap_between_segments() {
        table(&memory()).find(Address(12), 1);
    }

    #[test]
    #[should_panic(expected = "not allocated")]
    fn refuses_words_beyond_all() {
        table(&memory()).find(Address(u64::MAX), 1);
    }
}
