//! A coarse clock, whose time is passed as an argument: no operation of an engine reads a clock by itself.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

/// Ticks in a second. 32 bits of sixteenths reach 8.5 years.
pub const TICKS_PER_SECOND: u32 = 16;

const NANOS_PER_TICK: u32 = 1_000_000_000 / TICKS_PER_SECOND;

/// A moment: ticks since the cache started. Expiry is compared in these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u32);

impl Time {
    /// The last moment of a [`Clock`], which stands still from then on: nothing more expires, and nothing grows older.
    /// Events of a later moment, which are all at tick [`u32::MAX`], never happen.
    pub const LAST: Time = Time(u32::MAX - 1);

    /// The moment `after` later, rounded up to a tick; saturates at the last one.
    pub fn after(self, after: Duration) -> Time {
        let whole = after.as_secs().saturating_mul(TICKS_PER_SECOND.into());
        let part = after.subsec_nanos().div_ceil(NANOS_PER_TICK);
        let ticks = whole
            .saturating_add(part.into())
            .saturating_add(self.0.into());
        Time(ticks.min(u32::MAX.into()) as u32)
    }

    /// Whole seconds since the cache started.
    pub fn seconds(self) -> u32 {
        self.0 / TICKS_PER_SECOND
    }

    /// The time from `earlier` to this moment, zero if `earlier` lies ahead.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(
            u64::from(self.0.saturating_sub(earlier.0)) * u64::from(NANOS_PER_TICK),
        )
    }
}

/// The source of [`Time`]s: read once a batch at the top, never below.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// By [`uptime`].
    started: u64,
    /// Milliseconds since 1970.
    started_unix: u64,
}

impl Clock {
    /// Starts at tick 1: nothing has expired before the clock ran.
    pub fn start() -> Self {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64);
        Self {
            started: uptime(),
            started_unix: unix,
        }
    }

    /// The present moment; [`Time::LAST`] once the ticks are used up, after 8.5 years.
    #[inline]
    pub fn now(&self) -> Time {
        moment(uptime().saturating_sub(self.started))
    }

    /// Seconds since 1970 at the clock's start.
    pub fn started_unix(&self) -> u64 {
        self.started_unix / 1000
    }

    /// Seconds since 1970 of a moment.
    pub fn unix(&self, time: Time) -> u64 {
        self.started_unix() + u64::from(time.seconds())
    }

    /// Milliseconds since 1970 of a moment.
    pub fn unix_millis(&self, time: Time) -> u64 {
        // The clock started at tick 1.
        self.started_unix + time.since(Time(1)).as_millis() as u64
    }
}

/// The moment of a clock that has run for so many nanoseconds. A tick that has begun counts.
#[inline]
fn moment(elapsed: u64) -> Time {
    let ticks = 1 + elapsed.div_ceil(NANOS_PER_TICK.into());
    Time(ticks.min(Time::LAST.0.into()) as u32)
}

/// Nanoseconds that the machine has been up, as of the kernel's last tick, some milliseconds ago at most: a sixteenth
/// of a second needs no better, and reading it takes 5 ns where the exact clock takes 30, twice as
/// long as a get that hits the processor's caches. 64 bits of them are 584 years.
fn uptime() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE);
    let time = time.expect("Linux has had this clock since 2.6.32");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_round_up_and_saturate() {
        assert_eq!(Time(1).after(Duration::ZERO), Time(1));
        assert_eq!(Time(1).after(Duration::from_nanos(1)), Time(2));
        assert_eq!(Time(1).after(Duration::from_secs(2)), Time(33));
        assert_eq!(Time(1).after(Duration::MAX), Time(u32::MAX));
        assert_eq!(Time(33).since(Time(1)), Duration::from_secs(2));
        assert_eq!(Time(1).since(Time(33)), Duration::ZERO);
    }

    #[test]
    fn a_clock_stops_before_the_moment_that_never_comes() {
        let ticks = |ticks: u64| ticks * u64::from(NANOS_PER_TICK);
        let last = u64::from(Time::LAST.0);
        assert_eq!(moment(0), Time(1));
        assert_eq!(moment(1), Time(2));
        assert_eq!(moment(ticks(1)), Time(2));
        assert_eq!(moment(ticks(last - 2)), Time(Time::LAST.0 - 1));
        for elapsed in [ticks(last - 1), ticks(last), ticks(last + 1), u64::MAX] {
            assert_eq!(moment(elapsed), Time::LAST);
        }
        assert!(Time::LAST < Time::LAST.after(Duration::from_nanos(1)));
    }
}
