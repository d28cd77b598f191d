//! The bench of a full memory: how long sets take in it, side by side.
//!
//! One thread requests keys by their popularity, out of four times as many as fit. Half of its requests are sets: of
//! new items, of items in the cache, and of evicted ones. Each set is timed. Rounds of all sides take turns, since on a
//! shared machine the machine causes the longest calls.

use std::fmt::{self, Display};
use std::sync::Arc;

use clap::Args;
use nuthatch_engine::{AnyEngine, Engine};
use serde::{Deserialize, Serialize};

use crate::engine::rivals::{
    GivenBytes, KeyBytes, Moka, OneByOne, QuickCache, ShardedLru, ShownBytes,
};
use crate::engine::{Distribution, Items, Load, Operations, Ours, Sizes, Subject, Worker, preload};
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
    /// Also measure quick_cache, moka and lru in shards, with room for as many items as the first engine holds when it is
    /// full
    #[arg(long)]
    pub rivals: bool,
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
    /// Items evicted for each set, of those that count them.
    pub evictions_per_set: Option<f64>,
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
    /// Items that the first engine held when it was full.
    pub items_held: u64,
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
    let mut ours = Vec::new();
    for contender in &contenders {
        let worker = Ours::<AnyEngine>::new(contender.engine.clone(), 1).worker();
        let engine = Some(contender.engine.clone());
        let mut run = Run::new(contender.name.clone(), engine, worker);
        run.fill(&contender.engine, &items)?;
        ours.push(run);
    }
    let held = contenders.first().map_or(0, |one| one.engine.stats().items);
    let rivals = options.rivals.then(|| Rivals::holding(held as usize));
    let ours = ours.into_iter().map(|run| Box::new(run) as Box<dyn Turn>);
    let mut sides: Vec<Box<dyn Turn>> = ours.collect();
    if let Some(rivals) = &rivals {
        sides.extend(rivals.filled(&items, 2 * held)?);
    }
    for round in 0..options.rounds {
        for side in &mut sides {
            side.round(&items, round, options.requests);
        }
    }
    let first = sides.first().map(|side| side.found());
    let sides: Result<Vec<Side>, String> = first
        .into_iter()
        .flat_map(|first| sides.iter().map(|side| side.found().side(first)))
        .collect();
    Ok(Report {
        host: Host::ask(),
        memory_limit: options.memory as u64,
        key_size: items.key_size,
        value_size: items.value_size,
        items_held: held,
        sides: sides?,
    })
}

/// Caches from crates.io with byte strings as keys and values.
struct Rivals {
    quick_cache: OneByOne<QuickCache<KeyBytes, GivenBytes>>,
    moka: OneByOne<Moka<KeyBytes, GivenBytes>>,
    lru: OneByOne<ShardedLru<KeyBytes, ShownBytes>>,
}

impl Rivals {
    fn holding(items: usize) -> Self {
        Self {
            quick_cache: OneByOne(QuickCache::holding(items)),
            moka: OneByOne(Moka::holding(items)),
            lru: OneByOne(ShardedLru::holding(items)),
        }
    }

    /// All of them, after so many sets of new items.
    fn filled(&self, items: &Items, sets: u64) -> Result<Vec<Box<dyn Turn + '_>>, Failure> {
        fn full<'a, S: Subject>(
            subject: &'a S,
            name: &str,
            items: &Items,
        ) -> Result<Box<dyn Turn + 'a>, Failure> {
            preload(subject, items)?;
            Ok(Box::new(Run::new(name.to_owned(), None, subject.worker())))
        }
        let first = Items {
            count: sets.min(items.count),
            ..*items
        };
        let quick_cache = concat!("quick_cache ", env!("VERSION_OF_quick_cache"));
        let moka = concat!("moka ", env!("VERSION_OF_moka"));
        let lru = concat!("lru in shards ", env!("VERSION_OF_lru"));
        Ok(vec![
            full(&self.quick_cache, quick_cache, &first)?,
            full(&self.moka, moka, &first)?,
            full(&self.lru, lru, &first)?,
        ])
    }
}

/// Percentiles of a round, in microseconds.
struct Round {
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// A side that takes its turn, whatever its type.
trait Turn {
    /// One more round.
    fn round(&mut self, items: &Items, round: u64, requests: u64);

    /// What all rounds have found.
    fn found(&self) -> &Found;
}

/// What a side's rounds have found.
#[derive(Default)]
struct Found {
    name: String,
    /// Of our sides; it counts evictions.
    engine: Option<Arc<AnyEngine>>,
    rounds: Vec<Round>,
    sets: u64,
    gets: u64,
    hits: u64,
    wrong: u64,
}

/// A side's thread.
struct Run<W> {
    worker: W,
    found: Found,
}

impl<W: Worker> Run<W> {
    fn new(name: String, engine: Option<Arc<AnyEngine>>, worker: W) -> Self {
        Self {
            worker,
            found: Found {
                name,
                engine,
                ..Found::default()
            },
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

    #[inline(always)]
    fn request(&mut self, list: &Operations, at: usize) {
        let tally = self.worker.requests(list, at, at + 1);
        self.found.gets += tally.gets;
        self.found.hits += tally.hits;
        self.found.wrong += tally.wrong;
    }
}

impl<W: Worker> Turn for Run<W> {
    fn round(&mut self, items: &Items, round: u64, requests: u64) {
        let mut timings = Timings::new();
        let mut left = requests;
        for piece in 0.. {
            let count = left.min(items.at_most(PIECE)) as usize;
            let seed = (round << 32 | piece) as usize;
            let load = Load::new(0.5, Distribution::Zipf);
            let list = Operations::random(items, count, &load, seed);
            for at in 0..list.len() {
                let is_set = list.range(at, at + 1).any(|one| one.set.is_some());
                if is_set {
                    self.found.sets += 1;
                    timings.time(|| self.request(&list, at));
                } else {
                    self.request(&list, at);
                }
                if at % REQUESTS_PER_MAINTENANCE == 0 {
                    self.worker.rest();
                }
            }
            left -= count as u64;
            if left == 0 {
                break;
            }
        }
        self.found.rounds.push(Round {
            p50: timings.at_us(0.5),
            p99: timings.at_us(0.99),
            p999: timings.at_us(0.999),
            max: timings.at_us(1.0),
        });
    }

    fn found(&self) -> &Found {
        &self.found
    }
}

impl Found {
    fn side(&self, first: &Found) -> Result<Side, String> {
        if self.wrong > 0 {
            return Err(format!("{}: {} wrong answers", self.name, self.wrong));
        }
        let of = |found: &Found, part: fn(&Round) -> f64| -> Vec<f64> {
            found.rounds.iter().map(part).collect()
        };
        let spread = |part| Spread::of(of(self, part));
        let p999 = |round: &Round| round.p999;
        let evictions = self.engine.as_ref().map(|engine| engine.stats().evictions);
        Ok(Side {
            name: self.name.clone(),
            p50_us: spread(|round| round.p50),
            p99_us: spread(|round| round.p99),
            p999_us: spread(p999),
            max_us: spread(|round| round.max),
            p999_by_first: Spread::of_ratios(&of(self, p999), &of(first, p999)),
            hit_ratio: self.hits as f64 / self.gets.max(1) as f64,
            evictions_per_set: evictions.map(|count| count as f64 / self.sets.max(1) as f64),
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
            write!(
                out,
                "  {:<20} p99.9 by the first {}; {:.3} of the gets hit",
                "", side.p999_by_first, side.hit_ratio
            )?;
            match side.evictions_per_set {
                Some(evictions) => writeln!(out, ", {evictions:.2} evictions a set")?,
                None => writeln!(out)?,
            }
        }
        Ok(())
    }
}
