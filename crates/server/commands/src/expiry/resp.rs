//! An item's expiry, as Redis' clients write it and as answers show it.

use std::time::Duration;

use nuthatch_engine::{Clock, Expiry, Present, TouchIf};
use nuthatch_resp::{ExpireCondition, ExpiryForm, Moment};

/// The engine's expiry for a moment. An item with a moment in the past is expired at once. The moment is rounded up to
/// the engine's resolution, by a sixteenth of a second at most.
pub fn expiry(moment: Moment, present: Present, clock: &Clock) -> Expiry {
    let millis = |millis| Duration::from_millis(u64::try_from(millis).unwrap_or(0));
    let end = match moment {
        Moment::In(left @ 1..) => Some(present.end(millis(left))),
        Moment::At(unix) => clock.wall().end(millis(unix)),
        Moment::In(_) => None,
    };
    Expiry::At(end.unwrap_or_default())
}

/// What EXPIRE with this condition requires of an item.
pub fn condition(which: ExpireCondition) -> TouchIf {
    match which {
        ExpireCondition { lasting: true, .. } => TouchIf::Lasting,
        // Only what expires can expire later.
        ExpireCondition { later: true, .. } => TouchIf::Prolonged,
        ExpireCondition {
            expiring, earlier, ..
        } => match (expiring, earlier) {
            (false, false) => TouchIf::Always,
            (true, false) => TouchIf::Expiring,
            (false, true) => TouchIf::Shortened,
            (true, true) => TouchIf::ExpiringShortened,
        },
    }
}

/// The expiry of an item that is there, as a number of the answer: -1 if it has none. Seconds are rounded to the
/// nearest, as in Redis. What is left is never told longer than the client asked for, nor as nothing; a moment is told as
/// near as ticks allow.
pub fn shown(expiry: Expiry, form: ExpiryForm, clock: &Clock) -> i64 {
    let Expiry::At(end) = expiry else {
        return -1;
    };
    let millis = match form.absolute {
        true => whole_millis(clock.wall().unix_of_end(end)),
        false => whole_millis(clock.present().left(end)).max(1),
    };
    match form.millis {
        true => millis,
        false => (millis + 500) / 1000,
    }
}

/// Milliseconds, rounded up.
fn whole_millis(duration: Duration) -> i64 {
    let millis = duration.as_nanos().div_ceil(1_000_000);
    i64::try_from(millis).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_engine::semantics::may_touch;
    use nuthatch_engine::{TICK, Time};

    const LEFT: ExpiryForm = ExpiryForm {
        absolute: false,
        millis: true,
    };

    #[test]
    fn moments_are_rounded_up_and_the_past_is_past() {
        let clock = Clock::start();
        let (present, now) = (clock.present(), clock.now());
        let expiry = |moment| expiry(moment, present, &clock);
        for millis in [1, 200, 1000] {
            let end = present.end(Duration::from_millis(millis));
            assert_eq!(expiry(Moment::In(millis as i64)), Expiry::At(end));
        }
        for past in [Moment::In(0), Moment::In(-5), Moment::At(1), Moment::At(-1)] {
            assert!(expiry(past).is_past(now), "{past:?}");
        }
        assert!(!expiry(Moment::In(i64::MAX)).is_past(now));
        assert!(!expiry(Moment::At(i64::MAX)).is_past(now));
    }

    #[test]
    fn options_of_expire_decide_by_the_expiry_that_is_there() {
        let which = |text: &str| ExpireCondition {
            lasting: text.contains('N'),
            expiring: text.contains('X'),
            later: text.contains('G'),
            earlier: text.contains('L'),
        };
        let at = |tick| Expiry::At(Time(tick));
        for (options, never, sooner, same, later) in [
            ("", true, true, true, true),
            ("N", true, false, false, false),
            ("X", false, true, true, true),
            ("G", false, true, false, false),
            ("L", true, false, false, true),
            ("XG", false, true, false, false),
            ("XL", false, false, false, true),
        ] {
            // The old expiries: never, and before, at and behind the new moment.
            let olds = [Expiry::Never, at(9), at(10), at(11)];
            let condition = condition(which(options));
            let changes = olds.map(|old| may_touch(condition, 0, old, at(10)));
            assert_eq!(changes, [never, sooner, same, later], "{options}");
        }
    }

    #[test]
    fn a_moment_that_was_set_is_told() {
        let clock = Clock::start();
        let present = clock.present();
        let form = |absolute, millis| ExpiryForm { absolute, millis };
        for ahead in [1, 60, 100_000] {
            let second = clock.wall().unix().as_secs() as i64 + ahead;
            let at = expiry(Moment::At(second * 1000), present, &clock);
            assert_eq!(shown(at, form(true, false), &clock), second);
            let off = shown(at, form(true, true), &clock) - second * 1000;
            assert!(
                off.unsigned_abs() <= 1 + TICK.as_millis() as u64 / 2,
                "{off}"
            );
        }
        assert_eq!(shown(Expiry::Never, LEFT, &clock), -1);
        let at = expiry(Moment::In(10_000), present, &clock);
        assert_eq!(shown(at, form(false, false), &clock), 10);
    }

    /// Whatever the phase of the tick: a lock is not held for less than its owner believes.
    #[test]
    fn nobody_is_told_more_than_was_asked_for() {
        let clock = Clock::start();
        for phase in 0..100 {
            std::thread::sleep(Duration::from_micros(phase * 37));
            let present = clock.present();
            let at = expiry(Moment::In(1000), present, &clock);
            assert!((1..=1000).contains(&shown(at, LEFT, &clock)));
        }
        let over = Expiry::At(clock.now());
        assert_eq!(shown(over, LEFT, &clock), 1);
    }
}
