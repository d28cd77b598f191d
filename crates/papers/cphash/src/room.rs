//! Blocks of memory that move between partitions, by messages: for a store that needs one now, and in the background.
//!
//! Clients do this, by calls to the owners of the partitions. An owner has access to its own partitions only, and never
//! waits for another.

use std::sync::Arc;

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::ring::RingKind;

use super::client::Client;
use nuthatch_partition::reclaim::{Age, balance};

/// Partitions compared before one of them gives a block.
const SAMPLES: usize = 8;

/// The result of a search for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reclaimed {
    /// The partition has more blocks than before.
    Some,
    /// The other partitions have none to give: their elements have readers, or may not be evicted.
    Nothing,
    /// The partition no longer wants any: another client, whose store it refused too, is getting them.
    NotWanted,
}

impl<D: RingKind> Client<D> {
    /// Gets blocks from other partitions for a partition that has just refused a store.
    pub fn reclaim(&mut self, home: usize, now: Time) -> Reclaimed {
        let wanted = self.run(home, now, |partition| partition.take_wanted());
        if wanted == 0 {
            return Reclaimed::NotWanted;
        }
        let mut got = Reclaimed::Nothing;
        for _ in 0..wanted {
            let room = self.shared.memory.blocks_left() > 0 || self.reclaim_one(Some(home), now);
            if !room || !self.run(home, now, |partition| partition.receive()) {
                break;
            }
            got = Reclaimed::Some;
        }
        got
    }

    /// The ages of some partitions, from `start` on.
    fn ages(&mut self, start: usize, now: Time) -> Vec<Age> {
        let count = self.channels.len();
        let numbers = (start..start + SAMPLES.min(count)).map(|number| number % count);
        numbers
            .filter_map(|number| self.run(number, now, |partition| partition.age(number, now)))
            .collect()
    }

    /// Makes one partition, the coldest of a few if it can, give a block to the pool.
    fn reclaim_one(&mut self, except: Option<usize>, now: Time) -> bool {
        let count = self.channels.len();
        let start = self.shared.next_sample(SAMPLES);
        let mut samples = self.ages(start, now);
        samples.retain(|sample| Some(sample.partition) != except);
        let coldest = samples.iter().max_by_key(|sample| sample.idle);
        let coldest = coldest.map(|sample| sample.partition);
        let others = (start..start + count)
            .map(|number| number % count)
            .filter(|&number| Some(number) != except);
        coldest
            .into_iter()
            .chain(others)
            .any(|number| self.run(number, now, |partition| partition.reclaim(now)))
    }

    /// Shrinks towards a lowered limit, by `budget` blocks at most. True if there is more to do.
    pub fn shrink(&mut self, now: Time, budget: usize) -> bool {
        for _ in 0..budget {
            if self.shared.memory.blocks_over() == 0 || !self.reclaim_one(None, now) {
                return false;
            }
        }
        self.shared.memory.blocks_over() > 0
    }

    /// Sweeps the next partitions for expired elements, looking at about `budget` partitions in all.
    pub fn sweep(&mut self, now: Time, budget: usize) {
        let count = self.channels.len();
        let steps = count.min(budget.max(1));
        let start = self.shared.next_sample(steps);
        let each = (budget / steps).max(1);
        for number in start..start + steps {
            self.run(number % count, now, |partition| {
                partition.sweep(now, each);
                partition.trim();
            });
        }
    }

    /// Makes a cold partition give some blocks to the pool, from which hot ones take, if the few partitions that are
    /// compared differ enough.
    pub fn balance(&mut self, now: Time, budget: usize) {
        let start = self.shared.next_sample(SAMPLES);
        let samples = self.ages(start, now);
        let memory = Arc::clone(&self.shared.memory);
        balance(&memory, &samples, budget, |cold| {
            self.run(cold, now, |partition| partition.reclaim(now))
        });
    }
}
