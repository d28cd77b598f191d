//! A coarse clock, whose time is passed as an argument: no operation of an engine reads a clock by itself.
//!
//! Lifetimes count the time that really passes: they go on while the machine sleeps, and no step of the wall clock moves
//! them. The wall clock is read when a moment that a client wrote by it is converted, or one is told by it, so a step
//! counts from then on.
//!
//! An item lives at least as long as its client asked, and at most a tick longer: the tick of its end is rounded up from
//! the exact present ([`Present::end`]), and the present that ends are compared with ([`Clock::now`]) is rounded down and
//! never ahead of the exact one. What is told of an end is rounded the other way ([`Present::left`]), so that no client
//! is told more than it asked for.

use std::time::Duration;

pub use crate::sys::clock::boot;
use crate::sys::clock::{self, coarse, exact};

/// Ticks in a second. 32 bits of sixteenths reach 8.5 years.
pub const TICKS_PER_SECOND: u32 = 16;

const NANOS_PER_TICK: u32 = 1_000_000_000 / TICKS_PER_SECOND;

/// How long a tick is, and so how much later than asked an item may end.
pub const TICK: Duration = Duration::from_nanos(NANOS_PER_TICK as u64);

/// A moment: ticks since the cache started. Expiry is compared in these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u32);

impl Time {
    /// The last moment of a [`Clock`], which stands still from then on: nothing more expires, and nothing grows older.
    /// Events of a later moment, which are all at tick [`u32::MAX`], never happen.
    pub const LAST: Time = Time(u32::MAX - 1);

    /// The moment `after` later, rounded up to a tick; saturates at the last one. (The end of a lifetime that begins
    /// at the present is later: [`Present::end`].)
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

    /// Nanoseconds from a clock's start to the beginning of this tick.
    fn elapsed(self) -> u64 {
        // The clock starts at tick 1.
        u64::from(self.0.saturating_sub(1)) * u64::from(NANOS_PER_TICK)
    }
}

/// The source of [`Time`]s: read once a batch at the top, never below.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// By [`exact`].
    started: u64,
    /// Nanoseconds since 1970, by the wall clock as it was then.
    started_unix: u64,
}

impl Clock {
    /// Starts at tick 1: nothing has expired before the clock ran.
    pub fn start() -> Self {
        note_sleep();
        Self {
            started: exact(),
            started_unix: clock::unix(),
        }
    }

    /// The clock of another process of this machine, whose start that process has told ([`Clock::started`]).
    pub fn started_at(started: u64) -> Self {
        note_sleep();
        let ago = exact().saturating_sub(started);
        Self {
            started,
            started_unix: clock::unix().saturating_sub(ago),
        }
    }

    /// Its start, in nanoseconds since the machine's.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// The present moment; [`Time::LAST`] once the ticks are used up, after 8.5 years. As of the kernel's last tick, some
    /// milliseconds ago at most, where the system has such a clock: a sixteenth of a second needs no better, and it is
    /// read faster.
    #[inline]
    pub fn now(&self) -> Time {
        moment(coarse().saturating_sub(self.started))
    }

    /// The exact present, from which lifetimes are counted.
    pub fn present(&self) -> Present {
        let exact = exact();
        if exact.saturating_sub(coarse()) > NANOS_PER_SECOND {
            note_sleep();
        }
        Present {
            elapsed: exact.saturating_sub(self.started),
        }
    }

    /// The exact present by this clock and by the wall clock.
    pub fn wall(&self) -> Wall {
        Wall {
            present: self.present(),
            unix: clock::unix(),
        }
    }

    /// Seconds since 1970 at the clock's start, by the wall clock of today. The same number at each call, unless the
    /// wall clock has been set by more than a second.
    pub fn started_unix(&self) -> u64 {
        let Wall { present, unix } = self.wall();
        let started = unix.saturating_sub(present.elapsed);
        let is_set = started.abs_diff(self.started_unix) > NANOS_PER_SECOND;
        let told = if is_set { started } else { self.started_unix };
        told / NANOS_PER_SECOND
    }
}

/// An exact moment of a [`Clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Nanoseconds since the clock's start.
    elapsed: u64,
}

impl Present {
    /// The beginning of a tick.
    pub fn beginning(tick: Time) -> Self {
        Self {
            elapsed: tick.elapsed(),
        }
    }

    /// The first tick that begins when `after` is over, or later: the end of a lifetime. Saturates at the moment that
    /// never comes. A lifetime of no time has ended before it began.
    pub fn end(self, after: Duration) -> Time {
        if after.is_zero() {
            return Time(1);
        }
        let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let end = self.elapsed.saturating_add(after);
        let ticks = 1 + end.div_ceil(NANOS_PER_TICK.into());
        Time(ticks.min(u32::MAX.into()) as u32)
    }

    /// The time until a tick begins; zero if it has begun.
    pub fn until(self, moment: Time) -> Duration {
        Duration::from_nanos(moment.elapsed().saturating_sub(self.elapsed))
    }

    /// What is left of a lifetime that ends at this tick, as its client may be told: never more than it asked for, and
    /// up to a tick less.
    pub fn left(self, end: Time) -> Duration {
        self.until(end).saturating_sub(TICK)
    }
}

/// An exact moment of a [`Clock`], and what the wall clock shows then.
#[derive(Clone, Copy, Debug)]
pub struct Wall {
    /// By the clock.
    pub present: Present,
    /// Nanoseconds since 1970.
    unix: u64,
}

impl Wall {
    /// The time since 1970.
    pub fn unix(&self) -> Duration {
        Duration::from_nanos(self.unix)
    }

    /// The end of a lifetime that ends at this time since 1970. `None` if that is over.
    pub fn end(&self, unix: Duration) -> Option<Time> {
        let left = unix.checked_sub(self.unix())?;
        (!left.is_zero()).then(|| self.present.end(left))
    }

    /// When a lifetime that ends at this tick was to end, since 1970, as near as ticks tell: the tick was rounded up, so
    /// half a tick before it is off by half a tick at most.
    pub fn unix_of_end(&self, end: Time) -> Duration {
        let since_start = i128::from(end.elapsed()) - i128::from(NANOS_PER_TICK / 2);
        let unix = i128::from(self.unix) - i128::from(self.present.elapsed) + since_start;
        Duration::from_nanos(unix.clamp(0, u64::MAX.into()) as u64)
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The moment of a clock that has run for so many nanoseconds.
#[inline]
fn moment(elapsed: u64) -> Time {
    let ticks = 1 + elapsed / u64::from(NANOS_PER_TICK);
    Time(ticks.min(Time::LAST.0.into()) as u32)
}

/// Looks whether the machine has slept, so that [`Clock::now`] counts that time. To be called now and then, by what
/// maintains a cache. [`Clock::present`] sees it by itself.
pub fn note_sleep() {
    clock::note_sleep();
}

/// The time since the machine was started, asleep or awake: the start that [`boot`] names. If that names none, the time
/// since some other moment.
pub fn since_boot() -> Duration {
    Duration::from_nanos(exact())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn nanos(ticks: u64) -> u64 {
        ticks * NANOS_PER_TICK as u64
    }

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
        let last = u64::from(Time::LAST.0);
        assert_eq!(moment(0), Time(1));
        assert_eq!(moment(nanos(1) - 1), Time(1));
        assert_eq!(moment(nanos(1)), Time(2));
        assert_eq!(moment(nanos(last - 2)), Time(Time::LAST.0 - 1));
        for elapsed in [nanos(last - 1), nanos(last), nanos(last + 1), u64::MAX] {
            assert_eq!(moment(elapsed), Time::LAST);
        }
        let never = Present { elapsed: u64::MAX }.end(Duration::from_nanos(1));
        assert!(Time::LAST < never);
    }

    /// Whatever the phase of the tick in which it begins: no lifetime is cut short, none is longer by a tick or more, and
    /// nobody is told more than there was.
    #[test]
    fn a_lifetime_is_rounded_up_and_told_rounded_down() {
        for phase in [0, 1, nanos(1) / 2, nanos(1) - 1] {
            let present = Present {
                elapsed: nanos(100) + phase,
            };
            for millis in [1, 62, 63, 200, 250, 1000, 100_000] {
                let asked = Duration::from_millis(millis);
                let end = present.end(asked);
                let over = present.elapsed + asked.as_nanos() as u64;
                assert!(moment(over - 1) < end, "{phase} {millis}: too early");
                assert_eq!(
                    moment(over + nanos(1) - 1),
                    end,
                    "{phase} {millis}: too late"
                );
                let left = present.left(end);
                assert!(left <= asked && asked - left.min(asked) <= TICK);
                assert!(present.until(end) >= asked);
            }
            assert_eq!(present.left(Time(5)), Duration::ZERO);
            assert!(present.end(Duration::ZERO) <= moment(0));
        }
    }

    #[test]
    fn the_wall_clock_is_that_of_the_moment() {
        for unix in [0, 3_600, 1_800_000_000].map(Duration::from_secs) {
            for phase in [0, 7, nanos(1) - 1] {
                let wall = Wall {
                    present: Present {
                        elapsed: nanos(77) + phase,
                    },
                    unix: unix.as_nanos() as u64,
                };
                for millis in [1, 400, 60_000] {
                    let left = Duration::from_millis(millis);
                    let end = wall.end(unix + left).unwrap();
                    assert_eq!(end, wall.present.end(left));
                    let told = wall.unix_of_end(end);
                    assert!(told.abs_diff(unix + left) <= TICK / 2, "{told:?}");
                    // What is told comes back as the same moment.
                    assert_eq!(wall.end(told).unwrap_or(end), end);
                }
                assert_eq!(wall.end(unix), None);
                assert_eq!(wall.end(Duration::ZERO), None);
            }
        }
    }

    #[test]
    fn the_coarse_clock_is_never_ahead_of_the_exact_one() {
        let clock = Clock::start();
        for _ in 0..10_000 {
            note_sleep();
            let now = clock.now();
            assert!(now.elapsed() <= clock.present().elapsed);
        }
    }
}
