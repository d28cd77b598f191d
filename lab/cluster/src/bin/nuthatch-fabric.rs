//! The program that a launcher starts on each PE: `oshrun -n 2 nuthatch-fabric check`, or `latency`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use nuthatch_cluster::Operations;
use nuthatch_cluster_lab::fabric::conformance::{self, Sizes};
use nuthatch_cluster_lab::fabric::store::StoreLatency;
use nuthatch_cluster_lab::fabric::throughput::{self, Load, Throughput};
use nuthatch_cluster_lab::fabric::{figure, idle, latency, store};
use nuthatch_fabric::Fabric;
use nuthatch_fabric::openshmem::{CannotOpen, OpenShmem, Threads, launched};
use nuthatch_program::output;

/// Examines the OpenSHMEM library of this machine. Its launcher starts this program once for each PE.
#[derive(Parser)]
#[command(version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

/// The clients' requests: without `--gets`, `--batch` and `--directory` the mixes of docs/cluster.md, otherwise each
/// combination of what the three list.
#[derive(Args)]
struct Measured {
    /// Requests of each client
    #[arg(long, default_value_t = 20_000)]
    rounds: u64,
    /// Number of keys, which are requested by Zipf 0.99
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    keys: u64,
    /// Bytes of the values
    #[arg(long, value_delimiter = ',', default_values_t = [100], value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    value: Vec<u32>,
    /// Percentage of gets; the other requests are sets
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(..=100))]
    gets: Vec<u32>,
    /// Requests of a batch
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: Vec<u32>,
    /// Entries of each client's directory
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(..1 << 28))]
    directory: Vec<u32>,
    /// How sessions carry out operations: direct (themselves, where they can), active (by messages to the server)
    /// or chosen (as measured costs suggest)
    #[arg(long, value_enum, default_value = "chosen")]
    operations: How,
    /// Also measure the memcached that listens here (HOST:PORT), with a connection of each client
    #[arg(long)]
    memcached: Option<String>,
    /// Draw the hits of the directory into this file
    #[arg(long, value_name = "FILE")]
    figure: Option<String>,
    /// Print JSON: a row for each mix and system, with its load, the operations a second of one client and of all, the
    /// share that was answered (found or stored), and what the client's session did for an operation
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Check that OpenSHMEM does what the store relies on
    Check {
        /// Rounds of each check
        #[arg(long, default_value_t = 100)]
        rounds: u64,
        /// Threads of each PE that call the library at the same time
        #[arg(long, default_value_t = 3)]
        threads: usize,
        /// Start the library with SHMEM_THREAD_SERIALIZED, so that threads take turns, as if it did not support threads
        #[arg(long)]
        serialized: bool,
    },
    /// Measure the distributed store, whose server is the first PE
    Store {
        /// Calls of each kind
        #[arg(long, default_value_t = 20_000)]
        count: u64,
        /// Bytes of the values
        #[arg(long, value_delimiter = ',', default_values_t = store::BYTES,
            value_parser = RangedU64ValueParser::<usize>::new().range(1..=store::LONGEST as u64))]
        bytes: Vec<usize>,
        /// Also measure the memcached that listens here (HOST:PORT)
        #[arg(long)]
        memcached: Option<String>,
        /// Draw the medians: gets into NAME-get.svg, sets into NAME-set.svg
        #[arg(long, value_name = "NAME")]
        figure: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Measure how many operations per second the store carries out for all PEs but the first
    Throughput(Measured),
    /// Measure the processor time of a server that gets few requests, and the latency of these requests
    Idle {
        /// Number of gets for each length of pause; they end after two seconds at most
        #[arg(long, default_value_t = 20_000)]
        count: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Measure the latency of OpenSHMEM's operations between the first two PEs
    Latency {
        /// Calls of each kind
        #[arg(long, default_value_t = 20_000)]
        count: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    match Options::parse().command {
        Command::Check {
            rounds,
            threads,
            serialized,
        } => {
            let sizes = Sizes {
                rounds,
                threads,
                longest: 1 << 15,
            };
            let most = match serialized {
                true => Threads::Serialized,
                false => Threads::Multiple,
            };
            // Room for a dozen PEs: their number is known only when the fabric is open.
            with(sizes.words(12), most, |fabric| check(fabric, sizes))
        }
        Command::Store {
            count,
            bytes,
            memcached,
            figure,
            json,
        } => with(store::WORDS, Threads::Multiple, |fabric| {
            let found = measure_store(fabric, count, &bytes, memcached.as_deref(), json)?;
            match figure.filter(|_| !found.is_empty()) {
                Some(name) => draw_latencies(&found, &name),
                None => Ok(()),
            }
        }),
        Command::Throughput(options) => options.run(),
        Command::Idle { count, json } => {
            let words = idle::PAUSES.len() * store::STORE_WORDS;
            with(words, Threads::Multiple, |fabric| {
                measure_idle(fabric, count, json)
            })
        }
        Command::Latency { count, json } => with(latency::WORDS, Threads::Multiple, |fabric| {
            measure(fabric, count, json)
        }),
    }
}

/// Opens the fabric for `words` words, and does the work.
fn with(
    words: usize,
    most: Threads,
    work: impl FnOnce(&Arc<OpenShmem>) -> Result<(), String>,
) -> ExitCode {
    // SAFETY: the only thread there is, and the only place that starts it.
    let fabric = match unsafe { OpenShmem::open_with(words, most) } {
        Ok(fabric) => Arc::new(fabric),
        Err(error @ (CannotOpen::Memory(_) | CannotOpen::Library)) => {
            eprintln!("nuthatch-fabric: {error}");
            return ExitCode::FAILURE;
        }
    };
    match work(&fabric) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failures) => {
            eprintln!("{failures}");
            ExitCode::FAILURE
        }
    }
}

fn check(fabric: &OpenShmem, sizes: Sizes) -> Result<(), String> {
    let report = conformance::check(fabric, sizes).map_err(|none| none.to_string())?;
    if fabric.pe() == 0 {
        println!(
            "fabric: {} PEs, threads {:?}, peers {}: {} checks a PE",
            fabric.pes(),
            fabric.threads(),
            match fabric.direct(fabric.pes() - 1, nuthatch_fabric::Address(0), 1) {
                Some(_) => "by load and store",
                None => "by calls",
            },
            report.checks
        );
    }
    match report.failures.is_empty() {
        true => Ok(()),
        false => Err(report.failures.join("\n")),
    }
}

fn measure(fabric: &OpenShmem, count: u64, json: bool) -> Result<(), String> {
    let found = latency::measure(fabric, count).map_err(|failed| failed.to_string())?;
    if fabric.pe() != 0 {
        return Ok(());
    }
    if json {
        let text = serde_json::to_string_pretty(&found).map_err(|error| error.to_string())?;
        println!("{text}");
    } else {
        println!("{}", latency::HEADING);
        for latency in found {
            println!("{latency}");
        }
    }
    Ok(())
}

fn measure_store(
    fabric: &Arc<OpenShmem>,
    count: u64,
    bytes: &[usize],
    memcached: Option<&str>,
    json: bool,
) -> Result<Vec<StoreLatency>, String> {
    let found =
        store::latencies(fabric, count, bytes, memcached).map_err(|failed| failed.to_string())?;
    if fabric.pe() != 1 {
        return Ok(found);
    }
    if json {
        let text = serde_json::to_string_pretty(&found).map_err(|error| error.to_string())?;
        println!("{text}");
    } else {
        println!("{}", store::HEADING);
        found.iter().for_each(|latency| println!("{latency}"));
    }
    Ok(found)
}

fn measure_idle(fabric: &Arc<OpenShmem>, count: u64, json: bool) -> Result<(), String> {
    let mut all = Vec::new();
    for pause in idle::PAUSES {
        let found = idle::measure(fabric, pause, count).map_err(|failed| failed.to_string())?;
        all.extend(found);
    }
    if fabric.pe() != 1 {
        return Ok(());
    }
    if json {
        let text = serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?;
        println!("{text}");
    } else {
        println!("{}", idle::HEADING);
        all.iter().for_each(|one| println!("{one}"));
    }
    Ok(())
}

/// [`Operations`] as typed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    Chosen,
    Direct,
    Active,
}

impl From<How> for Operations {
    fn from(how: How) -> Self {
        match how {
            How::Chosen => Self::Chosen,
            How::Direct => Self::Direct,
            How::Active => Self::Active,
        }
    }
}

fn draw_latencies(found: &[StoreLatency], name: &str) -> Result<(), String> {
    let note = "one request at a time, two PEs on one machine";
    draw(
        &format!("{name}-get.svg"),
        figure::latencies(found, false, note),
    )?;
    draw(
        &format!("{name}-set.svg"),
        figure::latencies(found, true, note),
    )
}

fn draw(file: &str, svg: Result<String, impl ToString>) -> Result<(), String> {
    let svg = svg.map_err(|error| error.to_string())?;
    output::save(Path::new(file), svg.as_bytes()).map_err(|failure| failure.to_string())
}

impl Measured {
    fn loads(&self) -> Vec<Load> {
        let or = |list: &[u32], usual: usize| match list {
            [] => vec![usual],
            list => list.iter().map(|&one| one as usize).collect(),
        };
        let is_said = [&self.gets, &self.batch, &self.directory]
            .iter()
            .any(|list| !list.is_empty());
        let mut mixes = Vec::new();
        for gets in or(&self.gets, 95) {
            for batch in or(&self.batch, 1) {
                let directories = or(&self.directory, 1 << 16);
                mixes.extend(
                    directories
                        .iter()
                        .map(|&entries| (gets as u32, batch, entries)),
                );
            }
        }
        if !is_said {
            mixes = Load::MIXES.to_vec();
        }
        let of_value = |&value: &u32| {
            let load = move |&(gets, batch, directory): &_| Load {
                keys: self.keys,
                value: value as usize,
                gets,
                batch,
                directory,
            };
            mixes.iter().map(load).collect::<Vec<_>>()
        };
        self.value.iter().flat_map(of_value).collect()
    }

    fn run(self) -> ExitCode {
        let loads = self.loads();
        // A store for each, all in one job.
        let pes = launched().unwrap_or(2);
        let words = loads.iter().map(|load| load.words(pes));
        match words.sum::<Result<usize, _>>() {
            Ok(words) => with(words, Threads::Multiple, |fabric| {
                self.measure(fabric, &loads)
            }),
            Err(error) => {
                eprintln!("nuthatch-fabric: {error}");
                ExitCode::from(2)
            }
        }
    }

    fn measure(&self, fabric: &Arc<OpenShmem>, loads: &[Load]) -> Result<(), String> {
        let mut all = Vec::new();
        for &load in loads {
            let rounds = (self.rounds / load.batch as u64).max(1);
            let found = throughput::of_store(fabric, load, rounds, self.operations.into());
            all.extend(found.map_err(|failed| failed.to_string())?);
            if let Some(address) = &self.memcached {
                let found = throughput::of_memcached(&**fabric, address, load, rounds);
                all.extend(found.map_err(|failed| failed.to_string())?);
            }
        }
        if fabric.pe() != 1 {
            return Ok(());
        }
        self.print(&all)?;
        let Some(file) = &self.figure else {
            return Ok(());
        };
        let note = format!("{} keys by Zipf 0.99, one client", self.keys);
        draw(file, figure::directory(&all, &note))
    }

    fn print(&self, all: &[Throughput]) -> Result<(), String> {
        if self.json {
            let text = serde_json::to_string_pretty(all).map_err(|error| error.to_string())?;
            println!("{text}");
            return Ok(());
        }
        println!("{}", throughput::HEADING);
        all.iter().for_each(|one| println!("{one}"));
        Ok(())
    }
}
