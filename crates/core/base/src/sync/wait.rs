//! Waiting for another thread: spin, then yield, then park.
//!
//! Spinning reacts fastest while the other thread has a core of its own. Yielding gives that thread a core when there
//! are more threads than cores. A parked thread costs nothing. A thread publishes a result for which others may wait,
//! calls [`fence_before_wake`] once for all its results, and then [`Event::wake`] for each waiter, which is one load
//! unless the waiter sleeps.
//!
//! Invariant: a waiter does not go on sleeping once its condition is true. Waiter and waker both execute a sequentially
//! consistent fence between their own store and their load of the other's. So one of them sees the other: the waiter
//! sees the published result, or the waker sees that the waiter is parked.

use crate::sync::mutex::{Condvar, Mutex, MutexGuard};
use crate::sync::shim::{AtomicU32, Ordering, fence, spin_loop, yield_now};

/// Turns of the busy phase. A pause is some 40 to 140 cycles: a few microseconds, several times a
/// round trip between two cores (236 ns on the machine of the project's figures).
const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };

/// Turns of the yielding phase: with one runnable thread a core a turn takes under a microsecond, with more it takes as
/// long as the others run. There are few turns, because a thread that is woken runs sooner than one that yielded.
const YIELDS: u32 = if cfg!(loom) { 0 } else { 8 };

/// The place where a thread waits. Only one thread waits there at a time.
#[derive(Debug, Default)]
pub struct Event {
    /// 1 while the waiter sleeps, or is about to.
    parked: AtomicU32,
    lock: Mutex<()>,
    awake: Condvar,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// While spinning or yielding.
    Awake,
    /// After having slept.
    Slept,
}

/// Makes all that this thread has published visible to a thread that goes to sleep, so that
/// [`Event::wake`] cannot miss it.
#[inline]
pub fn fence_before_wake() {
    // SeqCst: pairs with the fence in `Event::wait`.
    fence(Ordering::SeqCst);
}

impl Event {
    /// Returns when `ready` returns true. Only this thread calls `ready`, and often; it must read only state whose
    /// changes are announced.
    pub fn wait(&self, mut ready: impl FnMut() -> bool) {
        if self.watch(&mut ready) {
            return;
        }
        while self.park(&mut ready, || {}) == Waited::Slept {}
    }

    /// Like [`Event::wait`], but returns after one sleep, whether or not `ready` would return true. `before` is called
    /// before the sleep: by then `ready` has returned false after the event was [parked](Event::is_parked), and it is
    /// not called any more.
    pub fn doze(&self, mut ready: impl FnMut() -> bool, before: impl FnOnce()) -> Waited {
        if self.watch(&mut ready) {
            return Waited::Awake;
        }
        self.park(&mut ready, before)
    }

    /// Spins, then yields. True if `ready` returned true.
    #[inline]
    fn watch(&self, ready: &mut impl FnMut() -> bool) -> bool {
        (0..SPINS + YIELDS).any(|turn| {
            let now = ready();
            if !now && turn < SPINS {
                spin_loop();
            } else if !now {
                yield_now();
            }
            now
        })
    }

    /// Sleeps until woken, unless `ready` returns true.
    #[cold]
    fn park(&self, ready: &mut impl FnMut() -> bool, before: impl FnOnce()) -> Waited {
        let mut guard = self.lock();
        self.parked.store(1, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `fence_before_wake`.
        fence(Ordering::SeqCst);
        let waited = match ready() {
            true => Waited::Awake,
            false => {
                before();
                // Between the check above and this wait, a waker that saw the event parked waits for the lock.
                guard = self.awake.wait(guard);
                Waited::Slept
            }
        };
        // Relaxed: a waker that comes late finds no sleeping thread.
        self.parked.store(0, Ordering::Relaxed);
        drop(guard);
        waited
    }

    /// True while the waiter sleeps, or is about to.
    #[inline]
    pub fn is_parked(&self) -> bool {
        // Relaxed: the fence in `fence_before_wake` orders it after the published result.
        self.parked.load(Ordering::Relaxed) != 0
    }

    /// Wakes the waiter if it sleeps. True if it did.
    #[inline]
    pub fn wake(&self) -> bool {
        let parked = self.is_parked();
        if parked {
            self.wake_parked();
        }
        parked
    }

    #[cold]
    fn wake_parked(&self) {
        let _guard = self.lock();
        self.awake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock()
    }
}
