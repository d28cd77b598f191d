//! The paper's four caches under the same requests: throughput, items held, misses.
//!
//! All keys are stored once, in no order of popularity. Then come gets and sets of keys by Zipf; a get that finds nothing is
//! followed by a set, and both are one operation. The first half of the requests is not counted.

use std::fmt::{self, Display};
use std::time::{Duration, Instant};

use clap::Args;
use nuthatch_bench::engine::{Distribution, on_cores};
use nuthatch_bench::host::Host;
use nuthatch_memc3::{
    Cache, ChainingClock, ChainingLru, CuckooClock, CuckooLru, Index, KeyWords, Order, ValueWords,
};
use nuthatch_program::Failure;
use nuthatch_workload::{Mix, Operation, Plan, Popularity, Seed};
use serde::{Deserialize, Serialize};

/// Options of the bench of caches.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Number of keys, of 16 bytes, with values of 32
    #[arg(long, value_name = "N", default_value_t = 10_000_000,
        value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub keys: u64,
    /// Sizes of the cache, separated by commas, as 64M or 1G: of the items, without the index
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "2G",
        value_parser = nuthatch_program::size::parse)]
    pub sizes: Vec<usize>,
    /// Requests of each thread; the first half is not counted
    #[arg(long, value_name = "N", default_value_t = 8_000_000,
        value_parser = clap::value_parser!(u64).range(2..=1 << 28))]
    pub requests: u64,
    /// The share of gets; the rest are sets
    #[arg(long, value_name = "R", default_value_t = 0.95)]
    pub get_ratio: f64,
    /// Distribution of the requested keys
    #[arg(long, value_enum, default_value_t = Distribution::Zipf)]
    pub dist: Distribution,
    /// Threads, each pinned to a core
    #[arg(long, value_name = "T", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The results of a cache of one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The paper's name for it.
    pub cache: String,
    /// Bytes of its items.
    pub size: usize,
    /// Bytes of one.
    pub item_size: usize,
    /// The size / that of all keys as items of memcached's size, to four digits behind the point.
    pub share: f64,
    /// Items in it at the end.
    pub items: usize,
    /// Gets that found nothing / gets.
    pub miss_ratio: f64,
    /// Million requests a second, of all threads.
    pub mops: f64,
}

/// The results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// Keys asked for.
    pub keys: u64,
    /// Requests of each thread, half of which counted.
    pub requests: u64,
    /// The share of gets.
    pub get_ratio: f64,
    /// Threads.
    pub threads: u16,
    /// Each cache in each size.
    pub rows: Vec<Row>,
}

/// The key of a number: its second word, and its first one scattered.
#[inline(always)]
fn key(number: u64) -> KeyWords {
    [number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number]
}

/// The value of a number's key.
#[inline(always)]
fn value(number: u64) -> ValueWords {
    [number, !number, number, !number]
}

/// What a thread counted.
#[derive(Clone, Copy, Default)]
struct Counts {
    gets: u64,
    misses: u64,
    wrong: u64,
}

fn ask<I: Index, O: Order>(
    cache: &Cache<I, O>,
    requests: impl Iterator<Item = Operation>,
) -> Counts {
    let mut counts = Counts::default();
    let set = |number| u64::from(!cache.set(&key(number), &value(number)));
    for request in requests {
        let number = match request {
            Operation::Get(number) => number,
            Operation::Set(number) => {
                counts.wrong += set(number);
                continue;
            }
        };
        counts.gets += 1;
        match cache.get(&key(number)) {
            Some(found) => counts.wrong += u64::from(found != value(number)),
            None => {
                counts.misses += 1;
                counts.wrong += set(number);
            }
        }
    }
    counts
}

/// A size as a share of the working set.
fn share(size: usize, keys: u64) -> f64 {
    let whole = keys as f64 * ChainingLru::ITEM as f64;
    (size as f64 / whole * 1e4).round() / 1e4
}

/// How a cache is made.
type Make<I, O> = fn(usize) -> std::io::Result<Cache<I, O>>;

/// Measures one cache in one size.
fn measure<I: Index + Sync, O: Order + Sync>(
    make: Make<I, O>,
    name: &str,
    size: usize,
    options: &Options,
    lists: &[Plan],
) -> Result<Row, String> {
    let cache = make(size).map_err(|error| error.to_string())?;
    for number in 0..options.keys {
        if !cache.set(&key(number), &value(number)) {
            return Err("the index is full".to_owned());
        }
    }
    let half = lists[0].len() / 2;
    let warm = on_cores(lists.len(), |thread| {
        let (cache, list) = (&cache, &lists[thread]);
        move || ask(cache, list.iter().take(half))
    })?;
    let each = on_cores(lists.len(), |thread| {
        let (cache, list) = (&cache, &lists[thread]);
        move || {
            let started = Instant::now();
            let counts = ask(cache, list.iter().skip(half));
            (counts, started.elapsed())
        }
    })?;
    let mut sum = Counts::default();
    let (mut operations, mut longest) = (0, Duration::ZERO);
    for (counts, took) in &each {
        sum.gets += counts.gets;
        sum.misses += counts.misses;
        sum.wrong += counts.wrong;
        operations += lists[0].len() - half;
        longest = longest.max(*took);
    }
    let wrong = sum.wrong + warm.iter().map(|counts| counts.wrong).sum::<u64>();
    if wrong > 0 {
        return Err(format!("{wrong} wrong answers"));
    }
    Ok(Row {
        cache: name.to_owned(),
        size,
        item_size: Cache::<I, O>::ITEM,
        share: share(size, options.keys),
        items: cache.count(),
        miss_ratio: sum.misses as f64 / sum.gets.max(1) as f64,
        // By the slowest thread: a thread that is alone at the end is faster than the caches are.
        mops: operations as f64 / longest.as_secs_f64() / 1e6,
    })
}

/// The caches by their names in the paper.
type Measure = fn(&str, usize, &Options, &[Plan]) -> Result<Row, String>;

const CACHES: [(&str, Measure); 4] = [
    ("chaining+LRU", |name, size, options, lists| {
        measure(ChainingLru::new, name, size, options, lists)
    }),
    ("cuckoo+LRU", |name, size, options, lists| {
        measure(CuckooLru::new, name, size, options, lists)
    }),
    ("chaining+CLOCK", |name, size, options, lists| {
        measure(ChainingClock::new, name, size, options, lists)
    }),
    ("cuckoo+CLOCK", |name, size, options, lists| {
        measure(CuckooClock::new, name, size, options, lists)
    }),
];

/// Runs the bench of caches.
pub fn run(options: &Options) -> Result<Report, Failure> {
    if !(0.0..=1.0).contains(&options.get_ratio) {
        return Err(Failure::usage("--get-ratio: 0 to 1"));
    }
    let threads = usize::from(options.threads);
    let popularity = Popularity::new(options.dist.into(), options.keys);
    let mix = Mix::new(options.get_ratio);
    let plan = |thread| mix.plan(&popularity, Seed(1), thread, options.requests as usize);
    let lists: Vec<Plan> = (0..threads).map(plan).collect();
    let mut rows = Vec::new();
    for &size in &options.sizes {
        for (name, measure) in CACHES {
            let row = measure(name, size, options, &lists);
            rows.push(row.map_err(|error| format!("{name}: {error}"))?);
        }
    }
    Ok(Report {
        host: Host::ask(),
        keys: options.keys,
        requests: options.requests,
        get_ratio: options.get_ratio,
        threads: options.threads,
        rows,
    })
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.host)?;
        writeln!(
            out,
            "{} keys, {} % gets, {} threads",
            self.keys,
            self.get_ratio * 100.0,
            self.threads
        )?;
        for row in &self.rows {
            writeln!(
                out,
                "  {:<15} {:>6} MiB  {:>10} items  {:.4} misses  {:.2} Mop/s",
                row.cache,
                row.size >> 20,
                row.items,
                row.miss_ratio,
                row.mops
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cache_is_measured_in_every_size() {
        let mut options = Options {
            keys: 20_000,
            sizes: vec![200_000, 4 << 20],
            requests: 40_000,
            get_ratio: 0.95,
            dist: Distribution::Zipf,
            threads: 1,
            json: false,
        };
        let report = run(&options).unwrap();
        assert_eq!(report.rows.len(), 8);
        assert_eq!(report.rows[0].share, 0.0962);
        let (small, large) = report.rows.split_at(4);
        assert!(
            small
                .iter()
                .all(|row| row.miss_ratio > 0.1 && row.mops > 0.0),
            "{report}"
        );
        assert!(
            large
                .iter()
                .all(|row| row.miss_ratio < 0.01 && row.items == 20_000),
            "{report}"
        );
        // Smaller items: more of them, and fewer misses.
        let items: Vec<usize> = small.iter().map(|row| row.items).collect();
        assert_eq!(items, [104, 96, 80, 72].map(|size| 200_000 / size));
        assert!(small[1].miss_ratio < small[0].miss_ratio, "{report}");
        assert!(small[3].miss_ratio < small[2].miss_ratio, "{report}");
        options.threads = 2;
        let report = run(&options).unwrap();
        assert!(report.rows.iter().all(|row| row.mops > 0.0), "{report}");
    }

    #[test]
    fn shares_are_shares() {
        let options = Options {
            keys: 1,
            sizes: vec![1],
            requests: 2,
            get_ratio: 1.5,
            dist: Distribution::Uniform,
            threads: 1,
            json: false,
        };
        assert!(run(&options).is_err());
    }
}
