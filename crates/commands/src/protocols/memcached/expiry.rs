//! How memcached's clients write an item's expiry.

use std::time::Duration;

use nuthatch_engine::{Clock, Expiry, Time};
use nuthatch_protocol::Exptime;

use crate::stage::Stage;

/// A moment that never comes.
const NEVER: Time = Time(u32::MAX);

/// Up to this number, seconds count from now. A larger number is a unix time.
const RELATIVE_MAX: u64 = 60 * 60 * 24 * 30;

/// The expiry that a text command's number means at the present time.
pub fn of(stage: &Stage<'_, '_>, exptime: Exptime) -> Expiry {
    expiry(exptime.0.into(), stage.now, &stage.shared.clock)
}

/// The expiry that a binary request's number means. It is never negative.
pub fn of_seconds(stage: &Stage<'_, '_>, seconds: u32) -> Expiry {
    expiry(seconds.into(), stage.now, &stage.shared.clock)
}

/// memcached's rule: 0 is never, a negative number is expired at once, up to 30 days counts from now, more is seconds
/// since 1970: the item expires when that second begins.
fn expiry(seconds: i64, now: Time, clock: &Clock) -> Expiry {
    let Ok(seconds) = u64::try_from(seconds) else {
        return Expiry::At(Time(0));
    };
    match seconds {
        0 => Expiry::Never,
        1..=RELATIVE_MAX => Expiry::At(now.after(Duration::from_secs(seconds))),
        past if past <= clock.unix(now) => Expiry::At(Time(0)),
        _ => {
            let since_start = seconds - clock.started_unix();
            Expiry::At(Time(0).after(Duration::from_secs(since_start)))
        }
    }
}

/// When a flush_all with this delay takes effect, as in memcached. At once if the delay is 0, negative, or a time in
/// the past. Never if it is a time before the server's start. Otherwise one second before the delay is over, so that 1
/// is at once too.
pub fn flush_time(delay: i64, now: Time, clock: &Clock) -> Time {
    let Ok(seconds) = u64::try_from(delay) else {
        return now;
    };
    let wait = match seconds {
        0..=RELATIVE_MAX => seconds,
        _ if seconds <= clock.unix(Time(0)) => return NEVER,
        _ => seconds.saturating_sub(clock.unix(now)),
    };
    now.after(Duration::from_secs(wait.saturating_sub(1)))
}

/// Seconds left to live, rounded up. `None` is for ever.
pub fn seconds_left(expiry: Expiry, now: Time) -> Option<u64> {
    match expiry {
        Expiry::Never => None,
        Expiry::At(moment) => Some(moment.since(now).as_nanos().div_ceil(1_000_000_000) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_ways_to_write_it() {
        let clock = Clock::start();
        let now = Time(1);
        let expiry = |seconds: i32| expiry(seconds.into(), now, &clock);
        assert_eq!(expiry(0), Expiry::Never);
        assert_eq!(expiry(-1), Expiry::At(Time(0)));
        assert_eq!(expiry(10), Expiry::At(now.after(Duration::from_secs(10))));
        assert_eq!(expiry(RELATIVE_MAX as i32 + 1), Expiry::At(Time(0)));
        let soon = clock.unix(now) as i32 + 60;
        assert_eq!(
            expiry(soon),
            Expiry::At(Time(0).after(Duration::from_secs(60)))
        );
        for past in [-1, i32::MIN] {
            assert!(expiry(past).is_past(now));
        }
        assert!(!expiry(i32::MAX).is_past(now));
    }

    #[test]
    fn a_unix_time_is_the_same_moment_whenever_it_is_written() {
        let clock = Clock::start();
        let soon = clock.unix(Time(1)) as i64 + 60;
        for tick in 1..48 {
            let now = Time(tick);
            let Expiry::At(moment) = expiry(soon, now, &clock) else {
                panic!("a moment");
            };
            assert_eq!(clock.unix(moment), soon as u64);
            assert_eq!(Expiry::At(moment), expiry(soon, Time(1), &clock));
            let left = seconds_left(Expiry::At(moment), now);
            assert_eq!(left, Some(soon as u64 - clock.unix(now)));
        }
    }

    #[test]
    fn a_flush_comes_a_second_before_its_delay_is_over() {
        let clock = Clock::start();
        let now = Time(160);
        let flush_time = |seconds: i32| flush_time(seconds.into(), now, &clock);
        for at_once in [0, -1, i32::MIN, 1, clock.unix(now) as i32] {
            assert_eq!(flush_time(at_once), now, "{at_once}");
        }
        assert_eq!(flush_time(2), now.after(Duration::from_secs(1)));
        let soon = clock.unix(now) as i32 + 60;
        assert_eq!(flush_time(soon), now.after(Duration::from_secs(59)));
        assert_eq!(flush_time(RELATIVE_MAX as i32 + 1), NEVER);
    }

    #[test]
    fn a_started_second_counts() {
        let now = Time(16);
        assert_eq!(seconds_left(Expiry::Never, now), None);
        assert_eq!(seconds_left(Expiry::At(Time(17)), now), Some(1));
        assert_eq!(seconds_left(Expiry::At(Time(48)), now), Some(2));
        assert_eq!(seconds_left(Expiry::At(Time(0)), now), Some(0));
    }
}
