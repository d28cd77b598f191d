//! Readings of certificates that clients ask for. A thread of its own reads the files, so that no worker waits for a disk
//! or for the check of a key.
//!
//! ```text
//!  worker    ask ---> waiting ---+                                    has its call: answer
//!  worker    ask ---> waiting ---+--- one reading ---> outcome ---> call
//!                                |
//!  worker    ask while it reads -+--- the next reading
//! ```
//!
//! A client that asks while the files are read gets the next reading: its files may be newer than those that are read.

use std::mem;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::telemetry::watch::Call;
use nuthatch_base::sync::mutex::Mutex;

use crate::shutdown::Shutdown;

/// The pause between two readings, so that clients that ask again and again do not keep a core busy.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the thread sleeps if nobody asks.
const IDLE: Duration = Duration::from_secs(3600);

/// How a reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The new certificates are in use.
    Refreshed,
    /// The old ones stay in use.
    Failed,
    /// The server stopped before.
    Stopped,
}

/// The clients that wait for a reading.
#[derive(Default)]
pub struct Refreshes {
    queue: Mutex<Queue>,
    asked: AtomicBool,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Arc<Request>>,
    /// Nobody reads any more.
    over: bool,
}

struct Request {
    outcome: OnceLock<Outcome>,
    worker: Arc<dyn Call>,
    connection: usize,
}

/// A connection that waits for a reading. Dropping this ends the wait.
pub struct Waiting {
    refreshes: Arc<Refreshes>,
    request: Arc<Request>,
}

impl Refreshes {
    /// A connection begins to wait for a reading. When it is over, `worker` is called with the connection's id.
    pub fn ask(
        self: &Arc<Self>,
        shutdown: &Shutdown,
        worker: Arc<dyn Call>,
        connection: usize,
    ) -> Waiting {
        let request = Arc::new(Request {
            outcome: OnceLock::new(),
            worker,
            connection,
        });
        let mut queue = self.queue.lock();
        match queue.over {
            true => request.end(Outcome::Stopped),
            false => queue.waiting.push(Arc::clone(&request)),
        }
        drop(queue);
        shutdown.ask(&self.asked);
        Waiting {
            refreshes: Arc::clone(self),
            request,
        }
    }

    /// Reads for those who ask, until the server stops. `read` is false if it failed.
    pub fn serve(&self, shutdown: &Shutdown, mut read: impl FnMut() -> bool) {
        while shutdown.sleep_until_asked(IDLE, &self.asked) {
            // Taken before the files are read: see above.
            let waiting = mem::take(&mut self.queue.lock().waiting);
            if waiting.is_empty() {
                continue;
            }
            let outcome = match read() {
                true => Outcome::Refreshed,
                false => Outcome::Failed,
            };
            waiting.iter().for_each(|request| request.end(outcome));
            if !shutdown.sleep_until_asked(PAUSE, &AtomicBool::new(false)) {
                break;
            }
        }
        let mut queue = self.queue.lock();
        queue.over = true;
        let waiting = mem::take(&mut queue.waiting);
        drop(queue);
        waiting
            .iter()
            .for_each(|request| request.end(Outcome::Stopped));
    }
}

impl Request {
    fn end(&self, outcome: Outcome) {
        // It is set once, by the thread that took the request out of the queue or did not put it there.
        let _ = self.outcome.set(outcome);
        self.worker.call(self.connection);
    }
}

impl Waiting {
    /// The outcome, if the reading is over.
    pub fn outcome(&self) -> Option<Outcome> {
        self.request.outcome.get().copied()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Clients that ask and close must not make the queue grow.
        let mut queue = self.refreshes.queue.lock();
        queue
            .waiting
            .retain(|other| !Arc::ptr_eq(other, &self.request));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    struct Calls(mpsc::Sender<usize>);

    impl Call for Calls {
        fn call(&self, connection: usize) {
            self.0.send(connection).unwrap();
        }

        fn end(&self, _: usize, _: u64) {
            unreachable!("nothing overflows here");
        }
    }

    #[test]
    fn who_asks_together_gets_one_reading_and_who_asks_during_it_the_next() {
        let (refreshes, shutdown) = (Arc::new(Refreshes::default()), Shutdown::default());
        let (calls, called) = mpsc::channel();
        let ask = |connection| {
            let worker = Arc::new(Calls(calls.clone()));
            refreshes.ask(&shutdown, worker, connection)
        };
        let (begun, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let first = [ask(0), ask(1), ask(2)];
        drop(ask(9));
        thread::scope(|scope| {
            let (read_for, stop) = (&refreshes, &shutdown);
            scope.spawn(move || {
                read_for.serve(stop, || {
                    begun.send(()).unwrap();
                    ends.recv().unwrap()
                });
            });
            begins.recv().unwrap();
            let second = ask(3);
            assert!(first.iter().all(|waiting| waiting.outcome().is_none()));
            end.send(true).unwrap();
            let mut told: Vec<usize> = called.iter().take(3).collect();
            told.sort_unstable();
            assert_eq!(told, [0, 1, 2]);
            for waiting in &first {
                assert_eq!(waiting.outcome(), Some(Outcome::Refreshed));
            }
            begins.recv().unwrap();
            assert_eq!(second.outcome(), None);
            end.send(false).unwrap();
            assert_eq!(called.recv(), Ok(3));
            assert_eq!(second.outcome(), Some(Outcome::Failed));
            shutdown.request();
        });
        assert!(begins.try_recv().is_err());
        assert_eq!(ask(4).outcome(), Some(Outcome::Stopped));
    }

    #[test]
    fn a_stop_answers_those_who_wait() {
        let (refreshes, shutdown) = (Arc::new(Refreshes::default()), Shutdown::default());
        let (calls, called) = mpsc::channel();
        let waiting = refreshes.ask(&shutdown, Arc::new(Calls(calls)), 7);
        shutdown.request();
        refreshes.serve(&shutdown, || unreachable!("the server stops"));
        assert_eq!(called.recv(), Ok(7));
        assert_eq!(waiting.outcome(), Some(Outcome::Stopped));
    }
}
