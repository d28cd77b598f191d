//! `nuthatch-lab flow attack`: normal traffic, and then a scan beside it, each packet of it a new flow.
//!
//! The questions: do the flows of normal traffic stay cached, what does a packet cost meanwhile, and
//! does any burst take much longer than others. A scan is the worst case of a flow cache: every packet
//! of it misses, is classified, and evicts an entry.

use std::path::PathBuf;

use clap::Args;
use nuthatch_base::hash::KeyHasher;
use nuthatch_bench::report::Spread;
use nuthatch_flow::Vector;
use nuthatch_workload::Seed;
use rand::Rng;
use rand::rngs::SmallRng;
use serde::Serialize;

use crate::arguments::{self, Skew, flow_count, positive_count, share};
use crate::classifier::Classifier;
use crate::cycles::{self, Rate};
use crate::design::{self, Design, DesignOptions};
use crate::figures;
use crate::generate::{Scan, Shape, Traffic};
use crate::input::load_rules;
use crate::key::FlowKey;
use crate::pipeline::{Outcome, Pipeline, Stage};
use crate::report::{self, Row};
use crate::rival::RivalOptions;
use nuthatch_program::Failure;
use nuthatch_program::progress::Progress;

/// Bursts whose times are averaged together.
const CHUNK: usize = 32;

/// The options of the attack.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The designs.
    #[command(flatten)]
    pub designs: DesignOptions,
    /// Entries of the microflow cache; k and m are powers of 1024
    #[arg(long, default_value = "64k", value_parser = arguments::entries)]
    pub entries: u64,
    /// Flows of normal traffic [default: 4/5 of the entries]
    #[arg(long, value_parser = flow_count)]
    pub flows: Option<u64>,
    /// How popular the flows are.
    #[command(flatten)]
    pub skew: Skew,
    /// The scan's share of all packets
    #[arg(long, default_value_t = 0.5, value_parser = share)]
    pub share: f64,
    /// File of the classifier's rules [default: built-in rules of a small site]
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Maximum number of megaflows; at most 2^16 with entries of 16+16
    #[arg(long, value_name = "N", default_value = "64k", value_parser = positive_count)]
    pub megaflows: u64,
    /// Packets of a burst
    #[arg(long, value_name = "PACKETS", default_value_t = 32,
        value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub batch: u64,
    /// Packets of each phase: normal traffic, and the attack
    #[arg(long, default_value = "1m", value_parser = positive_count)]
    pub packets: u64,
    /// The rivals.
    #[command(flatten)]
    pub rivals: RivalOptions,
    /// Seed of the flows and evictions
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one line of JSON for each design
    #[arg(long)]
    pub json: bool,
    /// Draw the hit rates before and during the attack into a file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// The results of a phase.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Phase {
    /// Packets of normal flows that the microflow cache decided, / packets of normal flows.
    pub hit_rate: f64,
    /// Cycles of the microflow stage for a packet.
    pub cycles_per_lookup: f64,
    /// Cycles for a packet, from its key to the action: in the chunk of bursts in the middle, which
    /// the system's interruptions hardly move.
    pub cycles_per_packet: f64,
    /// Cycles for a packet in the burst that 999 of 1000 are no slower than.
    pub p999_burst: f64,
    /// Cycles for a packet in the slowest burst, interruptions by the system included.
    pub max_burst: f64,
    /// Million packets a second.
    pub mpps: f64,
}

/// The measurements of a design.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// Which slots may hold a key, or which rival it is.
    pub layout: String,
    /// The eviction policy.
    pub eviction: String,
    /// Slots.
    pub entries: u64,
    /// Flows of normal traffic.
    pub flows: u64,
    /// The scan's share of all packets.
    pub share: f64,
    /// The hit rate of normal flows during the attack.
    pub hit_rate: f64,
    /// Always none: there is no analysis of an attack.
    pub theory: Option<f64>,
    /// Cycles of the microflow stage for a packet during the attack.
    pub cycles_per_lookup: f64,
    /// Million packets a second during the attack.
    pub mpps: f64,
    /// What is counted: `cycles`, or `ns` where there is no time-stamp counter.
    pub cycles_unit: &'static str,
    /// Normal traffic alone.
    pub before: Phase,
    /// With the scan beside it.
    pub during: Phase,
}

impl Row for Measurement {
    const COLUMNS: &'static [&'static str] = &[
        "layout",
        "eviction",
        "hit rate",
        "under attack",
        "packet",
        "under attack",
        "p99.9",
        "under attack",
        "Mpps",
        "under attack",
    ];

    fn cells(&self) -> Vec<String> {
        let pair = |value: fn(&Phase) -> f64, places: usize| {
            [&self.before, &self.during].map(|phase| format!("{:.places$}", value(phase)))
        };
        let names = [self.layout.clone(), self.eviction.clone()];
        names
            .into_iter()
            .chain(pair(|phase| phase.hit_rate, 4))
            .chain(pair(|phase| phase.cycles_per_packet, 0))
            .chain(pair(|phase| phase.p999_burst, 0))
            .chain(pair(|phase| phase.mpps, 2))
            .collect()
    }
}

/// Attacks, prints and draws.
pub fn run(options: &Options) -> Result<(), Failure> {
    let rules = load_rules(options.rules.as_deref())?;
    let classifier = Classifier::new(&rules).map_err(|error| Failure::Run(error.to_string()))?;
    let rows = measure(options, &classifier)?;
    if let Some(path) = &options.svg {
        report::save(path, figures::scan(&rows, options))?;
    }
    let title = format!(
        "Normal flows ({}), and a scan of {} of all packets beside them; {} rules; {} packets a \
         phase in bursts of {}.\nHit rate of normal flows; {} a packet, and in the burst that 999 of \
         1000 are no slower than; million packets a second:",
        options.skew.name(),
        options.share,
        classifier.rules(),
        options.packets,
        options.batch,
        cycles::UNIT,
    );
    report::print(&title, &rows, options.json)
}

fn measure(options: &Options, classifier: &Classifier) -> Result<Vec<Measurement>, Failure> {
    design::note_rounding(options.entries);
    let mut designs = options.designs.designs()?;
    designs.extend(options.rivals.designs());
    let bar = Progress::steps(designs.len());
    let mut rows = Vec::new();
    for design in designs {
        bar.step(design.name());
        rows.push(attack(design, options, classifier)?);
        bar.add(1);
    }
    Ok(rows)
}

fn attack(
    design: Design,
    options: &Options,
    classifier: &Classifier,
) -> Result<Measurement, Failure> {
    let entries = design.entries(options.entries);
    let most = (entries * 4 / 5).clamp(1, arguments::FLOWS_MAX);
    let flows = options.flows.unwrap_or(most);
    let cache = design.build(options.entries, Vector::detect(), options.seed)?;
    let shape = Shape {
        flows,
        distribution: options.skew.distribution(),
        churn: 0.0,
    };
    let limit = usize::try_from(options.megaflows).unwrap_or(usize::MAX);
    let hasher = KeyHasher::seeded(options.seed);
    let mut scenario = Scenario {
        pipeline: Pipeline::new(cache, limit, classifier, hasher),
        traffic: Traffic::new(&shape, options.seed),
        scan: Scan::new(options.seed),
        random: Seed(options.seed).thread(2),
        batch: options.batch as usize,
        rate: Rate::start(),
    };
    // Each phase once before it is measured: a cache in use, and an attack that goes on.
    scenario.phase(options.packets.max(flows.saturating_mul(4)), 0.0);
    let before = scenario.phase(options.packets, 0.0);
    scenario.phase(options.packets, options.share);
    let during = scenario.phase(options.packets, options.share);
    Ok(Measurement {
        layout: design.layout(),
        eviction: design.eviction(),
        entries,
        flows,
        share: options.share,
        hit_rate: during.hit_rate,
        theory: None,
        cycles_per_lookup: during.cycles_per_lookup,
        mpps: during.mpps,
        cycles_unit: cycles::UNIT,
        before,
        during,
    })
}

/// The pipeline under attack, and its traffic.
struct Scenario<'a> {
    pipeline: Pipeline<'a>,
    traffic: Traffic,
    scan: Scan,
    random: SmallRng,
    batch: usize,
    rate: Rate,
}

impl Scenario<'_> {
    fn phase(&mut self, packets: u64, share: f64) -> Phase {
        let mut keys = vec![FlowKey::default(); self.batch];
        let mut scanned = vec![false; self.batch];
        let mut outcomes = vec![Outcome::default(); self.batch];
        let (mut normal, mut hits) = (0_u64, 0_u64);
        // Ticks for a packet in each burst: of all stages, and of the microflow cache.
        let (mut bursts, mut lookups): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
        let mut left = packets;
        while left > 0 {
            let count = left.min(self.batch as u64) as usize;
            left -= count as u64;
            for (key, scanned) in keys[..count].iter_mut().zip(&mut scanned) {
                *scanned = self.random.random_bool(share);
                *key = if *scanned {
                    self.scan.next_key()
                } else {
                    self.traffic.next_key()
                };
            }
            let start = cycles::now();
            self.pipeline.process(&keys[..count], &mut outcomes);
            bursts.push((cycles::now() - start) as f64 / count as f64);
            let ticks = self.pipeline.take_tally().ticks;
            lookups.push(ticks.microflow as f64 / count as f64);
            for (outcome, scanned) in outcomes[..count].iter().zip(&scanned) {
                if !scanned {
                    normal += 1;
                    hits += u64::from(outcome.stage == Stage::Microflow);
                }
            }
        }
        let cycles_per_packet = median_chunk(&bursts);
        bursts.sort_by(f64::total_cmp);
        Phase {
            hit_rate: hits as f64 / normal.max(1) as f64,
            cycles_per_lookup: median_chunk(&lookups),
            cycles_per_packet,
            p999_burst: bursts[(bursts.len() - 1) * 999 / 1000],
            max_burst: bursts[bursts.len() - 1],
            mpps: self.rate.millions(cycles_per_packet),
        }
    }
}

/// The mean of the chunk of bursts in the middle.
fn median_chunk(bursts: &[f64]) -> f64 {
    let means = bursts
        .chunks(CHUNK)
        .map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64);
    Spread::of(means).median
}
