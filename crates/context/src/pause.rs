//! A server that does not serve for a while: nothing is accepted, connections are closed when what they asked is answered,
//! datagrams stay in the kernel. So its items stay as they are.
//!
//! First the acceptor rests, so that no connection comes behind the others; then the workers close theirs. Each says
//! so, and all of them go on when the pause is over.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::shutdown::Shutdown;

/// How often it is looked whether all have come to rest.
const STEP: Duration = Duration::from_millis(1);

/// How far a pause has come.
#[derive(Default)]
pub struct Pause {
    /// The acceptor is to rest.
    accepting: AtomicBool,
    /// The workers are to close their connections.
    closing: AtomicBool,
    acceptor_rests: AtomicBool,
    /// Workers that have done so.
    workers_at_rest: AtomicUsize,
    /// Another process serves: nothing that it has is removed when this one ends.
    handed_over: AtomicBool,
}

impl Pause {
    /// Begins. Returns when everybody rests; false if the server stops instead.
    pub fn begin(&self, workers: usize, shutdown: &Shutdown) -> bool {
        // Release, here and below: pairs with the Acquire of those who look; they are woken behind it.
        self.accepting.store(true, Ordering::Release);
        shutdown.wake_all();
        // Acquire: pairs with acceptor_rests() — what it accepted before is in the inboxes.
        let rests = || self.acceptor_rests.load(Ordering::Acquire);
        if !wait_until(rests, shutdown) {
            return false;
        }
        self.closing.store(true, Ordering::Release);
        shutdown.wake_all();
        // Acquire: pairs with worker_rests() — what the workers wrote to the engine is seen.
        wait_until(
            || self.workers_at_rest.load(Ordering::Acquire) == workers,
            shutdown,
        )
    }

    /// Everybody goes on.
    pub fn end(&self, shutdown: &Shutdown) {
        self.workers_at_rest.store(0, Ordering::Release);
        self.closing.store(false, Ordering::Release);
        self.acceptor_rests.store(false, Ordering::Release);
        self.accepting.store(false, Ordering::Release);
        shutdown.wake_all();
    }

    /// Another process serves from now on.
    pub fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Release);
    }

    /// It does not, after all.
    pub fn take_back(&self) {
        self.handed_over.store(false, Ordering::Release);
    }

    /// True if another process serves.
    pub fn is_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Acquire)
    }

    /// True if nothing is to be accepted.
    pub fn stops_accepting(&self) -> bool {
        self.accepting.load(Ordering::Acquire)
    }

    /// True if connections are to be closed.
    #[inline]
    pub fn closes_connections(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// The acceptor accepts no more.
    pub fn acceptor_rests(&self) {
        self.acceptor_rests.store(true, Ordering::Release);
    }

    /// A worker has no connection any more, and reads nothing.
    pub fn worker_rests(&self) {
        self.workers_at_rest.fetch_add(1, Ordering::Release);
    }
}

fn wait_until(is_so: impl Fn() -> bool, shutdown: &Shutdown) -> bool {
    while !is_so() {
        if shutdown.is_requested() {
            return false;
        }
        shutdown.sleep(STEP);
    }
    true
}
