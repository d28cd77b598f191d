//! An estimate of the hits that more memory would have given: how much was evicted between an item's eviction and its
//! next store.
//!
//! ```text
//!   evicted, the newest first:   | 5 % of the memory | ... | 5 % | ...
//!                                              ^ stored again: with a tenth more memory it might still have been there
//! ```
//!
//! An item that is stored again before a tenth of the memory was evicted after it counts as a hit that a tenth more
//! memory would have given. This is so with LRU and FIFO; with two queues it is an estimate, which is low where the
//! policy keeps a part of a loop (docs/hits.md has both for all traces).
//!
//! Only a sample of items is followed, chosen by their hash, so that some thousands of the items in memory are
//! followed. Each counts for as many items as it stands for. There is no lock: of two concurrent writes one may be
//! lost.

use std::io;

use nuthatch_base::sync::shim::{AtomicU64, AtomicUsize, Ordering};
use nuthatch_engine::stats::MORE_MEMORY;

use crate::memory::words::Words;

/// Buckets of the table.
const BUCKETS: usize = if cfg!(loom) { 1 } else { 512 };

/// Items of a bucket, the newest first: a cache line.
const WAYS: usize = 8;

/// Followed items among those in memory: about this many, or all if there are fewer.
const FOLLOWED: usize = BUCKETS * WAYS / 2;

/// From here on the bits of a hash decide whether its item is followed. The bits below choose the bucket.
const FOLLOWED_SHIFT: u32 = 16;

/// The upper half of its hash identifies an item that left. The lower half of its word is the number of units of bytes
/// of followed items that had left by then.
const LEFT_BITS: u32 = 32;

/// Bytes of a unit.
const UNIT: usize = 64;

/// A sample of the items that left.
pub struct Depths {
    table: Words,
    /// Bits that are clear in the hash of an item that is followed.
    mask: AtomicU64,
    /// Units of followed items that have left.
    left: AtomicU64,
    /// Units of the memory's limit.
    memory: AtomicUsize,
}

impl Depths {
    /// A table that follows no items yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            table: Words::reserve(BUCKETS * WAYS)?,
            mask: AtomicU64::new(u64::MAX),
            left: AtomicU64::new(0),
            memory: AtomicUsize::new(0),
        })
    }

    /// Follows items from now on, in a memory that holds about `items` items.
    pub fn begin(&self, items: usize) {
        let one_of = items.div_ceil(FOLLOWED).next_power_of_two() as u64;
        // Relaxed, here and below: statistics.
        self.mask
            .store((one_of - 1) << FOLLOWED_SHIFT, Ordering::Relaxed);
    }

    /// Sets the memory's limit, in bytes.
    pub fn note_limit(&self, bytes: usize) {
        self.memory.store(bytes / UNIT, Ordering::Relaxed);
    }

    /// The memory's limit, in bytes.
    pub fn limit(&self) -> usize {
        self.memory.load(Ordering::Relaxed) * UNIT
    }

    /// True if an item with this hash is one of those that are followed.
    #[inline(always)]
    pub fn follows(&self, hash: u64) -> bool {
        hash & self.mask.load(Ordering::Relaxed) == 0
    }

    /// How many items one followed item stands for.
    pub fn weight(&self) -> u64 {
        (self.mask.load(Ordering::Relaxed) >> FOLLOWED_SHIFT) + 1
    }

    /// Notes the eviction of a followed item of `bytes` bytes.
    #[cold]
    pub fn leave(&self, hash: u64, bytes: usize) {
        let units = bytes.div_ceil(UNIT) as u64;
        let left = self.left.fetch_add(units, Ordering::Relaxed) + units;
        let mut carried = hash >> LEFT_BITS << LEFT_BITS | u64::from(left as u32);
        for place in self.bucket(hash) {
            let next = place.load(Ordering::Relaxed);
            place.store(carried, Ordering::Relaxed);
            carried = next;
        }
    }

    /// Notes the store of a followed item. If the item was evicted before, returns the first step of [`MORE_MEMORY`]
    /// that would have kept it, and forgets the item.
    #[cold]
    pub fn come_back(&self, hash: u64) -> Option<usize> {
        let now = self.left.load(Ordering::Relaxed) as u32;
        let known = |place: &&AtomicU64| {
            let word = place.load(Ordering::Relaxed);
            word >> LEFT_BITS == hash >> LEFT_BITS && word != 0
        };
        let place = self.bucket(hash).iter().find(known)?;
        let then = place.swap(0, Ordering::Relaxed) as u32;
        let depth = u64::from(now.wrapping_sub(then)) * self.weight();
        let memory = self.memory.load(Ordering::Relaxed) as u64;
        MORE_MEMORY
            .iter()
            .position(|percent| 100 * depth <= percent * memory)
    }

    fn bucket(&self, hash: u64) -> &[AtomicU64] {
        let bucket = hash as usize % BUCKETS;
        &self.table[bucket * WAYS..(bucket + 1) * WAYS]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The hash of an item that is followed in any case.
    fn hash(number: u64) -> u64 {
        number << LEFT_BITS | (number % BUCKETS as u64)
    }

    #[test]
    fn an_item_is_as_deep_as_what_left_after_it() {
        let depths = Depths::new().unwrap();
        assert!(!depths.follows(7 << FOLLOWED_SHIFT));
        depths.begin(FOLLOWED);
        assert!(depths.follows(7 << FOLLOWED_SHIFT));
        assert_eq!(depths.weight(), 1);
        depths.note_limit(100 * UNIT);
        for (after, step) in [
            (0, Some(0)),
            (10, Some(0)),
            (11, Some(1)),
            (50, Some(2)),
            (100, Some(3)),
            (101, None),
        ] {
            depths.leave(hash(9), 1000);
            (100..100 + after).for_each(|number| depths.leave(hash(number), UNIT));
            assert_eq!(depths.come_back(hash(9)), step, "{after}");
            assert_eq!(depths.come_back(hash(9)), None, "only once");
        }
    }

    #[test]
    fn an_item_stands_for_others() {
        let depths = Depths::new().unwrap();
        depths.begin(1000 * FOLLOWED);
        assert_eq!(depths.weight(), 1024);
        assert!(depths.follows(hash(7)) && !depths.follows(1 << FOLLOWED_SHIFT));
        depths.note_limit(10 * 1024 * UNIT);
        depths.leave(hash(9), 1);
        depths.leave(hash(10), UNIT);
        assert_eq!(depths.come_back(hash(9)), Some(0), "of ten");
        depths.leave(hash(9), 1);
        depths.leave(hash(10), 2 * UNIT);
        assert_eq!(depths.come_back(hash(9)), Some(1));
    }

    #[test]
    fn the_newest_are_remembered() {
        let depths = Depths::new().unwrap();
        depths.begin(1);
        depths.note_limit(usize::MAX >> 8);
        let last = 8 * (BUCKETS * WAYS) as u64;
        (1..=last).for_each(|number| depths.leave(hash(number), 1));
        assert_eq!(depths.come_back(hash(1)), None);
        assert_eq!(depths.come_back(hash(last)), Some(0));
    }
}
