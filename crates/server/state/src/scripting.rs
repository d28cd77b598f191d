//! The scripts of Lua (`--lua`): those that are known, and the one that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nuthatch_lua::Library;

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
    has_written: AtomicBool,
    stop: Arc<AtomicBool>,
}

impl Default for Running {
    fn default() -> Self {
        Self {
            epoch: Instant::now(),
            since: AtomicU64::new(0),
            has_written: AtomicBool::new(false),
            stop: Arc::default(),
        }
    }
}

/// What came of a wish to stop the script that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It ends soon.
    Yes,
    /// None runs.
    NotRunning,
    /// It has written, and half of its work must not be left.
    HasWritten,
}

impl Running {
    /// A script begins. It has ended when this is dropped.
    pub fn begin(&self) -> impl Drop + use<'_> {
        self.stop.store(false, Ordering::Relaxed);
        self.has_written.store(false, Ordering::Relaxed);
        self.since.store(self.now(), Ordering::Relaxed);
        End(self)
    }

    /// The script is about to write.
    pub fn writes(&self) {
        self.has_written.store(true, Ordering::Relaxed);
    }

    /// What a script looks at to know if it has to end.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// True if the script that runs has to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
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
        if self.since.load(Ordering::Relaxed) == 0 {
            return Stopped::NotRunning;
        }
        if self.has_written.load(Ordering::Relaxed) {
            return Stopped::HasWritten;
        }
        self.stop.store(true, Ordering::Relaxed);
        Stopped::Yes
    }

    fn now(&self) -> u64 {
        1 + self.epoch.elapsed().as_millis() as u64
    }
}

struct End<'r>(&'r Running);

impl Drop for End<'_> {
    fn drop(&mut self) {
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
        let flag = running.stop_flag();
        let run = running.begin();
        assert!(running.is_longer_than(Duration::ZERO));
        assert!(!running.is_longer_than(Duration::from_secs(3600)));
        assert_eq!(running.stop(), Stopped::Yes);
        assert!(flag.load(Ordering::Relaxed));
        drop(run);
        let run = running.begin();
        assert!(!flag.load(Ordering::Relaxed));
        running.writes();
        assert_eq!(running.stop(), Stopped::HasWritten);
        drop(run);
        assert_eq!(running.stop(), Stopped::NotRunning);
    }
}
