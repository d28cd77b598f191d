//! The command line of a PE, and what one PE does of it. All PEs of a job get the same command line.

use std::hash::{BuildHasher, RandomState};
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::{ArgAction, Parser};
use nuthatch_cluster as cluster;
use nuthatch_program::Failure;
use nuthatch_program::size::{self, SizeError};
use nuthatch_server::config::PORT;
use nuthatch_server::{Actions, Config, Controls};

use crate::gateway;

/// Megabytes without a letter behind the number, as memcached's -m.
const MEGABYTES: usize = 1 << 20;
/// The range of `-I`, in bytes.
const ITEM_SIZES: RangeInclusive<usize> = 1 << 10..=1 << 30;
/// The largest `-t`.
const THREADS_MAX: usize = 1024;

/// All names of a list of actions.
const ALL_ACTIONS: &str =
    "verbosity:cache_memlimit:refresh_certs:stats_reset:shutdown:flush_all:client_kill";

/// The settings of a job.
#[derive(Clone, Debug, Parser)]
#[command(name = "nuthatch-pe", version, args_override_self = true)]
pub struct Options {
    /// Number of PEs that serve, which are the first ones [default: half of the PEs]
    #[arg(long, value_name = "NUM", conflicts_with = "co_located")]
    pub servers: Option<usize>,

    /// Make every PE both a server, in a thread of its own, and a gateway
    #[arg(long)]
    pub co_located: bool,

    /// Memory of each server, in megabytes or with a suffix k, m or g. Every PE reserves as much, because OpenSHMEM's
    /// memory has the same size on all PEs
    #[arg(short = 'm', long, value_name = "NUM", default_value = "64", value_parser = megabytes)]
    pub memory_limit: usize,

    /// TCP port of the first gateway; each further gateway has the next port; 0: any free ports
    #[arg(short, long, value_name = "NUM", default_value_t = PORT)]
    pub port: u16,

    /// Addresses to listen on, with or without the first gateway's port; may be repeated [default: all]
    #[arg(short, long, value_name = "ADDR", value_delimiter = ',')]
    pub listen: Vec<String>,

    /// UDP port of the first gateway, at the addresses of -l; each further gateway has the next port; 0: none
    #[arg(short = 'U', long, value_name = "NUM", default_value_t = 0)]
    pub udp_port: u16,

    /// TCP port of the first gateway for Redis' clients, at the addresses of -l; each further gateway has the next
    /// port; 0: any free ports [default: none]
    #[arg(long, value_name = "NUM")]
    pub redis_port: Option<u16>,

    /// Serve each gateway's metrics for Prometheus over HTTP at this address, with or without the first gateway's port;
    /// each further gateway has the next port [default port: 9150]
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<String>,

    /// Threads of each gateway that serve connections; each has a session of its own with every server
    #[arg(short, long, value_name = "NUM", default_value = "4")]
    pub threads: NonZeroUsize,

    /// Maximum number of simultaneous connections of each gateway
    #[arg(short, long, value_name = "NUM", default_value = "1024")]
    pub conn_limit: NonZeroUsize,

    /// Maximum number of connections of each gateway that wait to be accepted
    #[arg(short = 'b', long, value_name = "NUM", default_value_t = Config::default().backlog)]
    pub listen_backlog: u32,

    /// Maximum number of commands that a connection runs before other connections get their turn
    #[arg(short = 'R', long, value_name = "NUM", default_value_t = Config::default().commands_per_turn)]
    pub max_reqs_per_event: NonZeroU32,

    /// Close connections that are silent for this long; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub idle_timeout: u32,

    /// Size of the largest item, in bytes or with a suffix k, m or g; 1k to 1g, and at most a quarter of a server's
    /// memory
    #[arg(short = 'I', long, value_name = "NUM", default_value = "1m", value_parser = size::parse)]
    pub max_item_size: usize,

    /// Return an error when a server is full, instead of evicting items
    #[arg(short = 'M', long)]
    pub disable_evictions: bool,

    /// Entries of each session's directory of pointers
    #[arg(long, value_name = "NUM", default_value_t = cluster::Config::default().directory)]
    pub directory: usize,

    /// Refuse flush_all
    #[arg(short = 'F', long)]
    pub disable_flush_all: bool,

    /// Refuse stats cachedump and lru_crawler metadump
    #[arg(short = 'X', long)]
    pub disable_dumping: bool,

    /// Refuse commands that change a gateway for all its clients, or these: verbosity, cache_memlimit, refresh_certs,
    /// stats_reset, shutdown, flush_all, client_kill, with colons between. Users that a line :admin:NAME of -Y names may
    /// send them
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true, default_missing_value = ALL_ACTIONS)]
    pub disable_admin: Option<Actions>,

    /// Connections that an address may have with a gateway at once; 0: any number
    #[arg(long, value_name = "NUM", default_value_t = 0)]
    pub conns_per_address: usize,

    /// Refuse watch
    #[arg(short = 'W', long)]
    pub disable_watch: bool,

    /// Require clients to log in with a name and a password from this file, which has one line NAME:PASSWORD per user
    #[arg(short = 'Y', long, value_name = "FILE")]
    pub auth_file: Option<PathBuf>,

    /// Enable TLS, with the certificate of --ssl-chain-cert and the key of --ssl-key
    #[arg(short = 'Z', long, requires_all = ["ssl_chain_cert", "ssl_key"])]
    pub enable_ssl: bool,

    /// File of the gateways' certificate chain, in PEM
    #[arg(long, value_name = "FILE", requires = "enable_ssl")]
    pub ssl_chain_cert: Option<PathBuf>,

    /// File of the key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "enable_ssl")]
    pub ssl_key: Option<PathBuf>,

    /// Require each client to have a certificate that is signed by a CA certificate of this file, in PEM
    #[arg(long, value_name = "FILE", requires = "enable_ssl")]
    pub ssl_ca_cert: Option<PathBuf>,

    /// Allow the shutdown command, which ends the job
    #[arg(short = 'A', long)]
    pub enable_shutdown: bool,

    /// Log more: -v events, -vv also commands and replies, -vvv also batches and statistics
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// What one PE does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The store: the same on all PEs, but for the seed.
    pub store: cluster::Config,
    /// The server for memcached's clients, if the PE is a gateway.
    pub gateway: Option<Config>,
    /// That server's controls, once it is up.
    pub controls: Arc<OnceLock<Controls>>,
}

impl Options {
    /// The store on `pes` PEs.
    pub fn store(&self, pes: usize) -> Result<cluster::Config, Failure> {
        let servers = self.servers(pes)?;
        if !ITEM_SIZES.contains(&self.max_item_size) {
            return Err(Failure::usage("-I: from 1k to 1g"));
        }
        if self.max_item_size > self.memory_limit / 4 {
            return Err(Failure::usage(format!(
                "-I: an item of {} bytes is more than a quarter of a server's memory: raise -m, or lower -I",
                self.max_item_size
            )));
        }
        if self.threads.get() > THREADS_MAX {
            return Err(Failure::usage(format!("-t: 1 to {THREADS_MAX}")));
        }
        let config = cluster::Config {
            servers,
            memory: self.memory_limit,
            memory_max: self.memory_limit,
            item_size_max: self.max_item_size,
            evicts: !self.disable_evictions,
            sessions: self.threads.get(),
            directory: self.directory,
            clocks: cluster::Clocks::FirstServers,
            seed: RandomState::new().hash_one(0x7065_u16),
            ..cluster::Config::default()
        };
        config.symmetric_words(pes).map_err(Failure::usage)?;
        Ok(config)
    }

    fn servers(&self, pes: usize) -> Result<usize, Failure> {
        if self.co_located {
            return Ok(pes);
        }
        let servers = self.servers.unwrap_or((pes / 2).max(1));
        if servers == 0 || servers >= pes {
            return Err(Failure::usage(format!(
                "--servers {servers}: there are {pes} PEs, of which at least one is to serve and one to be a gateway; \
                 with --co-located each is both"
            )));
        }
        Ok(servers)
    }

    /// Checks the plans of all of `pes` PEs. Every PE does it before OpenSHMEM is started, since a PE that gives up
    /// later leaves the others waiting for it.
    pub fn check(&self, pes: usize) -> Result<cluster::Config, Failure> {
        let store = self.store(pes)?;
        // The last gateway has the highest ports.
        let last = match self.co_located {
            true => pes - 1,
            false => pes - 1 - store.servers,
        };
        gateway::check_ports(self, last)?;
        Ok(store)
    }

    /// The plan of one of `pes` PEs.
    pub fn plan(&self, pe: usize, pes: usize) -> Result<Plan, Failure> {
        let store = self.store(pes)?;
        let number = match self.co_located {
            true => Some(pe),
            false => pe.checked_sub(store.servers),
        };
        let gateway = number
            .map(|number| gateway::config(self, number))
            .transpose()?;
        Ok(Plan {
            store,
            gateway,
            controls: Arc::default(),
        })
    }
}

fn megabytes(text: &str) -> Result<usize, SizeError> {
    size::parse_in(text, MEGABYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use nuthatch_server::ListenAddress;

    fn options(line: &str) -> Options {
        let words = std::iter::once("nuthatch-pe").chain(line.split_whitespace());
        Options::try_parse_from(words).unwrap()
    }

    fn ports(plan: Plan) -> Vec<u16> {
        let listeners = plan.gateway.into_iter().flat_map(|config| config.listeners);
        listeners
            .map(|listener| match listener.address {
                ListenAddress::Tcp(address) => address.port(),
                ListenAddress::Udp(_)
                | ListenAddress::Unix { .. }
                | ListenAddress::Inherited(_)
                | ListenAddress::InheritedUdp(_) => {
                    unreachable!("no such flag")
                }
            })
            .collect()
    }

    #[test]
    fn the_definition_is_consistent() {
        Options::command().debug_assert();
        assert_eq!(ALL_ACTIONS, Actions::ALL.to_string());
        assert_eq!(options("--disable-admin").disable_admin, Some(Actions::ALL));
        let some = options("--disable-admin=shutdown").disable_admin;
        assert_eq!(some, "shutdown".parse().ok());
    }

    #[test]
    fn the_first_pes_serve_and_each_gateway_has_a_port() {
        let options = options("--servers 2 -m 128 -p 9000 -l 127.0.0.1 -l ::1 -l 127.0.0.1:80");
        let plan = |pe| options.plan(pe, 4).unwrap();
        assert_eq!(plan(0).store.servers, 2);
        assert_eq!(plan(0).store.memory, 128 << 20);
        assert!(plan(1).gateway.is_none());
        assert_eq!(ports(plan(2)), [9000, 9000, 80]);
        assert_eq!(ports(plan(3)), [9001, 9001, 81]);
    }

    #[test]
    fn saying_nothing_gives_half_of_them_to_serving() {
        assert_eq!(options("").store(2).unwrap().servers, 1);
        assert_eq!(options("").store(5).unwrap().servers, 2);
    }

    #[test]
    fn co_located_pes_are_both() {
        let options = options("--co-located -p 0 -l 127.0.0.1");
        let plan = options.plan(1, 2).unwrap();
        assert_eq!((plan.store.servers, ports(plan)), (2, vec![0]));
        assert_eq!(options.store(1).unwrap().servers, 1);
    }

    #[test]
    fn what_one_pe_could_not_do_every_pe_refuses() {
        let refused = |line: &str, pes| options(line).check(pes).is_err();
        for (line, pes) in [
            ("--servers 1 -p 65534", 4),
            ("--co-located -p 65534", 3),
            ("--servers 1 -l 127.0.0.1:65534", 4),
            ("--servers 1 -l [::1]:65535", 3),
        ] {
            assert!(refused(line, pes), "{line}");
        }
        assert!(!refused("--servers 1 -p 65534", 3));
        assert!(!refused("--servers 1 -l ::ffff -p 0", 900));
    }

    #[test]
    fn what_cannot_be() {
        let refused = |line: &str, pes| options(line).plan(pes - 1, pes).unwrap_err().to_string();
        for (line, pes, says) in [
            ("--servers 4", 4, "--servers 4: there are 4 PEs"),
            ("--servers 0", 4, "--servers 0"),
            ("", 1, "--co-located"),
            ("-I 1000", 2, "-I: from"),
            ("-m 16 -I 8m", 2, "-I: an item of 8388608 bytes"),
            ("-t 2000", 2, "-t: 1 to"),
            ("-t 1000", 66, "sessions"),
            (
                "-l 1.2.3:9:9",
                2,
                "-l 1.2.3:9:9: neither an address nor a name",
            ),
            ("-p 65535 -l ::1 --servers 1", 3, "-p: gateway 1"),
        ] {
            let error = refused(line, pes);
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
