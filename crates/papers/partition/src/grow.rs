//! The growth of a partition's buckets, as many as it needs, and their prefetching.

use nuthatch_base::sync::clock::Time;

use super::bucket::SEGMENT;
use super::element::line_of;
use super::index::FIRST;
use super::memory::BLOCK_COST;
use super::table::{Eviction, Partition};

impl Partition {
    /// Adds a bucket if the index has too few for one more element. False if there is not even a first bucket.
    pub(super) fn make_bucket(&mut self, now: Time) -> bool {
        if self.counts.items < u64::from(self.index.buckets()) {
            return true;
        }
        if self.index.needs_block() {
            // Evicting its own elements makes room for buckets: few elements for many buckets.
            let fits = self.bytes() + BLOCK_COST <= self.config.capacity || self.reclaim(now);
            let block = if fits { self.memory().take() } else { None };
            let block = block.or_else(|| {
                self.reclaim(now);
                self.memory().take()
            });
            let Some(block) = block else {
                self.wanted = 1;
                return self.index.buckets() > 0;
            };
            self.add_index_block(block);
        }
        if self.index.buckets() == 0 {
            self.begin_buckets(FIRST);
            return true;
        }
        self.holding(self.index.next_divided(), |partition| {
            partition.index.grow(&partition.space.memory);
            partition.tell_buckets();
        });
        true
    }

    /// Adds a block of the pool for more buckets.
    fn add_index_block(&mut self, block: u32) {
        self.tell_block(block);
        self.index.add_block(&self.space.memory, block);
    }

    fn begin_buckets(&mut self, buckets: u32) {
        self.index.begin(buckets);
        self.tell_buckets();
    }

    /// Makes the first buckets of an empty partition: so many (a power of two), or as many as memory allows.
    pub fn begin(&mut self, buckets: u32) {
        while self.index.blocks().len() < buckets.div_ceil(SEGMENT) as usize {
            let fits = self.bytes() + BLOCK_COST <= self.config.capacity;
            let Some(block) = fits.then(|| self.memory().take()).flatten() else {
                break;
            };
            self.add_index_block(block);
        }
        if !self.index.blocks().is_empty() {
            self.begin_buckets(buckets);
        }
    }

    /// Starts loading a key's bucket.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        self.index.prefetch(self.memory(), hash);
    }

    /// Starts loading the first element in a key's bucket: its header and the line behind.
    #[inline]
    pub fn prefetch_header(&self, hash: u64) {
        if self.index.buckets() > 0 {
            let first = self.index.first(self.memory(), self.index.bucket_of(hash));
            let line = line_of(first);
            self.memory().prefetch(line);
            self.memory().prefetch(line.wrapping_add(1));
        }
    }

    /// Starts loading the other headers that a hit of that element changes.
    #[inline]
    pub fn prefetch_neighbours(&self, hash: u64) {
        if self.config.eviction == Eviction::Random || self.index.buckets() == 0 {
            return;
        }
        let memory = self.memory();
        if let Some(first) = self.index.first(memory, self.index.bucket_of(hash)) {
            let (newer, older) = memory.neighbours(first);
            for beside in [newer, older, self.newest] {
                memory.prefetch(line_of(beside));
            }
        }
    }
}
