//! The idle backoff of a server: it polls for messages, gives the core away between polls, then sleeps between them.
//!
//! It sleeps for a part of the time in which no message has come. So a client that sends one then waits longer by that
//! part at most, and never by more than a millisecond.
//!
//! A server that other work keeps from its core has not polled meanwhile, and a client may be waiting already. So idle
//! time counts only after many polls, or when it is long.
//!
//! That is all if other PEs reach this PE's memory by loads and stores. If they do not, as over TCP, their direct
//! operations are carried out when this PE calls the fabric, and the server does not notice them. But each client that
//! uses a server sends it a message when its epoch is a second old. So two seconds without a message mean that no
//! client uses the server.

use std::time::Duration;

use nuthatch_fabric::Fabric;

/// The part of the idle time for which a server sleeps.
const PART: u32 = 16;

/// The shortest sleep (the system takes about as long to end one), and the longest.
const SHORTEST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(1);

/// How long a server only polls if other PEs reach its memory by its calls alone.
const POLLING: Duration = Duration::from_secs(2);

/// Empty polls, of half a microsecond each, before the first sleep. `LONG` without a message suffices, too.
const MANY: u32 = 2048;
const LONG: Duration = Duration::from_millis(100);

/// Empty polls before the clock is first read.
const POLLS: u32 = 64;

/// The result of a poll of all sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// There is nothing to do.
    Idle,
    /// A session waits for something that is not there yet.
    Waiting,
    /// Messages were carried out.
    Served,
}

/// How long no message has come.
pub struct IdleBackoff {
    empty_polls: u32,
    /// When the clock was first read.
    since: Option<u64>,
    /// How long a server only polls.
    polling: Duration,
}

impl IdleBackoff {
    /// `is_reachable`: all PEs reach the server's memory by loads and stores.
    pub fn new(is_reachable: bool) -> Self {
        Self {
            empty_polls: 0,
            since: None,
            polling: match is_reachable {
                true => Duration::ZERO,
                false => POLLING,
            },
        }
    }

    /// Waits as long as fits the last iteration.
    pub fn after(&mut self, activity: Activity, fabric: &impl Fabric) {
        if activity == Activity::Served {
            (self.empty_polls, self.since) = (0, None);
            return;
        }
        self.empty_polls = self.empty_polls.saturating_add(1);
        match self.sleep(activity, fabric) {
            Some(sleep) => fabric.doze(sleep),
            None => fabric.pause(self.empty_polls - 1),
        }
    }

    fn sleep(&mut self, activity: Activity, fabric: &impl Fabric) -> Option<Duration> {
        if activity == Activity::Waiting {
            self.since = None;
            return None;
        }
        if self.empty_polls < POLLS {
            return None;
        }
        let now = fabric.nanos();
        let since = *self.since.get_or_insert(now);
        sleep_after(
            Duration::from_nanos(now - since),
            self.empty_polls,
            self.polling,
        )
    }
}

/// How long to sleep after this idle time and this many empty polls.
fn sleep_after(idle: Duration, empty_polls: u32, polling: Duration) -> Option<Duration> {
    let sleep = (idle / PART).min(LONGEST);
    let has_polled = idle >= polling && (empty_polls >= MANY || idle >= LONG);
    (has_polled && sleep >= SHORTEST).then_some(sleep)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_kept_from_its_core_polls_before_it_sleeps() {
        let none = Duration::ZERO;
        assert_eq!(sleep_after(Duration::from_millis(20), 100, none), None);
        assert_eq!(sleep_after(LONG, 100, none), Some(LONGEST));
    }

    #[test]
    fn a_sleep_is_a_part_of_the_idle_time() {
        let (none, micros) = (Duration::ZERO, Duration::from_micros);
        let seconds = Duration::from_secs;
        assert_eq!(sleep_after(micros(790), MANY, none), None);
        assert_eq!(sleep_after(micros(1600), MANY, none), Some(micros(100)));
        assert_eq!(sleep_after(seconds(9), MANY, none), Some(LONGEST));
        assert_eq!(sleep_after(seconds(1), MANY, POLLING), None);
        assert_eq!(sleep_after(seconds(2), MANY, POLLING), Some(LONGEST));
    }
}
