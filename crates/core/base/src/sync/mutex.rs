//! The standard mutex without poison.
//!
//! A holder that panicked locks no thread out: a holder of one of our locks keeps its value consistent at every step
//! that can panic. The only code of a caller that runs under them makes the room for a value of a reply, and at that
//! moment the table is consistent.

use std::sync::TryLockError;

use crate::sync::shim;
pub use crate::sync::shim::MutexGuard;

/// A lock around a value. A waiting thread sleeps.
#[derive(Debug, Default)]
pub struct Mutex<T>(shim::Mutex<T>);

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub fn new(value: T) -> Self {
        Self(shim::Mutex::new(value))
    }

    /// Locks the mutex, and gives access to the value.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Locks the mutex unless a thread holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition for which the holder of a lock waits.
#[derive(Debug, Default)]
pub struct Condvar(shim::Condvar);

impl Condvar {
    /// Releases the lock, sleeps until it is notified, or spuriously wakes, and takes the lock again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0
            .wait(guard)
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The same, with a limit of the wait.
    #[cfg(not(loom))]
    pub fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: std::time::Duration,
    ) -> MutexGuard<'a, T> {
        let waited = self.0.wait_timeout(guard, most);
        waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
    }

    /// Wakes one of the sleeping threads.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all of them.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
