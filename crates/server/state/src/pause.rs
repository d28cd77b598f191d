//! A pause of the server: it accepts no connection, closes connections when their requests are answered, and leaves
//! datagrams in the kernel. So its items neither change nor move, and a walk over them meets each once.
//!
//! First the acceptor rests, so that no new connection comes. Then the workers close their connections. Each reports
//! that it rests, and all go on when the pause is over. Background work is done in steps, and no step runs while all
//! rest.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};

use crate::shutdown::Shutdown;

/// How often the caller checks whether all have come to rest.
const STEP: Duration = Duration::from_millis(1);

/// The progress of a pause.
#[derive(Default)]
pub struct Pause {
    /// The acceptor is to rest.
    accepting: AtomicBool,
    /// The workers are to close their connections.
    closing: AtomicBool,
    acceptor_rests: AtomicBool,
    /// Workers that have closed their connections.
    workers_at_rest: AtomicUsize,
    /// Held during a step of background work.
    background: Mutex<()>,
    /// Another process serves: this one removes none of its files at the end.
    handed_over: AtomicBool,
}

impl Pause {
    /// Begins the pause. Returns true when all threads rest, false if the server stops instead.
    pub fn begin(&self, workers: usize, shutdown: &Shutdown) -> bool {
        // Release, here and below: pairs with the Acquire of the threads that check it. They are woken after the store.
        self.accepting.store(true, Ordering::Release);
        shutdown.wake_all();
        // Acquire: pairs with acceptor_rests(): connections that it accepted before have been left for the workers.
        let rests = || self.acceptor_rests.load(Ordering::Acquire);
        if !wait_until(rests, shutdown) {
            return false;
        }
        self.closing.store(true, Ordering::Release);
        shutdown.wake_all();
        // Acquire: pairs with worker_rests(): the workers' writes to the engine are visible.
        let rest = wait_until(
            || self.workers_at_rest.load(Ordering::Acquire) == workers,
            shutdown,
        );
        // Wait for the end of a running step. A step that takes the lock later sees that connections are closed.
        drop(self.background.lock());
        rest
    }

    /// Begins a step of background work, which lasts as long as the guard. `None` while the workers are to rest.
    pub fn step_behind_the_scenes(&self) -> Option<MutexGuard<'_, ()>> {
        let step = self.background.lock();
        (!self.closes_connections()).then_some(step)
    }

    /// Ends the pause: all threads go on.
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

    /// The other process does not serve: undoes `hand_over()`.
    pub fn take_back(&self) {
        self.handed_over.store(false, Ordering::Release);
    }

    /// True if another process serves.
    pub fn is_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Acquire)
    }

    /// True if the acceptor is to rest.
    pub fn stops_accepting(&self) -> bool {
        self.accepting.load(Ordering::Acquire)
    }

    /// True if the workers are to close their connections.
    #[inline]
    pub fn closes_connections(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Called by the acceptor when it rests.
    pub fn acceptor_rests(&self) {
        self.acceptor_rests.store(true, Ordering::Release);
    }

    /// Called by a worker that has no connection any more, and reads nothing.
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn no_step_behind_the_scenes_is_under_way_while_all_rest() {
        let (pause, shutdown) = (Pause::default(), Shutdown::default());
        pause.acceptor_rests();
        let moved = AtomicUsize::new(0);
        thread::scope(|scope| {
            let step = pause.step_behind_the_scenes();
            assert!(step.is_some());
            let walk = scope.spawn(|| {
                assert!(pause.begin(0, &shutdown));
                moved.load(Ordering::Relaxed)
            });
            while !pause.closes_connections() {
                thread::yield_now();
            }
            // The pause cannot have begun: this write happens before it.
            thread::sleep(Duration::from_millis(20));
            assert!(!walk.is_finished());
            moved.store(1, Ordering::Relaxed);
            drop(step);
            assert_eq!(walk.join().unwrap(), 1);
        });
        assert!(pause.step_behind_the_scenes().is_none());
        pause.end(&shutdown);
        assert!(pause.step_behind_the_scenes().is_some());
    }
}
