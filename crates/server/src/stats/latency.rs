//! How long requests take: from the read that brought them to the write that sent their answers, as far as the socket
//! takes it.
//!
//! All requests of an iteration have one time, so two looks at the clock an iteration measure all of them. Buckets are
//! a quarter of a power of two wide: a percentile is told with an error below 19 %.

use std::time::Duration;

use nuthatch_engine::counters::Counter;
use nuthatch_engine::{Op, Request};

use crate::stats::Report;

/// Kinds of requests whose times are told apart.
pub(crate) const KINDS: [&str; 3] = ["get", "set", "other"];

/// Buckets within a power of two.
const PARTS: u64 = 4;

/// Buckets: the last one begins at 2^24 microseconds, 16 seconds.
const BUCKETS: usize = 24 * PARTS as usize + 1;

/// How many requests of each kind an iteration had.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried([u64; KINDS.len()]);

impl Carried {
    /// Counts a batch.
    #[inline]
    pub(crate) fn count(&mut self, requests: &[Request<'_>]) {
        for request in requests {
            let kind = match request.op {
                Op::Get | Op::Read(_) => 0,
                Op::Store(_) => 1,
                _ => 2,
            };
            self.0[kind] += 1;
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0 == [0; KINDS.len()]
    }
}

/// What one worker measured; it alone writes.
pub(crate) struct Latencies {
    buckets: [[Counter; BUCKETS]; KINDS.len()],
    nanoseconds: [Counter; KINDS.len()],
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| std::array::from_fn(|_| Counter::default())),
            nanoseconds: Default::default(),
        }
    }
}

impl Latencies {
    /// Notes the time of an iteration's requests.
    pub(crate) fn note(&self, carried: Carried, time: Duration) {
        let bucket = bucket(time);
        let nanoseconds = time.as_nanos() as u64;
        for (kind, &count) in carried.0.iter().enumerate() {
            if count > 0 {
                self.buckets[kind][bucket].add(count);
                self.nanoseconds[kind].add(count * nanoseconds);
            }
        }
    }

    /// `stats reset`.
    pub(crate) fn reset(&self) {
        for counter in self.buckets.iter().flatten().chain(&self.nanoseconds) {
            counter.reset();
        }
    }
}

/// The bucket of a time.
fn bucket(time: Duration) -> usize {
    // In quarters of a microsecond, so that those below one are told apart.
    let quarters = (time.as_nanos() as u64 / 250).max(PARTS);
    let power = quarters.ilog2();
    let part = (quarters >> (power - PARTS.ilog2())) - PARTS;
    let bucket = u64::from(power - PARTS.ilog2()) * PARTS + part;
    (bucket as usize).min(BUCKETS - 1)
}

/// What bucket `n` ends below, in seconds.
fn end(bucket: usize) -> f64 {
    let (power, part) = (bucket as u64 / PARTS, bucket as u64 % PARTS);
    let microseconds = (1_u64 << power) as f64 * (PARTS + part + 1) as f64 / PARTS as f64;
    microseconds / 1e6
}

/// The times of one kind, of all workers together.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    buckets: [u64; BUCKETS],
    pub(crate) seconds: f64,
}

impl Times {
    /// The sums of workers.
    pub(crate) fn of<'w>(workers: impl Iterator<Item = &'w Latencies>, kind: usize) -> Self {
        let (mut buckets, mut nanoseconds) = ([0; BUCKETS], 0);
        for worker in workers {
            for (sum, counter) in buckets.iter_mut().zip(&worker.buckets[kind]) {
                *sum += counter.get();
            }
            nanoseconds += worker.nanoseconds[kind].get();
        }
        Self {
            buckets,
            seconds: nanoseconds as f64 / 1e9,
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// For each power of two microseconds, how many took less: its end in seconds, and the count.
    pub(crate) fn cumulated(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        let whole = self.buckets[..BUCKETS - 1].chunks(PARTS as usize);
        whole.enumerate().map(move |(power, buckets)| {
            sum += buckets.iter().sum::<u64>();
            (end(power * PARTS as usize + PARTS as usize - 1), sum)
        })
    }

    /// The time below which this part of all requests were, in seconds.
    fn quantile(&self, part: f64) -> f64 {
        let rank = (self.count() as f64 * part).ceil() as u64;
        let mut sum = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            sum += count;
            if sum >= rank {
                return end(bucket);
            }
        }
        0.0
    }
}

/// `stats latency`: microseconds.
pub(crate) fn report(report: &mut Report<'_, '_>, times: [Times; KINDS.len()]) {
    for (kind, times) in KINDS.iter().zip(times) {
        let count = times.count();
        report.line(&format!("{kind}_count"), count);
        let mean = times.seconds * 1e6 / count.max(1) as f64;
        report.line(&format!("{kind}_mean_us"), format_args!("{mean:.1}"));
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            let quantile = times.quantile(part) * 1e6;
            report.line(&format!("{kind}_{name}_us"), format_args!("{quantile:.2}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_the_bucket_whose_ends_enclose_it() {
        for nanoseconds in (0..200_000).step_by(77).chain([1 << 30, 1 << 40, u64::MAX]) {
            let time = Duration::from_nanos(nanoseconds);
            let bucket = bucket(time);
            assert!(
                bucket == BUCKETS - 1 || time.as_secs_f64() < end(bucket),
                "{time:?}"
            );
            if bucket > 0 {
                assert!(time.as_secs_f64() >= end(bucket - 1), "{time:?}");
            }
        }
    }

    #[test]
    fn quantiles_and_sums() {
        let (one, two) = (Latencies::default(), Latencies::default());
        one.note(Carried([90, 0, 0]), Duration::from_micros(10));
        two.note(Carried([10, 5, 0]), Duration::from_millis(3));
        let times = Times::of([&one, &two].into_iter(), 0);
        assert_eq!(times.count(), 100);
        assert!((times.seconds - 0.0309).abs() < 1e-9);
        assert!((10e-6..12.1e-6).contains(&times.quantile(0.5)));
        assert!((3e-3..3.6e-3).contains(&times.quantile(0.99)));
        let last = times.cumulated().last().unwrap();
        assert_eq!(last.1, 100);
        assert_eq!(
            times.cumulated().filter(|(_, count)| *count == 90).count(),
            8
        );
        one.reset();
        assert_eq!(Times::of([&one, &two].into_iter(), 0).count(), 10);
    }
}
