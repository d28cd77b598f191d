//! Blocks of memory that move between partitions, under their locks: for a store that needs one now, and in the
//! background.

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::shim::Ordering;

use super::{Lock, LockHash};
use crate::Partition;
use crate::reclaim::{Age, balance};

/// Partitions compared before one of them gives a block.
const SAMPLES: usize = 8;

/// Blocks that a thread reclaims, at most, for each block that it wants, before it leaves the rest to others.
const RECLAIMS_PER_BLOCK: u32 = 4;

impl<L: Lock<Partition>> LockHash<L> {
    /// Gets blocks for a partition from the others. False if they have none to give.
    pub(super) fn reclaim(&self, now: Time, home: usize, wanted: u32) -> bool {
        let mut got = 0;
        let mut reclaimed = 0;
        // A reclaimed block is in the pool for a moment, and another thread may take it first.
        while got < wanted && reclaimed < RECLAIMS_PER_BLOCK * wanted && self.reclaim_one(now, home)
        {
            reclaimed += 1;
            got += u32::from(self.at(home, Partition::receive));
        }
        reclaimed > 0
    }

    /// Makes one partition, the coldest of a few if it can, give a block to the pool.
    fn reclaim_one(&self, now: Time, except: usize) -> bool {
        let count = self.partitions.len();
        // Relaxed: any start will do.
        let start = self.next.fetch_add(SAMPLES, Ordering::Relaxed);
        let samples = (start..start + SAMPLES.min(count)).map(|number| number % count);
        let coldest = samples
            .filter(|&number| number != except)
            .filter_map(|number| self.at(number, |locked| locked.age(number, now)))
            .max_by_key(|sample| sample.idle);
        if coldest.is_some_and(|sample| self.at(sample.partition, |locked| locked.reclaim(now))) {
            return true;
        }
        (start..start + count)
            .map(|number| number % count)
            .filter(|&number| number != except)
            .any(|number| self.at(number, |locked| locked.reclaim(now)))
    }

    /// Shrinks towards a lowered limit, by `budget` blocks at most. True if there is more to do.
    pub(super) fn shrink(&self, now: Time, budget: usize) -> bool {
        for _ in 0..budget {
            if self.memory.blocks_over() == 0 || !self.reclaim_one(now, usize::MAX) {
                return false;
            }
        }
        self.memory.blocks_over() > 0
    }

    /// Sweeps the next partitions for expired elements, looking at about `budget` places.
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

    /// Makes a cold partition give some blocks to the pool, from which hot ones take, if the few partitions that are
    /// compared differ enough.
    pub(super) fn balance(&self, now: Time, budget: usize) {
        let count = self.partitions.len();
        if count < 2 {
            return;
        }
        let start = self.next.fetch_add(SAMPLES, Ordering::Relaxed);
        let samples: Vec<Age> = (start..start + SAMPLES.min(count))
            .map(|number| number % count)
            .filter_map(|number| self.at(number, |locked| locked.age(number, now)))
            .collect();
        balance(&self.memory, &samples, budget, |cold| {
            self.at(cold, |locked| locked.reclaim(now))
        });
    }
}
