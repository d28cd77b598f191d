//! The latency of requests, by command and by the size of the value: the time from the read of the request to the write
//! of its answer, or of as much of it as the socket takes.
//!
//! All requests of an iteration have the same time, so two reads of the clock per iteration measure all of them.
//! Buckets are a 32nd of a power of two wide, as in an HDR histogram, and a percentile is shown as the middle of its
//! bucket: its error is below 1.6 %, for times from a microsecond to 16 seconds.

use std::time::Duration;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::counters::Counter;

use crate::telemetry::Report;

/// The most bytes of values of each size, and the name of the size.
const SIZES: [(usize, &str); 6] = [
    (64, "64B"),
    (512, "512B"),
    (4 << 10, "4KiB"),
    (32 << 10, "32KiB"),
    (256 << 10, "256KiB"),
    (usize::MAX, "more"),
];

/// Requests whose times are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(usize);

impl Group {
    /// A get that hit a value of `len` bytes.
    #[inline]
    pub fn get(len: usize) -> Self {
        Self(size(len))
    }

    /// A store of `len` bytes.
    #[inline]
    pub fn set(len: usize) -> Self {
        Self(SIZES.len() + size(len))
    }

    /// Gets that missed.
    pub const MISS: Self = Self(2 * SIZES.len());
    /// Deletes.
    pub const DELETE: Self = Self(Self::MISS.0 + 1);
    /// Additions and subtractions.
    pub const DELTA: Self = Self(Self::MISS.0 + 2);
    /// Touches.
    pub const TOUCH: Self = Self(Self::MISS.0 + 3);
    /// Reads of an item's properties.
    pub const OTHER: Self = Self(Self::MISS.0 + 4);

    const COUNT: usize = Self::OTHER.0 + 1;

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    /// The command, and the size of the value. The size is `none` if there is no value.
    pub fn names(self) -> (&'static str, &'static str) {
        let command = match self {
            Self::DELETE => "delete",
            Self::DELTA => "incr",
            Self::TOUCH => "touch",
            Self::OTHER => "look",
            Self(group) if group / SIZES.len() == 1 => "set",
            _ => "get",
        };
        let sized = self.0 < Self::MISS.0;
        let size = sized.then(|| SIZES[self.0 % SIZES.len()].1);
        (command, size.unwrap_or("none"))
    }
}

/// The size of a value of `len` bytes: an index of [`SIZES`].
#[inline]
fn size(len: usize) -> usize {
    // Two comparisons for nearly all values. (A position in the table costs a get 10 instructions more.)
    match len {
        ..=64 => 0,
        65..=512 => 1,
        _ => SIZES.iter().take_while(|(most, _)| *most < len).count(),
    }
}

/// Requests of each group that an iteration has executed. Only its worker writes.
#[derive(Default)]
pub struct Pending([Counter; PENDING]);

/// Room for all groups: a power of two, so that the check of an index is one instruction.
const PENDING: usize = Group::COUNT.next_power_of_two();

impl Pending {
    /// Adds a request of this group.
    #[inline]
    pub fn add(&self, group: Group) {
        self.0[group.0 % PENDING].bump();
    }
}

/// Buckets within a power of two.
const PARTS: u64 = 32;

/// Buckets: the last one begins at 2^24 microseconds, 16 seconds.
const BUCKETS: usize = 24 * PARTS as usize + 1;

/// The times of a group, as one worker measured them.
struct Measured {
    buckets: [Counter; BUCKETS],
    nanoseconds: Counter,
}

impl Measured {
    fn times(&self) -> Times {
        Times {
            buckets: self.buckets.iter().map(Counter::get).collect(),
            nanoseconds: self.nanoseconds.get(),
        }
    }
}

/// The measurements of one worker, which alone writes.
pub struct Latencies {
    groups: Vec<Measured>,
    /// The measurements of each group at the last reset. Empty before the first one.
    base: Mutex<Vec<Times>>,
}

impl Default for Latencies {
    fn default() -> Self {
        let measured = |_| Measured {
            buckets: std::array::from_fn(|_| Counter::default()),
            nanoseconds: Counter::default(),
        };
        Self {
            groups: Group::all().map(measured).collect(),
            base: Mutex::default(),
        }
    }
}

impl Latencies {
    /// Records the time of an iteration's pending requests, and clears them.
    pub fn note(&self, pending: &Pending, time: Duration) {
        let bucket = bucket(time);
        let nanoseconds = time.as_nanos() as u64;
        for (measured, pending) in self.groups.iter().zip(&pending.0) {
            let count = pending.get();
            if count > 0 {
                pending.reset();
                measured.buckets[bucket].add(count);
                measured.nanoseconds.add(count * nanoseconds);
            }
        }
    }

    /// `stats reset`, by any thread: earlier measurements are subtracted from now on.
    pub fn reset(&self) {
        let measured = self.groups.iter().map(Measured::times);
        *self.base.lock() = measured.collect();
    }
}

/// The bucket of a time.
fn bucket(time: Duration) -> usize {
    // In 32nds of a microsecond. All times below one microsecond are together.
    let units = (time.as_nanos() as u64 / 125).saturating_mul(4).max(PARTS);
    let power = units.ilog2() - PARTS.ilog2();
    let part = (units >> power) - PARTS;
    let bucket = u64::from(power) * PARTS + part;
    (bucket as usize).min(BUCKETS - 1)
}

/// The end of bucket `n`, exclusive, in seconds.
fn end(bucket: usize) -> f64 {
    let (power, part) = (bucket as u64 / PARTS, bucket as u64 % PARTS);
    let microseconds = (1_u64 << power) as f64 * (PARTS + part + 1) as f64 / PARTS as f64;
    microseconds / 1e6
}

/// The middle of bucket `n`, in seconds.
fn middle(bucket: usize) -> f64 {
    let width = end(bucket) / (PARTS + bucket as u64 % PARTS + 1) as f64;
    end(bucket) - width / 2.0
}

/// The times of some groups, of all workers together.
#[derive(Clone, Debug)]
pub struct Times {
    buckets: Vec<u64>,
    nanoseconds: u64,
}

impl Times {
    /// The sum over workers.
    pub fn of<'w>(workers: impl Iterator<Item = &'w Latencies>, group: Group) -> Self {
        let mut sum = Self {
            buckets: vec![0; BUCKETS],
            nanoseconds: 0,
        };
        for worker in workers {
            let base = worker.base.lock();
            let mut times = worker.groups[group.0].times();
            if let Some(base) = base.get(group.0) {
                times.take_off(base);
            }
            sum.add(&times);
        }
        sum
    }

    fn take_off(&mut self, base: &Self) {
        for (count, base) in self.buckets.iter_mut().zip(&base.buckets) {
            *count -= base;
        }
        self.nanoseconds -= base.nanoseconds;
    }

    /// Their sum.
    pub fn seconds(&self) -> f64 {
        self.nanoseconds as f64 / 1e9
    }

    fn none() -> Self {
        Self::of(std::iter::empty(), Group::OTHER)
    }

    fn add(&mut self, other: &Self) {
        for (sum, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += count;
        }
        self.nanoseconds += other.nanoseconds;
    }

    /// The number of requests.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// For each power of two in microseconds: its end in seconds, and the number of requests that took less.
    pub fn cumulated(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        let whole = self.buckets[..BUCKETS - 1].chunks(PARTS as usize);
        whole.enumerate().map(move |(power, buckets)| {
            sum += buckets.iter().sum::<u64>();
            (end(power * PARTS as usize + PARTS as usize - 1), sum)
        })
    }

    /// The longest time of this part of all requests, in seconds.
    fn quantile(&self, part: f64) -> f64 {
        let rank = (self.count() as f64 * part).ceil() as u64;
        let mut sum = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            sum += count;
            if sum >= rank {
                return middle(bucket);
            }
        }
        0.0
    }

    /// Its lines, in microseconds.
    fn lines(&self, report: &mut Report<'_, '_>, name: &str) {
        let count = self.count();
        report.line(&format!("{name}_count"), count);
        let mean = self.seconds() * 1e6 / count.max(1) as f64;
        report.line(&format!("{name}_mean_us"), format_args!("{mean:.1}"));
        for (quantile, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            let shown = match count {
                0 => 0.0,
                _ => self.quantile(part) * 1e6,
            };
            report.line(&format!("{name}_{quantile}_us"), format_args!("{shown:.2}"));
        }
    }
}

/// The times of each group, by its names.
type Groups = [((&'static str, &'static str), Times)];

fn groups<'w>(workers: impl Iterator<Item = &'w Latencies> + Clone) -> Box<Groups> {
    Group::all()
        .map(|group| (group.names(), Times::of(workers.clone(), group)))
        .collect()
}

/// Gets, sets, and all others.
fn kinds(groups: &Groups) -> [(&'static str, Times); 3] {
    ["get", "set", "other"].map(|kind| {
        let mut sum = Times::none();
        for ((command, _), times) in groups {
            let its = match *command {
                "get" | "set" => command,
                _ => "other",
            };
            if its == kind {
                sum.add(times);
            }
        }
        (kind, sum)
    })
}

/// `stats latency_buckets`: for gets, sets and all others, the number of requests in each bucket that is not empty,
/// named by its middle in microseconds. The difference of two answers counts the requests between them.
pub fn buckets<'w>(
    report: &mut Report<'_, '_>,
    workers: impl Iterator<Item = &'w Latencies> + Clone,
) {
    for (kind, times) in kinds(&groups(workers)) {
        for (bucket, &count) in times.buckets.iter().enumerate() {
            if count > 0 {
                report.line(&format!("{kind}:{:.3}", middle(bucket) * 1e6), count);
            }
        }
    }
}

/// `stats latency`: for gets, sets and all others, then for each of these others, then for gets and sets by size, if
/// there were any.
pub fn report<'w>(
    report: &mut Report<'_, '_>,
    workers: impl Iterator<Item = &'w Latencies> + Clone,
) {
    let groups = groups(workers);
    for (kind, times) in kinds(&groups) {
        times.lines(report, kind);
    }
    for ((command, size), times) in &groups {
        match *size {
            "none" if *command == "get" => times.lines(report, "get_miss"),
            "none" => times.lines(report, command),
            size if times.count() > 0 => times.lines(report, &format!("{command}_{size}")),
            _ => {}
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
            // Times are rounded down to an eighth of a microsecond.
            let unit = 125e-9;
            assert!(
                bucket == BUCKETS - 1 || time.as_secs_f64() < end(bucket) + unit,
                "{time:?}"
            );
            if bucket > 0 {
                assert!(time.as_secs_f64() >= end(bucket - 1), "{time:?}");
            }
            if (10_000..1 << 33).contains(&nanoseconds) {
                let error = middle(bucket) / time.as_secs_f64() - 1.0;
                assert!(error.abs() < 0.03, "{time:?}: {error}");
            }
        }
    }

    #[test]
    fn values_have_the_size_whose_ends_enclose_them() {
        for (len, name) in [
            (0, "64B"),
            (64, "64B"),
            (65, "512B"),
            (512, "512B"),
            (4096, "4KiB"),
            (4097, "32KiB"),
            (32 << 10, "32KiB"),
            (256 << 10, "256KiB"),
            ((256 << 10) + 1, "more"),
            (usize::MAX, "more"),
        ] {
            assert_eq!(Group::get(len).names(), ("get", name));
            assert_eq!(Group::set(len).names(), ("set", name));
            let fits = SIZES.iter().find(|(most, _)| len <= *most);
            assert_eq!(fits.map(|(_, name)| *name), Some(name));
        }
        assert_eq!(Group::MISS.names(), ("get", "none"));
        assert_eq!(Group::OTHER.names(), ("look", "none"));
        let names: std::collections::HashSet<_> = Group::all().map(Group::names).collect();
        assert_eq!(names.len(), Group::COUNT);
    }

    #[test]
    fn quantiles_and_sums() {
        let (one, two) = (Latencies::default(), Latencies::default());
        let group = Group::get(1);
        let pending = Pending::default();
        (0..90).for_each(|_| pending.add(group));
        one.note(&pending, Duration::from_micros(10));
        (0..10).for_each(|_| pending.add(group));
        pending.add(Group::DELETE);
        two.note(&pending, Duration::from_millis(3));
        let times = Times::of([&one, &two].into_iter(), group);
        assert_eq!(times.count(), 100);
        assert!((times.seconds() - 0.0309).abs() < 1e-9);
        assert!((9.84e-6..10.16e-6).contains(&times.quantile(0.5)));
        assert!((2.95e-3..3.05e-3).contains(&times.quantile(0.99)));
        let last = times.cumulated().last().unwrap();
        assert_eq!(last.1, 100);
        assert_eq!(
            times.cumulated().filter(|(_, count)| *count == 90).count(),
            8
        );
        one.reset();
        assert_eq!(Times::of([&one, &two].into_iter(), group).count(), 10);
    }
}
