//! Isolation: each worker holds a lock of its own while it has the engine carry something out, and who holds all of
//! them has the engine to itself.
//!
//! ```text
//!  worker 0   |batch|        |batch|           (waits) |batch|
//!  worker 1      |batch|  |  all locks: look, carry out  |  |batch|
//! ```
//!
//! A worker's lock is one that nobody else touches while nobody wants all: it costs a batch two operations on a line that
//! is there. To the engine a worker that waits for it is as one that sleeps between two iterations, so nothing that the
//! one in the middle asks for can wait for it. A thread that takes all takes them in the workers' order, and holds none
//! of its own before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nuthatch_sync::mutex::{Mutex, MutexGuard};

use crate::inbox::Inbox;

/// A worker's lock, in lines of the processor's caches of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct WorkerLock {
    mutex: Mutex<()>,
    /// Its worker holds all locks, this one too. Relaxed: nobody else looks.
    all: AtomicBool,
}

impl WorkerLock {
    /// Waits until nobody else has the engine to itself. Only the worker calls this.
    #[inline]
    pub fn take(&self) -> Option<MutexGuard<'_, ()>> {
        match self.all.load(Ordering::Relaxed) {
            true => None,
            false => Some(self.mutex.lock()),
        }
    }
}

/// All workers' locks: nothing is carried out for anybody else until this is dropped.
pub struct Isolation<'s> {
    own: &'s WorkerLock,
    _locks: Vec<MutexGuard<'s, ()>>,
}

impl<'s> Isolation<'s> {
    /// Waits for what is being carried out. Only the worker of `own` calls this, without holding it.
    pub fn wait(inboxes: &'s [Arc<Inbox>], own: &'s WorkerLock) -> Self {
        let locks = inboxes.iter().map(|inbox| inbox.lock.mutex.lock());
        let locks = locks.collect();
        own.all.store(true, Ordering::Relaxed);
        Self { own, _locks: locks }
    }
}

impl Drop for Isolation<'_> {
    fn drop(&mut self) {
        self.own.all.store(false, Ordering::Relaxed);
    }
}
