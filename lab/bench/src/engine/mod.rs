//! The engine bench: engines in process, beside the memory's limit and other crates.
//!
//! Rounds alternate: the raw limit, our engine, each rival, and again, so that all sides run on the machine in the same
//! state. Keys are hashed, values copied out and checked inside the measured time.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use nuthatch_engine::Engine;
use nuthatch_workload::KeyMaker;
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::limit::{Limits, ReadBuffer, WayReport};
use crate::report::Spread;
use crate::{os, working_set};
use nuthatch_program::Failure;

mod bare;
mod library;
mod operations;
mod ours;
mod rivals;
mod side;
mod subject;

pub use operations::Distribution;

pub(crate) use operations::{Items, Operations, SEED};
pub(crate) use ours::{OurWorker, Ours};
pub(crate) use subject::{Subject, Tally, Worker, on_cores, preload, round};

use bare::Bare;
use library::Library;
use ours::{Any, Form, Known};
use rivals::{KeyForm, Moka, OneByOne, Papaya, QuickCache, ShardedLru, ValueForm};
use side::{Side, as_it_is, filled};

/// The library's name among the rivals.
pub(crate) const LIBRARY: &str = "nuthatch::Cache";

/// Operations at a time: about as many as overlap all memory misses of an engine.
const BATCH: usize = 32;

/// The fewest and the most operations of a thread's list before it repeats. With large values there are fewer.
const OPERATIONS: (u64, u64) = (1 << 16, 1 << 23);

/// The sizes of [`Sizes`] by default, and the only ones that arrays are compiled for.
const KEY_SIZE: usize = 16;
const VALUE_SIZE: usize = 32;

/// The longest value that any server or engine takes, whatever its settings.
const VALUE_SIZE_MAX: usize = 1 << 30;

/// Sizes that every engine bench takes.
#[derive(Args, Clone, Debug)]
pub struct Sizes {
    /// Bytes of a key
    #[arg(long, value_name = "BYTES", default_value_t = KEY_SIZE)]
    pub key_size: usize,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = VALUE_SIZE)]
    pub value_size: usize,
}

impl Sizes {
    /// `count` items of these sizes; an error if they are impossible.
    pub fn items(&self, count: u64) -> Result<Items, Failure> {
        if !(1..=250).contains(&self.key_size) || self.value_size == 0 || count == 0 {
            let words = "a key has 1 to 250 bytes, a value at least 1; at least 1 item";
            return Err(Failure::usage(words));
        }
        if self.value_size > VALUE_SIZE_MAX {
            let size = self.value_size;
            let words = format!("--value-size {size}: at most {VALUE_SIZE_MAX}");
            return Err(Failure::Usage(words));
        }
        if KeyMaker::new(self.key_size).capacity() < count {
            let size = self.key_size;
            let words = format!("--key-size {size}: too short to tell {count} items apart");
            return Err(Failure::Usage(words));
        }
        Ok(Items {
            count,
            key_size: self.key_size,
            value_size: self.value_size,
        })
    }

    /// Checks that the engine takes items of these sizes. Its largest item follows from its memory.
    pub fn check_on<E: Engine>(&self, engine: &E) -> Result<(), Failure> {
        let (size, most) = (self.value_size, engine.item_size_max());
        let item = engine.footprint(self.key_size, size).size;
        if item > most {
            return Err(Failure::usage(format!(
                "--value-size {size}: such an item takes {item} bytes, and the largest of {} in this memory {most}",
                engine.name()
            )));
        }
        Ok(())
    }

    /// Memory that is enough for `count` items of these sizes, whatever the class they fall into.
    pub fn memory_for(&self, count: u64) -> usize {
        let item = (self.key_size + self.value_size + 40) * 5 / 4 + 20;
        (count as usize)
            .saturating_mul(item)
            .saturating_add(64 << 20)
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
    /// Operations in one batch to the engine [default: 32; with --working-set: 1000]
    #[arg(long, value_name = "B")]
    pub batch: Option<usize>,
    /// The share of gets; the rest are sets of existing keys
    #[arg(long, value_name = "R", default_value_t = 1.0)]
    pub get_ratio: f64,
    /// Distribution of the requested keys
    #[arg(long, value_enum, default_value_t = Distribution::Uniform)]
    pub dist: Distribution,
    /// Seconds for each of the limit, the engine and the rivals, over all rounds
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    pub seconds: f64,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Memory for the engine, as 64M or 1G [default: enough for all items]
    #[arg(long, value_name = "BYTES", value_parser = nuthatch_program::size::parse)]
    pub memory: Option<usize>,
    /// Instead, measure the longest request while the number of items grows from FROM to TO, as in 1000000:16000000
    #[arg(long, value_name = "FROM:TO", conflicts_with_all = ["rivals", "items"])]
    pub grow: Option<crate::growth::Growth>,
    /// The CPHash paper's parameters.
    #[command(flatten)]
    pub paper: working_set::Parameters,
    /// Also measure quick_cache, papaya, moka and lru in shards, with keys and values in this form; for a fair
    /// comparison, our engine gets requests whose sizes are known as well
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        num_args = 0..=1,
        default_missing_value = "bytes"
    )]
    pub rivals: Option<RivalForm>,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

impl Options {
    fn check(&self) -> Result<Items, Failure> {
        if self.threads == 0 || self.batch() == 0 || self.rounds == 0 {
            return Err(Failure::usage("--threads, --batch, --rounds: at least 1"));
        }
        if !(0.0..=1.0).contains(&self.get_ratio) {
            return Err(Failure::usage("--get-ratio: 0 to 1"));
        }
        if !(0.0..=1e6).contains(&self.seconds) {
            return Err(Failure::usage("--seconds: 0 to a million"));
        }
        let arrays = self.rivals == Some(RivalForm::Arrays);
        if arrays && (self.sizes.key_size, self.sizes.value_size) != (KEY_SIZE, VALUE_SIZE) {
            return Err(Failure::usage(format!(
                "--rivals arrays: only with keys of {KEY_SIZE} and values of {VALUE_SIZE} bytes"
            )));
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

/// How rivals hold keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RivalForm {
    /// Byte strings of any size, as a cache for any keys needs them. nuthatch's library is measured too
    Bytes,
    /// Arrays of the default sizes, which the compiler knows. A bare table of the cuckoo engine's layout, without the
    /// other work of an engine, is measured too
    Arrays,
}

/// What an engine is built for.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The memory limit, in bytes.
    pub memory: usize,
    /// Items that are going to be stored, if the index may be sized for them at once.
    pub items: Option<usize>,
}

/// The results of the engine bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// The engine's name.
    pub engine: String,
    /// Items stored.
    pub items: u64,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// Threads.
    pub threads: usize,
    /// Operations at a time.
    pub batch: usize,
    /// The share of gets.
    pub get_ratio: f64,
    /// Bytes that the engine used, and over which the limit was measured.
    pub memory_used: u64,
    /// Bytes that the whole process had when all sides were filled.
    pub resident: usize,
    /// Bytes of it in huge pages. The engines request huge pages; the heap, where rivals are, does so only if it is
    /// configured to.
    pub resident_in_huge_pages: usize,
    /// Million operations a second of the engine.
    pub mops: f64,
    /// The same with its spread.
    pub mops_spread: Spread,
    /// Hits among gets.
    pub hit_ratio: f64,
    /// The raw limit: million lines a second, in the best way, divided by the lines of an operation.
    pub limit_mops: f64,
    /// The same with its spread.
    pub limit_spread: Spread,
    /// Engine / limit, round by round.
    pub ratio_limit: Spread,
    /// The ways in which the limit was measured, the best first.
    pub limit_ways: Vec<WayReport>,
    /// All threads / one thread alone, round by round, if there are several.
    pub ratio_one_thread: Option<Spread>,
    /// How rivals hold keys and values, if they were measured.
    pub form: Option<RivalForm>,
    /// The rivals, by name.
    pub rivals: BTreeMap<String, RivalReport>,
}

/// The results of a rival.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RivalReport {
    /// Its version.
    pub version: String,
    /// Million operations a second.
    pub mops: f64,
    /// The same with its spread.
    pub mops_spread: Spread,
    /// Hits among gets.
    pub hit_ratio: f64,
    /// Engine / rival, round by round.
    pub ratio: Spread,
}

/// Runs the engine bench on an engine that `build` makes.
pub fn run<E: Engine>(
    build: impl FnOnce(Room) -> io::Result<Arc<E>>,
    options: &Options,
) -> Result<Report, Failure> {
    let items = options.check()?;
    let engine = build(room(options, &items))?;
    options.sizes.check_on(&*engine)?;
    let bench = Bench {
        engine,
        options,
        items,
        lists: lists(options, &items),
    };
    match options.rivals {
        None => Ok(bench.run(bench.ours::<Any>()?, Vec::new())?),
        Some(RivalForm::Bytes) => {
            // Ours first: each engine has memory of its own, the rivals share a heap.
            let ours = bench.ours::<Any>()?;
            let mut rivals = bench.rivals::<Box<[u8]>, Arc<[u8]>, Box<[u8]>>()?;
            let library = Library::new(room(options, &items), options.batch())?;
            let version = env!("CARGO_PKG_VERSION");
            rivals.push(bench.rival(LIBRARY, version, library)?);
            Ok(bench.run(ours, rivals)?)
        }
        Some(RivalForm::Arrays) => {
            let ours = bench.ours::<Known<KEY_SIZE, VALUE_SIZE>>()?;
            type Value = [u8; VALUE_SIZE];
            let mut rivals = bench.rivals::<[u8; KEY_SIZE], Value, Value>()?;
            let bare = Bare::<KEY_SIZE, VALUE_SIZE>::new(items.count as usize)?;
            rivals.push(bench.rival("bare table", "", bare)?);
            Ok(bench.run(ours, rivals)?)
        }
    }
}

/// What all sides of a run have in common.
struct Bench<'o, E> {
    engine: Arc<E>,
    options: &'o Options,
    items: Items,
    /// Operations, a list for each thread.
    lists: Vec<Operations>,
}

/// A side that ours is compared with.
struct Rival<'a> {
    name: String,
    version: &'static str,
    side: Box<dyn Side + 'a>,
}

impl<E: Engine> Bench<'_, E> {
    /// Our side, for which the compiler knows as much of the sizes as the form says.
    fn ours<F: Form>(&self) -> Result<Box<dyn Side>, String> {
        let ours = Ours::<E, F>::of_form(self.engine.clone(), self.options.batch());
        filled(ours, &self.items, &self.lists)
    }

    fn rival<'a, S: Subject + 'a>(
        &self,
        name: &str,
        version: &'static str,
        subject: S,
    ) -> Result<Rival<'a>, String> {
        Ok(Rival {
            name: name.to_owned(),
            version,
            side: filled(subject, &self.items, &self.lists)?,
        })
    }

    /// All tables from crates.io, with keys and values in one form: `G` where a table gives values out, `S` where it
    /// shows them.
    fn rivals<K: KeyForm, G: ValueForm + Clone, S: ValueForm>(
        &self,
    ) -> Result<Vec<Rival<'static>>, String> {
        let count = self.items.count as usize;
        let mut rivals = Vec::new();
        let quick_cache = OneByOne(QuickCache::<K, G>::new(count));
        rivals.push(self.rival("quick_cache", env!("VERSION_OF_quick_cache"), quick_cache)?);

        let version = env!("VERSION_OF_papaya");
        let papaya = Papaya::<K, S>::new(count, self.options.batch());
        let held = papaya.held();
        rivals.push(self.rival("papaya", version, papaya)?);
        rivals.push(Rival {
            name: "papaya, held".to_owned(),
            version,
            side: as_it_is(held),
        });

        let moka = OneByOne(Moka::<K, G>::new(count));
        rivals.push(self.rival("moka", env!("VERSION_OF_moka"), moka)?);
        let lru = OneByOne(ShardedLru::<K, S>::new(count));
        rivals.push(self.rival("lru in shards", env!("VERSION_OF_lru"), lru)?);
        Ok(rivals)
    }

    /// The rounds.
    fn run(
        &self,
        mut ours: Box<dyn Side + '_>,
        mut rivals: Vec<Rival<'_>>,
    ) -> Result<Report, String> {
        let (options, lists) = (self.options, &self.lists[..]);
        let (batch, time) = (options.batch(), options.round_time());
        let memory_used = self.engine.stats().memory_used;
        let memory = ReadBuffer::new(memory_used as usize)?;
        // If there are several threads, also measure one alone.
        let mut alone =
            (options.threads > 1).then(|| as_it_is(Ours::<E>::new(self.engine.clone(), batch)));

        let mut limits = Limits::new();
        for number in 0..options.rounds {
            let seed = (number * options.threads) as u64;
            limits.round(|way, share| {
                let each = on_cores(options.threads, |thread| {
                    let memory = &memory;
                    move || memory.read(way, seed + thread as u64, time.mul_f64(share))
                })?;
                Ok(each.iter().sum())
            })?;
            ours.round(lists, batch, number, time)?;
            if let Some(alone) = &mut alone {
                alone.round(&lists[..1], batch, number, time)?;
            }
            for rival in &mut rivals {
                rival.side.round(lists, batch, number, time)?;
            }
        }

        let mops_spread = Spread::of(ours.mops().iter().copied());
        let limit_spread = Spread::of(limits.best().iter().copied());
        let rivals = rivals.into_iter().map(|rival| {
            let spread = Spread::of(rival.side.mops().iter().copied());
            let report = RivalReport {
                version: rival.version.to_owned(),
                mops: spread.median,
                mops_spread: spread,
                hit_ratio: rival.side.tally().hit_ratio(),
                ratio: Spread::of_ratios(ours.mops(), rival.side.mops()),
            };
            (rival.name, report)
        });
        Ok(Report {
            host: Host::ask(),
            engine: self.engine.name().to_owned(),
            items: self.items.count,
            key_size: self.items.key_size,
            value_size: self.items.value_size,
            threads: options.threads,
            batch,
            get_ratio: options.get_ratio,
            memory_used,
            resident: os::resident(),
            resident_in_huge_pages: os::in_huge_pages(),
            mops: mops_spread.median,
            mops_spread,
            hit_ratio: ours.tally().hit_ratio(),
            limit_mops: limit_spread.median,
            limit_spread,
            ratio_limit: Spread::of_ratios(ours.mops(), limits.best()),
            limit_ways: limits.ways(),
            ratio_one_thread: alone.map(|alone| Spread::of_ratios(ours.mops(), alone.mops())),
            form: options.rivals,
            rivals: rivals.collect(),
        })
    }
}

fn room(options: &Options, items: &Items) -> Room {
    Room {
        memory: options
            .memory
            .unwrap_or_else(|| options.sizes.memory_for(items.count)),
        items: Some(items.count as usize),
    }
}

fn lists(options: &Options, items: &Items) -> Vec<Operations> {
    let count = items.at_most(items.count.clamp(OPERATIONS.0, OPERATIONS.1)) as usize;
    (0..options.threads)
        .map(|thread| Operations::random(items, count, options.get_ratio, options.dist, thread))
        .collect()
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.host)?;
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
        if let Some(ratio) = &self.ratio_one_thread {
            writeln!(
                out,
                "  {:<22} all threads / one: {ratio:.2}",
                "one thread alone"
            )?;
        }
        write!(
            out,
            "  {:<22} {:.2} Mop/s; engine / limit: {:.2}",
            "limit", self.limit_spread, self.ratio_limit
        )?;
        match self.limit_ways.first() {
            Some(best) => writeln!(out, "; {best}")?,
            None => writeln!(out)?,
        }
        if let Some(form) = self.form {
            writeln!(
                out,
                "rivals of {form}; {} of {} MiB of the process in huge pages",
                self.resident_in_huge_pages >> 20,
                self.resident >> 20
            )?;
        }
        for (name, rival) in &self.rivals {
            let name = format!("{name} {}", rival.version);
            writeln!(
                out,
                "  {name:<22} {:.2} Mop/s, hit ratio {:.4}; engine / rival: {:.2}",
                rival.mops_spread, rival.hit_ratio, rival.ratio
            )?;
        }
        Ok(())
    }
}

impl Display for RivalForm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Bytes => "byte strings",
            Self::Arrays => "arrays",
        })
    }
}
