//! Locks that ThreadSanitizer sees, with the interface of the standard library's, poison included.
//!
//! The standard library is compiled without ThreadSanitizer (its sources are seldom available). So the hand-over from a
//! holder to a thread that had to wait would look like a race. parking_lot is compiled like our own code.

#![expect(missing_docs, reason = "all of it is as in the standard library")]

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
use std::thread;
use std::time::Duration;

#[derive(Debug, Default)]
pub struct Mutex<T> {
    value: parking_lot::Mutex<T>,
    poisoned: AtomicBool,
}

#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    held: parking_lot::MutexGuard<'a, T>,
    poisoned: &'a AtomicBool,
    /// Whether the thread was already panicking when it took the lock.
    panicking: bool,
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self {
            value: parking_lot::Mutex::new(value),
            poisoned: AtomicBool::new(false),
        }
    }

    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.guard(self.value.lock())
    }

    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let held = self.value.try_lock().ok_or(TryLockError::WouldBlock)?;
        Ok(self.guard(held)?)
    }

    pub fn is_poisoned(&self) -> bool {
        // Relaxed, here and below: it says nothing about the value, which the lock orders.
        self.poisoned.load(Ordering::Relaxed)
    }

    fn guard<'a>(&'a self, held: parking_lot::MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let guard = MutexGuard {
            held,
            poisoned: &self.poisoned,
            panicking: thread::panicking(),
        };
        match self.is_poisoned() {
            false => Ok(guard),
            true => Err(PoisonError::new(guard)),
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if !self.panicking && thread::panicking() {
            self.poisoned.store(true, Ordering::Relaxed);
        }
    }
}

#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(&mut guard.held);
        Ok(guard)
    }

    pub fn wait_timeout<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        most: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        self.0.wait_for(&mut guard.held, most);
        Ok((guard, ()))
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
