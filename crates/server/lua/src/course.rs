//! Where the script that runs is: whether it has written, and whether somebody has stopped it. Both are one atomic, so that
//! a script is stopped, or writes, but never both: half of its work must not be left.
//!
//! ```text
//!  Idle -> Reads -> Writes -> Idle
//!              \-> Stopped -> Idle
//! ```

use std::sync::atomic::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const READS: u8 = 1;
const WRITES: u8 = 2;
const STOPPED: u8 = 3;

/// The course of the script that runs. All of it is Relaxed: nothing else is read behind it.
#[derive(Debug, Default)]
pub struct Course(AtomicU8);

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
        self.0.store(READS, Ordering::Relaxed);
    }

    /// It has ended.
    pub fn end(&self) {
        self.0.store(IDLE, Ordering::Relaxed);
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

    /// True if it has to end.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) == STOPPED
    }

    /// From a script that has only read to another state. Errors: the state that it is in.
    fn changes(&self, to: u8) -> Result<u8, u8> {
        self.0
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
