//! The standard mutex without poison.
//!
//! A holder that panicked locks nobody out: a holder of one of our locks keeps its value whole at every step that
//! can panic. Of a caller's code nothing runs under them but the room that replies make for a value, and then the
//! table is whole.

use std::sync::TryLockError;

use crate::shim;
pub use crate::shim::MutexGuard;

/// A lock around a value, which sleeps while it waits.
#[derive(Debug, Default)]
pub struct Mutex<T>(shim::Mutex<T>);

impl<T> Mutex<T> {
    /// An open one.
    pub fn new(value: T) -> Self {
        Self(shim::Mutex::new(value))
    }

    /// The value, to its holder alone.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The value if nobody holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// What a holder waits for to be told of.
#[derive(Debug, Default)]
pub struct Condvar(shim::Condvar);

impl Condvar {
    /// Opens the lock, sleeps until it is told, or for no reason, and locks again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0
            .wait(guard)
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The same, for so long at most.
    #[cfg(not(loom))]
    pub fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: std::time::Duration,
    ) -> MutexGuard<'a, T> {
        let waited = self.0.wait_timeout(guard, most);
        waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
    }

    /// Wakes one of those who sleep.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all of them.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
