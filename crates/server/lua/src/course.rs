//! Where the script that runs is: whether it has written, and whether somebody has stopped it. Both are one atomic, so that
//! a script is stopped, or writes, but never both: half of its work must not be left.
//!
//! ```text
//!  Idle -> Reads -> Writes -> Idle
//!              \-> Stopped -> Idle
//! ```
//!
//! A server that stops or is replaced waits for no script, whether it has written or not: see [`Course::close`].

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const IDLE: u8 = 0;
const READS: u8 = 1;
const WRITES: u8 = 2;
const STOPPED: u8 = 3;

/// The course of the script that runs.
#[derive(Debug)]
pub struct Course {
    /// All of it is Relaxed: nothing else is read behind it.
    state: AtomicU8,
    /// The moment from which the other counts.
    epoch: Instant,
    /// When all scripts have to end, in milliseconds.
    closing: AtomicU64,
}

/// A moment that does not come.
const NEVER: u64 = u64::MAX;

impl Default for Course {
    fn default() -> Self {
        Self {
            state: AtomicU8::new(IDLE),
            epoch: Instant::now(),
            closing: AtomicU64::new(NEVER),
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

impl Course {
    /// A script begins.
    pub fn begin(&self) {
        self.state.store(READS, Ordering::Relaxed);
    }

    /// It has ended.
    pub fn end(&self) {
        self.state.store(IDLE, Ordering::Relaxed);
    }

    /// It is about to write. False if it has been stopped, and must not.
    pub fn writes(&self) -> bool {
        matches!(self.changes(WRITES), Ok(_) | Err(WRITES))
    }

    /// Stops it, unless it has written.
    pub fn stop(&self) -> Stopped {
        match self.changes(STOPPED) {
            Ok(_) | Err(STOPPED) => Stopped::Yes,
            Err(IDLE) => Stopped::NotRunning,
            Err(_) => Stopped::HasWritten,
        }
    }

    /// True if somebody has stopped it.
    pub fn is_stopped(&self) -> bool {
        self.state.load(Ordering::Relaxed) == STOPPED
    }

    /// The script that runs, and all others that begin, have so long.
    pub fn close(&self, patience: Duration) {
        let at = self.now().saturating_add(patience.as_millis() as u64);
        // Release: pairs with the swap in `reopen`.
        self.closing.store(at, Ordering::Release);
    }

    /// Scripts have their usual time again. What led others to call [`Course::close`] before is visible behind this.
    pub fn reopen(&self) {
        // Acquire: pairs with the store in `close`.
        self.closing.swap(NEVER, Ordering::Acquire);
    }

    /// True if they have none any more.
    pub fn is_closed(&self) -> bool {
        // Relaxed: nothing else is read behind it.
        let at = self.closing.load(Ordering::Relaxed);
        at != NEVER && at <= self.now()
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_millis() as u64
    }

    /// From a script that has only read to another state. Errors: the state that it is in.
    fn changes(&self, to: u8) -> Result<u8, u8> {
        self.state
            .compare_exchange(READS, to, Ordering::Relaxed, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two threads, one that stops the script and one that writes for it, one comes first.
    #[test]
    fn a_script_writes_or_is_stopped() {
        let course = Course::default();
        for _ in 0..1000 {
            course.begin();
            let (stopped, wrote) = std::thread::scope(|scope| {
                let other = scope.spawn(|| course.stop());
                let wrote = course.writes();
                (other.join().unwrap(), wrote)
            });
            assert_eq!(stopped == Stopped::Yes, !wrote);
            assert_eq!(course.is_stopped(), !wrote);
            course.end();
            assert_eq!(course.stop(), Stopped::NotRunning);
        }
    }
}
