//! The versus bench: servers in turn under the same load, A B A B, pinned to other cores than the load.

use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::cores::Cores;
use crate::host::Host;
use crate::os;
use crate::report::Spread;
use crate::server::{Load, LoadOptions, Protocol, Report as Run};
use crate::started::{Started, stop_on_signals};
use nuthatch_program::Failure;

/// The first version of memcached that does not write each pipelined get to the socket by itself.
const JOINS_REPLIES: [u32; 3] = [1, 6, 35];

/// Options of the versus bench.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Command line of a rival, split at spaces; {port} becomes a free port. Repeat the option for each rival
    #[arg(long = "rival", value_name = "COMMAND", required = true)]
    pub rivals: Vec<String>,
    /// Arguments of `nuthatch serve`, or with --lab of `nuthatch-lab serve`, split at spaces; {port} becomes a free port
    #[arg(
        long,
        value_name = "ARGS",
        default_value = "-l 127.0.0.1 -p {port} -t 1 -m 1024",
        allow_hyphen_values = true
    )]
    pub ours: String,
    /// Ours is `nuthatch-lab serve`, which has every engine
    #[arg(long)]
    pub lab: bool,
    /// Each rival is so many servers, the n-th on the n-th of --server-cores if there are so many; the clients divide the keys
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub shards: u16,
    /// Number of rounds of each server
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Cores of the servers [default: the first core]
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    pub server_cores: Vec<usize>,
    /// Cores of the load [default: the other cores]
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    pub load_cores: Vec<usize>,
    /// The load; `--seconds` are those of each round.
    #[command(flatten)]
    pub load: LoadOptions,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// One server's side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Side {
    /// The program that its protocol is named after: memcached, redis-server.
    pub program: String,
    /// Its command line; of several servers that of the first.
    pub command: String,
    /// How many servers it is, among which the keys are divided.
    #[serde(default = "one")]
    pub servers: usize,
    /// The version that it reports, if its protocol has such a request.
    pub version: Option<String>,
    /// Keys a second.
    pub ops_per_s: Spread,
    /// CPU time for a key, in microseconds.
    pub server_cpu_us_per_op: Spread,
    /// 99th percentile of requests, in microseconds.
    pub p99_us: Spread,
    /// Keys that had no value, over all rounds.
    pub misses: u64,
    /// A note if more of its threads worked than it has cores: then its figures say what sharing a core costs.
    #[serde(default)]
    pub crowded: Option<String>,
}

fn one() -> usize {
    1
}

/// A rival's side, and how ours compares.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RivalSide {
    /// Ours / the rival, round by round.
    pub ratio_ops_per_s: Spread,
    /// Ours / the rival, round by round: less than 1 is cheaper.
    pub ratio_server_cpu: Spread,
    /// Its results.
    #[serde(flatten)]
    pub side: Side,
    /// A warning about its figures.
    pub warning: Option<String>,
}

/// The results of the versus bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// What was spoken.
    pub protocol: Protocol,
    /// Within TLS.
    pub tls: bool,
    /// Connections.
    pub conns: usize,
    /// Requests sent at once on a connection.
    pub pipeline: usize,
    /// Keys of each get.
    pub multiget: usize,
    /// The share of gets.
    pub get_ratio: f64,
    /// Items stored.
    pub keys: u64,
    /// Bytes of a value.
    pub value_size: usize,
    /// Our side.
    pub ours: Side,
    /// The rivals.
    pub rivals: Vec<RivalSide>,
}

/// Runs the versus bench. `program` is the binary whose `serve` is ours.
pub fn run(program: &Path, options: &Options) -> Result<Report, Failure> {
    if options.rounds == 0 {
        return Err(Failure::usage("--rounds: at least 1"));
    }
    let shards = usize::from(options.shards);
    let whole = Load::new(&options.load, 1)?;
    let divided = match shards {
        1 => None,
        _ if options.load.protocol != Protocol::Memcached => {
            return Err(Failure::usage("--shards: only memcached's text protocol"));
        }
        _ => Some(Load::new(&options.load, shards)?),
    };
    let cores = Cores::choose(&options.server_cores, &options.load_cores)?;
    let stop = stop_on_signals()?;

    let entrants = start(
        program,
        options,
        [&whole, divided.as_ref().unwrap_or(&whole)],
        &cores,
        &stop,
    )?;
    for entrant in &entrants {
        entrant.named(entrant.load.preload(&entrant.addresses(), &stop))?;
    }
    let mut runs: Vec<Vec<Run>> = entrants.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for place in 0..entrants.len() {
            let number = [place, entrants.len() - 1 - place][round % 2];
            runs[number].push(entrants[number].run(&cores.load, &stop)?);
        }
    }
    let protocol = options.load.protocol;
    let mut sides = entrants
        .iter()
        .zip(&runs)
        .map(|(entrant, runs)| entrant.side(runs, options, &cores));
    let ours: Side = sides.next().ok_or_else(|| "no servers".to_owned())??;
    let sides = sides.collect::<Result<Vec<Side>, String>>()?;
    let rivals = sides
        .into_iter()
        .zip(&runs[1..])
        .map(|(side, rival)| RivalSide {
            ratio_ops_per_s: ratio(&runs[0], rival, |run| run.ops_per_s),
            ratio_server_cpu: ratio(&runs[0], rival, cpu),
            warning: match protocol {
                Protocol::Redis => None,
                _ => side.version.as_deref().and_then(warning),
            },
            side,
        });
    Ok(Report {
        host: Host::ask(),
        protocol,
        tls: options.load.tls,
        conns: options.load.conns,
        pipeline: options.load.pipeline,
        multiget: options.load.multiget,
        get_ratio: options.load.get_ratio,
        keys: options.load.keys,
        value_size: options.load.sizes.value_size,
        ours,
        rivals: rivals.collect(),
    })
}

/// Starts all servers: ours, which gets the first load, and the rivals.
fn start<'l>(
    program: &Path,
    options: &Options,
    [whole, divided]: [&'l Load; 2],
    cores: &Cores,
    stop: &AtomicBool,
) -> Result<Vec<Entrant<'l>>, String> {
    let ours = format!("{} serve {}", program.display(), options.ours);
    let mut entrants = vec![Entrant {
        load: whole,
        servers: vec![Started::start(&ours, &cores.servers, stop)?],
    }];
    let shards = usize::from(options.shards);
    for command in &options.rivals {
        let servers =
            (0..shards).map(|number| Started::start(command, cores.of_shard(number, shards), stop));
        entrants.push(Entrant {
            load: divided,
            servers: servers.collect::<Result<_, _>>()?,
        });
    }
    Ok(entrants)
}

/// Servers that are measured as one.
struct Entrant<'l> {
    load: &'l Load,
    /// One, or those among which the keys are divided.
    servers: Vec<Started>,
}

impl Entrant<'_> {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(Started::address).collect()
    }

    fn run(&self, cores: &[usize], stop: &AtomicBool) -> Result<Run, String> {
        let pids: Vec<u32> = self.servers.iter().map(Started::pid).collect();
        self.named(self.load.run(&self.addresses(), &pids, Some(cores), stop))
    }

    /// An error gets the command line of the servers, of which several run in turn.
    fn named<T>(&self, done: Result<T, String>) -> Result<T, String> {
        done.map_err(|error| format!("{}: {error}", self.servers[0].command()))
    }

    fn side(&self, runs: &[Run], options: &Options, cores: &Cores) -> Result<Side, String> {
        let first = &self.servers[0];
        let (protocol, tls) = (options.load.protocol, options.load.tls);
        let version = match protocol {
            Protocol::Memcached | Protocol::Binary => Some(first.version(tls)?),
            Protocol::Redis => Some(first.redis_version(tls)?),
            Protocol::Cpserver | Protocol::CpserverExtended => None,
        };
        let mut threads = 0;
        for server in &self.servers {
            threads += os::working_threads(server.pid())?;
        }
        Ok(Side {
            program: protocol.program().to_owned(),
            command: first.command().to_owned(),
            servers: self.servers.len(),
            version,
            ops_per_s: Spread::of(runs.iter().map(|run| run.ops_per_s)),
            server_cpu_us_per_op: Spread::of(runs.iter().map(cpu)),
            p99_us: Spread::of(runs.iter().map(|run| run.p99_us)),
            misses: runs.iter().map(|run| run.misses).sum(),
            crowded: crowded(threads, &cores.servers),
        })
    }
}

fn cpu(run: &Run) -> f64 {
    run.server_cpu_us_per_op.unwrap_or(f64::NAN)
}

fn ratio(ours: &[Run], rival: &[Run], of: fn(&Run) -> f64) -> Spread {
    let ours: Vec<f64> = ours.iter().map(of).collect();
    let rival: Vec<f64> = rival.iter().map(of).collect();
    Spread::of_ratios(&ours, &rival)
}

/// The note about a server with so many working threads on these cores.
fn crowded(threads: usize, cores: &[usize]) -> Option<String> {
    (threads > cores.len()).then(|| {
        format!(
            "{threads} of its threads share {} of the cores: these figures say nothing of a core for each \
             (--server-cores)",
            cores.len()
        )
    })
}

/// The warning about a memcached of this version.
fn warning(version: &str) -> Option<String> {
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    let version_numbers: [u32; 3] = [numbers.next()?, numbers.next()?, numbers.next()?];
    (version_numbers < JOINS_REPLIES).then(|| {
        format!(
            "memcached {version} writes the reply to each pipelined get to the socket by itself; since 1.6.35 it \
             does not: take a newer one to compare pipelines with"
        )
    })
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.host)?;
        writeln!(out, "ours   {}", self.ours)?;
        for rival in &self.rivals {
            writeln!(out, "rival  {}", rival.side)?;
            writeln!(
                out,
                "  ours / it: operations a second {:.2}, server CPU time an operation {:.3}",
                rival.ratio_ops_per_s, rival.ratio_server_cpu
            )?;
        }
        Ok(())
    }
}

impl Display for Side {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{:.0} op/s, CPU {:.3} us/op, p99 {:.1} us, {} misses: version {}, {}",
            self.ops_per_s,
            self.server_cpu_us_per_op,
            self.p99_us,
            self.misses,
            self.version.as_deref().unwrap_or("not told"),
            self.command
        )?;
        if self.servers > 1 {
            write!(out, ", {} of them", self.servers)?;
        }
        match &self.crowded {
            Some(note) => write!(out, "\n       {note}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_share_a_core_are_told() {
        assert_eq!(crowded(1, &[0]), None);
        assert_eq!(crowded(2, &[0, 1]), None);
        let note = crowded(3, &[0, 1]).unwrap();
        assert!(
            note.starts_with("3 of its threads share 2 of the cores"),
            "{note}"
        );
    }

    #[test]
    fn old_memcacheds_are_warned_of() {
        for old in ["1.4.39", "1.6.18", "1.6.34"] {
            assert!(warning(old).is_some_and(|text| text.contains(old)), "{old}");
        }
        // Ours reports 1.6.45-nuthatch-0.1.0: there is no warning about servers that are no memcached.
        for other in ["1.6.35", "1.6.45", "1.10.0", "2.0.0", "1.6.18-other-1", "x"] {
            assert_eq!(warning(other), None, "{other}");
        }
    }
}
