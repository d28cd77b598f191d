//! A client's process: it connects, says that it is ready, waits for a line, measures, and answers with what it found.

mod calls;
mod pipelining;
mod plain;

use std::io::{BufRead, stdin};
use std::time::Duration;

use clap::{Args, ValueEnum};
use nuthatch_program::{Failure, output};
use serde::{Deserialize, Serialize};

use crate::found::Found;

/// The line of a process that is ready.
pub const READY: &str = "ready";

/// How the line of one begins that cannot do what it was started for.
pub const CANNOT: &str = "cannot: ";

/// How a process reaches the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Means {
    /// The library: a cache of its own
    Cache,
    /// The server's memory
    Direct,
    /// nuthatch-client, by an address
    Client,
    /// A write and a read on a socket, nothing else
    Plain,
    /// Tasks of nuthatch-client on one connection
    Tasks,
    /// The same, with a connection each
    TasksEach,
    /// Threads of nuthatch-client on one connection
    Threads,
    /// The same, with a connection each
    ThreadsEach,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Gets of items that are there
    Get,
    /// Sets of items that are there
    Set,
}

impl Operation {
    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
        }
    }
}

/// What a client's process is to do.
#[derive(Args, Clone, Debug)]
pub struct Job {
    /// How it reaches the items
    #[arg(long, value_enum)]
    pub means: Means,
    /// Where they are: an address of nuthatch-client, or for `direct` a path
    #[arg(long, default_value = "")]
    pub target: String,
    /// What it does
    #[arg(long, value_enum)]
    pub operation: Operation,
    /// Items that there are
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub keys: u32,
    /// Bytes of a value
    #[arg(long)]
    pub value_size: usize,
    /// How long
    #[arg(long)]
    pub seconds: f64,
    /// Another one is another order of keys
    #[arg(long, default_value_t = 1)]
    pub seed: u32,
    /// Tasks or threads
    #[arg(long, default_value_t = 1)]
    pub callers: usize,
}

impl Job {
    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

/// Runs a client's process.
pub fn run(job: &Job) -> Result<(), Failure> {
    let found = match job.means {
        Means::Cache => answer(calls::cache(job)),
        Means::Direct => answer(calls::direct(job)),
        Means::Client => answer(calls::client(job)),
        Means::Plain => answer(plain::calls(job)),
        Means::Tasks => answer(pipelining::tasks(job, true)),
        Means::TasksEach => answer(pipelining::tasks(job, false)),
        Means::Threads => answer(pipelining::threads(job, true)),
        Means::ThreadsEach => answer(pipelining::threads(job, false)),
    }?;
    match found {
        Some(found) => {
            let line = serde_json::to_string(&found).map_err(|error| error.to_string())?;
            output::print(&(line + "\n"))
        }
        None => Ok(()),
    }
}

/// Says whether what was made can be measured, waits for the line that begins, and measures. None if that line never came,
/// or there is nothing to measure.
fn answer(
    made: Result<impl FnOnce() -> Result<Found, String>, String>,
) -> Result<Option<Found>, Failure> {
    let measure = match made {
        Ok(measure) => measure,
        Err(why) => {
            output::print(&format!("{CANNOT}{}\n", why.replace('\n', " ")))?;
            return Ok(None);
        }
    };
    output::print(&format!("{READY}\n"))?;
    let mut line = String::new();
    match stdin().lock().read_line(&mut line) {
        Ok(1..) => Ok(Some(measure()?)),
        // Who started it has ended.
        _ => Ok(None),
    }
}
