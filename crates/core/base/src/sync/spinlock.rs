//! A spinlock for a few dozen instructions: a waiting thread spins, then yields, then parks.
//!
//! CPHash's authors found that a plain spinlock beats queueing locks when there are thousands of locks, and so hardly
//! ever two threads at one (section 6). But a thread that spins while the holder waits for a core wastes the very time
//! that the holder needs. So with more threads than cores the wait ends in sleep. Parking and waking are those of the
//! standard library's mutex: one word, with one exchange for an uncontended lock and one for the unlock.
//!
//! Invariants:
//! 1. At most one [`MutexGuard`] of a lock exists at a time.
//! 2. The next holder sees what the last one wrote (Release of the unlock, Acquire of the lock).
//! 3. A waiter goes on once the earlier holders have released the lock: it tries again, or is woken.

use crate::sync::mutex::{Mutex, MutexGuard};
use crate::sync::shim::spin;

/// Tries before the thread parks: it spins in the first ones and yields the core in the rest.
const TRIES: u32 = if cfg!(loom) { 1 } else { 96 };

/// A lock around a value.
#[derive(Debug, Default)]
pub struct SpinLock<T> {
    inner: Mutex<T>,
}

impl<T> SpinLock<T> {
    /// An unlocked lock.
    pub fn new(value: T) -> Self {
        Self {
            inner: Mutex::new(value),
        }
    }

    /// Locks it, and gives access to the value.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    /// Locks it unless a thread holds it.
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
