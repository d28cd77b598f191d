//! How a thread that waits gives its core away.
//!
//! Where nobody else wants the core, to yield costs half a microsecond, and who waits sees at once what comes. Where others
//! do, Linux has who yields wait for a turn of each of them, because it gave up the time that it had left; who sleeps keeps
//! that, and goes next when it wakes. So a thread yields until a yield has taken long, and then sleeps, for as short a time
//! as the system can, until a sleep no longer takes long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Shorter than what the system makes of it: its timers are some fifty microseconds late.
const SLEEP: Duration = Duration::from_micros(20);

/// What only a thread of others takes: a yield is a thousandth of it, a sleep a fifth.
const LONG: Duration = Duration::from_micros(500);

/// Whether a PE's threads share their cores with others.
#[derive(Default)]
pub struct Turn {
    /// Relaxed accesses: a hint.
    is_shared: AtomicBool,
}

impl Turn {
    /// Gives the core away, for as short a time as others let it.
    pub fn give(&self) {
        let was_shared = self.is_shared.load(Ordering::Relaxed);
        let began = Instant::now();
        match was_shared {
            true => thread::sleep(SLEEP),
            false => thread::yield_now(),
        }
        let is_shared = began.elapsed() > LONG;
        if is_shared != was_shared {
            self.is_shared.store(is_shared, Ordering::Relaxed);
        }
    }
}
