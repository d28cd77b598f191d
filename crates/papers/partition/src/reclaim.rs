//! The move of capacity between partitions: how a partition gives blocks back to the pool, and which one should.
//!
//! The order of eviction alone decides which elements leave. The others are moved out of a block that is nearly empty,
//! into free lines elsewhere; so a strict LRU stays strict.

use nuthatch_base::sync::clock::Time;

use super::element::{Element, mark};
use super::memory::{BLOCK_LINES, BlockMemory};
use super::table::Partition;

/// Elements that one call of [`Partition::reclaim`] evicts at most, beyond a block's worth of lines.
const PATIENCE: u32 = 64;

/// Wholly free blocks that a partition keeps for later stores.
const SPARE_BLOCKS: u32 = 1;

/// Places of a budget that it costs to give a block away.
const PLACES_A_BLOCK: usize = 32;

/// Blocks that wait in the pool at most for partitions that grow.
const POOLED_BLOCKS: usize = 64;

/// The result of [`Partition::age`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// The partition, by the caller's number.
    pub partition: usize,
    /// For how many ticks the element that would be evicted next has not been used.
    pub idle: u32,
    /// Elements evicted so far.
    pub evicted: u64,
}

/// Of some partitions, the one that should give blocks and the one that needs them: the next victim of the first has
/// gone unused more than twice as long as that of the second, the hottest that has to evict. So all partitions together
/// keep about the same elements as one LRU list over all of them.
pub fn choose(samples: &[Age]) -> Option<(usize, usize)> {
    let coldest = samples.iter().max_by_key(|sample| sample.idle)?;
    let evicting = samples.iter().filter(|sample| sample.evicted > 0);
    let hottest = evicting.min_by_key(|sample| sample.idle)?;
    let apart = u64::from(coldest.idle) > 2 * u64::from(hottest.idle) + 1;
    apart.then_some((coldest.partition, hottest.partition))
}

/// Makes a cold partition give blocks to the pool, `budget` places' worth, if the samples differ enough. A partition
/// that evicts takes from the pool first, and the hottest does so most often. `reclaim` calls [`Partition::reclaim`] on
/// a partition.
pub fn balance(
    memory: &BlockMemory,
    samples: &[Age],
    budget: usize,
    mut reclaim: impl FnMut(usize) -> bool,
) {
    let Some((cold, _)) = choose(samples) else {
        return;
    };
    for _ in 0..(budget / PLACES_A_BLOCK).max(1) {
        if memory.blocks_left() >= POOLED_BLOCKS || !reclaim(cold) {
            return;
        }
    }
}

impl Partition {
    /// The age of its next victim; `None` if it has no element.
    pub fn age(&mut self, partition: usize, now: Time) -> Option<Age> {
        let coldest = self.coldest()?;
        Some(Age {
            partition,
            idle: now.0.saturating_sub(self.memory().accessed(coldest)),
            evicted: self.counts.evicted,
        })
    }

    /// Gives unused blocks back to the pool, except for a spare one.
    pub fn trim(&mut self) {
        while self.space.free_blocks() > SPARE_BLOCKS && self.space.give_back() {}
    }

    /// Takes a block from the pool before it is needed; false if there is none, or no capacity for it.
    pub fn receive(&mut self) -> bool {
        self.grow()
    }

    /// True if it holds more than its capacity.
    pub fn is_over(&self) -> bool {
        self.bytes() > self.capacity()
    }

    /// Gives one block back to the pool, evicting if necessary and allowed. False if it cannot: too many of its
    /// elements have readers.
    pub fn reclaim(&mut self, now: Time) -> bool {
        self.enter(now);
        let room = u64::from(BLOCK_LINES + BLOCK_LINES / 4);
        let mut patience = PATIENCE;
        loop {
            if self.space.give_back() {
                return true;
            }
            if self.space.free_lines() >= room {
                let emptiest = self.space.emptiest();
                let coldest = self.coldest().map(|element| element.line() / BLOCK_LINES);
                if emptiest.is_some_and(|block| self.compact(block))
                    || coldest.is_some_and(|block| self.compact(block))
                {
                    continue;
                }
                patience = match patience.checked_sub(1) {
                    Some(left) => left,
                    None => return false,
                };
            }
            if !self.config.evicts || !self.evict(now) {
                return false;
            }
        }
    }

    /// Moves all elements out of a block; false, with nothing lost, if it cannot.
    fn compact(&mut self, block: u32) -> bool {
        self.space.close(block);
        let elements = self.space.elements_in(block);
        let moved = elements.into_iter().all(|element| self.relocate(element));
        self.space.reopen();
        moved
    }

    /// Moves an element to other lines; false if it must stay, or there are no lines.
    fn relocate(&mut self, element: Element) -> bool {
        let memory = self.memory();
        let linked = memory.state_bits(element) & mark::LINKED != 0;
        if !linked || memory.readers(element) > 0 {
            return false;
        }
        let data = memory.key_len(element) + memory.value_len(element);
        let room = self.space.allocate(data);
        let Some(other) = room.or_else(|| self.space.gather(data)) else {
            return false;
        };
        self.memory().copy((element, 0), (other, 0), data);
        let moved = self.replace(element, other);
        self.space.free(if moved { element } else { other });
        self.counts.moved += u64::from(moved);
        moved
    }

    /// Puts another element, which has its data, in the place of an element; false if it has got a reader meanwhile.
    fn replace(&mut self, element: Element, other: Element) -> bool {
        let hash = self.memory().hash(element);
        self.holding(hash, |partition| {
            let memory = partition.memory();
            let unread = memory.readers(element) == 0;
            if unread {
                memory.copy_header(element, other);
                partition.replace_in_bucket(partition.index.bucket_of(hash), element, Some(other));
                partition.replace_in_order(element, other);
            }
            unread
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_coldest_gives_if_a_hotter_one_evicts() {
        let sample = |partition, idle, evicted| Age {
            partition,
            idle,
            evicted,
        };
        assert_eq!(choose(&[]), None);
        assert_eq!(choose(&[sample(0, 100, 1), sample(1, 60, 1)]), None);
        assert_eq!(choose(&[sample(0, 100, 1), sample(1, 10, 0)]), None);
        let samples = [sample(0, 100, 0), sample(1, 10, 5), sample(2, 5, 0)];
        assert_eq!(choose(&samples), Some((0, 1)));
    }
}
