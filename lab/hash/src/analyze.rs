//! `nuthatch-lab hash analyze`: which function and which table size suit a file of keys.
//!
//! With a number of buckets the keys are counted as they are read, in constant memory; the costs are
//! measured on a sample of them. Without one (`auto`) the keys are held, equal ones once, and the table
//! gets a bucket for each, rounded up to a power of two.

use std::path::PathBuf;
use std::str::FromStr;

use crate::distribution::avalanche::Avalanche;
use crate::distribution::cuckoo::{self, Shape};
use crate::distribution::{ChiSquared, set_associative};
use crate::functions::{Entry, HashedKey, Registry};
use crate::key::Kind;
use crate::table::Table;
use clap::Args;
use nuthatch_base::spread::{Histogram, Perfect};

use crate::format::Format;
use crate::keys::{AnyKey, Keys, Visit};
use crate::measure::{Cost, Measure, SEARCHED_KEYS};
use crate::rank::rank;
use crate::report;
use crate::source::{Progressed, Source};
use nuthatch_program::progress::Progress;
use nuthatch_program::{Failure, output};

/// Bytes of keys that are held at most.
const HELD_BYTES_MAX: usize = 4 << 30;
/// Bytes of counters of all functions together at most.
const COUNTER_BYTES_MAX: u64 = 4 << 30;
/// The seed of the seeded functions: fixed, so that the same keys give the same report.
pub const SEED: u64 = 0x6e75_7468_6174_6368;

/// The options of the analysis.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The keys: a file, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub keys: PathBuf,
    /// Format of the keys [default: the one that a file of collect names, else lines]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Functions to compare: all, which are those that take such keys, or names separated by commas
    #[arg(long, value_name = "NAMES", default_value = "all")]
    pub functions: String,
    /// Buckets of the table; auto: one for each key, rounded up to a power of two
    #[arg(long, value_name = "N", default_value = "auto")]
    pub buckets: Buckets,
    /// Share of the searches that find their key, from 0 to 1, in the measured time of a search
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    pub hit_ratio: f64,
    /// Print one line of JSON for each function, the best first
    #[arg(long)]
    pub json: bool,
    /// Draw the histograms into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Buckets of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buckets {
    /// One for each key.
    Auto,
    /// This many.
    Count(Table),
}

impl FromStr for Buckets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let count = text
            .parse()
            .map_err(|_| "a number of buckets, or auto".to_owned())?;
        Table::new(count)
            .map(Self::Count)
            .map_err(|error| error.to_string())
    }
}

/// A share from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a share from 0 to 1".to_owned()),
    }
}

/// The results for one function on these keys.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// Its name.
    pub name: &'static str,
    /// What it computes.
    pub about: &'static str,
    /// True if its seed is secret, so that colliding keys cannot be chosen.
    pub seeded: bool,
    /// Buckets of each size.
    pub histogram: Histogram,
    /// How far that is from chance.
    pub chi_squared: ChiSquared,
    /// Bits of the bucket that flip with a bit of the key.
    pub avalanche: Option<Avalanche>,
    /// Its cost.
    pub cost: Cost,
    /// In our cuckoo table and in MemC3's, for functions of 64 bits.
    pub cuckoo: Option<[cuckoo::Filled; 2]>,
    /// In a set-associative table of 8 ways, likewise.
    pub set_associative: Option<set_associative::Filled>,
}

impl Assessment {
    /// The expected values of a perfect hash.
    pub fn perfect(&self) -> Perfect {
        Perfect::of(self.histogram.items(), self.histogram.buckets())
    }
}

/// The results of an analysis.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// What the keys are made of.
    pub kind: Kind,
    /// Share of the timed searches that find their key.
    pub hit_ratio: f64,
    /// Keys that were equal to others and are counted once; `None` if the analysis did not search for equal keys.
    pub repeated: Option<u64>,
    /// One for each function.
    pub assessments: Vec<Assessment>,
    /// Functions that were left out because the table's size is no power of two.
    pub left_out: Vec<&'static str>,
    /// What the best function would search in tables of other sizes: buckets, hit, miss. Empty where
    /// the keys were streamed.
    pub sizes: Vec<(u64, f64, f64)>,
    /// Warnings about the keys, in words.
    pub warnings: Vec<String>,
}

/// Analyses, and prints the results.
pub fn run(options: &Options) -> Result<(), Failure> {
    let registry = Registry::new(SEED);
    let chosen = choose(&registry, &options.functions)?;
    let mut source = Source::open(&options.keys, options.format)?;
    let kind = source.format()?.kind();
    let (entries, left_out) = fitting(&chosen, kind, options)?;
    let mut analysis = match options.buckets {
        Buckets::Count(table) => streamed(&mut source, kind, (&entries, table), options.hit_ratio)?,
        Buckets::Auto => held(&mut source, kind, &entries, options.hit_ratio)?,
    };
    analysis.left_out = left_out;
    analysis.warnings.extend(source.cut_short());
    let ranking = rank(&analysis.assessments);
    if let Some(path) = &options.svg {
        let svg = report::plot(&analysis, &ranking)?;
        output::save(path, svg.as_bytes())?;
    }
    for warning in &analysis.warnings {
        output::note(warning);
    }
    nuthatch_program::output::print(&match options.json {
        true => report::json(&analysis, &ranking)?,
        false => report::text(&analysis, &ranking),
    })
}

/// The functions of a list of names, or all.
fn choose<'a>(registry: &'a Registry, names: &str) -> Result<Vec<(&'a Entry, Named)>, Failure> {
    if names == "all" {
        return Ok(registry
            .entries()
            .iter()
            .map(|entry| (entry, Named::No))
            .collect());
    }
    let entry = |name: &str| {
        let known = || -> Vec<&str> { registry.entries().iter().map(|entry| entry.name).collect() };
        registry
            .find(name)
            .map(|entry| (entry, Named::Yes))
            .ok_or_else(|| {
                Failure::usage(format!(
                    "--functions: no {name}; there are: {}",
                    known().join(", ")
                ))
            })
    };
    names.split(',').map(|name| entry(name.trim())).collect()
}

/// Whether a function was chosen by name: then leaving it out is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Yes,
    No,
}

/// The functions that take such keys and tables, and the names of those that take the keys but not the table.
fn fitting<'a>(
    chosen: &[(&'a Entry, Named)],
    kind: Kind,
    options: &Options,
) -> Result<(Vec<&'a Entry>, Vec<&'static str>), Failure> {
    let (mut entries, mut left_out) = (Vec::new(), Vec::new());
    for &(entry, named) in chosen {
        let table = match options.buckets {
            Buckets::Auto => Ok(()),
            Buckets::Count(table) => entry.check(table),
        };
        match (entry.takes(kind), table, named) {
            (true, Ok(()), _) => entries.push(entry),
            (true, Err(_), Named::No) => left_out.push(entry.name),
            (false, _, Named::No) => {}
            (false, _, Named::Yes) => {
                let (name, kind) = (entry.name, kind.name());
                return Err(Failure::usage(format!(
                    "--functions: {name} takes no {kind} keys"
                )));
            }
            (true, Err(error), Named::Yes) => {
                return Err(Failure::usage(format!(
                    "--functions {}: {error}",
                    entry.name
                )));
            }
        }
    }
    if let Buckets::Count(table) = options.buckets {
        let bytes = table.buckets() * 4 * entries.len() as u64;
        if bytes > COUNTER_BYTES_MAX {
            return Err(Failure::usage(format!(
                "--buckets: counters of {} functions would take {} GiB, more than {}; name fewer",
                entries.len(),
                bytes >> 30,
                COUNTER_BYTES_MAX >> 30
            )));
        }
    }
    Ok((entries, left_out))
}

/// Reads all keys, keeps each once, then counts.
fn held(
    source: &mut Source,
    kind: Kind,
    entries: &[&Entry],
    hit_ratio: f64,
) -> Result<Analysis, Failure> {
    let progress = Progress::new("keys read", None);
    let mut keys = Keys::empty(kind);
    let mut before = 0;
    while source.next(&mut keys)? == Progressed::More {
        progress.add((keys.len() - before) as u64);
        before = keys.len();
        if keys.bytes() > HELD_BYTES_MAX {
            return Err(Failure::run(format!(
                "more than {} GiB of keys; with --buckets N they need not be held",
                HELD_BYTES_MAX >> 30
            )));
        }
    }
    drop(progress);
    let read = keys.len();
    keys.deduplicate();
    check_worth(read as u64, keys.len() > 1)?;
    let items = keys.len() as u64;
    let table =
        Table::new(items.next_power_of_two()).map_err(|error| Failure::run(error.to_string()))?;
    let mut counters = Counters::new(entries, table);
    keys.visit(Count(&mut counters));
    let mut analysis = counters.analysis(kind, &keys, items, hit_ratio);
    analysis.repeated = Some((read - keys.len()) as u64);
    let best = rank(&analysis.assessments).order[0];
    analysis.sizes = keys.visit(OtherSizes {
        entry: entries[best],
        table,
    });
    Ok(analysis)
}

/// Counts keys as they are read, and keeps a sample.
fn streamed(
    source: &mut Source,
    kind: Kind,
    (entries, table): (&[&Entry], Table),
    hit_ratio: f64,
) -> Result<Analysis, Failure> {
    let progress = Progress::new("keys", None);
    let mut counters = Counters::new(entries, table);
    let mut sample = Keys::empty(kind);
    let mut first = Keys::empty(kind);
    let (mut items, mut differ, mut halvings) = (0, false, 0);
    loop {
        let mut chunk = Keys::empty(kind);
        let progressed = source.next(&mut chunk)?;
        chunk.visit(Count(&mut counters));
        items += chunk.len() as u64;
        progress.add(chunk.len() as u64);
        if !differ {
            first.append(&mut chunk.clone());
            first.deduplicate();
            differ = first.len() > 1;
        }
        for _ in 0..halvings {
            chunk.halve();
        }
        sample.append(&mut chunk);
        // The sample is every 2^n-th key or so: halved when it has become twice as large as needed.
        while sample.len() > 2 * SEARCHED_KEYS {
            sample.halve();
            halvings += 1;
        }
        if progressed == Progressed::End {
            break;
        }
    }
    drop(progress);
    check_worth(items, differ)?;
    let sampled = sample.len();
    sample.deduplicate();
    let mut analysis = counters.analysis(kind, &sample, items, hit_ratio);
    if sample.len() < sampled {
        analysis.warnings.push(format!(
            "{} of {sampled} sampled keys are equal to others; a table would hold them once, but \
             with --buckets equal keys are counted as they come",
            sampled - sample.len()
        ));
    }
    Ok(analysis)
}

/// Errors: the keys allow no conclusion about a function.
fn check_worth(keys: u64, differ: bool) -> Result<(), Failure> {
    match (keys, differ) {
        (0, _) => Err(Failure::run("no keys")),
        (1, _) => Err(Failure::run(
            "one key says nothing about a hash function; two are needed",
        )),
        (_, false) => Err(Failure::run(format!(
            "all {keys} keys are equal; every function puts them into one bucket"
        ))),
        (_, true) => Ok(()),
    }
}

/// Counters of each bucket under each function.
struct Counters<'a> {
    entries: &'a [&'a Entry],
    table: Table,
    counts: Vec<Vec<u32>>,
}

struct Count<'a, 'b>(&'a mut Counters<'b>);

impl Visit for Count<'_, '_> {
    type Output = ();

    fn visit<K: AnyKey>(self, keys: &[K]) {
        let Counters {
            entries,
            table,
            counts,
        } = self.0;
        for (entry, counts) in entries.iter().zip(counts) {
            if let Some(function) = K::function(entry) {
                function.count(keys, *table, counts);
            }
        }
    }
}

impl<'a> Counters<'a> {
    fn new(entries: &'a [&'a Entry], table: Table) -> Self {
        let none = || vec![0; table.buckets() as usize];
        Self {
            entries,
            table,
            counts: entries.iter().map(|_| none()).collect(),
        }
    }

    /// Judges each function by its counts, and by its results on a sample of the keys.
    fn analysis(self, kind: Kind, sample: &Keys, items: u64, hit_ratio: f64) -> Analysis {
        let costs = sample.visit(Measure {
            entries: self.entries,
            table: self.table,
            items,
            hit_ratio,
        });
        let tables = sample.visit(Tables {
            entries: self.entries,
            table: self.table,
        });
        let assessment = |(((entry, counts), cost), in_tables): (_, InTables)| {
            let (entry, counts): (&&Entry, Vec<u32>) = (entry, counts);
            let histogram = Histogram::of_counts(counts.into_iter().map(u64::from));
            Assessment {
                name: entry.name,
                about: entry.about,
                seeded: entry.seeded,
                chi_squared: ChiSquared::of(&histogram),
                histogram,
                avalanche: in_tables.avalanche,
                cost,
                cuckoo: in_tables.cuckoo,
                set_associative: in_tables.set_associative,
            }
        };
        let all = self.entries.iter().zip(self.counts).zip(costs).zip(tables);
        Analysis {
            kind,
            hit_ratio,
            repeated: None,
            assessments: all.map(assessment).collect(),
            left_out: Vec::new(),
            sizes: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// A function's results in tables of other kinds.
struct InTables {
    avalanche: Option<Avalanche>,
    cuckoo: Option<[cuckoo::Filled; 2]>,
    set_associative: Option<set_associative::Filled>,
}

struct Tables<'a> {
    entries: &'a [&'a Entry],
    table: Table,
}

/// Ways of the set-associative table.
const WAYS: u64 = 8;
/// Keys that tables with slots are filled with at most.
const FILLED_KEYS: usize = 1 << 17;

impl Visit for Tables<'_> {
    type Output = Vec<InTables>;

    fn visit<K: AnyKey>(self, keys: &[K]) -> Vec<InTables> {
        let one = |entry: &&Entry| {
            let function = K::function(entry);
            // A sample spread over all keys, which may be sorted.
            let some = keys.iter().step_by(keys.len().div_ceil(FILLED_KEYS));
            let hashes: Option<Vec<u64>> =
                function.and_then(|function| some.map(|&key| function.hash(key)).collect());
            InTables {
                avalanche: K::avalanche(entry, keys, self.table),
                cuckoo: hashes.as_deref().and_then(|hashes| {
                    let ours = cuckoo::fill(hashes, Shape::EIGHT_WAY)?;
                    Some([ours, cuckoo::fill(hashes, Shape::MEMC3)?])
                }),
                set_associative: hashes.and_then(|hashes| set_associative::fill(&hashes, WAYS)),
            }
        };
        self.entries.iter().map(one).collect()
    }
}

/// The same keys and function in smaller and larger tables.
struct OtherSizes<'a> {
    entry: &'a Entry,
    table: Table,
}

impl Visit for OtherSizes<'_> {
    type Output = Vec<(u64, f64, f64)>;

    fn visit<K: AnyKey>(self, keys: &[K]) -> Self::Output {
        let bits = self.table.bits();
        let sizes = (bits.saturating_sub(2)..=(bits + 1).min(32)).map(Table::of_bits);
        sizes
            .map(|table| {
                let seen = histogram(self.entry, keys, table);
                (table.buckets(), seen.searched_hit(), seen.searched_miss())
            })
            .collect()
    }
}

/// Makes a histogram of keys under one function.
pub fn histogram<K: HashedKey>(entry: &Entry, keys: &[K], table: Table) -> Histogram {
    let mut counts = vec![0; table.buckets() as usize];
    if let Some(function) = K::function(entry) {
        function.count(keys, table, &mut counts);
    }
    Histogram::of_counts(counts.into_iter().map(u64::from))
}
