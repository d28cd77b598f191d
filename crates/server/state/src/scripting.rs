//! The scripts of Lua (`--lua`): those that are known, and the one that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nuthatch_lua::{Course, Library};

pub use nuthatch_lua::Stopped;

/// What all workers know of scripts.
#[derive(Default)]
pub struct Scripting {
    /// Scripts by name.
    pub library: Library,
    /// The one that runs.
    pub running: Running,
}

/// The script that runs: one at a time, because it has the engine to itself.
pub struct Running {
    /// The moment from which the others count.
    epoch: Instant,
    /// Milliseconds until it began, counted from 1. 0: none runs. All of these are Relaxed: they order nothing else.
    since: AtomicU64,
    course: Arc<Course>,
}

impl Default for Running {
    fn default() -> Self {
        Self {
            epoch: Instant::now(),
            since: AtomicU64::new(0),
            course: Arc::default(),
        }
    }
}

impl Running {
    /// A script begins. It has ended when this is dropped.
    pub fn begin(&self) -> impl Drop + use<'_> {
        self.course.begin();
        self.since.store(self.now(), Ordering::Relaxed);
        End(self)
    }

    /// The script is about to write. False if it has been stopped, and must not.
    pub fn writes(&self) -> bool {
        self.course.writes()
    }

    /// What a script looks at to know if it has to end.
    pub fn course(&self) -> Arc<Course> {
        Arc::clone(&self.course)
    }

    /// True if somebody has stopped the script that runs.
    pub fn is_stopped(&self) -> bool {
        self.course.is_stopped()
    }

    /// The server stops, or another one takes over: scripts have so long, also those that have written.
    pub fn close(&self, patience: Duration) {
        self.course.close(patience);
    }

    /// No other has taken over. What [`close`](Self::close) was called for before this is visible to the caller.
    pub fn reopen(&self) {
        self.course.reopen();
    }

    /// True if scripts have no time any more.
    pub fn is_closed(&self) -> bool {
        self.course.is_closed()
    }

    /// True if a script runs.
    pub fn is_there(&self) -> bool {
        self.since.load(Ordering::Relaxed) != 0
    }

    /// True if a script has run for longer than this.
    pub fn is_longer_than(&self, time: Duration) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        since != 0 && u128::from(self.now() - since) >= time.as_millis()
    }

    /// Stops the script that runs, unless it has written.
    pub fn stop(&self) -> Stopped {
        self.course.stop()
    }

    fn now(&self) -> u64 {
        1 + self.epoch.elapsed().as_millis() as u64
    }
}

struct End<'r>(&'r Running);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.course.end();
        self.0.since.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_has_written_is_not_stopped() {
        let running = Running::default();
        assert_eq!(running.stop(), Stopped::NotRunning);
        assert!(!running.is_longer_than(Duration::ZERO));
        let run = running.begin();
        assert!(running.is_longer_than(Duration::ZERO));
        assert!(!running.is_longer_than(Duration::from_secs(3600)));
        assert_eq!(running.stop(), Stopped::Yes);
        assert!(running.is_stopped() && !running.writes());
        drop(run);
        let run = running.begin();
        assert!(!running.is_stopped() && running.writes());
        assert_eq!(running.stop(), Stopped::HasWritten);
        assert!(running.writes() && !running.is_stopped());
        drop(run);
        assert_eq!(running.stop(), Stopped::NotRunning);
    }
}
