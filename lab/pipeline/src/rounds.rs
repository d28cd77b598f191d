//! Rounds of packets through one design's pipeline.

use std::collections::BTreeMap;

use nuthatch_bench::report::Spread;

use crate::cycles;
use crate::design::Design;
use crate::key::FlowKey;
use crate::pipeline::{Outcome, Pipeline, Tally, Ticks};
use crate::source::Source;

/// Packets that are timed together: a time slice is much longer.
const CHUNK: u64 = 1024;

/// One design under measurement.
pub(crate) struct Candidate<'a> {
    pub(crate) design: Design,
    pub(crate) pipeline: Pipeline<'a>,
    pub(crate) source: Source<'a>,
    pub(crate) rounds: Vec<Round>,
}

/// The results of a round: its counters, and the ticks of a packet in the median chunk, which the system's
/// interruptions hardly change.
pub(crate) struct Round {
    pub(crate) tally: Tally,
    pub(crate) stages: BTreeMap<&'static str, f64>,
    /// From key to action.
    pub(crate) packet: f64,
    /// With parsing.
    pub(crate) parsed: f64,
}

/// The results of some bursts.
struct Chunk {
    tally: Tally,
    parse: u64,
}

impl Round {
    fn of(chunks: &[Chunk]) -> Self {
        let median = |ticks: &dyn Fn(&Chunk) -> u64| {
            let a_packet = |chunk: &Chunk| ticks(chunk) as f64 / chunk.tally.packets() as f64;
            Spread::of(chunks.iter().map(a_packet)).median
        };
        let mut stages = BTreeMap::from([("parse", median(&|chunk| chunk.parse))]);
        for (index, (name, _)) in Ticks::default().by_stage().into_iter().enumerate() {
            stages.insert(name, median(&|chunk| chunk.tally.ticks.by_stage()[index].1));
        }
        Self {
            tally: Tally::sum(chunks.iter().map(|chunk| &chunk.tally)),
            stages,
            packet: median(&|chunk| chunk.tally.ticks.total()),
            parsed: median(&|chunk| chunk.tally.ticks.total() + chunk.parse),
        }
    }
}

impl Candidate<'_> {
    /// Processes `packets` packets in bursts of `batch`, and keeps the results.
    pub(crate) fn round(&mut self, packets: u64, batch: usize) {
        let mut keys = vec![FlowKey::default(); batch];
        let mut outcomes = vec![Outcome::default(); batch];
        let (mut left, mut chunks) = (packets, Vec::new());
        while left > 0 {
            let chunk = left.min(CHUNK.max(batch as u64));
            left -= chunk;
            chunks.push(self.chunk(chunk, &mut keys, &mut outcomes));
        }
        self.rounds.push(Round::of(&chunks));
    }

    fn chunk(&mut self, packets: u64, keys: &mut [FlowKey], outcomes: &mut [Outcome]) -> Chunk {
        let (mut left, mut parse) = (packets, 0);
        while left > 0 {
            let count = left.min(keys.len() as u64) as usize;
            left -= count as u64;
            let keys = &mut keys[..count];
            self.source.draw(keys);
            if self.source.parses() {
                let start = cycles::now();
                self.source.parse(keys);
                parse += cycles::now() - start;
            }
            self.pipeline.process(keys, outcomes);
        }
        let tally = self.pipeline.take_tally();
        Chunk { tally, parse }
    }
}
