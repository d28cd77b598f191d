//! `nuthatch-lab hash`: which hash function and which table size suit a set of keys, and how a
//! running index is doing.

use clap::Subcommand;
use nuthatch_keys::{analyze, collect, figures, live, size};

use nuthatch_program::Failure;

/// What about hashing.
#[derive(Debug, Subcommand)]
pub enum Hash {
    /// Compare hash functions on a file of keys, and recommend one
    Analyze(analyze::Options),
    /// Write real keys of this machine's file systems to standard output
    #[command(subcommand)]
    Collect(collect::Collect),
    /// The table that each rule gives for an amount of memory
    Size(size::Options),
    /// Show how the index of a running server is doing
    Live(live::Options),
    /// Reproduce the Linux paper's histograms and tables, in kind
    Figures(figures::Options),
}

impl Hash {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Analyze(options) => analyze::run(&options),
            Self::Collect(collect) => collect::run(&collect),
            Self::Size(options) => size::run(&options),
            Self::Live(options) => live::run(&options),
            Self::Figures(options) => figures::run(&options),
        }
    }
}
