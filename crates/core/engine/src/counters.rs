//! Counters: statistics that cost a hot path next to nothing. Each thread has its own counters, and a reader adds them
//! up.

use std::sync::Arc;
// Not of the shim: no other memory depends on these hundreds of numbers, and loom would look through all of them at every
// fence. (A [`Counter`] is modelled.)
use std::sync::atomic::{AtomicU64, Ordering};

pub use nuthatch_base::sync::counter::Counter;
use nuthatch_base::sync::mutex::Mutex;

/// The counters of one thread. Only that thread writes them; any thread may read them. They share no line with others',
/// nor a pair of lines, which some processors load together.
#[derive(Debug)]
#[repr(align(128))]
pub struct Counters<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; N])
    }
}

impl<const N: usize> Counters<N> {
    /// Adds to a counter of the calling thread: see [`Counter::add`].
    #[inline(always)]
    pub fn add(&self, index: usize, amount: u64) {
        let counter = &self.0[index];
        // Relaxed load and store, here and below, as in a counter of its own.
        let sum = counter.load(Ordering::Relaxed).wrapping_add(amount);
        counter.store(sum, Ordering::Relaxed);
    }

    fn add_to(&self, sums: &mut [u64; N]) {
        for (sum, counter) in sums.iter_mut().zip(&self.0) {
            *sum = sum.wrapping_add(counter.load(Ordering::Relaxed));
        }
    }
}

/// All threads' counters.
#[derive(Debug)]
pub struct Registry<const N: usize> {
    inner: Mutex<Inner<N>>,
}

#[derive(Debug)]
struct Inner<const N: usize> {
    live: Vec<Arc<Counters<N>>>,
    /// Sums of the threads that left.
    left: [u64; N],
    /// Sums at the last reset.
    base: [u64; N],
}

impl<const N: usize> Default for Registry<N> {
    fn default() -> Self {
        let inner = Inner {
            live: Vec::new(),
            left: [0; N],
            base: [0; N],
        };
        Self {
            inner: Mutex::new(inner),
        }
    }
}

impl<const N: usize> Registry<N> {
    /// A new thread's counters.
    pub fn register(&self) -> Arc<Counters<N>> {
        let counters = Arc::new(Counters::default());
        self.lock().live.push(Arc::clone(&counters));
        counters
    }

    /// Removes a thread that leaves; its counts stay in the sums.
    pub fn unregister(&self, counters: &Arc<Counters<N>>) {
        let mut inner = self.lock();
        counters.add_to(&mut inner.left);
        inner.live.retain(|other| !Arc::ptr_eq(other, counters));
    }

    /// The sums since the start.
    pub fn sums(&self) -> [u64; N] {
        self.lock().sums()
    }

    /// The sums since the last reset.
    pub fn sums_since_reset(&self) -> [u64; N] {
        let inner = self.lock();
        let mut sums = inner.sums();
        for (sum, base) in sums.iter_mut().zip(&inner.base) {
            *sum = sum.wrapping_sub(*base);
        }
        sums
    }

    /// Counts from zero again, for [`Registry::sums_since_reset`].
    pub fn reset(&self) {
        let mut inner = self.lock();
        inner.base = inner.sums();
    }

    fn lock(&self) -> nuthatch_base::sync::mutex::MutexGuard<'_, Inner<N>> {
        self.inner.lock()
    }
}

impl<const N: usize> Inner<N> {
    fn sums(&self) -> [u64; N] {
        let mut sums = self.left;
        for counters in &self.live {
            counters.add_to(&mut sums);
        }
        sums
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_a_thread_leaves() {
        let registry = Registry::<2>::default();
        let (one, other) = (registry.register(), registry.register());
        one.add(0, 5);
        other.add(0, 7);
        other.add(1, 1_u64.wrapping_neg());
        registry.unregister(&other);
        one.add(1, 1);
        assert_eq!(registry.sums(), [12, 0]);
        registry.reset();
        one.add(0, 1);
        assert_eq!(registry.sums_since_reset(), [1, 0]);
        assert_eq!(registry.sums(), [13, 0]);
    }
}
