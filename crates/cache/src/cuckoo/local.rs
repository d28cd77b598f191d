//! What each thread has for itself, and the order of stores.

use std::sync::Arc;

use nuthatch_sync::clock::Time;
use nuthatch_sync::shim::Ordering;

use super::count::Counted;
use super::layout::Design;
use super::search::Searcher;
use super::{Cuckoo, lock};

/// Sequences that a thread takes at once, so that writers do not share a counter's cache line.
const SEQUENCES: u64 = 1024;

/// A thread's own: counters, search buffers, unused sequences.
pub struct Local {
    /// Its counters.
    pub counters: Arc<Counted>,
    /// Its search for cuckoo paths.
    pub searcher: Searcher,
    next_sequence: u64,
    end_sequence: u64,
    /// The second in which it took them.
    second: u32,
}

impl Local {
    /// A new thread's.
    pub fn new(counters: Arc<Counted>, seed: u64) -> Self {
        Self {
            counters,
            searcher: Searcher::new(seed),
            next_sequence: 0,
            end_sequence: 0,
            second: 0,
        }
    }
}

impl<D: Design> Cuckoo<D> {
    /// The sequence of a store: unique, above `above` (that of the item it replaces) and above every
    /// flush. Sequences of one second lie above those of every second before.
    #[inline]
    pub(super) fn next_sequence(&self, local: &mut Local, now: Time, above: u64) -> u64 {
        // Relaxed: a store beside a flush may take either side of it.
        let flushed = self.flush_before.load(Ordering::Relaxed);
        if local.next_sequence == local.end_sequence
            || local.next_sequence <= above
            || local.next_sequence < flushed
            || local.second != now.seconds()
        {
            self.take_sequences(local, now);
        }
        local.next_sequence += 1;
        local.next_sequence - 1
    }

    fn take_sequences(&self, local: &mut Local, now: Time) {
        let mut marks = lock(&self.marks);
        // Relaxed: only uniqueness is wanted of the counter. Under the lock, so that marks and
        // sequences rise together.
        let first = self.sequence.fetch_add(SEQUENCES, Ordering::Relaxed);
        marks.add(first, now);
        local.next_sequence = first;
        local.end_sequence = first + SEQUENCES;
        local.second = now.seconds();
    }
}

/// When sequences were given out: an item's age without a time in its header.
#[derive(Debug, Default)]
pub struct Marks {
    /// First sequence of a second, and its time; both ascending.
    marks: Vec<(u64, Time)>,
}

impl Marks {
    /// Seconds remembered; beyond that, old ones become coarser.
    const MAX: usize = 8192;

    fn add(&mut self, sequence: u64, now: Time) {
        if self
            .marks
            .last()
            .is_some_and(|(_, last)| last.seconds() >= now.seconds())
        {
            return;
        }
        self.marks.push((sequence, now));
        if self.marks.len() > Self::MAX {
            // Every second one of the older half goes.
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number > Self::MAX / 2 || number % 2 == 1
            });
        }
    }

    /// When an item with this sequence was stored, to the second.
    pub fn time_of(&self, sequence: u64) -> Time {
        let after = self.marks.partition_point(|&(first, _)| first <= sequence);
        after
            .checked_sub(1)
            .map_or(Time(0), |index| self.marks[index].1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_the_second_and_stay_bounded() {
        let mut marks = Marks::default();
        assert_eq!(marks.time_of(5), Time(0));
        for second in 0..100_000_u32 {
            marks.add(u64::from(second) * 10, Time(second * 16));
            marks.add(u64::from(second) * 10 + 5, Time(second * 16 + 3));
        }
        assert!(marks.marks.len() <= Marks::MAX);
        assert_eq!(marks.time_of(999_999), Time(99_999 * 16));
        assert_eq!(marks.time_of(999_985), Time(99_998 * 16));
        assert!(marks.time_of(500_000).0 <= 50_000 * 16);
    }
}
