//! Striped version counters (MemC3 section 3.2), which are also the writers' locks.
//!
//! Bucket `b` belongs to stripe `b mod stripes`. A counter is even while its buckets are at rest and
//! odd while one writer changes them. A writer makes a counter odd by compare-and-swap, which is how
//! it excludes other writers; a reader takes a snapshot of both its buckets' counters, reads what it
//! likes with relaxed loads, and believes it only if neither counter has moved.
//!
//! Every key has two candidate buckets on two *different* stripes, so everything here is a pair.
//!
//! Invariants:
//! 1. A counter is odd exactly while one [`PairGuard`] holds it.
//! 2. Counters never go back, except that a guard that changed nothing restores what it found.
//! 3. Locks are taken in index order; so no circle of waiting writers can form.

use crate::shim::{AtomicU32, Ordering, fence, spin};

/// The stripes of one table.
pub struct Stripes {
    counters: Box<[AtomicU32]>,
}

/// Two different stripes, in index order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    low: u32,
    high: u32,
}

/// What both counters of a pair said, both even, before a read.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    pair: Pair,
    low: u32,
    high: u32,
}

impl Stripes {
    /// MemC3's number of counters (32 KiB: they stay in a core's first cache).
    pub const MEMC3: usize = 8192;

    /// `count` counters at rest. A power of two, at least 2.
    pub fn new(count: usize) -> Self {
        assert!(
            count.is_power_of_two() && count >= 2,
            "stripes: a power of two, at least 2"
        );
        Self {
            counters: (0..count).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// How many counters there are.
    pub fn count(&self) -> usize {
        self.counters.len()
    }

    /// The stripes of two buckets that differ in their lowest bit, as a key's candidates do.
    #[inline(always)]
    pub fn pair(&self, one: u64, other: u64) -> Pair {
        let mask = self.counters.len() as u64 - 1;
        let (one, other) = ((one & mask) as u32, (other & mask) as u32);
        debug_assert_ne!(one, other);
        Pair {
            low: one.min(other),
            high: one.max(other),
        }
    }

    /// Waits until both counters are even and returns them: the beginning of a read.
    #[inline(always)]
    pub fn snapshot(&self, pair: Pair) -> Snapshot {
        Snapshot {
            pair,
            low: self.even(pair.low),
            high: self.even(pair.high),
        }
    }

    /// True if nothing under the pair changed since the snapshot: the end of a read. Call it after
    /// the last load that it shall vouch for.
    #[inline(always)]
    pub fn unchanged(&self, seen: &Snapshot) -> bool {
        // Acquire fence: pairs with the Release fence in `lock` (and with the one that the store
        // makes before it overwrites a chunk): if any load above saw a byte written after such a
        // fence, the loads below see the counter that was bumped before it.
        fence(Ordering::Acquire);
        self.counter(seen.pair.low).load(Ordering::Relaxed) == seen.low
            && self.counter(seen.pair.high).load(Ordering::Relaxed) == seen.high
    }

    /// Excludes other writers from both stripes and tells readers to wait.
    #[inline]
    pub fn lock(&self, pair: Pair) -> PairGuard<'_> {
        let low = self.acquire(pair.low);
        let high = self.acquire(pair.high);
        // Release fence: pairs with the Acquire fence in `unchanged`: whoever sees a byte written
        // under this lock also sees an odd counter, or a later one.
        fence(Ordering::Release);
        PairGuard {
            stripes: self,
            pair,
            low,
            high,
            modified: true,
        }
    }

    #[inline(always)]
    fn counter(&self, index: u32) -> &AtomicU32 {
        &self.counters[index as usize & (self.counters.len() - 1)]
    }

    #[inline(always)]
    fn even(&self, index: u32) -> u32 {
        let mut turn = 0;
        loop {
            // Acquire: pairs with the Release in `PairGuard::drop`; the reader sees all that was
            // written under every lock up to this version.
            let version = self.counter(index).load(Ordering::Acquire);
            if version & 1 == 0 {
                return version;
            }
            spin(turn);
            turn += 1;
        }
    }

    /// Makes a counter odd and returns the even value it had.
    #[inline(always)]
    fn acquire(&self, index: u32) -> u32 {
        let mut turn = 0;
        loop {
            let version = self.counter(index).load(Ordering::Relaxed);
            // Acquire: pairs with the Release in `PairGuard::drop`; this writer sees what the one
            // before it wrote.
            if version & 1 == 0
                && self
                    .counter(index)
                    .compare_exchange(
                        version,
                        version.wrapping_add(1),
                        Ordering::Acquire,
                        Ordering::Relaxed,
                    )
                    .is_ok()
            {
                return version;
            }
            spin(turn);
            turn += 1;
        }
    }
}

/// Both stripes of a pair, held by one writer until dropped.
pub struct PairGuard<'a> {
    stripes: &'a Stripes,
    pair: Pair,
    low: u32,
    high: u32,
    modified: bool,
}

impl PairGuard<'_> {
    /// The stripes held.
    pub fn pair(&self) -> Pair {
        self.pair
    }

    /// Declares that nothing was written, so that readers need not read again.
    #[inline]
    pub fn release_unmodified(mut self) {
        self.modified = false;
    }
}

impl Drop for PairGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let step = if self.modified { 2 } else { 0 };
        // Release: pairs with the Acquire in `even` and `acquire`.
        self.stripes
            .counter(self.pair.high)
            .store(self.high.wrapping_add(step), Ordering::Release);
        self.stripes
            .counter(self.pair.low)
            .store(self.low.wrapping_add(step), Ordering::Release);
        if self.modified {
            // SeqCst fence: pairs with the same fence of another writer. A thread's later reads of
            // other keys must not pass its own write (store buffering), or two threads that each
            // write one key and then read the other's could both miss.
            fence(Ordering::SeqCst);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_noticed() {
        let stripes = Stripes::new(4);
        let pair = stripes.pair(6, 1);
        let seen = stripes.snapshot(pair);
        assert!(stripes.unchanged(&seen));
        drop(stripes.lock(pair));
        assert!(!stripes.unchanged(&seen));
    }

    #[test]
    fn a_writer_that_wrote_nothing_is_not() {
        let stripes = Stripes::new(4);
        let pair = stripes.pair(6, 1);
        let seen = stripes.snapshot(pair);
        stripes.lock(pair).release_unmodified();
        assert!(stripes.unchanged(&seen));
    }

    #[test]
    fn other_stripes_are_not_disturbed() {
        let stripes = Stripes::new(8);
        let seen = stripes.snapshot(stripes.pair(0, 1));
        drop(stripes.lock(stripes.pair(2, 3)));
        assert!(stripes.unchanged(&seen));
    }
}
