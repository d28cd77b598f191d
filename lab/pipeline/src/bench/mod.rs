//! `nuthatch-lab flow bench`: tables alone, with the parameters of the paper's micro-benchmark (section 6).
//!
//! Keys are drawn from a working set and looked up in batches; a missed key costs a penalty in cycles and is inserted.
//! After a warm-up, rounds of all designs alternate. A round makes its lookups twice: with misses and inserts, for the
//! hit rate and the packet rate; and lookups alone, for their cycles. A round's value is that of its median block,
//! which the system's interruptions hardly change: a block is much shorter than a time slice. A value identifies its
//! key, so that a tag that two keys share counts as a miss, as it would if the flow's key were compared.

use std::path::PathBuf;

use clap::Args;
use nuthatch_base::hash::KeyHasher;
use nuthatch_bench::report::Spread;
use nuthatch_flow::{Vector, theory};
use nuthatch_workload::{Distribution, Popularity, Seed};
use rand::rngs::SmallRng;
use serde::Serialize;

use crate::arguments::{self, Skew};
use crate::cycles::{self, Rate};
use crate::design::{self, Design, DesignOptions, OneOrAll};
use crate::figures;
use crate::microflow::FlowCache;
use crate::report::{self, Row};
use nuthatch_program::Failure;
use nuthatch_program::progress::Progress;

/// Keys that are drawn before the clock starts.
const BLOCK: usize = 4096;

/// The options of the bench.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The designs.
    #[command(flatten)]
    pub designs: DesignOptions,
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
    /// Lookups of a round
    #[arg(long, default_value = "1m", value_parser = arguments::positive_count)]
    pub lookups: u64,
    /// Number of rounds; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub rounds: u64,
    /// Tag comparisons, separated by commas: scalar, and those of sse2, avx2, avx512, neon that this machine has; or
    /// all [default: the best]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = arguments::vector)]
    pub vector: Vec<OneOrAll<Vector>>,
    /// Also measure hashbrown's map with random eviction (and rte_hash, in builds that have it)
    #[arg(long)]
    pub rivals: bool,
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
    /// Cycles of a lookup in a batch, hit or miss: the median round.
    pub cycles_per_lookup: f64,
    /// The same with its spread.
    pub cycles_spread: Spread,
    /// What is counted: `cycles`, or `ns` where there is no time-stamp counter.
    pub cycles_unit: &'static str,
    /// Million lookups a second, with misses, their penalty, and inserts: the median round.
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
    let title = format!(
        "{} keys, batches of {}, {} {} a miss, warm-up of {} lookups / key, {} rounds of {} lookups:",
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
    if options.rivals {
        designs.extend(design::rivals());
    }
    let vectors = match &options.vector[..] {
        [] => vec![Vector::detect()],
        names => design::chosen(names, &Vector::available().collect::<Vec<_>>()),
    };
    let points = sizes(options)?;
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
                    design, vector, entries, keys, options,
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
fn sizes(options: &Options) -> Result<Vec<(u64, u64)>, Failure> {
    let mut points = Vec::new();
    for &requested in &options.entries {
        design::note_rounding(requested);
        // As most designs round it. A table of larger buckets may be larger when it is tiny.
        let entries = Design::Map.entries(requested);
        match options.keys {
            Some(0) => {
                return Err(Failure::Usage(
                    "--keys 0: there is nothing to look up".into(),
                ));
            }
            Some(keys) => points.push((entries, keys)),
            None => points.extend(options.oversubscription.iter().map(|factor| {
                let keys = (entries as f64 * factor).round().max(1.0);
                (entries, keys as u64)
            })),
        }
    }
    Ok(points)
}

/// One design under measurement.
struct Candidate {
    design: Design,
    vector: Vector,
    entries: u64,
    cache: Box<dyn FlowCache>,
    keys: Keys,
    hits: u64,
    lookups: u64,
    /// Hits / lookups: round by round.
    hit_rates: Vec<f64>,
    /// Ticks of a lookup with its insert, and of a lookup alone: round by round.
    live: Vec<f64>,
    alone: Vec<f64>,
}

impl Candidate {
    fn warmed_up(
        design: Design,
        vector: Vector,
        entries: u64,
        keys: u64,
        options: &Options,
    ) -> Result<Self, Failure> {
        let cache = design.build(entries, vector, options.seed)?;
        let value_max = cache.value_max();
        let mut candidate = Self {
            design,
            vector,
            entries: design.entries(entries),
            cache,
            keys: Keys::new(keys, options.skew.distribution(), value_max, options.seed),
            hits: 0,
            lookups: 0,
            hit_rates: Vec::new(),
            live: Vec::new(),
            alone: Vec::new(),
        };
        let warm_up = (keys as f64 * options.warm_up) as u64;
        candidate.live(warm_up, options.batch as usize, 0);
        Ok(candidate)
    }

    fn round(&mut self, number: u64, options: &Options) {
        // All designs look up the same keys.
        self.keys.random = Seed(options.seed).thread(number as usize + 1);
        let batch = options.batch as usize;
        let (hits, ticks) = self.live(options.lookups, batch, options.miss_penalty);
        self.hits += hits;
        self.lookups += options.lookups;
        self.hit_rates.push(hits as f64 / options.lookups as f64);
        self.live.push(ticks);
        let ticks = self.alone(options.lookups, batch);
        self.alone.push(ticks);
    }

    /// Lookups, with inserts of what is missed. Hits, and the ticks of one in the block in the middle.
    fn live(&mut self, lookups: u64, batch: usize, penalty: u64) -> (u64, f64) {
        let (mut hits, mut blocks) = (0, Vec::new());
        let mut buffers = LookupBuffers::default();
        let mut left = lookups;
        while left > 0 {
            let count = left.min(BLOCK as u64) as usize;
            left -= count as u64;
            self.keys.draw(count);
            let start = cycles::now();
            let batches = self.keys.hashes.chunks(batch);
            for (hashes, values) in batches.zip(self.keys.values.chunks(batch)) {
                buffers.lookup(&mut *self.cache, hashes);
                for (index, (&hash, &value)) in hashes.iter().zip(values).enumerate() {
                    if buffers.found(index) == Some(value) {
                        hits += 1;
                    } else {
                        if penalty > 0 {
                            cycles::spin(penalty);
                        }
                        self.cache.insert(hash, value);
                    }
                }
            }
            blocks.push((cycles::now() - start) as f64 / count as f64);
        }
        (hits, median(blocks))
    }

    /// Lookups alone: the ticks of one in the block in the middle.
    fn alone(&mut self, lookups: u64, batch: usize) -> f64 {
        let mut blocks = Vec::new();
        let mut buffers = LookupBuffers::default();
        let mut left = lookups;
        while left > 0 {
            let count = left.min(BLOCK as u64) as usize;
            left -= count as u64;
            self.keys.draw(count);
            let start = cycles::now();
            for hashes in self.keys.hashes.chunks(batch) {
                buffers.lookup(&mut *self.cache, hashes);
            }
            blocks.push((cycles::now() - start) as f64 / count as f64);
        }
        median(blocks)
    }

    fn theory(&self, options: &Options) -> Option<f64> {
        let factor = self.keys.count as f64 / self.entries as f64;
        options.skew.is_uniform().then(|| match self.design {
            Design::Table { layout, .. } => theory::hit_rate(layout, factor),
            _ => theory::ideal(factor),
        })
    }

    fn measurement(&self, rate: &Rate, options: &Options) -> Measurement {
        let mpps_spread = Spread::of(self.live.iter().map(|&ticks| rate.millions(ticks)));
        let cycles_spread = Spread::of(self.alone.iter().copied());
        let (entry, vector) = match self.design {
            Design::Table { entry, .. } => (entry.to_string(), self.vector.name().to_owned()),
            _ => ("-".to_owned(), "-".to_owned()),
        };
        Measurement {
            layout: self.design.layout(),
            eviction: self.design.eviction(),
            entry,
            vector,
            entries: self.entries,
            keys: self.keys.count,
            oversubscription: self.keys.count as f64 / self.entries as f64,
            distribution: options.skew.name(),
            batch: options.batch,
            miss_penalty: options.miss_penalty,
            hit_rate: self.hits as f64 / self.lookups as f64,
            hit_rate_spread: Spread::of(self.hit_rates.iter().copied()),
            theory: self.theory(options),
            cycles_per_lookup: cycles_spread.median,
            cycles_spread,
            cycles_unit: cycles::UNIT,
            mpps: mpps_spread.median,
            mpps_spread,
        }
    }
}

/// The median; 0 without blocks.
fn median(blocks: Vec<f64>) -> f64 {
    if blocks.is_empty() {
        return 0.0;
    }
    Spread::of(blocks).median
}

/// Keys of a working set, a block at a time.
struct Keys {
    count: u64,
    popularity: Popularity,
    value_max: u64,
    hasher: KeyHasher,
    random: SmallRng,
    hashes: Vec<u64>,
    values: Vec<u64>,
}

impl Keys {
    fn new(count: u64, distribution: Distribution, value_max: u64, seed: u64) -> Self {
        Self {
            count,
            popularity: Popularity::new(distribution, count),
            value_max,
            hasher: KeyHasher::seeded(seed),
            random: Seed(seed).thread(0),
            hashes: Vec::with_capacity(BLOCK),
            values: Vec::with_capacity(BLOCK),
        }
    }

    fn draw(&mut self, count: usize) {
        self.hashes.clear();
        self.values.clear();
        for _ in 0..count {
            let key = self.popularity.draw(&mut self.random);
            self.hashes.push(self.hasher.hash(&key.to_le_bytes()));
            // All bits of the key take part, so that two keys of the same tag hardly ever have the same value.
            self.values.push((key ^ key >> 16) & self.value_max);
        }
    }
}

/// Buffers for the results of a batch.
#[derive(Default)]
struct LookupBuffers {
    values: Vec<u64>,
    hits: Vec<u64>,
}

impl LookupBuffers {
    #[inline(always)]
    fn lookup(&mut self, cache: &mut dyn FlowCache, hashes: &[u64]) {
        self.values.resize(hashes.len(), 0);
        self.hits.resize(hashes.len().div_ceil(64), 0);
        cache.lookup_many(hashes, &mut self.values, &mut self.hits);
    }

    #[inline(always)]
    fn found(&self, index: usize) -> Option<u64> {
        let hit = self.hits[index / 64] >> (index % 64) & 1 == 1;
        hit.then(|| self.values[index])
    }
}
