//! Memory that moves between partitions: for a store that needs it now, and in the background.

use nuthatch_sync::clock::Time;
use nuthatch_sync::shim::Ordering;

use super::LockHash;
use crate::partition::Partition;
use crate::partition::shed::{Temperature, choose};

/// Partitions compared before one of them gives a block.
const SAMPLES: usize = 8;

/// For each block wanted, how many are shed before whoever wants them gives in to others.
const THEFTS_MAX: u32 = 4;

/// Blocks that go from a cold partition to a hot one in one step.
const BLOCKS_A_STEP: usize = 4;

impl LockHash {
    /// Gets blocks for a partition from the others. False if they have none to give.
    pub(super) fn reclaim(&self, now: Time, home: usize, wanted: u32) -> bool {
        let mut got = 0;
        let mut shed = 0;
        // What is shed lies in the pool for a moment, and another thread may be quicker to take it.
        while got < wanted && shed < THEFTS_MAX * wanted && self.shed_one(now, home) {
            shed += 1;
            got += u32::from(self.at(home, Partition::receive));
        }
        shed > 0
    }

    /// Makes one partition, the coldest of a few if it can, give a block to the pool.
    fn shed_one(&self, now: Time, except: usize) -> bool {
        let count = self.partitions.len();
        // Relaxed: where to begin does not matter.
        let start = self.next.fetch_add(SAMPLES, Ordering::Relaxed);
        let samples = (start..start + SAMPLES.min(count)).map(|number| number % count);
        let coldest = samples
            .filter(|&number| number != except)
            .filter_map(|number| self.at(number, |locked| locked.temperature(number, now)))
            .max_by_key(|sample| sample.idle);
        if coldest.is_some_and(|sample| self.at(sample.partition, |locked| locked.shed(now))) {
            return true;
        }
        (start..start + count)
            .map(|number| number % count)
            .filter(|&number| number != except)
            .any(|number| self.at(number, |locked| locked.shed(now)))
    }

    /// Comes below a lowered limit, `budget` blocks at most. True if there is more to do.
    pub(super) fn shrink(&self, now: Time, budget: usize) -> bool {
        for _ in 0..budget {
            if self.memory.blocks_over() == 0 || !self.shed_one(now, usize::MAX) {
                return false;
            }
        }
        self.memory.blocks_over() > 0
    }

    /// Lets the next partitions forget what has expired, looking at about `budget` places.
    pub(super) fn sweep(&self, now: Time, budget: usize) {
        let count = self.partitions.len();
        let steps = count.min(budget.max(1));
        let start = self.next.fetch_add(steps, Ordering::Relaxed);
        let each = (budget / steps).max(1);
        for number in start..start + steps {
            self.at(number % count, |locked| {
                locked.sweep(now, each);
                locked.trim();
            });
        }
    }

    /// Moves some blocks from a cold partition to a hot one, if a few that are looked at differ enough.
    pub(super) fn balance(&self, now: Time) {
        let count = self.partitions.len();
        if count < 2 || self.memory.blocks_left() > 0 {
            return;
        }
        let start = self.next.fetch_add(SAMPLES, Ordering::Relaxed);
        let samples: Vec<Temperature> = (start..start + SAMPLES.min(count))
            .map(|number| number % count)
            .filter_map(|number| self.at(number, |locked| locked.temperature(number, now)))
            .collect();
        let Some((cold, hot)) = choose(&samples) else {
            return;
        };
        for _ in 0..BLOCKS_A_STEP {
            let given = self.at(cold, |locked| locked.shed(now));
            // What another partition is quicker to take was needed there.
            if !given || !self.at(hot, Partition::receive) {
                return;
            }
        }
    }
}
