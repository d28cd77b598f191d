//! How long an item is kept.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The protocol takes more seconds than these for a date.
const RELATIVE_MAX: u64 = 30 * 24 * 60 * 60;
/// The last date that memcached understands.
const DATE_MAX: u64 = i32::MAX as u64;

/// How an item is kept: for how long, and with which flags of the client's own.
///
/// Made from a [`Duration`], or from an `Option` of one, where `None` is without an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// For how long. The protocol counts whole seconds: a part of one is rounded up. Zero: the item has expired at once. An
    /// end after January 19, 2038 is no end, because memcached understands no later date.
    pub lifetime: Option<Duration>,
    /// A number that the server gives back with the value, and that means nothing to it.
    pub flags: u32,
}

impl Keep {
    /// Without an end.
    pub const FOREVER: Self = Self {
        lifetime: None,
        flags: 0,
    };

    /// With these flags.
    pub fn flags(self, flags: u32) -> Self {
        Self { flags, ..self }
    }
}

impl From<Duration> for Keep {
    fn from(lifetime: Duration) -> Self {
        Some(lifetime).into()
    }
}

impl From<Option<Duration>> for Keep {
    fn from(lifetime: Option<Duration>) -> Self {
        Self { lifetime, flags: 0 }
    }
}

/// A lifetime as the protocol's number.
pub(crate) fn seconds(lifetime: Option<Duration>) -> i64 {
    seconds_at(lifetime, today)
}

/// The seconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the protocol has dates for long lifetimes"
)]
fn today() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}

fn seconds_at(lifetime: Option<Duration>, now: impl Fn() -> u64) -> i64 {
    let Some(lifetime) = lifetime else { return 0 };
    let whole = whole_seconds(lifetime);
    let number = match whole {
        0 => return -1,
        1..=RELATIVE_MAX => whole,
        _ => whole.saturating_add(now()),
    };
    if number > DATE_MAX { 0 } else { number as i64 }
}

/// How long to wait, as the protocol's number: beyond 30 days a date, and what is beyond all dates the last one.
pub(crate) fn delay(delay: Duration) -> u64 {
    delay_at(delay, today)
}

fn delay_at(delay: Duration, now: impl Fn() -> u64) -> u64 {
    match whole_seconds(delay) {
        whole @ 0..=RELATIVE_MAX => whole,
        whole => whole.saturating_add(now()).min(DATE_MAX),
    }
}

/// Whole seconds, rounded up.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs()
        .saturating_add(u64::from(time.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_rounded_up_and_long_ones_are_dates() {
        const NOW: u64 = 1_700_000_000;
        let number = |lifetime| seconds_at(Some(lifetime), || NOW);
        let secs = Duration::from_secs;
        assert_eq!(seconds_at(None, || NOW), 0);
        assert_eq!(number(Duration::ZERO), -1);
        assert_eq!(number(Duration::from_nanos(1)), 1);
        assert_eq!(number(Duration::from_millis(1001)), 2);
        assert_eq!(number(secs(RELATIVE_MAX)), RELATIVE_MAX as i64);
        assert_eq!(
            number(secs(RELATIVE_MAX + 1)),
            (NOW + RELATIVE_MAX) as i64 + 1
        );
        assert_eq!(number(secs(DATE_MAX - NOW)), DATE_MAX as i64);
        assert_eq!(number(secs(DATE_MAX - NOW + 1)), 0);
        assert_eq!(number(Duration::MAX), 0);
        // A flush that is to come late must not come at once.
        let delay = |delay| delay_at(delay, || NOW);
        assert_eq!(delay(Duration::ZERO), 0);
        assert_eq!(delay(secs(RELATIVE_MAX)), RELATIVE_MAX);
        assert_eq!(delay(secs(RELATIVE_MAX + 1)), NOW + RELATIVE_MAX + 1);
        assert_eq!(delay(Duration::MAX), DATE_MAX);
    }
}
