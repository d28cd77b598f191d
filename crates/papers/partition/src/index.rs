//! The index of a partition: its array of buckets.
//!
//! It grows by one bucket at a time (linear hashing): bucket `n` divides the elements of bucket `n - half` with it, so
//! no insert ever waits for a whole table to be moved. The array lies in blocks of its own, from the same pool as all
//! other blocks.
//!
//! ```text
//!  segments   | block 3 | block 90 |             bucket b: half a word of block b / 1024
//!                  |
//!                  +-> | bucket 1  bucket 0 | bucket 3  bucket 2 | ...     32 bits each
//! ```

use nuthatch_base::hash::split;

use super::bucket::{Bucket, SEGMENT};
use super::element::Element;
use super::memory::{BLOCK_LINES, BLOCK_WORDS, BlockMemory};

/// Buckets at the start, at least.
pub(super) const FIRST: u32 = if cfg!(loom) { 2 } else { 64 };

/// Segments whose blocks are listed in the partition itself: a line less to fetch.
const NEAR: usize = 4;

/// The buckets, from the owner's side.
#[derive(Default)]
pub(super) struct Index {
    buckets: u32,
    /// True if readers lock buckets.
    shared: bool,
    /// The blocks of the first segments.
    near: [u32; NEAR],
    /// The blocks of all segments.
    segments: Vec<u32>,
}

impl Index {
    /// No buckets yet. `shared`: readers will lock them.
    pub fn new(shared: bool) -> Self {
        Self {
            shared,
            ..Self::default()
        }
    }

    /// True if readers lock buckets, and so must the owner before it changes one.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Buckets in use.
    pub fn buckets(&self) -> u32 {
        self.buckets
    }

    /// Blocks that hold them.
    pub fn blocks(&self) -> &[u32] {
        &self.segments
    }

    /// The bucket of a hash. There are buckets.
    #[inline(always)]
    pub fn bucket_of(&self, hash: u64) -> u32 {
        split::bucket_of_growing(hash, self.buckets)
    }

    /// Where a bucket lies.
    #[inline(always)]
    pub fn place(&self, bucket: u32) -> Bucket {
        let segment = (bucket / SEGMENT) as usize;
        let block = match self.near.get(segment) {
            Some(&block) => block,
            None => self.segments[segment],
        };
        Bucket::new(block, bucket)
    }

    /// The first element of a bucket.
    #[inline(always)]
    pub fn first(&self, memory: &BlockMemory, bucket: u32) -> Option<Element> {
        self.place(bucket).first(memory)
    }

    /// Makes an element the first of a bucket, which is locked if there are readers.
    #[inline(always)]
    pub fn set_first(&self, memory: &BlockMemory, bucket: u32, first: Option<Element>) {
        let place = self.place(bucket);
        if self.shared {
            place.exchange_first(memory, first);
        } else {
            place.set_first(memory, first);
        }
    }

    /// Starts loading a bucket.
    #[inline(always)]
    pub fn prefetch(&self, memory: &BlockMemory, hash: u64) {
        if self.buckets > 0 {
            self.place(self.bucket_of(hash)).prefetch(memory);
        }
    }

    /// True if another bucket takes another block.
    pub fn needs_block(&self) -> bool {
        self.buckets as usize == self.segments.len() * SEGMENT as usize
    }

    /// Takes a block of the pool for more buckets.
    pub fn add_block(&mut self, memory: &BlockMemory, block: u32) {
        for word in 0..BLOCK_WORDS {
            memory.store(block * BLOCK_LINES, word, 0);
        }
        if let Some(near) = self.near.get_mut(self.segments.len()) {
            *near = block;
        }
        self.segments.push(block);
    }

    /// Makes the first buckets: so many, or as many as there is room for. There is at least one block.
    pub fn begin(&mut self, buckets: u32) {
        let room = self.segments.len() as u32 * SEGMENT;
        self.buckets = buckets.max(FIRST).min(room);
    }

    /// A hash of the bucket that the next new one divides. There must be buckets.
    pub fn next_divided(&self) -> u64 {
        split::hash_of_bucket(self.bucket_of(split::hash_of_bucket(self.buckets)))
    }

    /// Adds a bucket, and moves its elements there. There is room in the last block, and if there are readers, the
    /// bucket that it [divides](Index::next_divided) is locked.
    pub fn grow(&mut self, memory: &BlockMemory) {
        let new = self.buckets;
        let old = self.bucket_of(split::hash_of_bucket(new));
        let mut next = self.first(memory, old);
        self.buckets += 1;
        let (mut stay, mut go) = (None, None);
        while let Some(element) = next {
            next = memory.next_in_bucket(element);
            let to = if self.bucket_of(memory.hash(element)) == new {
                &mut go
            } else {
                &mut stay
            };
            memory.set_next_in_bucket(element, *to);
            *to = Some(element);
        }
        self.set_first(memory, old, stay);
        self.set_first(memory, new, go);
    }
}
