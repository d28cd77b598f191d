//! How clients write the end of an item's life.

use std::time::Duration;

use nuthatch::{Clock, Expiry, Time};
use nuthatch_protocol::Exptime;

/// Up to here a number counts from now; above it is a moment in unix time.
const RELATIVE_MAX: u64 = 60 * 60 * 24 * 30;

/// memcached's rule: 0 is never, less is dead on arrival, up to 30 days counts from now, more is
/// seconds since 1970.
pub(crate) fn expiry(exptime: Exptime, now: Time, clock: &Clock) -> Expiry {
    let Ok(seconds) = u64::try_from(exptime.0) else {
        return Expiry::At(Time(0));
    };
    match seconds {
        0 => Expiry::Never,
        1..=RELATIVE_MAX => Expiry::At(now.after(Duration::from_secs(seconds))),
        _ => match seconds.checked_sub(clock.unix(now)) {
            None | Some(0) => Expiry::At(Time(0)),
            Some(left) => Expiry::At(now.after(Duration::from_secs(left))),
        },
    }
}

/// Whole seconds to live, a started one counted; `None` is for ever.
pub(crate) fn seconds_left(expiry: Expiry, now: Time) -> Option<u64> {
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
        let expiry = |seconds| expiry(Exptime(seconds), now, &clock);
        assert_eq!(expiry(0), Expiry::Never);
        assert_eq!(expiry(-1), Expiry::At(Time(0)));
        assert_eq!(expiry(10), Expiry::At(now.after(Duration::from_secs(10))));
        assert_eq!(expiry(RELATIVE_MAX as i64 + 1), Expiry::At(Time(0)));
        let soon = clock.unix(now) as i64 + 60;
        assert_eq!(expiry(soon), Expiry::At(now.after(Duration::from_secs(60))));
        assert!(expiry(-1).is_past(now));
        // 2100 and later: as far away as can be told.
        for far in [4_102_444_800, i64::MAX] {
            assert_eq!(expiry(far), Expiry::At(Time(u32::MAX)));
        }
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
