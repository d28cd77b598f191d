//! When a server that failed is tried again.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use crate::Options;

/// Longer pauses are of no use to anybody.
const PAUSE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A server's failures in a row.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    retry_at: Option<Instant>,
}

impl Backoff {
    /// An attempt has failed.
    pub fn failed(&mut self, now: Instant, options: &Options) {
        self.failures = self.failures.saturating_add(1);
        let pause = pause(
            self.failures,
            options,
            RandomState::new().hash_one(self.failures),
        );
        self.retry_at = now.checked_add(pause);
    }

    /// There is a connection. Whether the server answers is not known yet.
    pub fn connected(&mut self) {
        self.retry_at = None;
    }

    /// The server has answered.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// How often it failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// How long nobody is to try. None: it is time.
    pub fn remaining(&self, now: Instant) -> Option<Duration> {
        let left = self.retry_at?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

/// The pause after so many failures: doubled with each, and a random part of up to a half taken off, so that many clients do not
/// come all at once.
fn pause(failures: u32, options: &Options, random: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let whole = options
        .retry_least
        .saturating_mul(1 << doublings)
        .min(options.retry_most)
        .min(PAUSE_MAX);
    let part = random as f64 / u64::MAX as f64;
    whole.mul_f64(1.0 - part / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let options = Options::default();
        let most = |failures| pause(failures, &options, 0);
        assert_eq!(most(1), options.retry_least);
        assert_eq!(most(3), options.retry_least * 4);
        assert_eq!(most(100), options.retry_most);
        assert_eq!(pause(1, &options, u64::MAX), options.retry_least / 2);
    }

    #[test]
    fn a_server_is_left_alone_until_its_time_and_an_answer_forgets_all() {
        let options = Options::default();
        let mut backoff = Backoff::default();
        let now = Instant::now();
        assert_eq!(backoff.remaining(now), None);
        backoff.failed(now, &options);
        let remaining = backoff.remaining(now).unwrap();
        assert!(remaining >= options.retry_least / 2 && remaining <= options.retry_least);
        assert_eq!(backoff.remaining(now + options.retry_least), None);
        assert_eq!(backoff.failures(), 1);
        backoff.succeeded();
        assert_eq!((backoff.failures(), backoff.remaining(now)), (0, None));
    }
}
