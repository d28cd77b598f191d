//! Two servers in turn under the same load: A B A B, pinned to other cores than the load.

use std::fmt::{self, Display};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::os;
use crate::report::Spread;
use crate::server::{Load, LoadOptions, Report as Run};

/// How often a starting server is tried, and an ending one looked after.
const LOOK: Duration = Duration::from_millis(10);

/// So often an ending server is looked after before it is killed.
const LOOKS_BEFORE_KILL: usize = 500;

/// Options of the versus bench.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The rival's command line, split at spaces; {port} becomes a free port
    #[arg(long, value_name = "COMMAND")]
    pub rival: String,
    /// Arguments of `nuthatch serve`, split at spaces; {port} becomes a free port
    #[arg(
        long,
        value_name = "ARGS",
        default_value = "-l 127.0.0.1 -p {port} -t 1 -m 1024",
        allow_hyphen_values = true
    )]
    pub ours: String,
    /// Rounds of each server
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Cores of the servers [default: the first]
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    pub server_cores: Vec<usize>,
    /// Cores of the load [default: the others]
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
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Its command line.
    pub command: String,
    /// Keys a second.
    pub ops_per_s: Spread,
    /// CPU time for a key, in microseconds.
    pub server_cpu_us_per_op: Spread,
    /// 99th percentile of requests, in microseconds.
    pub p99_us: Spread,
    /// Keys that had no value, over all rounds.
    pub misses: u64,
}

/// What the versus bench found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Ours by the rival, round by round.
    pub ratio_ops_per_s: Spread,
    /// Ours by the rival, round by round: less than 1 is cheaper.
    pub ratio_server_cpu: Spread,
    /// Our side.
    pub ours: Side,
    /// The rival's side.
    pub rival: Side,
}

/// Runs the versus bench. `program` is the binary whose `serve` is ours.
pub fn run(program: &Path, options: &Options) -> Result<Report, String> {
    if options.rounds == 0 {
        return Err("--rounds: at least 1".to_owned());
    }
    let load = Load::new(&options.load)?;
    let cores = Cores::choose(options);
    let stop = stop_on_signals()?;

    let ours = format!("{} serve {}", program.display(), options.ours);
    let servers = [
        Server::start(&ours, &cores.servers, &stop)?,
        Server::start(&options.rival, &cores.servers, &stop)?,
    ];
    for server in &servers {
        load.preload(server.address, &stop)?;
    }
    let mut runs: [Vec<Run>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..options.rounds {
        for (server, runs) in servers.iter().zip(&mut runs) {
            let pid = Some(server.child.id());
            runs.push(load.run(server.address, pid, Some(&cores.load), &stop)?);
        }
    }
    let [ours, rival] = &runs;
    Ok(Report {
        ratio_ops_per_s: ratio(ours, rival, |run| run.ops_per_s),
        ratio_server_cpu: ratio(ours, rival, cpu),
        ours: side(&servers[0].command, ours),
        rival: side(&servers[1].command, rival),
    })
}

fn cpu(run: &Run) -> f64 {
    run.server_cpu_us_per_op.unwrap_or(f64::NAN)
}

fn ratio(ours: &[Run], rival: &[Run], of: fn(&Run) -> f64) -> Spread {
    let ours: Vec<f64> = ours.iter().map(of).collect();
    let rival: Vec<f64> = rival.iter().map(of).collect();
    Spread::of_ratios(&ours, &rival)
}

fn side(command: &str, runs: &[Run]) -> Side {
    Side {
        command: command.to_owned(),
        ops_per_s: Spread::of(runs.iter().map(|run| run.ops_per_s)),
        server_cpu_us_per_op: Spread::of(runs.iter().map(cpu)),
        p99_us: Spread::of(runs.iter().map(|run| run.p99_us)),
        misses: runs.iter().map(|run| run.misses).sum(),
    }
}

/// Set when the run is interrupted or terminated.
fn stop_on_signals() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| format!("signals: {error}"))?;
    }
    Ok(stop)
}

/// Who runs where.
#[derive(Debug, PartialEq, Eq)]
struct Cores {
    servers: Vec<usize>,
    load: Vec<usize>,
}

impl Cores {
    fn choose(options: &Options) -> Self {
        let all = os::cores();
        let servers = if options.server_cores.is_empty() {
            vec![all[0]]
        } else {
            options.server_cores.clone()
        };
        let others: Vec<usize> = all
            .iter()
            .copied()
            .filter(|core| !servers.contains(core))
            .collect();
        let load = match (options.load_cores.is_empty(), others.is_empty()) {
            (false, _) => options.load_cores.clone(),
            (true, false) => others,
            // One core for everything.
            (true, true) => servers.clone(),
        };
        Self { servers, load }
    }
}

/// A server that was started here, and is ended here.
struct Server {
    command: String,
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts a server on a free port, and waits until it takes a connection.
    fn start(command: &str, cores: &[usize], stop: &AtomicBool) -> Result<Self, String> {
        let address = free_address().map_err(|error| format!("no free port: {error}"))?;
        let command = command.replace("{port}", &address.port().to_string());
        let child = spawn(&command, cores).map_err(|error| format!("{command}: {error}"))?;
        let mut server = Self {
            command,
            child,
            address,
        };
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("{}: ended at once: {status}", server.command));
            }
            if stop.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            thread::sleep(LOOK);
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        os::ask_to_end(self.child.id());
        for _ in 0..LOOKS_BEFORE_KILL {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(LOOK);
        }
        // It did not listen. Errors mean that it has just ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Starts a command on some cores. A child inherits the affinity of the thread that starts it, so it
/// is started from a thread that has it.
fn spawn(command: &str, cores: &[usize]) -> Result<Child, String> {
    let mut words = command.split_whitespace();
    let program = words.next().ok_or("no command")?;
    let mut command = Command::new(program);
    command
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    thread::scope(|scope| {
        let starter = scope.spawn(|| {
            os::pin_to(cores)?;
            command.spawn().map_err(|error| error.to_string())
        });
        starter.join().map_err(|_| "a thread panicked".to_owned())?
    })
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, side) in [("ours", &self.ours), ("rival", &self.rival)] {
            writeln!(
                out,
                "{name:<6} {:.0} op/s, CPU {:.3} us/op, p99 {:.1} us, {} misses: {}",
                side.ops_per_s, side.server_cpu_us_per_op, side.p99_us, side.misses, side.command
            )?;
        }
        writeln!(
            out,
            "ours by rival: operations a second {:.2}, server CPU time an operation {:.3}",
            self.ratio_ops_per_s, self.ratio_server_cpu
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_cannot_start_or_stay_is_named() {
        let stop = AtomicBool::new(false);
        let cores = os::cores();
        let missing = Server::start("/no/such/server -p {port}", &cores, &stop);
        assert!(missing.is_err_and(|error| error.starts_with("/no/such/server -p ")));
        let ending = Server::start("true", &cores, &stop);
        assert!(ending.is_err_and(|error| error.starts_with("true: ended at once")));
    }

    #[test]
    fn an_interrupted_start_ends_the_child() {
        let stop = AtomicBool::new(true);
        let started = Server::start("sleep 1000", &os::cores(), &stop);
        assert_eq!(started.err().as_deref(), Some("interrupted"));
    }
}
