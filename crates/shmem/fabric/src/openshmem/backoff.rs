//! How a waiting thread gives its core to other threads: it yields, or sleeps.
//!
//! If no other thread wants the core, a yield costs half a microsecond, and the waiting thread sees at once what
//! arrives. If others want it, Linux makes a thread that yields wait for a turn of each of them, because it gave up the
//! rest of its time. A thread that sleeps keeps that time, and runs next when it wakes. So a thread yields until a
//! yield has taken long, and then sleeps, for as short a time as the system can. A sleep cannot tell whether others
//! still want the core, so now and then the thread tries a yield.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The real sleep is longer: the system's timers are some fifty microseconds late.
const SLEEP: Duration = Duration::from_micros(20);

/// A yield takes this long only if another thread runs meanwhile; otherwise it takes a thousandth of it.
const LONG: Duration = Duration::from_micros(500);

/// The most sleeps between two such yields: some seventy milliseconds, of which a yield that others make long takes a
/// twentieth.
const SLEEPS_MAX: u32 = 1000;

/// Sleeps after the first yield that took long. It may be the only long one.
const SLEEPS_MIN: u32 = 10;

/// The part by which the sleeps become fewer after a yield that did not take long: the yield may have met a thread that
/// soon waits, too.
const PART: u32 = 16;

/// What a PE's threads have measured about sharing their cores with others. Relaxed accesses: hints.
#[derive(Default)]
pub struct Backoff {
    /// Sleeps that are left before the next yield.
    left: AtomicU32,
    /// The number of sleeps after the last yield. It doubles after each yield that takes long, and shrinks a little
    /// after others.
    sleeps: AtomicU32,
}

impl Backoff {
    /// Gives the core away, for as short a time as other threads permit.
    pub fn pause(&self) {
        if let Some(left) = self.left.load(Ordering::Relaxed).checked_sub(1) {
            thread::sleep(SLEEP);
            self.left.store(left, Ordering::Relaxed);
            return;
        }
        let began = Instant::now();
        thread::yield_now();
        let was_long = began.elapsed() > LONG;
        let sleeps = self.sleeps.load(Ordering::Relaxed);
        let after = sleeps_after(sleeps, was_long);
        // Threads share the line: if no others want the cores, the line is only read.
        if after != sleeps {
            self.sleeps.store(after, Ordering::Relaxed);
        }
        if was_long {
            self.left.store(after, Ordering::Relaxed);
        }
    }
}

/// Sleeps before the next yield, if there were `sleeps` before this one.
fn sleeps_after(sleeps: u32, was_long: bool) -> u32 {
    match was_long {
        true => (2 * sleeps).clamp(SLEEPS_MIN, SLEEPS_MAX),
        false => sleeps - sleeps.div_ceil(PART),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_grow_while_others_want_the_core_and_end_when_they_do_not() {
        let mut sleeps = 0;
        assert_eq!(sleeps_after(sleeps, false), 0);
        for expected in [10, 20, 40, 80, 160, 320, 640, 1000, 1000] {
            sleeps = sleeps_after(sleeps, true);
            assert_eq!(sleeps, expected);
        }
        // A yield that met a thread that soon waited, too, changes little.
        assert!(sleeps_after(sleeps, false) > 900);
        for _ in 0..100 {
            sleeps = sleeps_after(sleeps, false);
        }
        assert_eq!(sleeps, 0);
    }
}
