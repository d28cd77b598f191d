//! `nuthatch-lab flow replay`: packets through the pipeline, once for each design of the microflow cache.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use nuthatch_base::hash::KeyHasher;
use nuthatch_bench::report::Spread;
use nuthatch_flow::{Config, Vector, theory};
use serde::Serialize;

use crate::arguments::{self, Skew, flow_count, positive_count, probability};
use crate::classifier::Classifier;
use crate::cycles::{self, Rate};
use crate::design::{self, Design, DesignOptions};
use crate::figures;
use crate::generate::{Shape, Traffic};
use crate::input::{load_frames, load_rules};
use crate::pipeline::{Pipeline, Stage, Tally};
use crate::report::{self, Row};
use crate::rounds::{Candidate, Round};
use crate::rules::Rules;
use crate::source::{Frames, Replay, Source};
use nuthatch_program::progress::Progress;
use nuthatch_program::{Failure, output};

/// Packets of a round at least, so that a small capture is not over before the clock has moved.
const PACKETS_MIN: u64 = 1 << 18;

/// Packets of a round at most, unless more are requested.
const PACKETS_MAX: u64 = 1 << 24;

/// The options of a replay.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Captures, pcap or pcapng, replayed one after the other
    #[arg(value_name = "FILE", required_unless_present = "generate")]
    pub files: Vec<PathBuf>,
    /// Number of copies of the captures' flows, each between other hosts; their packets alternate
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = flow_count)]
    pub flows_times: u64,
    /// Generate the packets of this many flows, instead of reading captures
    #[arg(long, value_name = "FLOWS", value_parser = flow_count,
        conflicts_with_all = ["files", "flows_times"])]
    pub generate: Option<u64>,
    /// How popular generated flows are.
    #[command(flatten)]
    pub skew: Skew,
    /// Probability, at each packet, that a generated flow ends and another one begins
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.0, value_parser = probability)]
    pub churn: f64,
    /// File of the classifier's rules [default: built-in rules of a small site]
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// The designs.
    #[command(flatten)]
    pub designs: DesignOptions,
    /// Entries of the microflow cache [default: about as many as there are flows]
    #[arg(long, value_parser = arguments::entries)]
    pub entries: Option<u64>,
    /// Maximum number of megaflows; at most 2^16 with entries of 16+16
    #[arg(long, value_name = "N", default_value = "64k", value_parser = positive_count)]
    pub megaflows: u64,
    /// Packets of a burst
    #[arg(long, value_name = "PACKETS", default_value_t = 32,
        value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub batch: u64,
    /// Packets of a round [default: all packets of the captures, or four of each generated flow, several times if they
    /// are few, and 16 million at most]
    #[arg(long, value_parser = positive_count)]
    pub packets: Option<u64>,
    /// Number of rounds, after one warm-up round; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub rounds: u64,
    /// Seed of the generated flows and evictions
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one line of JSON for each design
    #[arg(long)]
    pub json: bool,
    /// Draw the cycles per packet, stage by stage, into a file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// The measurements of a design.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// Which slots may hold a key, or `none`.
    pub layout: String,
    /// The eviction policy.
    pub eviction: String,
    /// Slots.
    pub entries: u64,
    /// Flows of the packets.
    pub flows: u64,
    /// Packets that the microflow cache decided / packets.
    pub hit_rate: f64,
    /// The hit rate that the analysis expects, if flows are equally likely and stay.
    pub theory: Option<f64>,
    /// Packets that the megaflow cache decided / those that reached it.
    pub megaflow_hit_rate: f64,
    /// Hits of the microflow cache that did not hold for the packet / packets.
    pub false_hit_rate: f64,
    /// Megaflows at the end.
    pub megaflows: usize,
    /// Masks of the megaflows: the most tables that a lookup may search.
    pub masks: usize,
    /// Cycles of the microflow stage for a packet: hash, lookup, comparison with the megaflow.
    pub cycles_per_lookup: f64,
    /// Cycles for a packet, from its key to the action: the median round.
    pub cycles_per_packet: f64,
    /// The same with its spread.
    pub cycles_spread: Spread,
    /// Cycles for a packet in each stage: the median round of each.
    pub stages: BTreeMap<&'static str, f64>,
    /// What is counted: `cycles`, or `ns` where there is no time-stamp counter.
    pub cycles_unit: &'static str,
    /// Million packets a second, parsing included: the median round.
    pub mpps: f64,
    /// The same with its spread.
    pub mpps_spread: Spread,
    /// Packets a second from key to action / those of the first design, round by round. Parsing is
    /// left out: it costs all designs the same.
    pub speedup: Spread,
    /// Packets for each action.
    pub actions: BTreeMap<String, u64>,
}

impl Row for Measurement {
    const COLUMNS: &'static [&'static str] = &[
        "layout", "eviction", "hit rate", "theory", "megaflow", "parse", "micro", "mega",
        "classify", "insert", "action", "packet", "Mpps", "/ first",
    ];

    fn cells(&self) -> Vec<String> {
        let stage = |name| format!("{:.1}", self.stages.get(name).copied().unwrap_or_default());
        vec![
            self.layout.clone(),
            self.eviction.clone(),
            format!("{:.4}", self.hit_rate),
            self.theory
                .map_or("-".to_owned(), |rate| format!("{rate:.4}")),
            format!("{:.4}", self.megaflow_hit_rate),
            stage("parse"),
            stage("microflow"),
            stage("megaflow"),
            stage("classifier"),
            stage("insert"),
            stage("action"),
            format!("{:.1}", self.cycles_per_packet),
            format!("{:.2}", self.mpps),
            format!("{:.2}", self.speedup),
        ]
    }
}

/// Replays, prints and draws.
pub fn run(options: &Options) -> Result<(), Failure> {
    let rules = load_rules(options.rules.as_deref())?;
    let classifier = Classifier::new(&rules).map_err(|error| Failure::Run(error.to_string()))?;
    let frames = match options.generate {
        Some(_) => None,
        None => Some(load_frames(&options.files)?),
    };
    let plan = Plan::new(options, frames.as_ref())?;
    let rows = plan.measure(&rules, &classifier)?;
    if let Some(path) = &options.svg {
        report::save(path, figures::packet_costs(&rows))?;
    }
    report::print(&plan.title(&classifier), &rows, options.json)?;
    if options.json {
        return Ok(());
    }
    output::print(&advice(&rows))
}

/// The plan of a measurement: packets, sizes and designs.
struct Plan<'a> {
    options: &'a Options,
    frames: Option<&'a Frames>,
    flows: u64,
    entries: u64,
    packets: u64,
    designs: Vec<Design>,
}

impl<'a> Plan<'a> {
    fn new(options: &'a Options, frames: Option<&'a Frames>) -> Result<Self, Failure> {
        let mut designs = options.designs.designs()?;
        designs.push(Design::None);
        let (flows, all) = match frames {
            Some(frames) => (
                (frames.flows() as u64).saturating_mul(options.flows_times),
                (frames.len() as u64).saturating_mul(options.flows_times),
            ),
            None => {
                let flows = options.generate.unwrap_or(1);
                (flows, flows.saturating_mul(4))
            }
        };
        if let Some(entries) = options.entries {
            design::note_rounding(entries);
        }
        let requested = options
            .entries
            .unwrap_or_else(|| nearest_power_of_two(flows));
        // Whole replays: as many as make a round.
        let all = all.clamp(1, PACKETS_MAX);
        let packets = all * PACKETS_MIN.div_ceil(all);
        Ok(Self {
            options,
            frames,
            flows,
            entries: Config::new(requested).rounded_entries(),
            packets: options.packets.unwrap_or(packets),
            designs,
        })
    }

    fn source(&self) -> Source<'a> {
        match self.frames {
            Some(frames) => Source::Capture(Replay::new(frames, self.options.flows_times)),
            None => {
                let shape = Shape {
                    flows: self.flows,
                    distribution: self.options.skew.distribution(),
                    churn: self.options.churn,
                };
                Source::Generated(Box::new(Traffic::new(&shape, self.options.seed)))
            }
        }
    }

    /// One round of each design to warm up, then rounds of all designs alternately.
    fn measure(&self, rules: &Rules, classifier: &Classifier) -> Result<Vec<Measurement>, Failure> {
        let options = self.options;
        let mut candidates = Vec::new();
        for &design in &self.designs {
            let cache = design.build(self.entries, Vector::detect(), options.seed)?;
            let limit = usize::try_from(options.megaflows).unwrap_or(usize::MAX);
            let hasher = KeyHasher::seeded(options.seed);
            candidates.push(Candidate {
                design,
                pipeline: Pipeline::new(cache, limit, classifier, hasher),
                source: self.source(),
                rounds: Vec::new(),
            });
        }
        let rate = Rate::start();
        let bar = Progress::steps(candidates.len() * (options.rounds as usize + 1));
        for round in 0..=options.rounds {
            for candidate in &mut candidates {
                bar.step(candidate.design.name());
                candidate.round(self.packets, options.batch as usize);
                bar.add(1);
            }
            if round == 0 {
                candidates
                    .iter_mut()
                    .for_each(|candidate| candidate.rounds.clear());
            }
        }
        let first = packets_a_tick(&candidates[0].rounds);
        Ok(candidates
            .iter()
            .map(|candidate| self.measurement(candidate, &first, rules, &rate))
            .collect())
    }

    fn measurement(
        &self,
        candidate: &Candidate<'_>,
        first: &[f64],
        rules: &Rules,
        rate: &Rate,
    ) -> Measurement {
        let rounds = &candidate.rounds;
        let total = Tally::sum(rounds.iter().map(|round| &round.tally));
        let packets = total.packets() as f64;
        let cycles_spread = Spread::of(rounds.iter().map(|round| round.packet));
        let mpps_spread = Spread::of(rounds.iter().map(|round| rate.millions(round.parsed)));
        let names = rounds[0].stages.keys();
        let stages: BTreeMap<&str, f64> = names
            .map(|&name| {
                (
                    name,
                    Spread::of(rounds.iter().map(|round| round.stages[name])).median,
                )
            })
            .collect();
        let entries = match candidate.design {
            Design::None => 0,
            design => design.entries(self.entries),
        };
        let uniform = self.frames.is_none() && self.options.skew.is_uniform();
        let theory = match candidate.design {
            Design::Table { layout, .. } if uniform && self.options.churn == 0.0 => {
                Some(theory::hit_rate(layout, self.flows as f64 / entries as f64))
            }
            _ => None,
        };
        Measurement {
            layout: candidate.design.layout(),
            eviction: candidate.design.eviction(),
            entries,
            flows: self.flows,
            hit_rate: total.hit_rate(Stage::Microflow),
            theory,
            megaflow_hit_rate: total.hit_rate(Stage::Megaflow),
            false_hit_rate: total.false_hits as f64 / packets,
            megaflows: candidate.pipeline.megaflows().len(),
            masks: candidate.pipeline.megaflows().masks(),
            cycles_per_lookup: stages["microflow"],
            cycles_per_packet: cycles_spread.median,
            cycles_spread,
            stages,
            cycles_unit: cycles::UNIT,
            mpps: mpps_spread.median,
            mpps_spread,
            speedup: Spread::of_ratios(&packets_a_tick(rounds), first),
            actions: actions(rules, candidate.pipeline.counters()),
        }
    }

    fn title(&self, classifier: &Classifier) -> String {
        let mut title = String::new();
        // Writing to a string does not fail.
        let _ = match self.frames {
            Some(frames) => write!(
                title,
                "{} packets of {} flows, {} copies",
                frames.len(),
                frames.flows(),
                self.options.flows_times
            ),
            None => write!(
                title,
                "generated packets of {} flows, {}, churn {}",
                self.flows,
                self.options.skew.name(),
                self.options.churn
            ),
        };
        let _ = write!(
            title,
            "; {} entries; {} rules in {} tuples; rounds of {} packets in bursts of {}.\n\
             {} a packet in each stage and from key to action; million packets a second, parsing \
             included; key to action / the first:",
            self.entries,
            classifier.rules(),
            classifier.tuples(),
            self.packets,
            self.options.batch,
            cycles::UNIT,
        );
        title
    }
}

/// Packets a tick from key to action, round by round.
fn packets_a_tick(rounds: &[Round]) -> Vec<f64> {
    rounds.iter().map(|round| 1.0 / round.packet).collect()
}

/// Packets for each action of the rules.
fn actions(rules: &Rules, counters: &[u64]) -> BTreeMap<String, u64> {
    let of_rules = rules.iter().map(|rule| rule.action.to_string());
    let mut actions = BTreeMap::new();
    for (action, count) in of_rules.chain(["drop".to_owned()]).zip(counters) {
        if *count > 0 {
            *actions.entry(action).or_default() += count;
        }
    }
    actions
}

/// Which design suits these packets.
fn advice(rows: &[Measurement]) -> String {
    let by_speed = |row: &&Measurement| row.speedup.median;
    let fastest = rows
        .iter()
        .max_by(|one, other| by_speed(one).total_cmp(&by_speed(other)));
    let name = |row: &Measurement| match &row.layout[..] {
        "none" => "no microflow cache at all".to_owned(),
        layout => format!("{layout} with {}", row.eviction),
    };
    fastest.map_or(String::new(), |row| {
        format!(
            "Fastest here: {}; packets a second / the first: {:.2} (rounds from {:.2} to {:.2}).\n",
            name(row),
            row.speedup.median,
            row.speedup.min,
            row.speedup.max
        )
    })
}

/// The power of two that is nearest by ratio, up to 2^32.
fn nearest_power_of_two(count: u64) -> u64 {
    1 << (count.clamp(1, 1 << 32) as f64).log2().round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_nearest_by_ratio() {
        for (count, power) in [
            (0, 1),
            (1, 1),
            (2, 2),
            (665, 512),
            (937, 1024),
            (1448, 1024),
            (1449, 2048),
        ] {
            assert_eq!(nearest_power_of_two(count), power, "{count}");
        }
    }

    #[test]
    fn actions_are_summed_over_rules() {
        let rules: Rules = "3 ip=4 -> forward 1\n2 ip=6 -> drop\n1 -> forward 1"
            .parse()
            .unwrap();
        let sums = actions(&rules, &[5, 6, 7, 8]);
        assert_eq!(
            sums,
            BTreeMap::from([("forward 1".into(), 12), ("drop".into(), 14)])
        );
    }
}
