//! The MemC3 paper's measurements of hash tables and caches by themselves (sections 5.2 and 5.3), on the tables of `nuthatch-memc3`.

use std::io;

use clap::Subcommand;
use nuthatch_bench::report::print;
use nuthatch_memc3::Records;
use nuthatch_program::Failure;
use nuthatch_workload::KeyMaker;

pub mod caches;
pub mod lookups;
pub mod paths;

/// The measurements.
#[derive(Debug, Subcommand)]
pub enum Memc3 {
    /// Measure look-ups in each step from memcached's table to MemC3's (Figure 5)
    Lookups(lookups::Options),
    /// Measure chaining and cuckoo hashing with LRU and CLOCK as caches: throughput, items, misses (Figure 8, Table 3)
    Caches(caches::Options),
    /// Fill a cuckoo table with 1, 2, 4 and 8 search paths: how fast, how far, and what each insert costs (Table 2, Figure 4)
    Paths(paths::Options),
}

impl Memc3 {
    /// Runs one, and prints what it found.
    pub fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Lookups(options) => print("lookups", &lookups::run(options)?, options.json),
            Self::Caches(options) => print("caches", &caches::run(options)?, options.json),
            Self::Paths(options) => print("paths", &paths::run(options)?, options.json),
        }
    }
}

/// So many items, by their numbers; a value begins with its key.
fn records(count: usize, huge_pages: bool) -> io::Result<Records> {
    Records::new(count, huge_pages, |number, key, value| {
        KeyMaker::new(key.len()).write(number as u64, key);
        value[..key.len()].copy_from_slice(key);
    })
}
