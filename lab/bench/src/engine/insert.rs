//! The bench of new keys: how fast empty tables are filled, by one thread and by several.
//!
//! Each round makes each side anew and stores all items once, so that every set is of a new key. The sides take turns.
//! The memory is touched for the first time within the measured time, as in any program that fills a cache. After the
//! clock has stopped, all items are read back and checked.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use nuthatch_engine::Engine;
use serde::{Deserialize, Serialize};

use super::library::Library;
use super::operations::{Items, Operations};
use super::ours::{Any, Ours};
use super::rivals::{
    GivenBytes, KeyBytes, Moka, OneByOne, Papaya, QuickCache, ShardedLru, ShownBytes,
};
use super::subject::{Subject, Worker, on_cores};
use super::{LIBRARY, Room, Sizes};
use crate::host::Host;
use crate::report::Spread;
use nuthatch_program::Failure;

/// Operations between two pieces of background work.
const OPERATIONS_PER_REST: usize = 1024;

/// Options of the bench of new keys.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Items stored in a round
    #[arg(long, value_name = "N", default_value_t = 4_000_000)]
    pub items: u64,
    /// Sizes of keys and values.
    #[command(flatten)]
    pub sizes: Sizes,
    /// Threads, each pinned to a core, each with its part of the items. With several, each round also measures one that
    /// stores all
    #[arg(long, value_name = "T", default_value_t = 2)]
    pub threads: usize,
    /// Operations in one batch to the engine
    #[arg(long, value_name = "B", default_value_t = 32)]
    pub batch: usize,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Also measure quick_cache, papaya, moka, lru in shards, and nuthatch's library
    #[arg(long)]
    pub rivals: bool,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

impl Options {
    fn check(&self) -> Result<Items, Failure> {
        if self.threads == 0 || self.batch == 0 || self.rounds == 0 {
            return Err(Failure::usage("--threads, --batch, --rounds: at least 1"));
        }
        let items = self.sizes.items(self.items)?;
        if self.items < self.threads as u64 || items.at_most(self.items) < self.items {
            let words = "--items: at least one for each thread, and values of 512 MiB at most";
            return Err(Failure::usage(words));
        }
        Ok(items)
    }
}

/// The results of a side, in million sets a second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Side {
    /// Its version; empty for the engine.
    pub version: String,
    /// By all threads.
    pub mops: Spread,
    /// By one thread, if there are several.
    pub mops_alone: Option<Spread>,
    /// All threads / one, round by round.
    pub ratio_alone: Option<Spread>,
    /// The engine / this side, by all threads, round by round.
    pub ratio: Spread,
    /// The engine / this side, by one thread.
    pub ratio_one_thread: Option<Spread>,
}

/// The results of the bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// The engine's name.
    pub engine: String,
    /// Items stored in a round.
    pub items: u64,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// Threads.
    pub threads: usize,
    /// Operations at a time.
    pub batch: usize,
    /// The sides by name, the engine's among them.
    pub sides: BTreeMap<String, Side>,
}

/// Runs the bench of new keys on an engine that `build` makes.
pub fn run<E: Engine>(
    build: impl Fn(Room) -> io::Result<Arc<E>>,
    options: &Options,
) -> Result<Report, Failure> {
    let items = options.check()?;
    let room = Room {
        memory: options.sizes.memory_for(items.count),
        items: Some(items.count as usize),
    };
    let engine = build(room)?;
    options.sizes.check_on(&*engine)?;
    let name = engine.name();
    drop(engine);
    let ours = || {
        let engine = build(room).map_err(|error| error.to_string())?;
        Ok(Ours::<E, Any>::of_form(engine, options.batch))
    };
    let mut entrants = vec![Entrant::new(name, "", ours)];
    if options.rivals {
        entrants.extend(rivals(room, options.batch));
    }
    let lists = Lists::new(&items, options.threads);
    for _ in 0..options.rounds {
        for entrant in &mut entrants {
            entrant.round(&lists)?;
        }
    }
    let sides = entrants
        .iter()
        .map(|one| (one.name.to_owned(), one.side(&entrants[0])));
    Ok(Report {
        host: Host::ask(),
        engine: name.to_owned(),
        items: items.count,
        key_size: items.key_size,
        value_size: items.value_size,
        threads: options.threads,
        batch: options.batch,
        sides: sides.collect(),
    })
}

/// Sets of all items: a part for each thread, and if there are several, all of them for one.
struct Lists {
    parts: Vec<Operations>,
    whole: Option<Operations>,
    /// Gets of all.
    gets: Operations,
}

impl Lists {
    fn new(items: &Items, threads: usize) -> Self {
        let from = |thread: usize| items.count * thread as u64 / threads as u64;
        let part = |thread| Operations::sets(items, from(thread), from(thread + 1));
        Self {
            parts: (0..threads).map(part).collect(),
            whole: (threads > 1).then(|| Operations::sets(items, 0, items.count)),
            gets: Operations::gets(items, 0, items.count),
        }
    }
}

/// A table that is made anew and filled.
type Fill<'a> = dyn Fn(&[Operations], &Operations) -> Result<f64, String> + 'a;

/// One side of the comparison.
struct Entrant<'a> {
    name: &'static str,
    version: &'static str,
    fill: Box<Fill<'a>>,
    mops: Vec<f64>,
    mops_alone: Vec<f64>,
}

impl<'a> Entrant<'a> {
    fn new<S: Subject>(
        name: &'static str,
        version: &'static str,
        make: impl Fn() -> Result<S, String> + 'a,
    ) -> Self {
        Self {
            name,
            version,
            fill: Box::new(move |lists, gets| fill(&make()?, lists, gets)),
            mops: Vec::new(),
            mops_alone: Vec::new(),
        }
    }

    fn round(&mut self, lists: &Lists) -> Result<(), String> {
        let named = |error| format!("{}: {error}", self.name);
        let mops = (self.fill)(&lists.parts, &lists.gets).map_err(named)?;
        self.mops.push(mops);
        if let Some(whole) = &lists.whole {
            let alone = (self.fill)(std::slice::from_ref(whole), &lists.gets).map_err(named)?;
            self.mops_alone.push(alone);
        }
        Ok(())
    }

    fn side(&self, ours: &Entrant<'_>) -> Side {
        let alone = !self.mops_alone.is_empty();
        Side {
            version: self.version.to_owned(),
            mops: Spread::of(self.mops.iter().copied()),
            mops_alone: alone.then(|| Spread::of(self.mops_alone.iter().copied())),
            ratio_alone: alone.then(|| Spread::of_ratios(&self.mops, &self.mops_alone)),
            ratio: Spread::of_ratios(&ours.mops, &self.mops),
            ratio_one_thread: alone.then(|| Spread::of_ratios(&ours.mops_alone, &self.mops_alone)),
        }
    }
}

/// Stores each list on a thread of its own, and then reads all items. Returns million sets a second, by the thread that
/// took longest.
fn fill<S: Subject>(subject: &S, lists: &[Operations], gets: &Operations) -> Result<f64, String> {
    let each = on_cores(lists.len(), |thread| {
        let mut worker = subject.worker();
        let list = &lists[thread];
        move || {
            let started = Instant::now();
            let mut wrong = 0;
            for from in (0..list.len()).step_by(OPERATIONS_PER_REST) {
                let to = list.len().min(from + OPERATIONS_PER_REST);
                wrong += worker.run(list, from, to).wrong;
            }
            (wrong, started.elapsed())
        }
    })?;
    let found = subject.worker().run(gets, 0, gets.len());
    let refused: u64 = each.iter().map(|(wrong, _)| wrong).sum();
    let lost = gets.len() as u64 - found.hits;
    if refused + found.wrong + lost > 0 {
        let wrong = found.wrong;
        return Err(format!("{refused} refused, {wrong} wrong, {lost} lost"));
    }
    let longest = each.iter().map(|(_, time)| *time).max();
    let sets: usize = lists.iter().map(Operations::len).sum();
    Ok(sets as f64 / longest.unwrap_or(Duration::MAX).as_secs_f64() / 1e6)
}

/// The library, and the tables from crates.io with byte strings.
fn rivals(room: Room, batch: usize) -> Vec<Entrant<'static>> {
    let count = room.items.unwrap_or(0);
    vec![
        Entrant::new(LIBRARY, env!("CARGO_PKG_VERSION"), move || {
            Library::new(room, batch)
        }),
        Entrant::new("quick_cache", env!("VERSION_OF_quick_cache"), move || {
            Ok(OneByOne(QuickCache::<KeyBytes, GivenBytes>::new(count)))
        }),
        Entrant::new("papaya", env!("VERSION_OF_papaya"), move || {
            Ok(Papaya::<KeyBytes, ShownBytes>::new(count, batch))
        }),
        Entrant::new("moka", env!("VERSION_OF_moka"), move || {
            Ok(OneByOne(Moka::<KeyBytes, GivenBytes>::new(count)))
        }),
        Entrant::new("lru in shards", env!("VERSION_OF_lru"), move || {
            Ok(OneByOne(ShardedLru::<KeyBytes, ShownBytes>::new(count)))
        }),
    ]
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.host)?;
        writeln!(
            out,
            "new keys into {}: {} items of {} + {} bytes, {} threads, batches of {}",
            self.engine, self.items, self.key_size, self.value_size, self.threads, self.batch
        )?;
        for (name, side) in &self.sides {
            let name = format!("{name} {}", side.version);
            write!(
                out,
                "  {name:<22} {:.2} Mop/s; engine / it: {:.2}",
                side.mops, side.ratio
            )?;
            if let (Some(alone), Some(ratio)) = (&side.mops_alone, &side.ratio_alone) {
                write!(out, "; one thread: {alone:.2} Mop/s, all / one: {ratio:.2}")?;
            }
            if let Some(ratio) = &side.ratio_one_thread {
                write!(out, ", engine / it: {ratio:.2}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
