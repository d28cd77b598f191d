//! Load on a server that speaks memcached's protocols, Redis' or CPServer's, with TLS or without.
//!
//! Requests are made beforehand, replies are checked: see [`script`] and [`replies`]. Latency is that
//! of a request: from the moment its block of pipelined requests is sent to the moment its reply is
//! seen. One key is one operation.

use std::fmt::{self, Display};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::engine::{Distribution, Items, Sizes};
use crate::os;
use nuthatch_program::Failure;

mod binary;
mod client;
mod connection;
mod cpserver;
mod occupied;
mod replies;
mod resp;
mod scan;
mod script;
mod stream;

use client::{Client, Course, LOOK};
use connection::Advance;
pub use occupied::refuse as refuse_occupied;
pub use scan::Protocol;
use scan::{Counts, Scanner};
use script::{Script, Shape, server_of};
pub(crate) use stream::{ask, connect_patiently};

/// The share of a run's time that is spent before it, uncounted.
const WARM_UP: f64 = 0.1;

/// Items stored in one piece while preloading, at most.
const PRELOAD: u64 = 1 << 14;

/// A load, as typed.
#[derive(Args, Clone, Debug)]
pub struct LoadOptions {
    /// Protocol of the server. CPServer's keys have 8 bytes, whatever --key-size says
    #[arg(long, value_enum, default_value_t = Protocol::Memcached)]
    pub protocol: Protocol,
    /// Number of connections
    #[arg(long, value_name = "C", default_value_t = 50)]
    pub conns: usize,
    /// Requests sent at once on a connection
    #[arg(long, value_name = "P", default_value_t = 1)]
    pub pipeline: usize,
    /// Number of keys of each get
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub multiget: usize,
    /// The share of gets; the rest are sets
    #[arg(long, value_name = "R", default_value_t = 1.0)]
    pub get_ratio: f64,
    /// Items stored before the clock starts
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub keys: u64,
    /// Sizes of keys and values.
    #[command(flatten)]
    pub sizes: Sizes,
    /// Distribution of the requested keys
    #[arg(long, value_enum, default_value_t = Distribution::Uniform)]
    pub dist: Distribution,
    /// Seconds to measure
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    pub seconds: f64,
    /// Use TLS, and accept any certificate of the server
    #[arg(long)]
    pub tls: bool,
    /// Number of threads of the load
    #[arg(long, value_name = "T", default_value_t = 1)]
    pub threads: usize,
}

/// Options of the server bench.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:11211")]
    pub target: String,
    /// Process id of the server, to measure its CPU time too
    #[arg(long)]
    pub pid: Option<u32>,
    /// Run even if the server already holds items, which the load replaces or evicts, or if it does not say whether it
    /// does, as by CPServer's protocol
    #[arg(long)]
    pub overwrite: bool,
    /// The load.
    #[command(flatten)]
    pub load: LoadOptions,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The results of the server bench. Percentiles are of requests, in microseconds.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Report {
    /// Keys got or set in a second.
    pub ops_per_s: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
    /// Keys that had a value.
    pub hits: u64,
    /// Keys that had none.
    pub misses: u64,
    /// Values stored.
    pub stored: u64,
    /// The server's CPU time for a key, user and system, in microseconds.
    pub server_cpu_us_per_op: Option<f64>,
}

/// Runs the server bench.
#[expect(clippy::disallowed_methods, reason = "a bench may wait for a name")]
pub fn run(options: &Options) -> Result<Report, Failure> {
    let target = options
        .target
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next())
        .ok_or_else(|| Failure::Usage(format!("--target {}: not a HOST:PORT", options.target)))?;
    let load = Load::new(&options.load, 1)?;
    if !options.overwrite {
        refuse_occupied(target, options.load.protocol, options.load.tls)?;
    }
    let stop = AtomicBool::new(false);
    load.preload(&[target], &stop)?;
    Ok(load.run(&[target], options.pid.as_slice(), None, &stop)?)
}

/// A load, ready to run on servers.
pub(crate) struct Load {
    protocol: Protocol,
    items: Items,
    /// One for each server among which the keys are divided.
    scripts: Vec<Script>,
    scanner: Scanner,
    tls: bool,
    conns: usize,
    threads: usize,
    time: Duration,
}

impl Load {
    /// Checks the options and makes the requests, for so many servers among which the keys are divided.
    pub fn new(options: &LoadOptions, servers: usize) -> Result<Self, Failure> {
        let protocol = options.protocol;
        let mut sizes = options.sizes.clone();
        if let Some(dialect) = protocol.dialect() {
            sizes.key_size = cpserver::KEY_SIZE;
            if dialect.stores_silently() && options.get_ratio == 0.0 {
                let error = "--get-ratio 0: nothing would tell when; take cpserver-extended";
                return Err(Failure::usage(error));
            }
        }
        if options.multiget > 1 && protocol != Protocol::Memcached {
            return Err(Failure::usage("--multiget: only memcached's text protocol"));
        }
        let items = sizes.items(options.keys)?;
        if options.conns == 0 || options.pipeline == 0 || options.multiget == 0 {
            return Err(Failure::usage(
                "--conns, --pipeline, --multiget: at least 1",
            ));
        }
        if options.threads == 0 || options.threads > options.conns {
            return Err(Failure::usage("--threads: at least 1, at most --conns"));
        }
        if !(0.0..=1.0).contains(&options.get_ratio) {
            return Err(Failure::usage("--get-ratio: 0 to 1"));
        }
        if !(0.0..=1e6).contains(&options.seconds) {
            return Err(Failure::usage("--seconds: 0 to a million"));
        }
        let shape = Shape {
            protocol,
            items,
            distribution: options.dist,
            pipeline: options.pipeline,
            multiget: options.multiget,
            get_ratio: options.get_ratio,
        };
        Ok(Self {
            protocol,
            items,
            scripts: Script::divided(&shape, servers),
            scanner: Scanner::new(protocol, &items),
            tls: options.tls,
            conns: options.conns,
            threads: options.threads,
            time: Duration::from_secs_f64(options.seconds),
        })
    }

    /// Stores all items, each on its server.
    pub fn preload(&self, targets: &[SocketAddr], stop: &AtomicBool) -> Result<(), String> {
        let piece = self.items.at_most(PRELOAD);
        for (server, target) in targets.iter().enumerate() {
            let mut client = Client::connect(&[*target], 1, self.tls, &self.scanner)?;
            for from in (0..self.items.count).step_by(piece as usize) {
                let numbers = from..(from + piece).min(self.items.count);
                let is_own = |number: &u64| server_of(*number, targets.len()) == server;
                let numbers: Vec<u64> = numbers.filter(is_own).collect();
                let script = Script::preload(self.protocol, &self.items, &numbers);
                let mut blocks = 0..script.blocks();
                client.drive(&[script], &self.scanner, &mut blocks, stop)?;
            }
        }
        Ok(())
    }

    /// Runs the load on the servers among which it divides its keys, and measures. Threads of the load are pinned to `cores`,
    /// if given.
    pub fn run(
        &self,
        targets: &[SocketAddr],
        pids: &[u32],
        cores: Option<&[usize]>,
        stop: &AtomicBool,
    ) -> Result<Report, String> {
        let mut clients = Vec::new();
        for thread in 0..self.threads {
            let conns = self.conns / self.threads + usize::from(thread < self.conns % self.threads);
            clients.push(Client::connect(targets, conns, self.tls, &self.scanner)?);
        }
        let from = Instant::now() + self.time.mul_f64(WARM_UP);
        let window = Window {
            from,
            to: from + self.time,
        };
        let failed = AtomicBool::new(false);
        thread::scope(|scope| {
            let running: Vec<_> = clients
                .into_iter()
                .enumerate()
                .map(|(thread, client)| {
                    let core = cores.map(|cores| cores[thread % cores.len()]);
                    let failed = &failed;
                    scope.spawn(move || {
                        let part = self.run_part(client, thread, core, &window, stop);
                        // Relaxed: only ends a wait early.
                        failed.fetch_or(part.is_err(), Ordering::Relaxed);
                        part
                    })
                })
                .collect();
            let over = || failed.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
            wait_until(window.from, &over);
            let cpu_before = cpu_time(pids);
            wait_until(window.to, &over);
            let cpu_after = cpu_time(pids);
            let mut sum = Part::new();
            for thread in running {
                let part = thread
                    .join()
                    .map_err(|_| "a thread panicked".to_owned())??;
                sum.add(&part);
            }
            let cpu = cpu_after?.saturating_sub(cpu_before?);
            let cpu = (!pids.is_empty()).then_some(cpu);
            report(&sum, &window, cpu)
        })
    }

    fn run_part(
        &self,
        mut client: Client,
        thread: usize,
        core: Option<usize>,
        window: &Window,
        stop: &AtomicBool,
    ) -> Result<Part, String> {
        core.map_or(Ok(()), os::pin)?;
        let blocks = self.scripts[0].blocks();
        let mut course = Measured {
            window: *window,
            over: false,
            blocks,
            block: thread * blocks / self.threads,
            part: Part::new(),
        };
        client.drive(&self.scripts, &self.scanner, &mut course, stop)?;
        Ok(course.part)
    }
}

/// CPU time of all these processes.
fn cpu_time(pids: &[u32]) -> Result<Duration, String> {
    pids.iter().copied().map(os::cpu_time).sum()
}

fn report(sum: &Part, window: &Window, cpu: Option<Duration>) -> Result<Report, String> {
    let operations = sum.counts.operations();
    let Some(last) = sum.last.filter(|_| operations > 0) else {
        return Err("nothing was answered".to_owned());
    };
    let time = last.max(window.to).duration_since(window.from);
    let at = |quantile| sum.latency.value_at_quantile(quantile) as f64 / 1e3;
    Ok(Report {
        ops_per_s: operations as f64 / time.as_secs_f64(),
        p50_us: at(0.5),
        p90_us: at(0.9),
        p99_us: at(0.99),
        p999_us: at(0.999),
        max_us: sum.latency.max() as f64 / 1e3,
        hits: sum.counts.hits,
        misses: sum.counts.misses,
        stored: sum.counts.stored,
        server_cpu_us_per_op: cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / operations as f64),
    })
}

/// The time that counts.
#[derive(Clone, Copy)]
struct Window {
    from: Instant,
    to: Instant,
}

/// Sleeps until a moment, or until it is over.
pub fn wait_until(moment: Instant, over: &dyn Fn() -> bool) {
    while !over() {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        thread::sleep(left.min(LOOK));
    }
}

/// The scripts' blocks round and round, counted within a window of time.
struct Measured {
    window: Window,
    over: bool,
    blocks: usize,
    block: usize,
    part: Part,
}

impl Course for Measured {
    fn next(&mut self) -> Option<usize> {
        self.block = (self.block + 1) % self.blocks;
        (!self.over).then_some(self.block)
    }

    fn advance(&mut self, advance: &Advance) {
        self.over = advance.at >= self.window.to;
        // Something is counted even if the machine stood still during the whole window.
        let late = self.over && self.part.last.is_some();
        if advance.at >= self.window.from && !late {
            self.part.record(advance);
        }
    }
}

/// What a thread of the load counted.
struct Part {
    counts: Counts,
    /// When its last reply arrived.
    last: Option<Instant>,
    /// In nanoseconds.
    latency: Histogram<u64>,
}

impl Part {
    fn new() -> Self {
        Self {
            counts: Counts::default(),
            last: None,
            latency: Histogram::new(3).expect("three digits are lawful"),
        }
    }

    fn record(&mut self, advance: &Advance) {
        self.counts.add(&advance.counts);
        self.last = Some(advance.at);
        let latency = advance.at.duration_since(advance.sent_at).as_nanos() as u64;
        self.latency
            .record_n(latency, advance.requests)
            .expect("a histogram that resizes takes any value");
    }

    fn add(&mut self, other: &Part) {
        self.counts.add(&other.counts);
        self.last = self.last.max(other.last);
        // Both are resized as needed: nothing is out of range.
        self.latency
            .add(&other.latency)
            .expect("a histogram that resizes takes any other");
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{:.0} operations a second: {} hits, {} misses, {} stored",
            self.ops_per_s, self.hits, self.misses, self.stored
        )?;
        writeln!(
            out,
            "  latency in us: p50 {:.1}  p90 {:.1}  p99 {:.1}  p99.9 {:.1}  max {:.1}",
            self.p50_us, self.p90_us, self.p99_us, self.p999_us, self.max_us
        )?;
        match self.server_cpu_us_per_op {
            Some(cpu) => writeln!(out, "  the server's CPU time: {cpu:.3} us an operation"),
            None => Ok(()),
        }
    }
}
