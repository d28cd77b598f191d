//! The results.

use std::fmt::{self, Display};

use nuthatch_bench::host::Host;
use nuthatch_bench::report::Spread;
use serde::{Deserialize, Serialize};

use crate::client::Operation;
use crate::process::Task;

/// The results of the local bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// Bytes of a value.
    pub value_size: u32,
    /// Threads of each server.
    pub server_threads: u32,
    /// One call after the other, in one process or several.
    pub rows: Vec<Row>,
    /// Many callers in one process, gets.
    pub pipelining: Vec<Row>,
    /// What could not be measured here, and why.
    pub skipped: Vec<Skipped>,
}

/// One way, with so many processes and callers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The way.
    pub way: String,
    /// What it did.
    pub operation: Operation,
    /// Items that there were.
    pub keys: u32,
    /// Clients' processes.
    pub processes: usize,
    /// Tasks or threads of each.
    pub callers: usize,
    /// Calls that were timed together: percentiles are those of their means.
    pub together: u64,
    /// Half of the calls took at most so many microseconds.
    pub p50_us: Spread,
    /// 99 of 100.
    pub p99_us: Spread,
    /// Calls a second of all processes.
    pub ops_per_s: Spread,
    /// Processor time of the clients for a call, in microseconds.
    pub client_cpu_us_per_op: Spread,
    /// The server's, if there is one.
    pub server_cpu_us_per_op: Option<Spread>,
}

/// What could not be measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Skipped {
    /// The way.
    pub way: String,
    /// Why.
    pub why: String,
}

/// One round of a way.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub together: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub ops_per_s: f64,
    pub client_cpu_us_per_op: f64,
    pub server_cpu_us_per_op: Option<f64>,
}

impl Row {
    /// The row of at least one round.
    pub fn of(way: &str, processes: usize, task: &Task, rounds: &[Round]) -> Self {
        let spread = |of: fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
        let server: Option<Vec<f64>> = rounds
            .iter()
            .map(|round| round.server_cpu_us_per_op)
            .collect();
        Self {
            way: way.to_owned(),
            operation: task.operation,
            keys: task.keys,
            processes,
            callers: task.callers,
            together: rounds.iter().map(|round| round.together).max().unwrap_or(1),
            p50_us: spread(|round| round.p50_us),
            p99_us: spread(|round| round.p99_us),
            ops_per_s: spread(|round| round.ops_per_s),
            client_cpu_us_per_op: spread(|round| round.client_cpu_us_per_op),
            server_cpu_us_per_op: server.map(Spread::of),
        }
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.host)?;
        writeln!(
            out,
            "values of {} bytes; servers with {} threads; medians (least to greatest round); microseconds",
            self.value_size, self.server_threads
        )?;
        let mut before = None;
        for row in &self.rows {
            let about = (row.operation, row.keys, row.processes);
            if before != Some(about) {
                let (operation, keys, processes) = (row.operation.name(), row.keys, row.processes);
                writeln!(out, "{operation}, {keys} keys, processes: {processes}")?;
                before = Some(about);
            }
            writeln!(out, "  {row}")?;
        }
        let mut before = None;
        for row in &self.pipelining {
            if before != Some(row.callers) {
                writeln!(out, "get, {} keys, callers: {}", row.keys, row.callers)?;
                before = Some(row.callers);
            }
            writeln!(out, "  {row}")?;
        }
        for skipped in &self.skipped {
            writeln!(out, "left out: {}: {}", skipped.way, skipped.why)?;
        }
        Ok(())
    }
}

impl Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{:36} p50 {:.3}, p99 {:.3}, {:.0} op/s, client CPU {:.3}",
            self.way, self.p50_us, self.p99_us, self.ops_per_s, self.client_cpu_us_per_op
        )?;
        match &self.server_cpu_us_per_op {
            Some(server) => write!(out, ", server CPU {server:.3}"),
            None => Ok(()),
        }
    }
}
