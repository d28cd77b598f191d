//! Locks and parked threads: the standard library's, or loom's in models (`tests/loom.rs`).

#[cfg(loom)]
pub(crate) use model::{Mutex, MutexGuard, Thread, current, park};
#[cfg(not(loom))]
pub(crate) use real::{Mutex, MutexGuard, Thread, current, park};

#[cfg(not(loom))]
mod real {
    use std::time::Instant;

    pub(crate) use std::sync::{Mutex, MutexGuard};
    pub(crate) use std::thread::{Thread, current};

    /// Sleeps until somebody wakes this thread, or until the deadline, or for no reason at all.
    pub(crate) fn park(deadline: Instant) {
        std::thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

/// loom's own `unpark` is forgotten if the thread takes a lock before it parks; the standard library's is not.
#[cfg(loom)]
mod model {
    use std::sync::Arc;
    use std::time::Instant;

    use loom::sync::Condvar;
    pub(crate) use loom::sync::{Mutex, MutexGuard};

    #[derive(Clone, Debug)]
    pub(crate) struct Thread(Arc<(Mutex<bool>, Condvar)>);

    loom::thread_local! {
        static HERE: Thread = Thread(Arc::new((Mutex::new(false), Condvar::new())));
    }

    impl Thread {
        pub fn unpark(&self) {
            let (is_woken, changed) = &*self.0;
            *is_woken.lock().unwrap() = true;
            changed.notify_one();
        }

        pub fn id(&self) -> *const (Mutex<bool>, Condvar) {
            Arc::as_ptr(&self.0)
        }
    }

    pub(crate) fn current() -> Thread {
        HERE.with(Thread::clone)
    }

    /// In a model there is no time: nobody is ever woken but by somebody.
    pub(crate) fn park(_: Instant) {
        let here = current();
        let (is_woken, changed) = &*here.0;
        let mut is_woken = is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = changed.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}
