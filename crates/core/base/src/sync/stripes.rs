//! Striped version counters (MemC3 section 3.2), which are also the writers' locks.
//!
//! Bucket `b` belongs to stripe `b mod stripes`. A counter is even while its buckets are at rest and odd while one
//! writer changes them. A writer makes a counter odd by compare-and-swap, which excludes other writers. A reader takes
//! a snapshot of both its buckets' counters, reads with relaxed loads, and uses the result only if neither counter has
//! changed.
//!
//! Every key has two candidate buckets on two *different* stripes, so everything here is a pair.
//!
//! Invariants:
//! 1. A counter is odd exactly while one [`PairGuard`] holds it.
//! 2. Counters never go back, except that a guard that changed nothing restores the value that it found.
//! 3. Locks are taken in index order; so no circle of waiting writers can form.

use std::io;
use std::sync::Arc;

use crate::memory::shared::SharedView;
use crate::memory::{MappedArray, Part, Source};
use crate::sync::shim::{AtomicU32, Ordering, fence, spin};

/// Capacity in counters: a constant, so that a masked index needs no further check. Loom makes each atomic at a price,
/// so a model has few.
const ROOM: usize = if cfg!(loom) { 8 } else { 8192 };

/// The stripes of one table.
pub struct Stripes {
    counters: MappedArray<AtomicU32, ROOM>,
    mask: u32,
}

/// Two different stripes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pair {
    one: u32,
    other: u32,
}

/// The values of both counters of a pair, both even, before a read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    pair: Pair,
    one: u32,
    other: u32,
}

impl Stripes {
    /// MemC3's number of counters, 8192 (32 KiB: they stay in a core's first-level cache); a few in a model.
    pub const MEMC3: usize = ROOM;

    /// `count` counters at rest. A power of two, from 2 to [`Stripes::MEMC3`].
    ///
    /// # Panics
    ///
    /// If it is another number, or the system gives no memory.
    pub fn new(count: usize) -> Self {
        Self::new_in(&Source::Private, count).expect("memory for the stripes")
    }

    /// The same, with memory from `source`. Errors: the system gives none.
    pub fn new_in(source: &Source, count: usize) -> io::Result<Self> {
        assert!(Self::is_possible(count), "stripes: a power of two");
        Ok(Self {
            counters: MappedArray::reserve_in(source)?,
            mask: count as u32 - 1,
        })
    }

    /// Counters that another process made, to read under. `None` if they are not mapped there.
    pub fn view(of: &Arc<SharedView>, part: Part, count: usize) -> Option<Self> {
        let counters = MappedArray::view(of, part)?;
        Self::is_possible(count).then(|| Self {
            counters,
            mask: count as u32 - 1,
        })
    }

    fn is_possible(count: usize) -> bool {
        count.is_power_of_two() && (2..=ROOM).contains(&count)
    }

    /// Where its counters lie in the file of their source.
    pub fn part(&self) -> Part {
        self.counters.part()
    }

    /// How many counters there are.
    pub fn count(&self) -> usize {
        self.mask as usize + 1
    }

    /// The stripes of two buckets that differ in their lowest bit, as a key's candidates do.
    #[inline(always)]
    pub fn pair(&self, one: u64, other: u64) -> Pair {
        let (one, other) = (one as u32 & self.mask, other as u32 & self.mask);
        debug_assert_ne!(one, other);
        Pair { one, other }
    }

    /// Waits until both counters are even and returns them: the beginning of a read.
    #[inline(always)]
    pub fn snapshot(&self, pair: Pair) -> Snapshot {
        Snapshot {
            pair,
            one: self.even(pair.one),
            other: self.even(pair.other),
        }
    }

    /// The same of one stripe alone, that of a bucket: for a reader whose result depends on nothing else.
    #[inline(always)]
    pub fn snapshot_one(&self, bucket: u64) -> Snapshot {
        let one = bucket as u32 & self.mask;
        let version = self.even(one);
        Snapshot {
            pair: Pair { one, other: one },
            one: version,
            other: version,
        }
    }

    /// Both counters, if both are even right now.
    #[inline(always)]
    pub fn snapshot_at_rest(&self, pair: Pair) -> Option<Snapshot> {
        // Acquire: as in `even`.
        let one = self.counter(pair.one).load(Ordering::Acquire);
        let other = self.counter(pair.other).load(Ordering::Acquire);
        ((one | other) & 1 == 0).then_some(Snapshot { pair, one, other })
    }

    /// True if nothing under the pair changed since the snapshot: the end of a read. Call it after the last load that
    /// it validates.
    #[inline(always)]
    pub fn unchanged(&self, seen: &Snapshot) -> bool {
        // Acquire fence: pairs with the Release fence in `lock` (and with the one that the store
        // makes before it overwrites a chunk): if any load above saw a byte written after such a
        // fence, the loads below see the counter that was bumped before it.
        fence(Ordering::Acquire);
        self.counter(seen.pair.one).load(Ordering::Relaxed) == seen.one
            && self.counter(seen.pair.other).load(Ordering::Relaxed) == seen.other
    }

    /// Excludes other writers from both stripes and makes readers wait.
    #[inline]
    pub fn lock(&self, pair: Pair) -> PairGuard<'_> {
        // Invariant 3: in index order.
        let (low, high) = (pair.one.min(pair.other), pair.one.max(pair.other));
        let (low_version, high_version) = (self.acquire(low), self.acquire(high));
        // Release fence: pairs with the Acquire fence in `unchanged`: a reader that sees a byte written
        // under this lock also sees an odd counter, or a later one.
        fence(Ordering::Release);
        PairGuard {
            stripes: self,
            low,
            high,
            low_version,
            high_version,
            modified: true,
        }
    }

    /// Like [`Stripes::lock`], but gives up at once if another writer holds a stripe.
    #[inline]
    pub fn try_lock(&self, pair: Pair) -> Option<PairGuard<'_>> {
        let (low, high) = (pair.one.min(pair.other), pair.one.max(pair.other));
        let low_version = self.try_acquire(low)?;
        let Some(high_version) = self.try_acquire(high) else {
            // Nothing was written under the low stripe, so its counter gets the old value back. Release: pairs with the
            // Acquire in `even` and `acquire`.
            self.counter(low).store(low_version, Ordering::Release);
            return None;
        };
        // Release fence: as in `lock`.
        fence(Ordering::Release);
        Some(PairGuard {
            stripes: self,
            low,
            high,
            low_version,
            high_version,
            modified: true,
        })
    }

    #[inline(always)]
    fn counter(&self, index: u32) -> &AtomicU32 {
        &self.counters[index as usize & (ROOM - 1)]
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
            if let Some(version) = self.try_acquire(index) {
                return version;
            }
            spin(turn);
            turn += 1;
        }
    }

    /// Makes a counter odd and returns the even value it had, unless another writer holds it.
    #[inline(always)]
    fn try_acquire(&self, index: u32) -> Option<u32> {
        let version = self.counter(index).load(Ordering::Relaxed);
        if version & 1 != 0 {
            return None;
        }
        // Acquire: pairs with the Release in `PairGuard::drop`; this writer sees what the last one wrote.
        self.counter(index)
            .compare_exchange(
                version,
                version.wrapping_add(1),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .ok()
    }
}

/// Both stripes of a pair, held by one writer until dropped.
pub struct PairGuard<'a> {
    stripes: &'a Stripes,
    low: u32,
    high: u32,
    low_version: u32,
    high_version: u32,
    modified: bool,
}

impl PairGuard<'_> {
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
            .counter(self.high)
            .store(self.high_version.wrapping_add(step), Ordering::Release);
        self.stripes
            .counter(self.low)
            .store(self.low_version.wrapping_add(step), Ordering::Release);
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
    fn who_only_tries_gives_up_and_leaves_no_trace() {
        let stripes = Stripes::new(8);
        let seen = stripes.snapshot(stripes.pair(0, 3));
        let held = stripes.lock(stripes.pair(2, 1));
        assert!(stripes.try_lock(stripes.pair(0, 1)).is_none());
        assert!(stripes.try_lock(stripes.pair(2, 3)).is_none());
        drop(held);
        assert!(stripes.unchanged(&seen));
        drop(stripes.try_lock(stripes.pair(0, 1)));
        assert!(!stripes.unchanged(&seen));
    }

    #[test]
    fn other_stripes_are_not_disturbed() {
        let stripes = Stripes::new(8);
        let seen = stripes.snapshot(stripes.pair(0, 1));
        drop(stripes.lock(stripes.pair(2, 3)));
        assert!(stripes.unchanged(&seen));
    }
}
