//! Turns: each worker takes its own while it has the engine carry something out, and who takes all of them is alone.
//!
//! ```text
//!  worker 0   |batch|        |batch|           (waits) |batch|
//!  worker 1      |batch|  |  all turns: look, carry out  |  |batch|
//! ```
//!
//! A worker's turn is its own lock, which nobody else touches while nobody wants all: it costs a batch two operations on
//! a line that is there. To the engine a worker that waits for its turn is as one that sleeps between two iterations, so
//! nothing that the one in the middle asks for can wait for it. Whoever takes all takes them in the workers' order, and
//! holds none of its own before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nuthatch_sync::mutex::{Mutex, MutexGuard};

use crate::inbox::Inbox;

/// A worker's turn, in lines of the processor's caches of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Turn {
    lock: Mutex<()>,
    /// Its worker holds all turns, this one too. Relaxed: nobody else looks.
    all: AtomicBool,
}

impl Turn {
    /// Waits until nobody else is alone. Only the worker calls this.
    #[inline]
    pub fn take(&self) -> Option<MutexGuard<'_, ()>> {
        match self.all.load(Ordering::Relaxed) {
            true => None,
            false => Some(self.lock.lock()),
        }
    }
}

/// All turns: nothing is carried out for anybody else until this is dropped.
pub struct Alone<'s> {
    own: &'s Turn,
    _turns: Vec<MutexGuard<'s, ()>>,
}

impl<'s> Alone<'s> {
    /// Waits for what is being carried out. Only the worker of `own` calls this, outside of its turn.
    pub fn wait(inboxes: &'s [Arc<Inbox>], own: &'s Turn) -> Self {
        let turns = inboxes.iter().map(|inbox| inbox.turn.lock.lock());
        let turns = turns.collect();
        own.all.store(true, Ordering::Relaxed);
        Self { own, _turns: turns }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.own.all.store(false, Ordering::Relaxed);
    }
}
