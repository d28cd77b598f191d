//! How long calls took: each is timed, and the longest counts.

use std::fmt::{self, Display};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Times of calls of one kind.
pub(crate) struct Timings {
    /// In nanoseconds.
    histogram: Histogram<u64>,
}

impl Timings {
    pub fn new() -> Self {
        Self {
            histogram: Histogram::new(3).expect("three digits are lawful"),
        }
    }

    /// Carries out one call.
    #[inline(always)]
    pub fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = call();
        self.record(started.elapsed());
        result
    }

    /// Counts a call that was timed elsewhere.
    #[inline(always)]
    pub fn record(&mut self, time: Duration) {
        self.histogram
            .record(time.as_nanos() as u64)
            .expect("a histogram that resizes takes any value");
    }

    /// Microseconds that this share of the calls did not pass.
    pub fn at_us(&self, quantile: f64) -> f64 {
        self.histogram.value_at_quantile(quantile) as f64 / 1e3
    }

    /// The summary of these times.
    pub fn times(&self) -> Times {
        let millisecond = Duration::from_millis(1).as_nanos() as u64;
        Times {
            count: self.histogram.len(),
            p50_us: self.at_us(0.5),
            p9999_us: self.at_us(0.9999),
            max_us: self.histogram.max() as f64 / 1e3,
            over_1_ms: self.histogram.count_between(millisecond, u64::MAX),
        }
    }
}

/// Times of calls, in microseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Times {
    /// Calls.
    pub count: u64,
    /// The middle one.
    pub p50_us: f64,
    /// One in ten thousand took longer.
    pub p9999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Calls that took about a millisecond or longer.
    pub over_1_ms: u64,
}

impl Display for Times {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "p50 {:.2}  p99.99 {:.1}  max {:.1}  over 1 ms {} of {}",
            self.p50_us, self.p9999_us, self.max_us, self.over_1_ms, self.count
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_never_lost() {
        let mut timings = Timings::new();
        for _ in 0..100_000 {
            timings.record(Duration::from_nanos(200));
        }
        timings.record(Duration::from_millis(7));
        let times = timings.times();
        assert_eq!(times.count, 100_001);
        assert_eq!(times.over_1_ms, 1);
        assert!((0.19..0.21).contains(&times.p50_us), "{times}");
        assert!(times.max_us >= 7000.0 && times.max_us < 7100.0, "{times}");
        // However long that takes.
        assert_eq!(timings.time(|| 5), 5);
        assert_eq!(timings.times().count, 100_002);
    }
}
