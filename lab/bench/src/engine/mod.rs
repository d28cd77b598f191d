//! Engines in process: how near they come to the memory's limit, and how far rivals stay behind.
//!
//! Rounds alternate: the raw limit, our engine, each rival, and again, so that all of them meet the
//! same machine. Keys are hashed, values copied out and checked inside the measured time.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use nuthatch::Engine;
use nuthatch_workload::KeyMaker;
use serde::Serialize;

use crate::limit::{LINES_PER_OPERATION, Memory};
use crate::report::Spread;
use crate::working_set;

mod bare;
mod operations;
mod ours;
mod rivals;
mod subject;

pub use operations::Distribution;

pub(crate) use operations::{Items, Operations, SEED};
pub(crate) use ours::{OurWorker, Ours};
pub(crate) use subject::{Subject, Tally, Worker, on_cores, preload, round};

use bare::Bare;
use rivals::{Bytes, Papaya, QuickCache};

/// Operations at a time: about as many as overlap all memory misses of an engine.
const BATCH: usize = 32;

/// The least and the most operations that a thread has before it begins again.
const OPERATIONS: (u64, u64) = (1 << 16, 1 << 23);

/// Sizes that every engine bench takes.
#[derive(Args, Clone, Debug)]
pub struct Sizes {
    /// Bytes of a key
    #[arg(long, value_name = "BYTES", default_value_t = 16)]
    pub key_size: usize,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 32)]
    pub value_size: usize,
}

impl Sizes {
    /// `count` items of these sizes, if they can be.
    pub fn items(&self, count: u64) -> Result<Items, String> {
        if !(1..=250).contains(&self.key_size) || self.value_size == 0 || count == 0 {
            return Err("a key has 1 to 250 bytes, a value at least 1; at least 1 item".to_owned());
        }
        if KeyMaker::new(self.key_size).capacity() < count {
            let size = self.key_size;
            return Err(format!(
                "--key-size {size}: too short to tell {count} items apart"
            ));
        }
        Ok(Items {
            count,
            key_size: self.key_size,
            value_size: self.value_size,
        })
    }

    /// Memory that surely holds `count` items of these sizes, whatever the class they fall into.
    pub fn memory_for(&self, count: u64) -> usize {
        let item = (self.key_size + self.value_size + 40) * 5 / 4 + 20;
        count as usize * item + (64 << 20)
    }
}

/// Options of the engine bench.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Items stored before the clock starts
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub items: u64,
    /// Sizes of keys and values.
    #[command(flatten)]
    pub sizes: Sizes,
    /// Threads, each pinned to a core
    #[arg(long, value_name = "T", default_value_t = 1)]
    pub threads: usize,
    /// Operations given to the engine at a time [default: 32; with --working-set: 1000]
    #[arg(long, value_name = "B")]
    pub batch: Option<usize>,
    /// The share of gets; the rest are sets of existing keys
    #[arg(long, value_name = "R", default_value_t = 1.0)]
    pub get_ratio: f64,
    /// Which keys are asked for
    #[arg(long, value_enum, default_value_t = Distribution::Uniform)]
    pub dist: Distribution,
    /// Seconds for each of limit, engine and rivals, over all rounds
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    pub seconds: f64,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Memory for the engine, as 64M or 1G [default: enough for all items]
    #[arg(long, value_name = "BYTES", value_parser = crate::size::parse)]
    pub memory: Option<usize>,
    /// Measure the longest request while so many items become so many, instead: 1000000:16000000
    #[arg(long, value_name = "FROM:TO", conflicts_with_all = ["rivals", "items"])]
    pub grow: Option<crate::growth::Growth>,
    /// The CPHash paper's parameters.
    #[command(flatten)]
    pub paper: working_set::Parameters,
    /// Also measure quick_cache and papaya, of arrays (default sizes only) and of boxed bytes, and a bare
    /// table of the cuckoo engine's layout without anything that an engine must do (default sizes only).
    /// papaya takes its guard for each batch; "held": for a thousand operations, whatever the batch
    #[arg(long)]
    pub rivals: bool,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

impl Options {
    fn check(&self) -> Result<Items, String> {
        if self.threads == 0 || self.batch() == 0 || self.rounds == 0 {
            return Err("--threads, --batch, --rounds: at least 1".to_owned());
        }
        if !(0.0..=1.0).contains(&self.get_ratio) {
            return Err("--get-ratio: 0 to 1".to_owned());
        }
        if !(0.0..=1e6).contains(&self.seconds) {
            return Err("--seconds: 0 to a million".to_owned());
        }
        self.sizes.items(self.items)
    }

    /// Operations at a time.
    fn batch(&self) -> usize {
        self.batch.unwrap_or(BATCH)
    }

    /// Seconds of a round.
    pub(crate) fn round_time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds / self.rounds as f64)
    }
}

/// What an engine is built for.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The memory limit, in bytes.
    pub memory: usize,
    /// Items that are going to be stored, if the index may be sized for them at once.
    pub items: Option<usize>,
}

/// What the engine bench found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The engine's name.
    pub engine: &'static str,
    /// Items stored.
    pub items: u64,
    /// Threads.
    pub threads: usize,
    /// Operations at a time.
    pub batch: usize,
    /// Bytes that the engine used, and over which the limit was measured.
    pub memory_used: u64,
    /// Million operations a second of the engine.
    pub mops: f64,
    /// The same with its spread.
    pub mops_spread: Spread,
    /// Hits among gets.
    pub hit_ratio: f64,
    /// The raw limit: million lines a second divided by the lines of an operation.
    pub limit_mops: f64,
    /// The same with its spread.
    pub limit_spread: Spread,
    /// Engine by limit, round by round.
    pub ratio_limit: Spread,
    /// The rivals, by name.
    pub rivals: BTreeMap<String, RivalReport>,
}

/// What the engine bench found of a rival.
#[derive(Clone, Debug, Serialize)]
pub struct RivalReport {
    /// Million operations a second.
    pub mops: f64,
    /// The same with its spread.
    pub mops_spread: Spread,
    /// Hits among gets.
    pub hit_ratio: f64,
    /// Engine by rival, round by round.
    pub ratio: Spread,
}

/// Runs the engine bench on an engine that `build` makes.
pub fn run<E: Engine>(
    build: impl FnOnce(Room) -> Result<Arc<E>, String>,
    options: &Options,
) -> Result<Report, String> {
    let items = options.check()?;
    let engine = build(Room {
        memory: options
            .memory
            .unwrap_or_else(|| options.sizes.memory_for(items.count)),
        items: Some(items.count as usize),
    })?;
    let lists = lists(options, &items);
    let ours = Side::preloaded(Ours::new(engine.clone(), options.batch()), &items, &lists)?;
    let mut rivals: Vec<Box<dyn Rival>> = Vec::new();
    if options.rivals {
        if (items.key_size, items.value_size) == (16, 32) {
            add_rivals::<[u8; 16], [u8; 32]>(
                &mut rivals,
                "of arrays",
                &items,
                options.batch(),
                &lists,
            )?;
            let bare = Bare::<16, 32>::new(items.count as usize)?;
            rivals.push(Box::new(Named {
                name: "bare table".to_owned(),
                side: Side::preloaded(bare, &items, &lists)?,
            }));
        }
        add_rivals::<Box<[u8]>, Box<[u8]>>(
            &mut rivals,
            "of bytes",
            &items,
            options.batch(),
            &lists,
        )?;
    }
    run_beside(&engine, ours, rivals, options, &items, &lists)
}

/// One side of the comparison: what its rounds gave.
struct Side<S> {
    subject: S,
    mops: Vec<f64>,
    tally: Tally,
}

impl<S: Subject> Side<S> {
    /// Stores the items, looks that none was refused, and goes through the operations once
    /// unmeasured: what the first get of an item does (marking it as used) is then behind.
    fn preloaded(subject: S, items: &Items, lists: &[Operations]) -> Result<Self, String> {
        preload(&subject, items)?;
        Self::warmed(subject, lists)
    }

    /// As [`Side::preloaded`], of what holds the items already.
    fn warmed(subject: S, lists: &[Operations]) -> Result<Self, String> {
        let mut tally = Tally::default();
        for list in lists {
            tally.add(&subject.worker().run(list, 0, list.len()));
        }
        match tally.wrong {
            0 => Ok(Self {
                subject,
                mops: Vec::new(),
                tally: Tally::default(),
            }),
            wrong => Err(format!("{wrong} wrong answers")),
        }
    }

    fn round(
        &mut self,
        lists: &[Operations],
        batch: usize,
        number: usize,
        time: Duration,
    ) -> Result<(), String> {
        let from = number * lists[0].len() / 7;
        let (mops, tally) = round(&self.subject, lists, batch, from, time)?;
        self.mops.push(mops);
        self.tally.add(&tally);
        if self.tally.wrong > 0 {
            return Err(format!("{} wrong answers", self.tally.wrong));
        }
        Ok(())
    }

    fn as_rival(&self, ours: &[f64]) -> RivalReport {
        let spread = Spread::of(self.mops.iter().copied());
        RivalReport {
            mops: spread.median,
            mops_spread: spread,
            hit_ratio: self.tally.hit_ratio(),
            ratio: Spread::of_ratios(ours, &self.mops),
        }
    }
}

/// A side that ours is compared with.
trait Rival {
    fn name(&self) -> &str;
    fn round(
        &mut self,
        lists: &[Operations],
        batch: usize,
        number: usize,
        time: Duration,
    ) -> Result<(), String>;
    fn report(&self, ours: &[f64]) -> RivalReport;
}

struct Named<S> {
    name: String,
    side: Side<S>,
}

impl<S: Subject> Rival for Named<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn round(
        &mut self,
        lists: &[Operations],
        batch: usize,
        number: usize,
        time: Duration,
    ) -> Result<(), String> {
        self.side.round(lists, batch, number, time)
    }

    fn report(&self, ours: &[f64]) -> RivalReport {
        self.side.as_rival(ours)
    }
}

/// Both rivals, with keys and values of one form.
fn add_rivals<K: Bytes, V: Bytes>(
    rivals: &mut Vec<Box<dyn Rival>>,
    form: &str,
    items: &Items,
    batch: usize,
    lists: &[Operations],
) -> Result<(), String> {
    let count = items.count as usize;
    rivals.push(Box::new(Named {
        name: format!("quick_cache {form}"),
        side: Side::preloaded(QuickCache::<K, V>::new(count), items, lists)?,
    }));
    let papaya = Papaya::<K, V>::new(count, batch);
    let held = papaya.held();
    rivals.push(Box::new(Named {
        name: format!("papaya {form}"),
        side: Side::preloaded(papaya, items, lists)?,
    }));
    rivals.push(Box::new(Named {
        name: format!("papaya {form}, held"),
        side: Side::warmed(held, lists)?,
    }));
    Ok(())
}

fn run_beside<E: Engine>(
    engine: &Arc<E>,
    mut ours: Side<Ours<E>>,
    mut rivals: Vec<Box<dyn Rival>>,
    options: &Options,
    items: &Items,
    lists: &[Operations],
) -> Result<Report, String> {
    let memory_used = engine.stats().memory_used;
    let memory = Memory::new(memory_used as usize)?;

    let time = options.round_time();
    let mut limits = Vec::new();
    for number in 0..options.rounds {
        let seed = (number * options.threads) as u64;
        let lines = on_cores(options.threads, |thread| {
            let memory = &memory;
            move || memory.read(seed + thread as u64, time)
        })?;
        limits.push(lines.iter().sum::<f64>() / LINES_PER_OPERATION);
        ours.round(lists, options.batch(), number, time)?;
        for rival in &mut rivals {
            rival.round(lists, options.batch(), number, time)?;
        }
    }

    let mops_spread = Spread::of(ours.mops.iter().copied());
    let limit_spread = Spread::of(limits.iter().copied());
    let rivals = rivals.iter().map(|rival| {
        let report = rival.report(&ours.mops);
        (rival.name().to_owned(), report)
    });
    Ok(Report {
        engine: engine.name(),
        items: items.count,
        threads: options.threads,
        batch: options.batch(),
        memory_used,
        mops: mops_spread.median,
        mops_spread,
        hit_ratio: ours.tally.hit_ratio(),
        limit_mops: limit_spread.median,
        limit_spread,
        ratio_limit: Spread::of_ratios(&ours.mops, &limits),
        rivals: rivals.collect(),
    })
}

fn lists(options: &Options, items: &Items) -> Vec<Operations> {
    let count = items.count.clamp(OPERATIONS.0, OPERATIONS.1) as usize;
    (0..options.threads)
        .map(|thread| Operations::random(items, count, options.get_ratio, options.dist, thread))
        .collect()
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "engine {}: {} items in {} MiB, {} threads, batches of {}",
            self.engine,
            self.items,
            self.memory_used >> 20,
            self.threads,
            self.batch
        )?;
        writeln!(
            out,
            "  {:<22} {:.2} Mop/s, hit ratio {:.4}",
            self.engine, self.mops_spread, self.hit_ratio
        )?;
        writeln!(
            out,
            "  {:<22} {:.2} Mop/s; engine by limit {:.2}",
            "limit", self.limit_spread, self.ratio_limit
        )?;
        for (name, rival) in &self.rivals {
            writeln!(
                out,
                "  {:<22} {:.2} Mop/s, hit ratio {:.4}; engine by rival {:.2}",
                name, rival.mops_spread, rival.hit_ratio, rival.ratio
            )?;
        }
        Ok(())
    }
}
