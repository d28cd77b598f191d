//! Isolation: each worker holds a lock of its own while the engine executes its requests, and a worker that holds all
//! these locks has the engine to itself.
//!
//! ```text
//!  worker 0   |batch|        |batch|           (waits) |batch|
//!  worker 1      |batch|  |  all locks: look, carry out  |  |batch|
//! ```
//!
//! As long as no worker wants all locks, no other thread touches a worker's lock: it costs a batch two operations on a
//! cached line. For the engine, a worker that waits for its lock is like a worker that sleeps between two iterations,
//! so no request of the isolated worker can wait for it. A thread that takes all locks takes them in the workers'
//! order, and holds no lock before.
//!
//! A thread that ends its isolation and begins another would take the locks again before a thread that waits for one has
//! woken. So who waits is counted, and comes first: it gets the lock, or the isolated thread has yielded for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};

use crate::worker::SharedWorker;

/// A worker's lock, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct WorkerLock {
    mutex: Mutex<()>,
    /// True if its worker holds all locks, this one too. Relaxed: no other thread reads it.
    all: AtomicBool,
    /// Threads that wait for it. Relaxed: a hint for who would come before them.
    waiting: AtomicU32,
}

/// How long a worker sleeps that may give up waiting.
pub const STEP: Duration = Duration::from_millis(1);

/// How long those who wait come first: longer than they sleep.
const COURTESY: Duration = Duration::from_millis(2);

impl WorkerLock {
    /// Waits until no other worker has the engine to itself. Only the worker calls this.
    #[inline]
    pub fn take(&self) -> Option<MutexGuard<'_, ()>> {
        match self.all.load(Ordering::Relaxed) {
            true => None,
            false => Some(self.lock()),
        }
    }

    /// The same as `take`, unless `gives_up` says, asked each millisecond, that the wait is too long.
    #[inline]
    pub fn take_unless(&self, gives_up: impl Fn() -> bool) -> Option<Option<MutexGuard<'_, ()>>> {
        if self.all.load(Ordering::Relaxed) {
            return Some(None);
        }
        match self.mutex.try_lock() {
            Some(guard) => Some(Some(guard)),
            None => self.wait_unless(gives_up).map(Some),
        }
    }

    /// Most scripts end within a millisecond, in which it does not sleep.
    #[cold]
    fn wait_unless(&self, gives_up: impl Fn() -> bool) -> Option<MutexGuard<'_, ()>> {
        let _waits = Waits::at(self);
        let begin = Instant::now();
        loop {
            if let Some(guard) = self.mutex.try_lock() {
                return Some(guard);
            }
            if gives_up() {
                return None;
            }
            match begin.elapsed() < STEP {
                true => std::thread::yield_now(),
                false => std::thread::sleep(STEP),
            }
        }
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, ()> {
        match self.mutex.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, ()> {
        let _waits = Waits::at(self);
        self.mutex.lock()
    }

    /// The lock, behind those who wait for it.
    fn lock_behind_others(&self) -> MutexGuard<'_, ()> {
        self.let_others_go_first();
        self.lock()
    }

    fn let_others_go_first(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            let begin = Instant::now();
            while self.waiting.load(Ordering::Relaxed) > 0 && begin.elapsed() < COURTESY {
                std::thread::yield_now();
            }
        }
    }

    /// The same as `lock_behind_others`, unless `gives_up` says that the wait is too long.
    fn lock_behind_others_unless(&self, gives_up: impl Fn() -> bool) -> Option<MutexGuard<'_, ()>> {
        self.let_others_go_first();
        self.mutex.try_lock().or_else(|| self.wait_unless(gives_up))
    }
}

/// A thread waits for a lock until this is dropped.
struct Waits<'l>(&'l AtomicU32);

impl<'l> Waits<'l> {
    fn at(lock: &'l WorkerLock) -> Self {
        lock.waiting.fetch_add(1, Ordering::Relaxed);
        Self(&lock.waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All workers' locks: until this is dropped, the engine executes nothing for other workers.
pub struct Isolation<'s> {
    own: &'s WorkerLock,
    _locks: Vec<MutexGuard<'s, ()>>,
}

impl<'s> Isolation<'s> {
    /// Waits for requests that are being executed. Only the worker of `own` calls this, without holding `own`.
    fn wait(workers: &'s [Arc<SharedWorker>], own: &'s WorkerLock) -> Self {
        let locks = workers.iter();
        let locks = locks.map(|worker| worker.lock.lock_behind_others());
        Self::with(locks.collect(), own)
    }

    fn with(locks: Vec<MutexGuard<'s, ()>>, own: &'s WorkerLock) -> Self {
        own.all.store(true, Ordering::Relaxed);
        Self { own, _locks: locks }
    }

    /// The same, unless the worker of `own` has the engine to itself already.
    pub fn wait_if_shared(workers: &'s [Arc<SharedWorker>], own: &'s WorkerLock) -> Option<Self> {
        let is_shared = !own.all.load(Ordering::Relaxed);
        is_shared.then(|| Self::wait(workers, own))
    }

    /// The same as `wait_if_shared`, unless `gives_up` says, asked each millisecond, that the wait is too long.
    pub fn wait_unless(
        workers: &'s [Arc<SharedWorker>],
        own: &'s WorkerLock,
        gives_up: impl Fn() -> bool,
    ) -> Option<Option<Self>> {
        if own.all.load(Ordering::Relaxed) {
            return Some(None);
        }
        let locks = workers.iter();
        let locks = locks.map(|worker| worker.lock.lock_behind_others_unless(&gives_up));
        let locks: Option<Vec<_>> = locks.collect();
        locks.map(|locks| Some(Self::with(locks, own)))
    }
}

impl Drop for Isolation<'_> {
    fn drop(&mut self) {
        self.own.all.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the count the waiting thread would get the lock once in thousands of times.
    #[test]
    fn who_waits_comes_first() {
        let lock = WorkerLock::default();
        let done = AtomicBool::new(false);
        let (mut before, mut took) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..100 {
                    drop(lock.take());
                    drop(lock.take_unless(|| false));
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                let waits = lock.waiting.load(Ordering::Relaxed) > 0;
                let held = lock.lock_behind_others();
                before += u32::from(waits && lock.waiting.load(Ordering::Relaxed) == 0);
                took += u32::from(waits);
                std::thread::yield_now();
                drop(held);
            }
        });
        assert_eq!(lock.waiting.load(Ordering::Relaxed), 0);
        assert!(took == 0 || before > 0, "{before} of {took}");
    }
}
