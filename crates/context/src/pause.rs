//! A server that does not serve for a while: nothing is accepted, connections are closed when what they asked is answered,
//! datagrams stay in the kernel. So its items stay as they are, and where they are: a walk over them meets each once.
//!
//! First the acceptor rests, so that no connection comes behind the others; then the workers close theirs. Each says
//! so, and all of them go on when the pause is over. What is done behind the scenes is done in steps, none of which is
//! under way while everybody rests.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nuthatch_sync::mutex::{Mutex, MutexGuard};

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
    /// Held for a step behind the scenes.
    background: Mutex<()>,
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
        let rest = wait_until(
            || self.workers_at_rest.load(Ordering::Acquire) == workers,
            shutdown,
        );
        // A step that is under way ends; those that ask for the lock behind this see that connections are closed.
        drop(self.background.lock());
        rest
    }

    /// May a step be taken behind the scenes? It lasts as long as what is returned. None while the workers are to rest.
    pub fn step_behind_the_scenes(&self) -> Option<MutexGuard<'_, ()>> {
        let step = self.background.lock();
        (!self.closes_connections()).then_some(step)
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
            // The pause cannot have begun: what is done now is done before.
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
