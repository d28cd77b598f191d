//! An item's expiry, as Redis' clients write it and as answers show it.

use std::time::Duration;

use nuthatch_engine::{Clock, Expiry, Time};
use nuthatch_protocol::resp::{ExpiryForm, Moment};

/// The engine's expiry for a moment. An item with a moment in the past is expired at once. The moment is rounded up to
/// the engine's resolution, by a sixteenth of a second at most.
pub fn expiry(moment: Moment, now: Time, clock: &Clock) -> Expiry {
    let left = match moment {
        Moment::In(millis) => millis,
        Moment::At(millis) => millis.saturating_sub_unsigned(clock.unix_millis(now)),
    };
    match u64::try_from(left) {
        Ok(left @ 1..) => Expiry::At(now.after(Duration::from_millis(left))),
        _ => Expiry::At(Time(0)),
    }
}

/// The expiry in milliseconds since 1970. `None` is never.
pub fn unix_millis(expiry: Expiry, clock: &Clock) -> Option<u64> {
    match expiry {
        Expiry::Never => None,
        Expiry::At(moment) => Some(clock.unix_millis(moment)),
    }
}

/// An item's expiry as a number of the answer: -1 if it has none. Seconds are rounded to the nearest, as in Redis.
pub fn told(expiry: Expiry, told: ExpiryForm, now: Time, clock: Option<&Clock>) -> i64 {
    let millis = match (expiry, clock) {
        (Expiry::Never, _) => return -1,
        (Expiry::At(moment), Some(clock)) if told.absolute => clock.unix_millis(moment),
        (Expiry::At(moment), _) => moment.since(now).as_millis() as u64,
    };
    let number = match told.millis {
        true => millis,
        false => (millis + 500) / 1000,
    };
    number as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_rounded_up_and_the_past_is_past() {
        let clock = Clock::start();
        let now = Time(160);
        let expiry = |moment| expiry(moment, now, &clock);
        assert_eq!(expiry(Moment::In(1)), Expiry::At(Time(161)));
        assert_eq!(expiry(Moment::In(1000)), Expiry::At(Time(176)));
        for past in [Moment::In(0), Moment::In(-5), Moment::At(1), Moment::At(-1)] {
            assert!(expiry(past).is_past(now), "{past:?}");
        }
        assert!(!expiry(Moment::In(i64::MAX)).is_past(now));
    }

    #[test]
    fn a_moment_that_was_set_is_told() {
        let clock = Clock::start();
        let now = Time(777);
        for ahead in [1, 60, 100_000] {
            let second = clock.unix_millis(now) / 1000 + ahead;
            let at = expiry(Moment::At(second as i64 * 1000), now, &clock);
            let (absolute, millis) = (true, false);
            let seconds = ExpiryForm { absolute, millis };
            assert_eq!(told(at, seconds, now, Some(&clock)), second as i64);
        }
        let left = ExpiryForm {
            absolute: false,
            millis: false,
        };
        assert_eq!(told(Expiry::Never, left, now, None), -1);
        let at = expiry(Moment::In(10_000), now, &clock);
        assert_eq!(told(at, left, now, None), 10);
    }
}
