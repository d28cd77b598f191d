//! One design under measurement, by one thread or by several that share its table.

use std::sync::Barrier;

use nuthatch_bench::report::Spread;
use nuthatch_flow::{Eviction, SharedFlowCache, Vector, theory};

use crate::cycles::{self, Rate};
use crate::design::Design;
use crate::microflow::{FlowCache, SharedCache};
use nuthatch_program::Failure;

use super::keys::{BLOCK, Keys, LookupBuffers};
use super::{Measurement, Options};

/// One design under measurement.
pub(super) struct Candidate {
    design: Design,
    vector: Vector,
    entries: u64,
    /// The table that several threads share; nothing if one thread has it.
    shared: Option<SharedFlowCache>,
    walkers: Vec<Walker>,
    keys: u64,
    totals: Totals,
    /// Hits / lookups: round by round.
    hit_rates: Vec<f64>,
    /// Ticks of a lookup with its insert, and of a lookup alone: round by round.
    live: Vec<f64>,
    alone: Vec<f64>,
}

/// A thread's way into the table, and its keys.
struct Walker {
    cache: Box<dyn FlowCache>,
    keys: Keys,
}

/// Counts of all rounds' lookups with inserts.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    lookups: u64,
    hits: u64,
    inserts: u64,
    /// Keys that hits or inserts moved to another slot.
    moves: u64,
}

/// What a thread made of its lookups.
struct Walked {
    totals: Totals,
    /// Ticks of a lookup in the block in the middle.
    ticks: f64,
}

impl Candidate {
    pub fn warmed_up(
        design: Design,
        vector: Vector,
        (entries, keys): (u64, u64),
        options: &Options,
    ) -> Result<Self, Failure> {
        let (shared, caches) = caches(design, vector, entries, options)?;
        let walkers = caches.into_iter().map(|cache| Walker {
            keys: Keys::new(
                keys,
                options.skew.distribution(),
                cache.value_max(),
                options.seed,
            ),
            cache,
        });
        let mut candidate = Self {
            design,
            vector,
            entries: design.entries(entries),
            shared,
            walkers: walkers.collect(),
            keys,
            totals: Totals::default(),
            hit_rates: Vec::new(),
            live: Vec::new(),
            alone: Vec::new(),
        };
        let warm_up = (keys as f64 * options.warm_up) as u64;
        candidate.walkers[0].live(warm_up, options.batch as usize, 0);
        Ok(candidate)
    }

    pub fn round(&mut self, number: u64, options: &Options) {
        for (thread, walker) in self.walkers.iter_mut().enumerate() {
            walker.keys.begin(number, thread as u64);
        }
        let (lookups, batch) = (options.lookups, options.batch as usize);
        let walked = self.at_once(|walker| walker.live(lookups, batch, options.miss_penalty));
        let mut round = Totals::default();
        for one in &walked {
            round.add(&one.totals);
        }
        self.hit_rates
            .push(round.hits as f64 / round.lookups as f64);
        self.totals.add(&round);
        // What all threads do in a tick is the sum of what each does.
        let per_tick: f64 = walked.iter().map(|one| 1.0 / one.ticks).sum();
        self.live.push(1.0 / per_tick);
        let ticks = self.at_once(|walker| walker.alone(lookups, batch));
        self.alone
            .push(ticks.iter().sum::<f64>() / ticks.len() as f64);
    }

    /// Does the same with each walker: at the same time, if there are several.
    fn at_once<T: Send>(&mut self, work: impl Fn(&mut Walker) -> T + Sync) -> Vec<T> {
        if let [walker] = &mut self.walkers[..] {
            return vec![work(walker)];
        }
        let barrier = Barrier::new(self.walkers.len());
        let (barrier, work) = (&barrier, &work);
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .walkers
                .iter_mut()
                .map(|walker| {
                    scope.spawn(move || {
                        barrier.wait();
                        work(walker)
                    })
                })
                .collect();
            let join = threads.into_iter().map(|thread| thread.join());
            join.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    fn theory(&self, options: &Options) -> Option<f64> {
        let factor = self.keys as f64 / self.entries as f64;
        options
            .skew
            .is_uniform()
            .then(|| match self.design.candidates() {
                Some(layout) => theory::hit_rate(layout, factor),
                None => theory::ideal(factor),
            })
    }

    /// Slots in use / slots.
    fn occupancy(&self) -> Option<f64> {
        let occupied = match &self.shared {
            Some(table) => Some(table.count()),
            None => self.walkers[0].cache.occupied(),
        };
        occupied.map(|slots| slots as f64 / self.entries as f64)
    }

    pub fn measurement(&self, rate: &Rate, options: &Options) -> Measurement {
        let mpps_spread = Spread::of(self.live.iter().map(|&ticks| rate.millions(ticks)));
        let cycles_spread = Spread::of(self.alone.iter().copied());
        let (entry, vector) = match self.design {
            Design::Table { entry, .. } => (entry.to_string(), self.vector.name().to_owned()),
            _ => ("-".to_owned(), "-".to_owned()),
        };
        let totals = &self.totals;
        Measurement {
            layout: self.design.layout(),
            eviction: self.design.eviction(),
            entry,
            vector,
            threads: self.walkers.len(),
            entries: self.entries,
            keys: self.keys,
            oversubscription: self.keys as f64 / self.entries as f64,
            distribution: options.skew.name(),
            batch: options.batch,
            miss_penalty: options.miss_penalty,
            hit_rate: totals.hits as f64 / totals.lookups as f64,
            hit_rate_spread: Spread::of(self.hit_rates.iter().copied()),
            theory: self.theory(options),
            occupancy: self.occupancy(),
            writes_per_lookup: totals.writes(self.design) as f64 / totals.lookups as f64,
            cycles_per_lookup: cycles_spread.median,
            cycles_spread,
            cycles_unit: cycles::UNIT,
            mpps: mpps_spread.median,
            mpps_spread,
        }
    }
}

/// The table if threads share it, and each thread's way into it.
type Caches = (Option<SharedFlowCache>, Vec<Box<dyn FlowCache>>);

/// The table: whole for one thread, or shared by as many as the options say.
fn caches(
    design: Design,
    vector: Vector,
    entries: u64,
    options: &Options,
) -> Result<Caches, Failure> {
    let Some(threads) = options.threads else {
        let cache = design.build(entries, vector, options.seed)?;
        return Ok((None, vec![cache]));
    };
    let shared = design.build_shared(entries, vector, options.seed)?;
    let handle = |_| {
        let (handle, entry) = (shared.handle(), shared.config().entry);
        Box::new(SharedCache { handle, entry }) as Box<dyn FlowCache>
    };
    let handles = (0..threads).map(handle).collect();
    Ok((Some(shared), handles))
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.lookups += other.lookups;
        self.hits += other.hits;
        self.inserts += other.inserts;
        self.moves += other.moves;
    }

    /// How often the table was written to. Two evictions write for each hit beside the slots: LRU its time, DC-Bubble its
    /// bucket's flag.
    fn writes(&self, design: Design) -> u64 {
        let for_hits = match design {
            Design::Table {
                eviction: Eviction::Lru | Eviction::DcBubble,
                ..
            } => self.hits,
            _ => self.moves,
        };
        self.inserts + for_hits
    }
}

impl Walker {
    /// Lookups, with inserts of what is missed.
    fn live(&mut self, lookups: u64, batch: usize, penalty: u64) -> Walked {
        let (mut hits, mut blocks) = (0, Vec::new());
        let moves = self.cache.moves();
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
        Walked {
            totals: Totals {
                lookups,
                hits,
                inserts: lookups - hits,
                moves: self.cache.moves() - moves,
            },
            ticks: median(blocks),
        }
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
}

/// The median; 0 without blocks.
fn median(blocks: Vec<f64>) -> f64 {
    if blocks.is_empty() {
        return 0.0;
    }
    Spread::of(blocks).median
}
