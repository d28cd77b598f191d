//! The bench of a full memory: how long sets take in it, side by side.
//!
//! One thread requests keys by their popularity, out of four times as many as fit. Half of its requests are sets: of
//! new items, of items in the cache, and of evicted ones. Each set is timed. Rounds of all sides take turns, since on a
//! shared machine the machine causes the longest calls.

use std::fmt::{self, Display};
use std::sync::Arc;

use clap::Args;
use nuthatch_engine::{AnyEngine, AnyHandle, Engine};
use serde::{Deserialize, Serialize};

use crate::engine::{Distribution, Items, Operations, OurWorker, Ours, Sizes, Subject};
use crate::host::Host;
use crate::report::Spread;
use crate::times::Timings;
use nuthatch_program::Failure;

/// Requests between two pieces of background work.
const REQUESTS_PER_MAINTENANCE: usize = 64;

/// Keys requested / keys that would fit if an item took nothing beside key and value.
const KEYS: u64 = 4;

/// Requests made beforehand at a time, at most.
const PIECE: u64 = 1 << 17;

/// Options of the bench of a full memory.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The memory limit, as 64M or 1G
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = nuthatch_program::size::parse)]
    pub memory: usize,
    /// Sizes of keys and values.
    #[command(flatten)]
    pub sizes: Sizes,
    /// Requests in a round, of which half are sets
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub requests: u64,
    /// Number of rounds of each engine and eviction
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub rounds: u64,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// An engine that takes part.
pub struct Contender {
    /// Its name and eviction.
    pub name: String,
    /// Empty, with the memory limit.
    pub engine: Arc<AnyEngine>,
}

/// Microseconds that a set took, each the spread of a percentile over the rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Side {
    /// Its name and eviction.
    pub name: String,
    /// Half took longer.
    pub p50_us: Spread,
    /// One in a hundred took longer.
    pub p99_us: Spread,
    /// One in a thousand took longer.
    pub p999_us: Spread,
    /// The longest.
    pub max_us: Spread,
    /// Its p99.9 / that of the first side, round by round.
    pub p999_by_first: Spread,
    /// Gets that hit, of all.
    pub hit_ratio: f64,
    /// Items evicted for each set.
    pub evictions_per_set: f64,
}

/// The results of the bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// The limit in bytes.
    pub memory_limit: u64,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// The sides, in the order in which they took turns.
    pub sides: Vec<Side>,
}

/// Runs the bench.
pub fn run(contenders: Vec<Contender>, options: &Options) -> Result<Report, Failure> {
    for contender in &contenders {
        options.sizes.check_on(&*contender.engine)?;
    }
    let item = (options.sizes.key_size + options.sizes.value_size).max(1) as u64;
    let items = options
        .sizes
        .items((KEYS * options.memory as u64 / item).max(1))?;
    let ours: Vec<_> = contenders
        .iter()
        .map(|contender| Ours::<AnyEngine>::new(contender.engine.clone(), 1))
        .collect();
    let mut runs: Vec<_> = ours.iter().map(|ours| Run::new(ours.worker())).collect();
    for (run, contender) in runs.iter_mut().zip(&contenders) {
        run.fill(&contender.engine, &items)?;
    }
    for round in 0..options.rounds {
        for run in &mut runs {
            run.round(&items, round, options.requests);
        }
    }
    let sides: Result<Vec<Side>, String> = (0..runs.len())
        .map(|side| runs[side].side(&contenders[side], &runs[0]))
        .collect();
    Ok(Report {
        host: Host::ask(),
        memory_limit: options.memory as u64,
        key_size: items.key_size,
        value_size: items.value_size,
        sides: sides?,
    })
}

/// Percentiles of a round, in microseconds.
struct Round {
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// A side's thread, and what it has found.
struct Run {
    worker: OurWorker<AnyHandle>,
    rounds: Vec<Round>,
    sets: u64,
    gets: u64,
    hits: u64,
    wrong: u64,
}

impl Run {
    fn new(worker: OurWorker<AnyHandle>) -> Self {
        Self {
            worker,
            rounds: Vec::new(),
            sets: 0,
            gets: 0,
            hits: 0,
            wrong: 0,
        }
    }

    /// Stores items until as many were evicted as fit.
    fn fill(&mut self, engine: &AnyEngine, items: &Items) -> Result<(), Failure> {
        let full = |engine: &AnyEngine| {
            let stats = engine.stats();
            stats.evictions > stats.items && stats.evictions > 0
        };
        let mut from = 0;
        while !full(engine) {
            if from == items.count {
                return Err(Failure::run("nothing is evicted: less --memory is needed"));
            }
            let to = (from + items.at_most(PIECE / 8)).min(items.count);
            let list = Operations::sets(items, from, to);
            for at in 0..list.len() {
                self.request(&list, at);
            }
            from = to;
        }
        engine.reset_stats();
        Ok(())
    }

    fn round(&mut self, items: &Items, round: u64, requests: u64) {
        let mut timings = Timings::new();
        let mut left = requests;
        for piece in 0.. {
            let count = left.min(items.at_most(PIECE)) as usize;
            let seed = (round << 32 | piece) as usize;
            let zipf = Distribution::Zipf;
            let list = Operations::random(items, count, 0.5, zipf, seed);
            for at in 0..list.len() {
                let is_set = list.range(at, at + 1).any(|one| one.set.is_some());
                if is_set {
                    self.sets += 1;
                    timings.time(|| self.request(&list, at));
                } else {
                    self.request(&list, at);
                }
                if at % REQUESTS_PER_MAINTENANCE == 0 {
                    let now = self.worker.now();
                    self.worker.maintain(now);
                }
            }
            left -= count as u64;
            if left == 0 {
                break;
            }
        }
        self.rounds.push(Round {
            p50: timings.at_us(0.5),
            p99: timings.at_us(0.99),
            p999: timings.at_us(0.999),
            max: timings.at_us(1.0),
        });
    }

    #[inline(always)]
    fn request(&mut self, list: &Operations, at: usize) {
        let now = self.worker.now();
        let tally = self.worker.ask(now, list, at, at + 1);
        self.gets += tally.gets;
        self.hits += tally.hits;
        self.wrong += tally.wrong;
    }

    fn side(&self, contender: &Contender, first: &Run) -> Result<Side, String> {
        if self.wrong > 0 {
            return Err(format!("{}: {} wrong answers", contender.name, self.wrong));
        }
        let of = |run: &Run, part: fn(&Round) -> f64| -> Vec<f64> {
            run.rounds.iter().map(part).collect()
        };
        let spread = |part| Spread::of(of(self, part));
        let p999 = |round: &Round| round.p999;
        let evictions = contender.engine.stats().evictions;
        Ok(Side {
            name: contender.name.clone(),
            p50_us: spread(|round| round.p50),
            p99_us: spread(|round| round.p99),
            p999_us: spread(p999),
            max_us: spread(|round| round.max),
            p999_by_first: Spread::of_ratios(&of(self, p999), &of(first, p999)),
            hit_ratio: self.hits as f64 / self.gets.max(1) as f64,
            evictions_per_set: evictions as f64 / self.sets.max(1) as f64,
        })
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "sets in a full memory of {} MiB, keys of {} bytes and values of {}; microseconds",
            self.memory_limit >> 20,
            self.key_size,
            self.value_size
        )?;
        for side in &self.sides {
            writeln!(
                out,
                "  {:<20} p50 {}  p99 {}  p99.9 {}  max {:.0}",
                side.name, side.p50_us, side.p99_us, side.p999_us, side.max_us
            )?;
            writeln!(
                out,
                "  {:<20} p99.9 by the first {}; {:.3} of the gets hit, {:.2} evictions a set",
                "", side.p999_by_first, side.hit_ratio, side.evictions_per_set
            )?;
        }
        Ok(())
    }
}
