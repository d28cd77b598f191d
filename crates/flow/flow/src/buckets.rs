//! The slots of a table: which ones are a key's candidates, and reading, comparing and writing them.
//! Independent of evictions and of locks.

use std::io;
use std::marker::PhantomData;

use crate::entry::{Content, Slot};
use crate::layout::{Candidates, Shape};
use crate::matching::Matcher;
use crate::memory::Mapped;
use crate::prefetch;

const LINE: usize = 64;

/// A power of two of buckets, and the spare ones behind them.
pub(crate) struct Buckets<L, T> {
    slots: Mapped<T>,
    mask: u64,
    shape: PhantomData<L>,
}

impl<L: Shape, T: Slot> Buckets<L, T> {
    /// True if a run may begin in the middle of a cache line, and end in one more.
    const STRADDLES: bool = L::RUN * size_of::<T>() > L::SLOTS * size_of::<T>();
    const RUN_BYTES: usize = L::RUN * size_of::<T>();

    /// Empty buckets; `buckets` is a power of two.
    pub fn reserve(buckets: u64) -> io::Result<Self> {
        assert!(buckets.is_power_of_two(), "buckets: a power of two");
        let all = buckets
            .checked_add(L::LAYOUT.spare_buckets() as u64)
            .and_then(|all| all.checked_mul(L::SLOTS as u64))
            .and_then(|slots| usize::try_from(slots).ok())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self {
            slots: Mapped::reserve(all)?,
            mask: buckets - 1,
            shape: PhantomData,
        })
    }

    /// All slots, those of the spare buckets included.
    #[inline(always)]
    pub fn slots(&self) -> &[T] {
        &self.slots
    }

    /// Slots without those of the spare buckets.
    pub fn entries(&self) -> u64 {
        (self.mask + 1) * L::SLOTS as u64
    }

    /// The candidates of a key, and its tag.
    #[inline(always)]
    pub fn candidates(&self, hash: u64) -> (Candidates, u64) {
        let tag = T::tag(hash);
        (Candidates::of::<L>(hash, tag, self.mask), tag)
    }

    /// Prefetches all lines that a lookup of this key reads.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        let (at, _) = self.candidates(hash);
        self.prefetch_run(at.first);
        if !L::LAYOUT.is_consecutive() {
            self.prefetch_run(at.second);
        }
    }

    #[inline(always)]
    fn prefetch_run(&self, start: usize) {
        let start = self.slots.as_ptr().wrapping_add(start).cast::<u8>();
        for line in 0..Self::RUN_BYTES.div_ceil(LINE) {
            prefetch::read(start.wrapping_add(line * LINE));
        }
        if Self::STRADDLES {
            prefetch::read(start.wrapping_add(Self::RUN_BYTES - 1));
        }
    }

    /// Bit `i` is set if candidate `i` has this tag.
    #[inline(always)]
    pub fn matches<M: Matcher>(&self, at: Candidates, tag: u64) -> u32 {
        let first = M::matches(&self.slots[at.first..at.first + L::RUN], tag);
        if L::LAYOUT.is_consecutive() {
            return first;
        }
        let second = M::matches(&self.slots[at.second..at.second + L::RUN], tag);
        first | second << L::RUN
    }

    /// The slot of candidate `number`.
    #[inline(always)]
    pub fn slot(&self, at: Candidates, number: usize) -> &T {
        &self.slots[at.slot::<L>(number)]
    }

    /// Reads candidate `number`.
    #[inline(always)]
    pub fn load(&self, at: Candidates, number: usize) -> Content {
        self.slot(at, number).load()
    }

    /// Overwrites candidate `number`. The caller has exclusive write access to these candidates.
    #[inline(always)]
    pub fn store(&self, at: Candidates, number: usize, content: Content) {
        self.slot(at, number).store(content);
    }
}

/// The number of the lowest bit of a mask that is not 0.
#[inline(always)]
pub(crate) fn lowest(matches: u32) -> usize {
    matches.trailing_zeros() as usize
}
