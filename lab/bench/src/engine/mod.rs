//! The engine bench: engines in process, beside the memory's limit and other crates.
//!
//! Rounds alternate: the raw limit, our engine, each rival, and again, so that all sides run on the machine in the same
//! state. Keys are hashed, values copied out and checked inside the measured time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use nuthatch_engine::Engine;
use nuthatch_workload::KeyMaker;
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::limit::{Limits, ReadBuffer};
use crate::report::Spread;
use crate::{os, working_set};
use nuthatch_program::Failure;

mod bare;
mod hold;
pub mod insert;
mod library;
mod lines;
mod lists;
mod operations;
mod ours;
mod report;
pub(crate) mod rivals;
mod side;
mod subject;

pub use lines::Lines;
pub use operations::{Distribution, Items, Load, Mixed, Operations};
pub use ours::{OurWorker, Ours};
pub use report::{LimitReport, Report, RivalReport};
pub use subject::{Subject, Tally, Worker, on_cores, preload};

pub(crate) use operations::SEED;
pub(crate) use subject::round;

use bare::Bare;
use library::Library;
use lists::{lists, room, warming};
use ours::{Any, Form, Known, Storing};
use rivals::{
    GivenBytes, KeyBytes, KeyForm, Moka, OneByOne, Papaya, QuickCache, ShardedLru, ShownBytes,
    ValueForm,
};
use side::{Side, as_it_is, filled};

/// The library's name among the rivals.
pub const LIBRARY: &str = "nuthatch::Cache";

/// Operations at a time: about as many as overlap all memory misses of an engine.
const BATCH: usize = 32;

/// The most: room for a batch is made before it runs.
pub(crate) const BATCH_MAX: usize = 1 << 20;

/// The fewest and the most operations of a thread's list before it repeats. With large values there are fewer.
const OPERATIONS: (u64, u64) = (1 << 16, 1 << 23);

/// A list of gets may have as many times more operations than one with sets.
const GETS_FOR_A_SET: u64 = 16;

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
        Ok(Items::alike(count, self.key_size, self.value_size))
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
        memory_for(&Items::alike(count, self.key_size, self.value_size))
    }
}

/// Memory that is enough for all items, whatever the class they fall into.
fn memory_for(items: &Items) -> usize {
    let item = (items.key_size + items.value_size + 40) * 5 / 4 + 20;
    (items.count as usize)
        .saturating_mul(item)
        .saturating_add(64 << 20)
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
    /// The share of gets that ask for keys that are not stored
    #[arg(long, value_name = "R", default_value_t = 0.0)]
    pub miss_ratio: f64,
    /// Sets are of new keys, each stored once. A round ends with its time, or with the list of its operations
    #[arg(long, conflicts_with_all = ["rivals", "grow", "working_set", "hold", "miss_ratio"])]
    pub new_keys: bool,
    /// A get that finds nothing is followed by a set of its key, and both are one operation: with a --memory that does not
    /// hold all items
    #[arg(long, conflicts_with_all = ["rivals", "grow", "working_set", "new_keys", "miss_ratio"])]
    pub store_misses: bool,
    /// Distribution of the requested keys
    #[arg(long, value_enum, default_value_t = Distribution::Uniform)]
    pub dist: Distribution,
    /// Items of different sizes instead of --key-size and --value-size
    #[arg(long, value_enum, conflicts_with_all = ["grow", "working_set"])]
    pub mixed: Option<Mixed>,
    /// Seconds for each of the limit, the engine and the rivals, over all rounds
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    pub seconds: f64,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Hold one value of so many bytes while the engine's rounds run, and measure others in which nothing is held
    #[arg(long, value_name = "BYTES")]
    pub hold: Option<usize>,
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
        if self.batch() > BATCH_MAX {
            return Err(too_large(self.batch()));
        }
        let shares = [self.get_ratio, self.miss_ratio];
        if !shares.iter().all(|share| (0.0..=1.0).contains(share)) {
            return Err(Failure::usage("--get-ratio, --miss-ratio: 0 to 1"));
        }
        if !(0.0..=1e6).contains(&self.seconds) {
            return Err(Failure::usage("--seconds: 0 to a million"));
        }
        let arrays = self.rivals == Some(RivalForm::Arrays);
        let is_known = (self.sizes.key_size, self.sizes.value_size) == (KEY_SIZE, VALUE_SIZE);
        if arrays && (!is_known || self.mixed.is_some()) {
            return Err(Failure::usage(format!(
                "--rivals arrays: only with keys of {KEY_SIZE} and values of {VALUE_SIZE} bytes"
            )));
        }
        let items = self.sizes.items(self.items)?;
        if self.miss_ratio > 0.0 {
            // Keys that are not stored are as many, and no longer.
            self.sizes.items(self.items.saturating_mul(2))?;
        }
        if self.new_keys {
            let new = self.rounds as u64 * self.threads as u64 * OPERATIONS.1;
            self.sizes.items(self.items.saturating_add(new))?;
        }
        Ok(match self.mixed {
            None => items,
            Some(mixed) => Items::mixed(self.items, mixed),
        })
    }

    /// What is requested.
    fn load(&self) -> Load {
        Load {
            miss_ratio: self.miss_ratio,
            ..Load::new(self.get_ratio, self.dist)
        }
    }

    /// True if one thread alone is measured too. New keys and stored misses would change what the others find.
    fn has_alone(&self) -> bool {
        self.threads > 1 && !self.new_keys && !self.store_misses
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

/// The refusal of a batch.
pub(crate) fn too_large(batch: usize) -> Failure {
    Failure::usage(format!("--batch {batch}: at most {BATCH_MAX}"))
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
        lists: warming(options, &items),
    };
    match options.rivals {
        None if options.store_misses => Ok(bench.run(bench.ours::<Storing>()?, Vec::new())?),
        None => Ok(bench.run(bench.ours::<Any>()?, Vec::new())?),
        Some(RivalForm::Bytes) => {
            // Ours first: each engine has memory of its own, the rivals share a heap.
            let ours = bench.ours::<Any>()?;
            let mut rivals = bench.rivals::<KeyBytes, GivenBytes, ShownBytes>()?;
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
    /// Operations, a list for each thread; with new keys those of the warm-up.
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

    /// The limit, over as much memory as the engine uses. `None` if popular keys are in the caches: then no number of
    /// lines limits the operations.
    fn limit(&self, lines: &Lines) -> Result<Option<RawLimit>, String> {
        if self.options.dist != Distribution::Uniform {
            return Ok(None);
        }
        let memory = self.engine.stats().memory_used as usize;
        Ok(Some(RawLimit {
            memory: ReadBuffer::new(memory)?,
            limits: Limits::new(lines.far()),
        }))
    }

    /// One more side of our engine, which is filled.
    fn again(&self) -> Box<dyn Side> {
        as_it_is(Ours::<E>::new(self.engine.clone(), self.options.batch()))
    }

    /// The rounds, and what they found.
    fn run<'a>(&self, ours: Box<dyn Side + 'a>, rivals: Vec<Rival<'a>>) -> Result<Report, String> {
        let options = self.options;
        let misses = options.miss_ratio * options.get_ratio;
        let lines = Lines::new(&*self.engine, &self.items, misses);
        let mut sides = Sides {
            limit: self.limit(&lines)?,
            ours,
            free: options.hold.map(|_| self.again()),
            alone: options.has_alone().then(|| self.again()),
            rivals,
        };
        for number in 0..options.rounds {
            self.round(&mut sides, number)?;
        }
        Ok(self.report(sides, lines))
    }

    /// A round of every side.
    fn round(&self, sides: &mut Sides<'_>, number: usize) -> Result<(), String> {
        let options = self.options;
        let new = options
            .new_keys
            .then(|| lists(options, &self.items, number));
        let lists = new.as_ref().unwrap_or(&self.lists);
        let (batch, time) = (options.batch(), options.round_time());
        if let Some(limit) = &mut sides.limit {
            limit.round(number, options.threads, time)?;
        }
        if let Some(free) = &mut sides.free {
            free.round(lists, batch, number, time)?;
        }
        let held = options.hold.map(|bytes| hold::value(&self.engine, bytes));
        let held = held.transpose()?;
        sides.ours.round(lists, batch, number, time)?;
        drop(held);
        if let Some(alone) = &mut sides.alone {
            alone.round(&lists[..1], batch, number, time)?;
        }
        for rival in &mut sides.rivals {
            rival.side.round(lists, batch, number, time)?;
        }
        Ok(())
    }

    fn report(&self, sides: Sides<'_>, lines: Lines) -> Report {
        let options = self.options;
        let ours = sides.ours.mops();
        let mops_spread = Spread::of(ours.iter().copied());
        let by = |side: Box<dyn Side + '_>| Spread::of_ratios(ours, side.mops());
        let rivals = sides.rivals.into_iter().map(|rival| {
            let spread = Spread::of(rival.side.mops().iter().copied());
            let report = RivalReport {
                version: rival.version.to_owned(),
                mops: spread.median,
                mops_spread: spread,
                hit_ratio: rival.side.tally().hit_ratio(),
                ratio: Spread::of_ratios(ours, rival.side.mops()),
            };
            (rival.name, report)
        });
        Report {
            host: Host::ask(),
            engine: self.engine.name().to_owned(),
            items: self.items.count,
            key_size: self.items.key_size,
            value_size: self.items.value_size,
            mixed: self.items.mixed,
            threads: options.threads,
            batch: options.batch(),
            get_ratio: options.get_ratio,
            miss_ratio: options.miss_ratio,
            new_keys: options.new_keys,
            store_misses: options.store_misses,
            dist: options.dist,
            memory_used: self.engine.stats().memory_used,
            resident: os::resident(),
            resident_in_huge_pages: os::in_huge_pages(),
            mops: mops_spread.median,
            mops_spread,
            hit_ratio: sides.ours.tally().hit_ratio(),
            limit: sides
                .limit
                .map(|limit| LimitReport::new(lines, &limit.limits, ours)),
            hold: options.hold,
            ratio_nothing_held: sides.free.map(by),
            ratio_one_thread: sides.alone.map(by),
            form: options.rivals,
            rivals: rivals.collect(),
        }
    }
}

/// All that takes turns.
struct Sides<'a> {
    /// Where there is one.
    limit: Option<RawLimit>,
    ours: Box<dyn Side + 'a>,
    /// Ours while nothing is held, if something is held else.
    free: Option<Box<dyn Side + 'a>>,
    /// Ours by one thread, if there are several.
    alone: Option<Box<dyn Side + 'a>>,
    rivals: Vec<Rival<'a>>,
}

/// The raw limit, and the memory over which it is measured.
struct RawLimit {
    memory: ReadBuffer,
    limits: Limits,
}

impl RawLimit {
    fn round(&mut self, number: usize, threads: usize, time: Duration) -> Result<(), String> {
        let seed = (number * threads) as u64;
        let memory = &self.memory;
        self.limits.round(|way, share| {
            let each = on_cores(threads, |thread| {
                move || memory.read(way, seed + thread as u64, time.mul_f64(share))
            })?;
            Ok(each.iter().sum())
        })
    }
}
