//! How a thread that waits gives its core away.
//!
//! Where nobody else wants the core, to yield costs half a microsecond, and who waits sees at once what comes. Where others
//! do, Linux has who yields wait for a turn of each of them, because it gave up the time that it had left; who sleeps keeps
//! that, and goes next when it wakes. So a thread yields until a yield has taken long, and then sleeps, for as short a time
//! as the system can. A sleep cannot tell whether others still want the core: now and then a yield tries.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Shorter than what the system makes of it: its timers are some fifty microseconds late.
const SLEEP: Duration = Duration::from_micros(20);

/// What only a thread of others takes: a yield is a thousandth of it.
const LONG: Duration = Duration::from_micros(500);

/// Sleeps between two yields that try, at most: some seventy milliseconds, of which a yield that others make long takes a
/// twentieth.
const SLEEPS_MAX: u32 = 1000;

/// Sleeps after the first yield that took long. It may be the only one.
const SLEEPS_MIN: u32 = 10;

/// The part of the sleeps that there are fewer after a yield that did not take long: it may have met a thread that soon waits, too.
const PART: u32 = 16;

/// What a PE's threads know of whether they share their cores with others. Relaxed accesses: hints.
#[derive(Default)]
pub struct Backoff {
    /// Sleeps that are left before the next yield.
    left: AtomicU32,
    /// Sleeps that there were after the last yield: twice as many after each that takes long, a little fewer after others.
    sleeps: AtomicU32,
}

impl Backoff {
    /// Gives the core away, for as short a time as others let it.
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
        // Threads share the line: where nobody else wants the cores, it is only read.
        if after != sleeps {
            self.sleeps.store(after, Ordering::Relaxed);
        }
        if was_long {
            self.left.store(after, Ordering::Relaxed);
        }
    }
}

/// Sleeps before the next yield, where there were so many before this one.
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
        // One that met a thread that soon waited, too, changes little.
        assert!(sleeps_after(sleeps, false) > 900);
        for _ in 0..100 {
            sleeps = sleeps_after(sleeps, false);
        }
        assert_eq!(sleeps, 0);
    }
}
