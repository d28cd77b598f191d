//! The pipeline: takes the keys of a burst of packets, and returns a verdict for each.
//!
//! ```text
//! keys -> microflow cache -> megaflow cache -> classifier -> action
//!             | hit               | hit            |           ^
//!             +-------------------+----------------+-----------+
//! ```
//!
//! Each stage takes the packets of the burst that the one before it did not decide. The microflow cache is any flow cache:
//! its values are numbers of megaflows, and a hit counts only if that megaflow holds for the packet,
//! so that no tag that two flows share, and no evicted megaflow, ever decides a packet.

use std::ops::AddAssign;

use nuthatch_base::hash::KeyHasher;

use crate::classifier::{Classifier, Verdict};
use crate::cycles;
use crate::key::FlowKey;
use crate::megaflow::Megaflows;
use crate::microflow::FlowCache;

/// The stage that decided a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// The microflow cache.
    Microflow,
    /// The megaflow cache.
    Megaflow,
    /// The classifier.
    Classifier,
}

/// The decision for a packet, and the stage it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What is done with it.
    pub verdict: Verdict,
    /// The stage that decided.
    pub stage: Stage,
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            verdict: Verdict::default(),
            stage: Stage::Classifier,
        }
    }
}

/// Ticks of [`cycles::now`] that each stage took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Hashing keys, looking them up in the microflow cache, and comparing with the megaflows.
    pub microflow: u64,
    /// Looking misses up in the megaflow cache.
    pub megaflow: u64,
    /// Classifying the packets that the megaflow cache missed, and adding the megaflows.
    pub classifier: u64,
    /// Adding the misses to the microflow cache.
    pub insert: u64,
    /// Carrying out the action.
    pub action: u64,
}

impl Ticks {
    /// Each stage with its name.
    pub fn by_stage(&self) -> [(&'static str, u64); 5] {
        [
            ("microflow", self.microflow),
            ("megaflow", self.megaflow),
            ("classifier", self.classifier),
            ("insert", self.insert),
            ("action", self.action),
        ]
    }

    /// All stages together.
    pub fn total(&self) -> u64 {
        self.by_stage().iter().map(|(_, ticks)| ticks).sum()
    }
}

impl AddAssign for Ticks {
    fn add_assign(&mut self, other: Self) {
        self.microflow += other.microflow;
        self.megaflow += other.megaflow;
        self.classifier += other.classifier;
        self.insert += other.insert;
        self.action += other.action;
    }
}

/// The counters of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that each stage decided.
    pub decided: [u64; 3],
    /// Hits in the microflow cache whose megaflow did not hold for the packet.
    pub false_hits: u64,
    /// Where the time went.
    pub ticks: Ticks,
}

impl Tally {
    /// Several together.
    pub fn sum<'a>(tallies: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for tally in tallies {
            for (total, count) in sum.decided.iter_mut().zip(tally.decided) {
                *total += count;
            }
            sum.false_hits += tally.false_hits;
            sum.ticks += tally.ticks;
        }
        sum
    }

    /// Packets.
    pub fn packets(&self) -> u64 {
        self.decided.iter().sum()
    }

    /// The share of packets that a stage decided of those that reached it; 0 if none did.
    pub fn hit_rate(&self, stage: Stage) -> f64 {
        let reached: u64 = self.decided[stage as usize..].iter().sum();
        match reached {
            0 => 0.0,
            reached => self.decided[stage as usize] as f64 / reached as f64,
        }
    }

    /// Ticks a packet.
    pub fn ticks_per_packet(&self) -> f64 {
        self.ticks.total() as f64 / self.packets().max(1) as f64
    }
}

/// The stages in a row.
pub struct Pipeline<'a> {
    microflows: Box<dyn FlowCache>,
    megaflows: Megaflows,
    classifier: &'a Classifier,
    hasher: KeyHasher,
    /// Packets that each rule decided; the last counts those that no rule matched.
    counters: Vec<u64>,
    tally: Tally,
    burst: Burst,
}

/// Buffers for a burst on its way through the stages.
#[derive(Debug, Default)]
struct Burst {
    hashes: Vec<u64>,
    values: Vec<u64>,
    hits: Vec<u64>,
    /// Packets that are not decided yet.
    undecided: Vec<u32>,
    /// Packets to insert into the microflow cache, each with its megaflow.
    to_insert: Vec<(u32, u32)>,
}

impl<'a> Pipeline<'a> {
    /// A pipeline with empty caches. `megaflow_limit`: how many megaflows there may be; no more than
    /// the values of the microflow cache can name.
    pub fn new(
        microflows: Box<dyn FlowCache>,
        megaflow_limit: usize,
        classifier: &'a Classifier,
        hasher: KeyHasher,
    ) -> Self {
        let names = microflows.value_max().saturating_add(1);
        let limit = megaflow_limit.min(usize::try_from(names).unwrap_or(usize::MAX));
        Self {
            microflows,
            megaflows: Megaflows::new(limit),
            classifier,
            hasher,
            counters: vec![0; classifier.rules() + 1],
            tally: Tally::default(),
            burst: Burst::default(),
        }
    }

    /// Takes a burst. `outcomes` is at least as long as `keys`.
    pub fn process(&mut self, keys: &[FlowKey], outcomes: &mut [Outcome]) {
        let outcomes = &mut outcomes[..keys.len()];
        let start = cycles::now();
        self.look_up_microflows(keys, outcomes);
        let microflow = cycles::now();
        self.look_up_megaflows(keys, outcomes);
        let megaflow = cycles::now();
        self.classify(keys, outcomes);
        let classifier = cycles::now();
        for &(packet, number) in &self.burst.to_insert {
            let hash = self.burst.hashes[packet as usize];
            self.microflows.insert(hash, u64::from(number));
        }
        let insert = cycles::now();
        self.act(outcomes);
        let ticks = &mut self.tally.ticks;
        ticks.microflow += microflow - start;
        ticks.megaflow += megaflow - microflow;
        ticks.classifier += classifier - megaflow;
        ticks.insert += insert - classifier;
        ticks.action += cycles::now() - insert;
    }

    /// The counters since the beginning or the last call.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Packets that each rule decided, in the rules' order; the last counts those without a rule.
    pub fn counters(&self) -> &[u64] {
        &self.counters
    }

    /// The megaflow cache.
    pub fn megaflows(&self) -> &Megaflows {
        &self.megaflows
    }

    fn look_up_microflows(&mut self, keys: &[FlowKey], outcomes: &mut [Outcome]) {
        let burst = &mut self.burst;
        burst.hashes.clear();
        burst
            .hashes
            .extend(keys.iter().map(|key| key.hash(&self.hasher)));
        burst.values.resize(keys.len(), 0);
        burst.hits.resize(keys.len().div_ceil(64), 0);
        self.microflows
            .lookup_many(&burst.hashes, &mut burst.values, &mut burst.hits);
        burst.undecided.clear();
        burst.to_insert.clear();
        for (packet, (key, outcome)) in keys.iter().zip(outcomes).enumerate() {
            if burst.hits[packet / 64] >> (packet % 64) & 1 == 1 {
                if let Some(verdict) = self.megaflows.holds(burst.values[packet], key) {
                    *outcome = Outcome {
                        verdict,
                        stage: Stage::Microflow,
                    };
                    continue;
                }
                self.tally.false_hits += 1;
            }
            burst.undecided.push(packet as u32);
        }
    }

    fn look_up_megaflows(&mut self, keys: &[FlowKey], outcomes: &mut [Outcome]) {
        let Self {
            megaflows, burst, ..
        } = self;
        burst.undecided.retain(|&packet| {
            let Some((number, verdict)) = megaflows.find(&keys[packet as usize]) else {
                return true;
            };
            outcomes[packet as usize] = Outcome {
                verdict,
                stage: Stage::Megaflow,
            };
            burst.to_insert.push((packet, number));
            false
        });
    }

    fn classify(&mut self, keys: &[FlowKey], outcomes: &mut [Outcome]) {
        for &packet in &self.burst.undecided {
            let key = &keys[packet as usize];
            let found = self.classifier.classify(key);
            let number = self.megaflows.insert(key, &found);
            outcomes[packet as usize] = Outcome {
                verdict: found.verdict,
                stage: Stage::Classifier,
            };
            self.burst.to_insert.push((packet, number));
        }
    }

    fn act(&mut self, outcomes: &[Outcome]) {
        let without_rule = self.counters.len() - 1;
        for outcome in outcomes {
            self.tally.decided[outcome.stage as usize] += 1;
            let rule = outcome
                .verdict
                .rule
                .map_or(without_rule, |rule| rule as usize);
            self.counters[rule] += 1;
        }
    }
}
