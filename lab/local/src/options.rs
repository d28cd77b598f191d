//! The options.

use std::path::PathBuf;

use clap::Args;
use nuthatch_program::Failure;

use crate::client::Operation;

/// Clients' processes at once, at most.
const PROCESSES_MAX: usize = 64;

/// Tasks or threads of a process at once, at most.
const CALLERS_MAX: usize = 1000;

/// Options of the local bench.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Clients' processes at the same time, separated by commas
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,2,4,8"
    )]
    pub processes: Vec<usize>,
    /// Items that there are, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1000,1000000", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub keys: Vec<u32>,
    /// What is measured, separated by commas
    #[arg(
        long,
        value_enum,
        value_name = "OPERATION",
        value_delimiter = ',',
        default_value = "get,set"
    )]
    pub operations: Vec<Operation>,
    /// Tasks, and threads, that share a connection or have one each, separated by commas; 0: pipelining is not measured
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,4,16,64,256"
    )]
    pub callers: Vec<usize>,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub value_size: u32,
    /// Number of rounds of each way
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: usize,
    /// Seconds of each round
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    pub seconds: f64,
    /// Memory limit of each server, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(8..))]
    pub memory: u32,
    /// Threads of each server
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,
    /// The rival; left out if it is not there
    #[arg(long, value_name = "PROGRAM", default_value = "memcached")]
    pub memcached: PathBuf,
    /// Also measure clients in Python, with what this interpreter can import; with the first number of keys
    #[arg(long, value_name = "PROGRAM")]
    pub python: Option<PathBuf>,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// Errors: a number that cannot be measured with.
    pub fn check(&self) -> Result<(), Failure> {
        if self.rounds == 0 {
            return Err(Failure::usage("--rounds: at least 1"));
        }
        if !(self.seconds > 0.0 && self.seconds <= 3600.0) {
            return Err(Failure::usage("--seconds: above 0, at most 3600"));
        }
        if !self
            .processes
            .iter()
            .all(|number| (1..=PROCESSES_MAX).contains(number))
        {
            let words = format!("--processes: each 1 to {PROCESSES_MAX}");
            return Err(Failure::Usage(words));
        }
        if !self.callers.iter().all(|number| *number <= CALLERS_MAX) {
            return Err(Failure::Usage(format!(
                "--callers: each at most {CALLERS_MAX}"
            )));
        }
        Ok(())
    }
}
