//! A lock for a few dozen instructions: spins, then yields, then parks.
//!
//! CPHash's authors found that a plain spinlock beats queueing locks when there are thousands of locks
//! and so hardly ever two threads at one (section 6). But a thread that spins while the holder waits
//! for a core wastes the very time the holder needs; so with more threads than cores the wait ends
//! in sleep. Parking and waking are those of the standard library's mutex: one word, of which the
//! uncontended lock and unlock are one exchange each.
//!
//! Invariants:
//! 1. At most one [`MutexGuard`] of a lock exists at a time.
//! 2. What one holder wrote, the next one sees (Release of the unlock, Acquire of the lock).
//! 3. A waiter goes on once the holders before it are gone: it tries again, or is woken.

use crate::mutex::{Mutex, MutexGuard};
use crate::shim::spin;

/// Tries before the wait is left to the system: the first ones busy, the rest with the core given away.
const TRIES: u32 = if cfg!(loom) { 1 } else { 96 };

/// A lock around a value.
#[derive(Debug, Default)]
pub struct SpinLock<T> {
    inner: Mutex<T>,
}

impl<T> SpinLock<T> {
    /// An open one.
    pub fn new(value: T) -> Self {
        Self {
            inner: Mutex::new(value),
        }
    }

    /// The value, to its holder alone.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    /// The value if nobody holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.inner.try_lock()
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, T> {
        for turn in 0..TRIES {
            spin(turn);
            if let Some(guard) = self.try_lock() {
                return guard;
            }
        }
        self.inner.lock()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn more_threads_than_cores_lose_nothing() {
        let lock = Arc::new(SpinLock::new(0_u64));
        let threads: Vec<_> = (0..16)
            .map(|_| {
                let lock = Arc::clone(&lock);
                std::thread::spawn(move || {
                    for _ in 0..20_000 {
                        *lock.lock() += 1;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no thread panics");
        }
        assert_eq!(*lock.lock(), 16 * 20_000);
    }

    #[test]
    fn a_holder_that_panicked_locks_nobody_out() {
        let lock = Arc::new(SpinLock::new(7));
        let other = Arc::clone(&lock);
        let panicked = std::thread::spawn(move || {
            let _guard = other.lock();
            panic!("on purpose");
        });
        assert!(panicked.join().is_err());
        assert_eq!(*lock.lock(), 7);
        assert!(lock.try_lock().is_some_and(|value| *value == 7));
    }
}
