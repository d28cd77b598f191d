//! How memcached's clients write an item's expiry.

use std::time::Duration;

use nuthatch_engine::{Clock, Expiry, Present, Time, Wall};

/// A moment that never comes.
const NEVER: Time = Time(u32::MAX);

/// Up to this number, seconds count from now. A larger number is a unix time.
const RELATIVE_MAX: u64 = 60 * 60 * 24 * 30;

/// memcached's rule: 0 is never, a negative number is expired at once, up to 30 days counts from now, more is seconds
/// since 1970: the item expires when that second begins.
pub fn expiry(
    seconds: i64,
    present: impl FnOnce() -> Present,
    wall: impl FnOnce() -> Wall,
) -> Expiry {
    let end = match u64::try_from(seconds) {
        Ok(0) => return Expiry::Never,
        Ok(seconds @ ..=RELATIVE_MAX) => Some(present().end(Duration::from_secs(seconds))),
        Ok(seconds) => wall().end(Duration::from_secs(seconds)),
        Err(_) => None,
    };
    Expiry::At(end.unwrap_or_default())
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
        _ if seconds <= clock.started_unix() => return NEVER,
        _ => seconds.saturating_sub(clock.wall().unix().as_secs()),
    };
    now.after(Duration::from_secs(wait.saturating_sub(1)))
}

/// The unix time at which an item expires, for a dump: a second that a client named is told as it was. `None` is never.
pub fn unix_seconds(expiry: Expiry, wall: &Wall) -> Option<u64> {
    match expiry {
        Expiry::Never => None,
        Expiry::At(end) => Some((wall.unix_of_end(end) + Duration::from_millis(500)).as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_ways_to_write_it() {
        let clock = Clock::start();
        let (present, wall) = (clock.present(), clock.wall());
        let expiry = |seconds: i32| expiry(seconds.into(), || present, || wall);
        assert_eq!(expiry(0), Expiry::Never);
        assert_eq!(expiry(-1), Expiry::At(Time(0)));
        let ten = Duration::from_secs(10);
        assert_eq!(expiry(10), Expiry::At(present.end(ten)));
        assert_eq!(expiry(RELATIVE_MAX as i32 + 1), Expiry::At(Time(0)));
        let soon = wall.unix().as_secs() + 60;
        let soon_end = wall.end(Duration::from_secs(soon)).unwrap();
        assert_eq!(expiry(soon as i32), Expiry::At(soon_end));
        let this = wall.unix().as_secs();
        for past in [-1, i32::MIN, this as i32] {
            assert!(expiry(past).is_past(clock.now()));
        }
        assert!(!expiry(i32::MAX).is_past(clock.now()));
    }

    #[test]
    fn a_lifetime_is_told_as_it_was_asked_for() {
        let clock = Clock::start();
        for phase in 0..100 {
            std::thread::sleep(Duration::from_micros(phase * 37));
            let now = clock.now();
            for asked in [1, 2, 100, 2_592_000] {
                let end = expiry(asked, || clock.present(), || clock.wall());
                assert_eq!(end.seconds_left(now), Some(asked as u64));
            }
            let second = clock.wall().unix().as_secs() + 60;
            let end = expiry(second as i64, || clock.present(), || clock.wall());
            assert_eq!(unix_seconds(end, &clock.wall()), Some(second));
            assert!(
                end.seconds_left(now)
                    .is_some_and(|left| left == 60 || left == 59)
            );
        }
        assert_eq!(unix_seconds(Expiry::Never, &clock.wall()), None);
    }

    #[test]
    fn a_flush_comes_a_second_before_its_delay_is_over() {
        let clock = Clock::start();
        let now = Time(160);
        let flush_time = |seconds: i32| flush_time(seconds.into(), now, &clock);
        let unix = || clock.wall().unix().as_secs() as i32;
        for at_once in [0, -1, i32::MIN, 1] {
            assert_eq!(flush_time(at_once), now, "{at_once}");
        }
        assert_eq!(flush_time(2), now.after(Duration::from_secs(1)));
        // (The second may end meanwhile.)
        let waits = flush_time(unix() + 60).since(now).as_secs();
        assert!((58..=59).contains(&waits));
        assert_eq!(flush_time(RELATIVE_MAX as i32 + 1), NEVER);
    }

    #[test]
    fn a_started_second_counts() {
        let now = Time(16);
        assert_eq!(Expiry::Never.seconds_left(now), None);
        for (end, left) in [(0, 0), (16, 0), (17, 1), (34, 1), (35, 2), (50, 2), (51, 3)] {
            assert_eq!(Expiry::At(Time(end)).seconds_left(now), Some(left));
        }
    }
}
