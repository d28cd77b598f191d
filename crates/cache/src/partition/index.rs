//! A partition's array of buckets.
//!
//! It grows by one bucket at a time (linear hashing): bucket `n` divides the elements of bucket `n -
//! half` with it, so no insert ever waits for a whole table to be moved. The array lies in blocks of
//! its own, from the same pool as everything else.
//!
//! ```text
//!  segments   | block 3 | block 90 |             bucket b: half a word of block b / 1024
//!                  |
//!                  +-> | bucket 1  bucket 0 | bucket 3  bucket 2 | ...     32 bits: the first
//!                                                                          element's line, or 0
//! ```

use nuthatch_hash::split;

use super::element::Element;
use super::memory::{BLOCK, BLOCK_LINES, BLOCK_WORDS, Memory};

/// Buckets in a block.
pub(super) const SEGMENT: u32 = (BLOCK / size_of::<u32>()) as u32;
/// Buckets at the start, at least.
pub(super) const FIRST: u32 = if cfg!(loom) { 2 } else { 64 };

/// Segments whose blocks are named in the partition itself: a line less to fetch.
const NEAR: usize = 4;

/// The buckets.
#[derive(Default)]
pub(super) struct Index {
    buckets: u32,
    /// The blocks of the first segments.
    near: [u32; NEAR],
    /// The blocks of all.
    segments: Vec<u32>,
}

impl Index {
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

    /// Where a bucket lies: line, word in it, and bits that it is shifted by.
    #[inline(always)]
    fn place(&self, bucket: u32) -> (u32, usize, u32) {
        let segment = (bucket / SEGMENT) as usize;
        let block = match self.near.get(segment) {
            Some(&block) => block,
            None => self.segments[segment],
        };
        let word = (bucket % SEGMENT / 2) as usize;
        (block * BLOCK_LINES, word, bucket % 2 * 32)
    }

    /// The first element of a bucket.
    #[inline(always)]
    pub fn first(&self, memory: &Memory, bucket: u32) -> Option<Element> {
        let (line, word, shift) = self.place(bucket);
        Element::new((memory.load(line, word) >> shift) as u32)
    }

    /// Makes an element the first of a bucket.
    #[inline(always)]
    pub fn set_first(&self, memory: &Memory, bucket: u32, first: Option<Element>) {
        let (line, word, shift) = self.place(bucket);
        let others = memory.load(line, word) & !(u64::from(u32::MAX) << shift);
        let number = u64::from(super::element::line_of(first));
        memory.store(line, word, others | number << shift);
    }

    /// Starts loading a bucket.
    #[inline(always)]
    pub fn prefetch(&self, memory: &Memory, hash: u64) {
        if self.buckets > 0 {
            let (line, word, _) = self.place(self.bucket_of(hash));
            memory.prefetch(line + (word / super::memory::LINE_WORDS) as u32);
        }
    }

    /// True if another bucket takes another block.
    pub fn needs_block(&self) -> bool {
        self.buckets as usize == self.segments.len() * SEGMENT as usize
    }

    /// Gets a block of the pool for more buckets.
    pub fn add_block(&mut self, memory: &Memory, block: u32) {
        for word in 0..BLOCK_WORDS {
            memory.store(block * BLOCK_LINES, word, 0);
        }
        if let Some(near) = self.near.get_mut(self.segments.len()) {
            *near = block;
        }
        self.segments.push(block);
    }

    /// The first buckets: so many, or as many as there is room for. There is at least one block.
    pub fn begin(&mut self, buckets: u32) {
        let room = self.segments.len() as u32 * SEGMENT;
        self.buckets = buckets.max(FIRST).min(room);
    }

    /// Adds a bucket, and moves what belongs into it there. There is room in the last block.
    pub fn grow(&mut self, memory: &Memory) {
        if self.buckets == 0 {
            return self.begin(FIRST);
        }
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
