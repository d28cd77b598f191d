//! A counter with one writer: it costs a hot path a load and a store.

use crate::sync::shim::{AtomicU64, Ordering};

/// A number with one writer and many readers.
#[derive(Debug)]
pub struct Counter(AtomicU64);

impl Default for Counter {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Counter {
    /// Adds; only the one writing thread may call it. Wraps: a negative amount is added as its two's complement, and
    /// sums come out right.
    #[inline(always)]
    pub fn add(&self, amount: u64) {
        // Relaxed load and store, not fetch_add: there is one writer, and no other memory depends on it.
        self.0
            .store(self.get().wrapping_add(amount), Ordering::Relaxed);
    }

    /// One more.
    #[inline(always)]
    pub fn bump(&self) {
        self.add(1);
    }

    /// The number.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts from zero again. Only the writing thread may call it: from another thread, a reset in the middle of an
    /// addition would be lost. Any other thread remembers the count and subtracts it later.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
