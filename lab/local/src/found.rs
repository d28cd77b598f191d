//! What a client's process measured, and how it says so: one line of JSON.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// What a process answers when it is told to begin. A client in Python writes the same fields.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    /// Calls that were made.
    pub operations: u64,
    /// How long that took.
    pub seconds: f64,
    /// Processor time of this process, user and system.
    pub cpu_seconds: f64,
    /// So many calls are timed together, because one alone is too short.
    pub together: u64,
    /// Nanoseconds of a call, and how often they were measured.
    pub times: Vec<(u64, u64)>,
}

/// Times of calls, in nanoseconds, with three digits.
pub struct Times(Histogram<u64>);

impl Times {
    /// None yet.
    pub fn new() -> Self {
        Self(Histogram::new(3).expect("three digits are lawful"))
    }

    /// Adds times that were measured so often.
    pub fn add(&mut self, nanoseconds: u64, often: u64) {
        self.0
            .record_n(nanoseconds, often)
            .expect("a histogram that resizes takes any value");
    }

    /// Adds one time.
    #[inline]
    pub fn record(&mut self, time: Duration) {
        self.add(time.as_nanos() as u64, 1);
    }

    /// Adds those of others.
    pub fn join(&mut self, others: &Self) {
        self.0
            .add(&others.0)
            .expect("a histogram that resizes takes any value");
    }

    /// Microseconds within which this share of the calls was done.
    pub fn at_us(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1e3
    }
}

/// A measurement that has begun.
pub struct Begun {
    at: Instant,
    cpu: Duration,
}

impl Begun {
    /// Begins.
    pub fn now() -> Self {
        Self {
            at: Instant::now(),
            cpu: cpu_time(),
        }
    }

    /// When it began.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// Ends it.
    pub fn end(self, times: &Times, together: u64) -> Found {
        let listed = times.0.iter_recorded();
        let times: Vec<(u64, u64)> = listed
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
            .collect();
        Found {
            operations: times.iter().map(|(_, often)| often * together).sum(),
            seconds: self.at.elapsed().as_secs_f64(),
            cpu_seconds: (cpu_time() - self.cpu).as_secs_f64(),
            together,
            times,
        }
    }
}

/// Processor time of this process, with its threads that have ended.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
        .map(Duration::from)
        .expect("a clock that each process has")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_are_timed_together_all_count() {
        let begun = Begun::now();
        let (mut times, mut others) = (Times::new(), Times::new());
        times.record(Duration::from_nanos(30));
        others.add(40, 2);
        times.join(&others);
        assert_eq!(times.at_us(0.99), 0.04);
        let found = begun.end(&times, 100);
        assert_eq!((found.operations, found.together), (300, 100));
        assert_eq!(found.times, [(30, 1), (40, 2)]);
        assert!(found.seconds > 0.0 && found.cpu_seconds >= 0.0);
    }
}
