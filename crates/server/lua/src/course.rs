//! Where the script that runs is: whether it has written, and whether somebody has stopped it. Both are one atomic, so that
//! a script is stopped, or writes, but never both: half of its work must not be left.
//!
//! ```text
//!  Idle -> Reads -> Writes -> Idle
//!              \-> Stopped -> Idle
//! ```
//!
//! A server that stops waits for no script, whether it has written or not: see [`Course::close`].

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

const IDLE: u8 = 0;
const READS: u8 = 1;
const WRITES: u8 = 2;
const STOPPED: u8 = 3;

/// The course of the script that runs.
#[derive(Debug, Default)]
pub struct Course {
    /// All of it is Relaxed: nothing else is read behind it.
    state: AtomicU8,
    /// When all scripts have to end, if the server stops.
    closing: OnceLock<Instant>,
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

    /// The server stops: the script that runs, and all others that begin, end at this moment. The first one holds.
    pub fn close(&self, at: Instant) {
        let _ = self.closing.set(at);
    }

    /// True if that moment has come.
    pub fn is_closed(&self) -> bool {
        let closing = self.closing.get();
        closing.is_some_and(|at| *at <= Instant::now())
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
