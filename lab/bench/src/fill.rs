//! The fill bench: how many items a memory limit holds, and how full the index is before it grows.

use std::fmt::{self, Display};
use std::io;
use std::sync::Arc;

use clap::Args;
use nuthatch_engine::{Engine, Handle};
use serde::{Deserialize, Serialize};

use crate::engine::{Items, Operations, OurWorker, Ours, Room, Sizes, Subject, Tally, Worker};
use crate::fill_server::{self, FilledServer};
use crate::host::Host;
use nuthatch_program::Failure;

/// Items stored between two looks at the engine's numbers.
const PIECE: u64 = 64;

/// Options of the fill bench.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The memory limit, as 64M or 1G
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = nuthatch_program::size::parse)]
    pub memory: usize,
    /// Sizes of keys and values.
    #[command(flatten)]
    pub sizes: Sizes,
    /// Also fill the server of this command line, with its own memory limit, split at spaces; {port} becomes a free
    /// port
    #[arg(long, value_name = "COMMAND")]
    pub rival: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The results of the fill bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// The engine's name.
    pub engine: String,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// The limit in bytes.
    pub memory_limit: u64,
    /// Bytes used of it at the end.
    pub memory_used: u64,
    /// Items held at the first eviction.
    pub items_before_eviction: u64,
    /// Items held after as many again were stored.
    pub items_held: u64,
    /// Bytes of the limit for each item held.
    pub bytes_per_item: f64,
    /// Bytes of the index for each item held.
    pub index_bytes_per_item: f64,
    /// Items / slots at the end.
    pub index_load: f64,
    /// The least items / slots at which the index began to grow, if it grew.
    pub load_before_growth: Option<f64>,
    /// The server that was filled as well.
    pub rival: Option<FilledServer>,
}

/// Runs the fill bench on an engine that `build` makes.
pub fn run<E: Engine>(
    build: impl FnOnce(Room) -> io::Result<Arc<E>>,
    options: &Options,
) -> Result<Report, Failure> {
    let engine = build(Room {
        memory: options.memory,
        items: None,
    })?;
    options.sizes.check_on(&*engine)?;
    // A piece at a time, so that the bench does not wait for each request of an engine that works by messages.
    let ours = Ours::new(engine.clone(), PIECE as usize);
    let items = options.sizes.items(1)?;
    let mut worker = ours.worker();

    let filled = fill(&*engine, &mut worker, &options.sizes)?;
    let stored = filled.stored * 2;
    options.sizes.items(stored)?;
    set(&mut worker, &items, filled.stored..stored);
    let stats = engine.stats();
    let found = count(&mut worker, &items, stored)?;
    if found != stats.items {
        let words = format!("it says {} items, {found} are found", stats.items);
        return Err(words.into());
    }
    let per_item = |bytes: u64| bytes as f64 / stats.items as f64;
    Ok(Report {
        host: Host::ask(),
        engine: engine.name().to_owned(),
        key_size: items.key_size,
        value_size: items.value_size,
        memory_limit: stats.memory_limit,
        memory_used: stats.memory_used,
        items_before_eviction: filled.held,
        items_held: stats.items,
        bytes_per_item: per_item(stats.memory_limit),
        index_bytes_per_item: per_item(stats.index_bytes),
        index_load: stats.items as f64 / stats.index_slots as f64,
        load_before_growth: filled.load_before_growth,
        rival: match &options.rival {
            Some(command) => Some(fill_server::run(command, &options.sizes)?),
            None => None,
        },
    })
}

/// The state at the first eviction.
struct Filled {
    stored: u64,
    held: u64,
    load_before_growth: Option<f64>,
}

fn fill<E: Engine, W: Worker>(
    engine: &E,
    worker: &mut W,
    sizes: &Sizes,
) -> Result<Filled, Failure> {
    let mut load_before_growth: Option<f64> = None;
    let mut before = engine.stats();
    let mut stored = 0;
    loop {
        // The number of items is not known beforehand: keys that are too short for it are found on the way.
        let items = sizes.items(stored + PIECE)?;
        set(worker, &items, stored..stored + PIECE);
        stored += PIECE;
        let after = engine.stats();
        let grows = after.index_slots > before.index_slots
            || (after.index_growing && !before.index_growing);
        if grows && !before.index_growing && before.index_slots > 0 {
            let load = before.items as f64 / before.index_slots as f64;
            load_before_growth = Some(load_before_growth.map_or(load, |least| least.min(load)));
        }
        if after.evictions + after.out_of_memory > 0 {
            return Ok(Filled {
                stored,
                held: before.items,
                load_before_growth,
            });
        }
        if after.items < stored {
            let words = format!("{} of {stored} items are lost", stored - after.items);
            return Err(words.into());
        }
        before = after;
    }
}

/// Stores the items of some numbers.
fn set<W: Worker>(worker: &mut W, items: &Items, numbers: std::ops::Range<u64>) -> Tally {
    let mut tally = Tally::default();
    for from in numbers.clone().step_by(PIECE as usize) {
        let list = Operations::sets(items, from, (from + PIECE).min(numbers.end));
        tally.add(&worker.run(&list, 0, list.len()));
    }
    tally
}

/// How many of the first `stored` items the table still has. The engine does no background work meanwhile, which may
/// evict: an engine moves memory from what has not been used for long, and a slow count takes long.
fn count<H: Handle>(worker: &mut OurWorker<H>, items: &Items, stored: u64) -> Result<u64, String> {
    let mut tally = Tally::default();
    for from in (0..stored).step_by(PIECE as usize) {
        let list = Operations::gets(items, from, (from + PIECE).min(stored));
        tally.add(&worker.ask(worker.now(), &list, 0, list.len()));
    }
    match tally.wrong {
        0 => Ok(tally.hits),
        wrong => Err(format!("{wrong} wrong answers")),
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} in {} MiB: {} items before the first eviction, {} after twice as many",
            self.engine,
            self.memory_limit >> 20,
            self.items_before_eviction,
            self.items_held
        )?;
        writeln!(
            out,
            "  {:.1} bytes an item, of which the index {:.2}; index load {:.3}",
            self.bytes_per_item, self.index_bytes_per_item, self.index_load
        )?;
        match self.load_before_growth {
            Some(load) => writeln!(out, "  the index grew at a load of {load:.3} or more")?,
            None => writeln!(out, "  the index did not grow")?,
        }
        match &self.rival {
            Some(rival) => writeln!(out, "{rival}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_check::naive::{self, Naive};

    /// Class of bug: what is counted changes meanwhile, if that takes long.
    #[test]
    fn a_count_evicts_nothing() {
        const ITEMS: u64 = 40_000;
        let engine = Naive::new(naive::Options::default());
        let mut worker = Ours::new(engine.clone(), PIECE as usize).worker();
        let sizes = Sizes {
            key_size: 16,
            value_size: 32,
        };
        let items = sizes.items(ITEMS).unwrap();
        set(&mut worker, &items, 0..ITEMS);
        // There is background work to do: to evict what is over the new limit.
        let stats = engine.stats();
        let half = stats.memory_used as usize / 2;
        engine.set_memory_limit(half).unwrap();
        assert_eq!(count(&mut worker, &items, ITEMS), Ok(ITEMS));
        assert_eq!(engine.stats().items, ITEMS);
        while worker.maintain(worker.now()) {}
        assert!(engine.stats().items < ITEMS);
    }
}
