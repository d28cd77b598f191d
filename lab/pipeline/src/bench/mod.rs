//! `nuthatch-lab flow bench`: tables alone, with the parameters of the paper's micro-benchmark (section 6).
//!
//! Keys are drawn from a working set and looked up in batches; a missed key costs a penalty in cycles and is inserted.
//! After a warm-up, rounds of all designs alternate. A round makes its lookups twice: with misses and inserts, for the
//! hit rate and the packet rate; and lookups alone, for their cycles. A round's value is that of its median block,
//! which the system's interruptions hardly change: a block is much shorter than a time slice. A value identifies its
//! key, so that a tag that two keys share counts as a miss, as it would if the flow's key were compared.

use std::path::PathBuf;

use clap::Args;
use nuthatch_bench::report::Spread;
use nuthatch_flow::Vector;
use serde::Serialize;

use crate::arguments::{self, Skew};
use crate::cycles::{self, Rate};
use crate::design::{self, Design, DesignOptions, OneOrAll};
use crate::figures;
use crate::report::{self, Row};
use crate::rival::RivalOptions;
use nuthatch_program::Failure;
use nuthatch_program::progress::Progress;

mod candidate;
pub(crate) mod keys;

use candidate::Candidate;
use keys::{BLOCK, ROUNDS_MAX};

/// Threads that share a table, at most.
const THREADS_MAX: u64 = 256;

/// The options of the bench.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The designs.
    #[command(flatten)]
    pub designs: DesignOptions,
    /// The tables' sizes, and the keys.
    #[command(flatten)]
    pub working_set: WorkingSet,
    /// How popular the keys are.
    #[command(flatten)]
    pub skew: Skew,
    /// Lookups of the warm-up / keys of the working set
    #[arg(long, value_name = "TIMES", default_value_t = 100.0, value_parser = arguments::not_negative)]
    pub warm_up: f64,
    /// Cost of a miss, in cycles of the time-stamp counter (nanoseconds where there is none)
    #[arg(long, value_name = "CYCLES", default_value_t = 500)]
    pub miss_penalty: u64,
    /// Number of keys in one bulk lookup
    #[arg(long, value_name = "KEYS", default_value_t = 32,
        value_parser = clap::value_parser!(u64).range(1..=BLOCK as u64))]
    pub batch: u64,
    /// Threads that share each table, which then has locks; each makes all lookups of a round [default: one thread that
    /// has the table alone, without locks]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=THREADS_MAX))]
    pub threads: Option<u64>,
    /// Lookups of a round
    #[arg(long, default_value = "1m", value_parser = arguments::positive_count)]
    pub lookups: u64,
    /// Number of rounds; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=ROUNDS_MAX))]
    pub rounds: u64,
    /// Tag comparisons, separated by commas: scalar, and those of sse2, avx2, avx512, neon that this machine has; or
    /// all [default: the best]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = arguments::vector)]
    pub vector: Vec<OneOrAll<Vector>>,
    /// The rivals.
    #[command(flatten)]
    pub rivals: RivalOptions,
    /// Seed of the keys and evictions
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one line of JSON for each design
    #[arg(long)]
    pub json: bool,
    /// Draw the hit rates into a file: dots, or curves over several factors
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// The sizes of the tables, and how many keys are looked up in each.
#[derive(Args, Clone, Debug)]
pub struct WorkingSet {
    /// Entries of a table, separated by commas; k and m are powers of 1024
    #[arg(long, value_delimiter = ',', default_value = "1m", value_parser = arguments::entries)]
    pub entries: Vec<u64>,
    /// Oversubscription factors, separated by commas: keys of the working set / entries
    #[arg(long, value_name = "FACTORS", value_delimiter = ',', default_value = "0.95",
        value_parser = arguments::factor)]
    pub oversubscription: Vec<f64>,
    /// Keys of the working set, instead of a factor
    #[arg(long, value_parser = arguments::count, conflicts_with = "oversubscription")]
    pub keys: Option<u64>,
}

/// The measurements of a design.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// Which slots may hold a key, or which rival it is.
    pub layout: String,
    /// The eviction policy.
    pub eviction: String,
    /// Bits of tag and value.
    pub entry: String,
    /// The comparison.
    pub vector: String,
    /// Threads that look up at the same time.
    pub threads: usize,
    /// Slots.
    pub entries: u64,
    /// Keys of the working set.
    pub keys: u64,
    /// Keys / slots.
    pub oversubscription: f64,
    /// How popular they are.
    pub distribution: String,
    /// Keys that are looked up at a time.
    pub batch: u64,
    /// What a miss costs, in the unit of `cycles_unit`.
    pub miss_penalty: u64,
    /// Hits / lookups, over all rounds; a tag that two keys share is no hit.
    pub hit_rate: f64,
    /// The same round by round, with its spread.
    pub hit_rate_spread: Spread,
    /// The hit rate that the analysis expects, if keys are equally likely.
    pub theory: Option<f64>,
    /// Slots in use / slots, at the end: above 1 where spare slots behind the last bucket are in use, too. Null for a
    /// rival that does not say.
    pub occupancy: Option<f64>,
    /// Writes / lookups, over all rounds: an insert is one, and so is a key that moves to another slot, and a hit where
    /// each is recorded (`lru`, `dc-bubble`).
    pub writes_per_lookup: f64,
    /// Cycles of a lookup in a batch, hit or miss: the median round, of a thread.
    pub cycles_per_lookup: f64,
    /// The same with its spread.
    pub cycles_spread: Spread,
    /// What is counted: `cycles`, or `ns` where there is no time-stamp counter.
    pub cycles_unit: &'static str,
    /// Million lookups a second, with misses, their penalty, and inserts: the median round, of all threads together.
    pub mpps: f64,
    /// The same with its spread.
    pub mpps_spread: Spread,
}

impl Row for Measurement {
    const COLUMNS: &'static [&'static str] = &[
        "layout",
        "eviction",
        "entries",
        "keys",
        "compared by",
        "hit rate",
        "theory",
        "in use",
        "writes a lookup",
        "cycles a lookup",
        "million a second",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.layout.clone(),
            self.eviction.clone(),
            self.entries.to_string(),
            self.keys.to_string(),
            self.vector.clone(),
            format!("{:.4}", self.hit_rate),
            self.theory
                .map_or("-".to_owned(), |rate| format!("{rate:.4}")),
            self.occupancy
                .map_or("-".to_owned(), |share| format!("{share:.4}")),
            format!("{:.4}", self.writes_per_lookup),
            format!("{:.1}", self.cycles_spread),
            format!("{:.2}", self.mpps_spread),
        ]
    }
}

/// Measures, prints and draws.
pub fn run(options: &Options) -> Result<(), Failure> {
    let rows = measure(options)?;
    if let Some(path) = &options.svg {
        report::save(path, figures::hit_rates(&rows, options))?;
    }
    let threads = options
        .threads
        .map_or(String::new(), |threads| format!("{threads} threads, "));
    let title = format!(
        "{threads}{} keys, batches of {}, {} {} a miss, warm-up of {} lookups / key, {} rounds of {} lookups:",
        options.skew.name(),
        options.batch,
        options.miss_penalty,
        cycles::UNIT,
        options.warm_up,
        options.rounds,
        options.lookups
    );
    report::print(&title, &rows, options.json)
}

/// Measures all designs at all sizes and factors.
pub fn measure(options: &Options) -> Result<Vec<Measurement>, Failure> {
    let mut designs = options.designs.designs()?;
    designs.extend(options.rivals.designs());
    if options.threads.is_some() {
        designs.iter().try_for_each(Design::check_shared)?;
    }
    let vectors = match &options.vector[..] {
        [] => vec![Vector::detect()],
        names => design::chosen(names, &Vector::available().collect::<Vec<_>>()),
    };
    let points = sizes(&options.working_set)?;
    let mut rows = Vec::new();
    let bar = Progress::steps(points.len() * designs.len() * vectors.len());
    let rate = Rate::start();
    for (entries, keys) in points {
        let mut candidates = Vec::new();
        for &design in &designs {
            // Rivals have comparisons of their own.
            let of_ours = matches!(design, Design::Table { .. });
            let count = if of_ours { vectors.len() } else { 1 };
            for &vector in &vectors[..count] {
                bar.step(format!("warming up {}", design.name()));
                candidates.push(Candidate::warmed_up(
                    design,
                    vector,
                    (entries, keys),
                    options,
                )?);
                bar.add(1);
            }
        }
        for round in 0..options.rounds {
            for candidate in &mut candidates {
                bar.step(format!("round {}", round + 1));
                candidate.round(round, options);
            }
        }
        rows.extend(
            candidates
                .iter()
                .map(|candidate| candidate.measurement(&rate, options)),
        );
    }
    Ok(rows)
}

/// Entries and keys of each point.
pub(crate) fn sizes(working_set: &WorkingSet) -> Result<Vec<(u64, u64)>, Failure> {
    let mut points = Vec::new();
    for &requested in &working_set.entries {
        design::note_rounding(requested);
        // As most designs round it. A table of larger buckets may be larger when it is tiny.
        let entries = Design::Map.entries(requested);
        match working_set.keys {
            Some(0) => {
                return Err(Failure::Usage(
                    "--keys 0: there is nothing to look up".into(),
                ));
            }
            Some(keys) => points.push((entries, keys)),
            None => points.extend(working_set.oversubscription.iter().map(|factor| {
                let keys = (entries as f64 * factor).round().max(1.0);
                (entries, keys as u64)
            })),
        }
    }
    Ok(points)
}
