//! The threads of a server: all of them are there before the first begins.
//!
//! A machine may have no room for another thread. What a server takes at its start, from a file or from another process, is
//! nowhere else afterwards; so it is taken when all threads are there, and they begin when it was.

use std::io;
use std::mem;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use nuthatch_context::shutdown::Shutdown;

/// How a thread ended.
pub(crate) type Ended = io::Result<()>;

/// Threads that wait for their begin. Dropped before it, they end.
pub(crate) struct Threads {
    shutdown: Shutdown,
    begin: Arc<OnceLock<()>>,
    waiting: Vec<JoinHandle<Ended>>,
}

impl Threads {
    /// None so far, of a server that stops so.
    pub(crate) fn new(shutdown: Shutdown) -> Self {
        Self {
            shutdown,
            begin: Arc::default(),
            waiting: Vec::new(),
        }
    }

    /// Adds a thread without which the server cannot be: should it fail, the others stop too.
    pub(crate) fn spawn(
        &mut self,
        name: String,
        body: impl FnOnce() -> Ended + Send + 'static,
    ) -> io::Result<()> {
        let guard = StopOnDrop(self.shutdown.clone());
        let begin = Arc::clone(&self.begin);
        let named = thread::Builder::new().name(name.clone());
        let spawned = named.spawn(move || {
            // A thread ends because the server stops, or else it takes the server with it.
            let _guard = guard;
            begin.wait();
            body()
        });
        let spawned = spawned
            .map_err(|error| io::Error::new(error.kind(), format!("a thread, {name}: {error}")))?;
        self.waiting.push(spawned);
        Ok(())
    }

    /// All of them begin.
    pub(crate) fn begin(mut self) -> Vec<JoinHandle<Ended>> {
        let _ = self.begin.set(());
        mem::take(&mut self.waiting)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.begin.get().is_some() {
            return;
        }
        // First, so that they begin and see it.
        self.shutdown.request();
        let _ = self.begin.set(());
        for thread in mem::take(&mut self.waiting) {
            // The start failed, which is told.
            let _ = thread.join();
        }
    }
}

/// Requests the stop when dropped, by a return or a panic.
struct StopOnDrop(Shutdown);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.request();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn counting(threads: &mut Threads, begun: &Arc<AtomicU32>, shutdown: &Shutdown) {
        for number in 0..3 {
            let (begun, shutdown) = (Arc::clone(begun), shutdown.clone());
            let body = move || {
                if !shutdown.is_requested() {
                    begun.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            };
            threads.spawn(format!("thread-{number}"), body).unwrap();
        }
    }

    #[test]
    fn threads_begin_together_or_see_that_they_are_to_end() {
        for begins in [true, false] {
            let (begun, shutdown) = (Arc::default(), Shutdown::default());
            let mut threads = Threads::new(shutdown.clone());
            counting(&mut threads, &begun, &shutdown);
            assert_eq!(begun.load(Ordering::Relaxed), 0);
            assert!(!shutdown.is_requested());
            match begins {
                true => {
                    let ended = threads.begin().into_iter().map(JoinHandle::join);
                    assert!(ended.flatten().all(|ended| ended.is_ok()));
                }
                false => drop(threads),
            }
            assert!(shutdown.is_requested());
            // Of three that begin at once one may see that another has ended.
            assert_eq!(begun.load(Ordering::Relaxed) > 0, begins);
        }
    }
}
