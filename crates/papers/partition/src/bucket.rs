//! One bucket: half a word that holds the number of its first element, and its lock.
//!
//! ```text
//!           63   62...................32  31   30....................0
//!  a word  | L  | first of bucket 2k + 1 | L  |   first of bucket 2k  |      0: none
//! ```
//!
//! L is the bucket's lock. Only a partition with a [descriptor](super::descriptor) uses it; in any other partition only
//! the owner has access, and the bit stays 0. It lies in the word that a thread that locks the bucket reads next, so
//! taking it fetches no line of its own. (Hence 31 bits for the number of a line.)
//!
//! A waiting thread spins, then yields the core; no thread parks, as with the version stripes. The reason: a lock is
//! held for a walk over one chain and a copy of [`COPY_MAX`](super::lockhash::COPY_MAX) bytes, and by invariant 3 its
//! holder never waits.
//!
//! Invariants of locked buckets:
//! 1. A bucket's bit is set exactly while one thread holds it. The next holder sees what the last one wrote.
//! 2. Only the holder of a bucket changes its half of the word, and only the holder of the other bucket changes the
//!    other half. So every change is one atomic operation on the word that leaves the other half as it is.
//! 3. A thread that holds a bucket waits for nothing: neither for a second bucket nor for a partition. So there is no
//!    circle of waiters, although an owner locks buckets while it holds its partition.

use nuthatch_base::sync::shim::{AtomicU64, Ordering, spin};

use super::element::{Element, line_of};
use super::memory::{BLOCK, BLOCK_LINES, BlockMemory, LINE_WORDS};

/// Buckets in a block.
pub(super) const SEGMENT: u32 = (BLOCK / size_of::<u32>()) as u32;

/// A half word's bit that is the lock.
const LOCK: u32 = 1 << 31;

/// The place of a bucket: line, word counted from the line's start, and the shift of the bucket's bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    line: u32,
    word: usize,
    shift: u32,
}

impl Bucket {
    /// The place of a bucket, whose segment lies in `block`.
    #[inline(always)]
    pub fn new(block: u32, bucket: u32) -> Self {
        Self {
            line: block * BLOCK_LINES,
            word: (bucket % SEGMENT / 2) as usize,
            shift: bucket % 2 * 32,
        }
    }

    #[inline(always)]
    fn word(self, memory: &BlockMemory) -> &AtomicU64 {
        memory.word(self.line, self.word)
    }

    /// The bucket's half of its word.
    #[inline(always)]
    fn half(self, word: u64) -> u32 {
        (word >> self.shift) as u32
    }

    /// The first element of a bucket that the caller owns or has locked; otherwise a hint.
    #[inline(always)]
    pub fn first(self, memory: &BlockMemory) -> Option<Element> {
        let word = memory.load(self.line, self.word);
        Element::new(self.half(word) & !LOCK)
    }

    /// Makes an element the first of a bucket that no other thread can reach.
    #[inline(always)]
    pub fn set_first(self, memory: &BlockMemory, first: Option<Element>) {
        let others = memory.load(self.line, self.word) & !(u64::from(u32::MAX) << self.shift);
        let number = u64::from(line_of(first)) << self.shift;
        memory.store(self.line, self.word, others | number);
    }

    /// Makes an element the first of a bucket, in a partition with readers. The caller has locked the bucket, or no
    /// reader can reach it yet.
    #[inline]
    pub fn exchange_first(self, memory: &BlockMemory, first: Option<Element>) {
        let before = line_of(self.first(memory));
        let change = u64::from(before ^ line_of(first)) << self.shift;
        // Relaxed: published by the lock's release, or by the number of buckets. One operation, because another thread
        // may be locking the neighbouring bucket (bucket 2).
        self.word(memory).fetch_xor(change, Ordering::Relaxed);
    }

    /// Takes the bucket's lock and returns its first element.
    #[inline]
    pub fn lock(self, memory: &BlockMemory) -> Option<Element> {
        match self.try_lock(memory) {
            Some(first) => first,
            None => self.wait(memory),
        }
    }

    #[cold]
    fn wait(self, memory: &BlockMemory) -> Option<Element> {
        for turn in 0.. {
            spin(turn);
            if let Some(first) = self.try_lock(memory) {
                return first;
            }
        }
        unreachable!("there is no last turn");
    }

    /// Takes the bucket's lock, if no thread has it, and returns the bucket's first element.
    #[inline(always)]
    fn try_lock(self, memory: &BlockMemory) -> Option<Option<Element>> {
        let bit = u64::from(LOCK) << self.shift;
        let mut seen = memory.load(self.line, self.word);
        while seen & bit == 0 {
            // Acquire: pairs with the Release in `unlock`. Between the two, the word's order only has exchanges of the
            // neighbouring bucket, which continue the release sequence.
            match self.word(memory).compare_exchange_weak(
                seen,
                seen | bit,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Element::new(self.half(seen))),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Releases the bucket's lock.
    #[inline(always)]
    pub fn unlock(self, memory: &BlockMemory) {
        let bit = u64::from(LOCK) << self.shift;
        // Release: pairs with the Acquire in `try_lock`.
        let before = self.word(memory).fetch_and(!bit, Ordering::Release);
        debug_assert_ne!(
            before & bit,
            0,
            "bucket 1: a lock is given back by its holder"
        );
    }

    /// The block that it lies in.
    pub fn block(self) -> u32 {
        self.line / BLOCK_LINES
    }

    /// Starts loading the bucket.
    #[inline(always)]
    pub fn prefetch(self, memory: &BlockMemory) {
        memory.prefetch(self.line + (self.word / LINE_WORDS) as u32);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::super::memory::BLOCK_COST;
    use super::*;

    /// Both halves of one word, each with a counter in the following lines that only its lock protects.
    #[test]
    fn neighbours_in_a_word_do_not_disturb_each_other() {
        let bytes = 2 * BLOCK_COST;
        let memory = Arc::new(BlockMemory::new(bytes, bytes).unwrap());
        let block = memory.take().unwrap();
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let memory = Arc::clone(&memory);
                std::thread::spawn(move || {
                    let number = thread % 2;
                    let (bucket, counter) = (Bucket::new(block, number), block * BLOCK_LINES + 1);
                    for _ in 0..20_000 {
                        let first = bucket.lock(&memory);
                        let count = memory.load(counter, number as usize);
                        assert_eq!(u64::from(line_of(first)), count);
                        memory.store(counter, number as usize, count + 1);
                        bucket.exchange_first(&memory, Element::new(count as u32 + 1));
                        bucket.unlock(&memory);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no thread panics");
        }
        for number in 0..2 {
            let first = Bucket::new(block, number).first(&memory);
            assert_eq!(line_of(first), 4 * 20_000);
        }
    }
}
