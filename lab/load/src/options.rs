//! The options, as typed and as checked.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use nuthatch_program::Failure;
use nuthatch_workload::arrival::{Arrivals, Bursts, Spacing};
use nuthatch_workload::{KeyMaker, Workload};

use crate::items::{Items, LIFETIME_MAX};
use crate::round::Load;
use crate::wire::Protocol;

/// The least and the most requests a second that may be asked for. With fewer the moments are beyond what a clock counts.
const RATE_MIN: f64 = 1e-6;
const RATE_MAX: f64 = 1e7;

/// The most items and places for requests: each takes memory here.
const ITEMS_MAX: u64 = 1 << 40;
const PLACES_MAX: usize = 1 << 20;

/// Options of the load bench.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// What clients do: ycsb-a to ycsb-f; etc, usr or sys of Facebook (sys from memory: its source was not found);
    /// twitter-N, a cluster of Twitter's
    #[arg(long, value_name = "NAME")]
    pub workload: Workload,
    /// Requests a second, sent when they are due whether or not the server keeps up: latency counts from then. Without it
    /// each connection sends as soon as it has its answer
    #[arg(long, value_name = "N")]
    pub rate: Option<f64>,
    /// Distances between requests of a --rate: poisson, constant, or gpareto as fitted to Facebook's ETC
    #[arg(long, value_name = "KIND", requires = "rate", default_value = "poisson", value_parser = spacing)]
    pub arrivals: Spacing,
    /// Requests of a --rate come in bursts of ON milliseconds with pauses of OFF; the mean stays the same. --seconds must
    /// be a multiple of both together
    #[arg(long, value_name = "ON:OFF", requires = "rate")]
    pub bursts: Option<Pauses>,
    /// A running server. Without it the load starts ours, and the rivals
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["rivals", "ours", "lab", "server_cores"])]
    pub target: Option<String>,
    /// Process id of the running server, to measure its CPU time too
    #[arg(long, requires = "target")]
    pub pid: Option<u32>,
    /// Load a running server even if it holds items, which the load replaces or evicts
    #[arg(long, requires = "target")]
    pub overwrite: bool,
    /// Command line of a rival, split at spaces; {port} becomes a free port. Repeat the option for each rival
    #[arg(long = "rival", value_name = "COMMAND")]
    pub rivals: Vec<String>,
    /// Arguments of `nuthatch`, or with --lab of `nuthatch-lab serve`, split at spaces; {port} becomes a free port
    /// [default: one thread, 1 GiB]
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub ours: Option<String>,
    /// Ours is `nuthatch-lab serve`, which has every engine
    #[arg(long)]
    pub lab: bool,
    /// Cores of the servers [default: the first core]
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    pub server_cores: Vec<usize>,
    /// Cores of the load [default: the other cores]
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    pub load_cores: Vec<usize>,
    /// Protocol of the servers
    #[arg(long, value_enum, default_value_t)]
    pub protocol: Protocol,
    /// Items stored before the clock of each round starts
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub keys: u64,
    /// Store none: begin with an empty server
    #[arg(long)]
    pub no_preload: bool,
    /// Store what a get misses: no operations, and counted apart. Published mixes of servers have such sets among theirs, so
    /// the sets of etc, usr, sys and twitter-N are left out then
    #[arg(long)]
    pub store_misses: bool,
    /// Lifetime of all items in seconds, 0 for none [default: the workload's]
    #[arg(long, value_name = "SECONDS")]
    pub ttl: Option<u32>,
    /// Number of connections
    #[arg(long, value_name = "C", default_value_t = 50)]
    pub conns: usize,
    /// Most requests on a connection at once
    #[arg(long, value_name = "P", default_value_t = 1)]
    pub pipeline: usize,
    /// Number of threads of the load
    #[arg(long, value_name = "T", default_value_t = 1)]
    pub threads: usize,
    /// Seconds to measure in each round
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    pub seconds: f64,
    /// Number of rounds of each server, in turn
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: usize,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

fn spacing(text: &str) -> Result<Spacing, String> {
    match text {
        "poisson" => Ok(Spacing::Poisson),
        "constant" => Ok(Spacing::Constant),
        "gpareto" => Ok(Spacing::Pareto),
        other => Err(format!(
            "`{other}` is neither poisson nor constant nor gpareto"
        )),
    }
}

/// Bursts as typed: milliseconds of each burst and of each pause.
#[derive(Clone, Copy, Debug)]
pub struct Pauses(pub Bursts);

impl FromStr for Pauses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':');
        let parts = parts.and_then(|(on, off)| Some((on.parse().ok()?, off.parse().ok()?)));
        match parts {
            Some((on @ 1..=3_600_000, off @ 1..=3_600_000)) => Ok(Self(Bursts {
                on: Duration::from_millis(on),
                off: Duration::from_millis(off),
            })),
            _ => Err("two numbers of milliseconds, 1 to 3600000: 100:900".to_owned()),
        }
    }
}

impl Options {
    /// The arrivals of an open load, checked.
    fn arrivals(&self) -> Result<Option<Arrivals>, Failure> {
        let Some(rate) = self.rate else {
            return Ok(None);
        };
        if !(RATE_MIN..=RATE_MAX).contains(&rate) {
            let words = format!("--rate {rate}: {RATE_MIN} to {RATE_MAX}");
            return Err(Failure::Usage(words));
        }
        Ok(Some(Arrivals {
            spacing: self.arrivals,
            rate,
            bursts: self.bursts.map(|Pauses(bursts)| bursts),
        }))
    }

    /// The load, checked.
    pub fn load(&self) -> Result<Load, Failure> {
        let usage = |words: String| Err(Failure::Usage(words));
        let arrivals = self.arrivals()?;
        if self.keys == 0 || self.keys > ITEMS_MAX {
            return usage(format!("--keys {}: 1 to {ITEMS_MAX}", self.keys));
        }
        // All keys of a workload with one size have its size.
        let size = self.workload.item(0).key;
        if KeyMaker::new(size).capacity() / 2 < self.keys {
            let workload = &self.workload;
            return usage(format!("--keys {}: too many for {workload}", self.keys));
        }
        let places = self.conns.saturating_mul(self.pipeline);
        if places == 0 || places > PLACES_MAX {
            return usage(format!(
                "--conns, --pipeline: 1 to {PLACES_MAX} requests at once"
            ));
        }
        if self.threads == 0 || self.threads > self.conns {
            return usage("--threads: at least 1, at most --conns".to_owned());
        }
        if arrivals.is_some() && !self.conns.is_multiple_of(self.threads) {
            return usage(format!(
                "--conns {}: no multiple of --threads, of which each has the same part of --rate",
                self.conns
            ));
        }
        if self.ttl.is_some_and(|seconds| seconds > LIFETIME_MAX) {
            return usage(format!("--ttl: at most {LIFETIME_MAX} seconds, 30 days"));
        }
        if !(self.seconds > 0.0 && self.seconds <= 1e6) {
            return usage("--seconds: more than 0, at most a million".to_owned());
        }
        let period = arrivals.and_then(|arrivals: Arrivals| arrivals.period());
        if let Some(period) = period.map(|period| period.as_millis() as f64) {
            let periods = self.seconds * 1e3 / period;
            if periods < 0.5 || (periods - periods.round()).abs() > 1e-6 {
                return usage(format!(
                    "--seconds {}: not a multiple of a burst of --bursts with its pause, {period} ms",
                    self.seconds
                ));
            }
        }
        if self.store_misses && !self.workload.sets_may_be_of_misses() {
            return usage(format!(
                "--store-misses: {} has more sets than gets could miss",
                self.workload
            ));
        }
        if self.rounds == 0 {
            return usage("--rounds: at least 1".to_owned());
        }
        Ok(Load {
            items: Items {
                workload: self.workload,
                count: self.keys,
                ttl: self.ttl,
            },
            protocol: self.protocol,
            arrivals,
            conns: self.conns,
            pipeline: self.pipeline,
            threads: self.threads,
            time: Duration::from_secs_f64(self.seconds),
            store_misses: self.store_misses,
        })
    }

    /// The arguments of our server.
    pub fn ours(&self) -> &str {
        let default = match self.protocol {
            Protocol::Memcached => "-l 127.0.0.1 -p {port} -t 1 -m 1024",
            Protocol::Redis => "-l 127.0.0.1 -p -1 --redis-port {port} -t 1 -m 1024",
        };
        self.ours.as_deref().unwrap_or(default)
    }
}
