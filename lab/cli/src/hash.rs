//! `nuthatch-lab hash`: which hash function and which table size suit a set of keys, and how a
//! running index is doing.

use clap::Subcommand;
use nuthatch_hash_lab::figures::{self, shrink, table};
use nuthatch_hash_lab::{analyze, collect, live, size};

use nuthatch_program::Failure;

/// The subcommands for hashing.
#[derive(Debug, Subcommand)]
pub enum Hash {
    /// Compare hash functions on a file of keys, and recommend one
    Analyze(analyze::Options),
    /// Write real keys of this machine to standard output
    #[command(subcommand)]
    Collect(collect::Collect),
    /// Print the table size that each rule gives for an amount of memory
    Size(size::Options),
    /// Show the state of a running server's index
    Live(live::Options),
    /// Draw histograms and print tables of the same kinds as those of the Linux paper
    Figures(figures::Options),
    /// Measure one of the Linux paper's tables in kind, with all of its columns
    Table(table::Options),
    /// Measure searches in a dentry cache that is pruned more and more
    Shrink(shrink::Options),
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
            Self::Table(options) => table::run(&options),
            Self::Shrink(options) => shrink::run(&options),
        }
    }
}
