//! The run: all ways in turn, round by round.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nuthatch_bench::host::Host;
use nuthatch_bench::os;
use nuthatch_bench::started::stop_on_signals;
use nuthatch_program::Failure;

use crate::client::Operation;
use crate::found::{Found, Times};
use crate::options::Options;
use crate::process::{NotRun, Process, Task};
use crate::report::{Report, Round, Row, Skipped};
use crate::servers::Servers;
use crate::ways::{self, Way};

/// The clients in Python.
const SCRIPT: &str = include_str!("../python/client.py");

/// Runs the bench. `program` is the server.
pub fn run(program: &Path, options: &Options) -> Result<Report, Failure> {
    options.check()?;
    let stop = stop_on_signals()?;
    let mut run = Run {
        options,
        stop: &stop,
        report: Report {
            host: Host::ask(),
            value_size: options.value_size,
            server_threads: options.threads,
            rows: Vec::new(),
            pipelining: Vec::new(),
            skipped: Vec::new(),
        },
        cannot: BTreeSet::new(),
    };
    for (place, &keys) in options.keys.iter().enumerate() {
        let mut servers = Servers::start(program, options, keys, &stop)?;
        if let Err(why) = &servers.memcached {
            run.skip("memcached", why);
        }
        let mut all = ways::single(&servers);
        if let (0, Some(python)) = (place, &options.python) {
            let script = servers.path("client.py");
            std::fs::write(&script, SCRIPT)?;
            servers.start_manager(python, &script, &stop)?;
            all.extend(ways::python(&servers, python, &script));
        }
        run.single(&all, keys)?;
        if place == 0 {
            run.pipelining(&ways::pipelining(&servers), keys)?;
        }
    }
    Ok(run.report)
}

/// A run under way.
struct Run<'r> {
    options: &'r Options,
    stop: &'r AtomicBool,
    report: Report,
    /// Ways that cannot be had here.
    cannot: BTreeSet<String>,
}

impl Run<'_> {
    fn skip(&mut self, way: &str, why: &str) {
        if self.cannot.insert(way.to_owned()) {
            self.report.skipped.push(Skipped {
                way: way.to_owned(),
                why: why.to_owned(),
            });
        }
    }

    /// One call after the other, in so many processes at once.
    fn single(&mut self, ways: &[Way], keys: u32) -> Result<(), Failure> {
        for &operation in &self.options.operations {
            let some: Vec<&Way> = ways.iter().filter(|way| way.has(operation)).collect();
            for &processes in &self.options.processes {
                let task = self.task(operation, keys, 1);
                let rows = self.rows(&some, processes, &task)?;
                self.report.rows.extend(rows);
            }
        }
        Ok(())
    }

    /// Many callers in one process.
    fn pipelining(&mut self, ways: &[Way], keys: u32) -> Result<(), Failure> {
        let all: Vec<&Way> = ways.iter().collect();
        for &callers in self.options.callers.iter().filter(|&&callers| callers > 0) {
            let task = self.task(Operation::Get, keys, callers);
            let rows = self.rows(&all, 1, &task)?;
            self.report.pipelining.extend(rows);
        }
        Ok(())
    }

    fn task(&self, operation: Operation, keys: u32, callers: usize) -> Task {
        Task {
            operation,
            keys,
            value_size: self.options.value_size,
            seconds: self.options.seconds,
            callers,
        }
    }

    /// A row for each way that can be had, from rounds in turn, every second in the opposite order.
    fn rows(&mut self, ways: &[&Way], processes: usize, task: &Task) -> Result<Vec<Row>, Failure> {
        let mut rounds: Vec<Vec<Round>> = ways.iter().map(|_| Vec::new()).collect();
        for round in 0..self.options.rounds {
            for place in 0..ways.len() {
                let number = [place, ways.len() - 1 - place][round % 2];
                let way = ways[number];
                // Relaxed: the flag publishes no other memory.
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Failure::run("interrupted"));
                }
                if self.cannot.contains(&way.name) {
                    continue;
                }
                match one_round(way, processes, task) {
                    Ok(found) => rounds[number].push(found),
                    Err(NotRun::Cannot(why)) => self.skip(&way.name, &why),
                    Err(NotRun::Failed(why)) => return Err(why.into()),
                }
            }
        }
        let measured = ways.iter().zip(&rounds);
        Ok(measured
            .filter(|(_, rounds)| !rounds.is_empty())
            .map(|(way, rounds)| Row::of(&way.name, processes, task, rounds))
            .collect())
    }
}

/// All clients' processes of a way, which begin together when all are ready.
fn one_round(way: &Way, processes: usize, task: &Task) -> Result<Round, NotRun> {
    let started = (0..)
        .take(processes)
        .map(|number| Process::start(way, task, number));
    let mut clients = started.collect::<Result<Vec<Process>, NotRun>>()?;
    for client in &mut clients {
        client.wait_until_ready()?;
    }
    let measured = || -> Result<(Vec<Found>, Option<f64>), String> {
        let before = way.server.map(os::cpu_time).transpose()?;
        for client in &mut clients {
            client.begin()?;
        }
        let found = clients.iter_mut().map(Process::found);
        let found = found.collect::<Result<Vec<Found>, String>>()?;
        let after = way.server.map(os::cpu_time).transpose()?;
        let used = before
            .zip(after)
            .map(|(before, after)| after.saturating_sub(before).as_secs_f64());
        Ok((found, used))
    };
    let mut measured = measured;
    let (found, server) = measured().map_err(NotRun::Failed)?;
    round(&found, server).map_err(|why| NotRun::Failed(format!("{}: {why}", way.name)))
}

/// What all clients of a round found together.
fn round(found: &[Found], server_seconds: Option<f64>) -> Result<Round, String> {
    let operations: u64 = found.iter().map(|found| found.operations).sum();
    if operations == 0 {
        return Err("no call was made".to_owned());
    }
    let mut times = Times::new();
    for &(nanoseconds, often) in found.iter().flat_map(|found| &found.times) {
        times.add(nanoseconds, often);
    }
    let us_per_op = |seconds: f64| seconds * 1e6 / operations as f64;
    Ok(Round {
        together: found.iter().map(|found| found.together).max().unwrap_or(1),
        p50_us: times.at_us(0.5),
        p99_us: times.at_us(0.99),
        ops_per_s: found
            .iter()
            .map(|found| found.operations as f64 / found.seconds)
            .sum(),
        client_cpu_us_per_op: us_per_op(found.iter().map(|found| found.cpu_seconds).sum()),
        server_cpu_us_per_op: server_seconds.map(us_per_op),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_a_round_are_one_crowd() {
        let client = |operations, seconds, times| Found {
            operations,
            seconds,
            cpu_seconds: 0.5,
            together: 1,
            times,
        };
        let both = [
            client(300, 1.0, vec![(1000, 300)]),
            client(100, 2.0, vec![(9000, 100)]),
        ];
        let round = round(&both, Some(0.2)).unwrap();
        assert_eq!(round.ops_per_s, 350.0);
        assert_eq!(round.client_cpu_us_per_op, 2500.0);
        assert_eq!(round.server_cpu_us_per_op, Some(500.0));
        assert!((0.99..1.01).contains(&round.p50_us), "{}", round.p50_us);
        assert!((8.9..9.1).contains(&round.p99_us), "{}", round.p99_us);
        assert!(super::round(&[], None).is_err());
    }
}
