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

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};

use crate::worker::SharedWorker;

/// A worker's lock, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct WorkerLock {
    mutex: Mutex<()>,
    /// True if its worker holds all locks, this one too. Relaxed: no other thread reads it.
    all: AtomicBool,
}

impl WorkerLock {
    /// Waits until no other worker has the engine to itself. Only the worker calls this.
    #[inline]
    pub fn take(&self) -> Option<MutexGuard<'_, ()>> {
        match self.all.load(Ordering::Relaxed) {
            true => None,
            false => Some(self.mutex.lock()),
        }
    }

    /// True if its worker has the engine to itself. Only the worker calls this.
    pub fn has_all(&self) -> bool {
        self.all.load(Ordering::Relaxed)
    }

    /// The same as `take`, unless `gives_up` says, asked each millisecond, that the wait is too long.
    pub fn take_unless(&self, gives_up: impl Fn() -> bool) -> Option<Option<MutexGuard<'_, ()>>> {
        if self.all.load(Ordering::Relaxed) {
            return Some(None);
        }
        loop {
            if let Some(guard) = self.mutex.try_lock() {
                return Some(Some(guard));
            }
            if gives_up() {
                return None;
            }
            std::thread::sleep(STEP);
        }
    }
}

/// How long a worker sleeps that may give up waiting.
pub const STEP: Duration = Duration::from_millis(1);

/// All workers' locks: until this is dropped, the engine executes nothing for other workers.
pub struct Isolation<'s> {
    own: &'s WorkerLock,
    _locks: Vec<MutexGuard<'s, ()>>,
}

impl<'s> Isolation<'s> {
    /// Waits for requests that are being executed. Only the worker of `own` calls this, without holding `own`.
    pub fn wait(workers: &'s [Arc<SharedWorker>], own: &'s WorkerLock) -> Self {
        let locks = workers.iter().map(|worker| worker.lock.mutex.lock());
        let locks = locks.collect();
        own.all.store(true, Ordering::Relaxed);
        Self { own, _locks: locks }
    }

    /// The same, unless the worker of `own` has the engine to itself already.
    pub fn wait_if_shared(workers: &'s [Arc<SharedWorker>], own: &'s WorkerLock) -> Option<Self> {
        let is_shared = !own.all.load(Ordering::Relaxed);
        is_shared.then(|| Self::wait(workers, own))
    }
}

impl Drop for Isolation<'_> {
    fn drop(&mut self) {
        self.own.all.store(false, Ordering::Relaxed);
    }
}
