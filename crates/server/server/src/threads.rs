//! The threads of a server: all of them are spawned before the first one begins its work.
//!
//! A machine may have no room for another thread. The items that a server takes at its start, from a file or from
//! another process, exist nowhere else afterwards. So the server takes them after all threads are spawned, and the
//! threads begin after that.

use std::io;
use std::mem;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use nuthatch_state::shutdown::Shutdown;

use crate::watchdog::Signs;

/// How a thread ended.
pub(crate) type Ended = io::Result<()>;

/// Threads that wait for their begin. If this is dropped before that, they end.
pub(crate) struct Threads {
    shutdown: Shutdown,
    signs: Signs,
    begin: Arc<OnceLock<()>>,
    waiting: Vec<JoinHandle<Ended>>,
}

impl Threads {
    /// No threads yet. `shutdown` is the stop of their server, and its watchdog gets a sign when one of them panics.
    pub(crate) fn new(shutdown: Shutdown, signs: Signs) -> Self {
        Self {
            shutdown,
            signs,
            begin: Arc::default(),
            waiting: Vec::new(),
        }
    }

    /// Adds a thread that the server cannot do without: if it fails, the others stop too.
    pub(crate) fn spawn(
        &mut self,
        name: String,
        body: impl FnOnce() -> Ended + Send + 'static,
    ) -> io::Result<()> {
        let spawned = self.spawn_apart(name, body)?;
        self.waiting.push(spawned);
        Ok(())
    }

    /// The same for a thread for whose end nobody needs to wait: it may hang in a read of a file, and the stop of the
    /// server must not.
    pub(crate) fn spawn_apart(
        &self,
        name: String,
        body: impl FnOnce() -> Ended + Send + 'static,
    ) -> io::Result<JoinHandle<Ended>> {
        let guard = StopOnDrop(self.shutdown.clone(), self.signs.clone());
        let begin = Arc::clone(&self.begin);
        let named = thread::Builder::new().name(name.clone());
        let spawned = named.spawn(move || {
            // A thread ends because the server stops. If it ends for another reason, the guard stops the server.
            let _guard = guard;
            begin.wait();
            body()
        });
        spawned.map_err(|error| io::Error::new(error.kind(), format!("a thread, {name}: {error}")))
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
        // Request the stop first, so that the threads see it when they begin.
        self.shutdown.request();
        let _ = self.begin.set(());
        for thread in mem::take(&mut self.waiting) {
            // The start has failed already, and its error is reported.
            let _ = thread.join();
        }
    }
}

/// Requests the stop when dropped, by a return or a panic. A panic bounds the time that the stop may take.
struct StopOnDrop(Shutdown, Signs);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if thread::panicking() {
            self.1.send();
        }
        self.0.request();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::watchdog;

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
            let mut threads = Threads::new(
                shutdown.clone(),
                watchdog::spawn(Duration::from_secs(300)).unwrap(),
            );
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
            // Of three threads that begin at once, one may see that another has ended.
            assert_eq!(begun.load(Ordering::Relaxed) > 0, begins);
        }
    }
}
