//! `nuthatch-lab flow`: flow caches, judged in front of a packet pipeline.

use clap::Subcommand;
use nuthatch_pipeline::{attack, bench, optimum, replay, theory};

use nuthatch_program::Failure;

/// The subcommands for flow caches.
#[derive(Debug, Subcommand)]
pub enum Flow {
    /// Send captures or generated packets through the pipeline, once for each design
    Replay(replay::Options),
    /// Measure the tables alone, with the parameters of the paper
    Bench(bench::Options),
    /// Compute the hit rates of an eviction that knows the future, on the lookups of bench
    Optimum(optimum::Options),
    /// Print the hit rates that the analysis expects
    Theory(theory::Options),
    /// Measure normal traffic during a scan, each packet of which is a new flow
    Attack(attack::Options),
}

impl Flow {
    /// Runs the command, and prints its results.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Replay(options) => replay::run(&options),
            Self::Bench(options) => bench::run(&options),
            Self::Optimum(options) => optimum::run(&options),
            Self::Theory(options) => theory::run(&options),
            Self::Attack(options) => attack::run(&options),
        }
    }
}
