//! `nuthatch-lab hit-ratio`: how many requests of a trace hit, under each policy and size.

mod contender;
mod jobs;
mod plot;
mod report;
mod servers;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;

use clap::Args;
use nuthatch_bench::started::stop_on_signals;
use nuthatch_program::output::Output;
use nuthatch_program::progress::Progress;
use nuthatch_program::{Failure, output};

use crate::simulate::Charging;
use crate::size::{By, CacheSize};
use crate::trace::{ReadOptions, Trace};
use contender::Contender;
use jobs::Jobs;
use report::{Results, Running, Summary};
pub use servers::SpawnCommand;
use servers::{RunningServer, whole_mib};

/// What to replay, and on what.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The traces: files, or - for standard input
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// How the traces are read.
    #[command(flatten)]
    pub read: ReadOptions,
    /// Sizes of the cache: percent of the trace's values, with each key counted once, or bytes such as 64m
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_value = "0.1%,0.3%,1%,3%,10%,30%"
    )]
    pub sizes: Vec<CacheSize>,
    /// The policies, with their parameters
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "fifo,clock,lru,slru,2q,arc,lirs,sieve,s3-fifo,w-tinylfu,gdsf,optimum",
        long_help = contender::help()
    )]
    pub policies: Vec<Contender>,
    /// Also start this server for each size, and replay on it. COMMAND is its command line, split at spaces; {mib}
    /// becomes the size, rounded to MiB for all policies, and {port} a free port. NAME= in front names the server.
    /// Repeat the option for each server
    #[arg(long, value_name = "COMMAND")]
    pub spawn: Vec<SpawnCommand>,
    /// Also replay on these running servers; they must be empty, and are emptied after each trace
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub servers: Vec<String>,
    /// Unit of the simulated sizes
    #[arg(long, value_enum, default_value_t = By::Bytes)]
    pub by: By,
    /// Bytes that each simulated item takes beside its value
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=65_536))]
    pub overhead: u32,
    /// Show hits by bytes instead of by requests
    #[arg(long)]
    pub bytes: bool,
    /// Also show the hits that engines would have had with more memory, as they estimate from evicted items that are
    /// stored again
    #[arg(long)]
    pub estimate: bool,
    /// Compare all misses with those of this policy, engine or spawned server, over all traces [default: lru, if it is
    /// replayed on]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Number of simultaneous replays [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Write one line of JSON for each trace, policy and size to this file; - writes them to standard output in place of
    /// the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the misses of each trace, with up to seven curves, into a file in this folder
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,
}

impl Options {
    /// True if tables are printed.
    fn has_tables(&self) -> bool {
        !self.json.as_deref().is_some_and(is_standard)
    }
}

/// True if the path stands for standard output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Where `--json` writes.
pub(crate) fn json_output(path: &Path) -> Result<Output, Failure> {
    Output::open((!is_standard(path)).then_some(path))
}

/// Replays, and prints a table for each trace and one of all.
pub fn run(options: &Options) -> Result<(), Failure> {
    if let Some(folder) = &options.plot {
        let failed = |error| Failure::run(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let live = |contender: &Contender| matches!(contender, Contender::Engine(_));
    let is_live = options.policies.iter().any(live) || !options.spawn.is_empty();
    if options.by == By::Items && (is_live || !options.servers.is_empty()) {
        return Err(Failure::usage("--by items: engines and servers have bytes"));
    }
    let servers = options.servers.iter().map(|name| RunningServer::find(name));
    let servers: Vec<RunningServer> = servers.collect::<Result<_, _>>()?;
    let baseline = baseline(options)?;
    // Now, and not after hours of replays: it may be a file that cannot be written.
    let json = options.json.as_deref().map(json_output);
    let json = json.transpose()?;
    let stop = stop_on_signals()?;
    let rows = options.policies.len() + options.spawn.len();
    let cells = rows * options.sizes.len() + servers.len();
    let progress = Progress::steps(options.traces.len() * cells);
    let mut done = Done::default();
    let outcome = replay_all(options, &baseline, &servers, &progress, &stop, &mut done);
    drop(progress);
    if options.has_tables() {
        output::print(&done.summary.text(&baseline))?;
    }
    // Results of finished replays are written even if a later one failed.
    if let Some(mut file) = json.filter(|_| !done.json.is_empty()) {
        file.write(done.json.as_bytes())?;
        file.finish()?;
    }
    outcome
}

/// The results of the traces so far.
#[derive(Default)]
struct Done {
    json: String,
    summary: Summary,
    /// The traces' names.
    names: HashSet<String>,
}

impl Done {
    /// A trace's name, with a number if another trace has it: the name of its figure is made of it.
    fn own_name(&mut self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let names = std::iter::once(name.to_owned()).chain(numbered);
        let mut free = names.filter(|name| !self.names.contains(name));
        let name = free.next().expect("there is a number for each trace");
        self.names.insert(name.clone());
        name
    }
}

/// The name of the row that all rows are compared with.
fn baseline(options: &Options) -> Result<String, Failure> {
    let Some(typed) = &options.baseline else {
        return Ok("lru".to_owned());
    };
    let policies = options.policies.iter().map(Contender::to_string);
    let servers = options.spawn.iter().map(|server| server.name().to_owned());
    let names: Vec<String> = policies.chain(servers).collect();
    if !names.contains(typed) {
        let names = names.join(", ");
        return Err(Failure::usage(format!(
            "--baseline {typed}: it is not replayed on; there are {names}"
        )));
    }
    Ok(typed.clone())
}

/// Replays each trace that can be read. If some cannot be read, returns the error of the first of them, after all
/// replays.
fn replay_all(
    options: &Options,
    baseline: &str,
    servers: &[RunningServer],
    progress: &Progress,
    stop: &AtomicBool,
    done: &mut Done,
) -> Result<(), Failure> {
    let mut unreadable = Vec::new();
    for path in &options.traces {
        progress.step(format!("reading {}", path.display()));
        let mut trace = match Trace::read(path, &options.read) {
            Ok(trace) => trace,
            Err(failure) => {
                unreadable.push(failure);
                continue;
            }
        };
        trace.name = done.own_name(&trace.name);
        for words in &trace.notes {
            output::note(&format!("{}: {words}", path.display()));
        }
        if trace.broken.count > 0 {
            output::note(&format!("{}{}", path.display(), trace.broken.in_words()));
        }
        let results = replay(&trace, options, servers, progress, stop)?;
        if options.has_tables() {
            output::print(&results.text(options.bytes))?;
        }
        if options.estimate && options.has_tables() {
            output::print(&results.estimates())?;
        }
        done.json += &results.json()?;
        if let Some(folder) = &options.plot {
            let path = folder.join(format!("{}.svg", results.trace));
            let svg = plot::figure(&results, baseline, options.bytes)?;
            output::save(&path, svg.as_bytes())?;
        }
        done.summary.add(&results, baseline);
    }
    let mut unreadable = unreadable.into_iter();
    let Some(first) = unreadable.next() else {
        return Ok(());
    };
    // The first error ends the run and is printed then.
    unreadable.for_each(|failure| output::note(&failure.to_string()));
    Err(first)
}

fn replay(
    trace: &Trace,
    options: &Options,
    servers: &[RunningServer],
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<Results, Failure> {
    let size = |size: &CacheSize| match size.of(trace, options.by) {
        bytes if options.spawn.is_empty() => bytes,
        bytes => whole_mib(bytes),
    };
    let sizes: Vec<u64> = options.sizes.iter().map(size).collect();
    let threads = match options.threads {
        Some(threads) => usize::from(threads),
        None => thread::available_parallelism().map_or(1, Into::into),
    };
    let jobs = Jobs {
        trace,
        sizes: &sizes,
        charging: Charging {
            by: options.by,
            overhead: options.overhead,
        },
        threads,
        progress,
        alone: options.traces.len() == 1,
        stop,
    };
    let rows = jobs.run(&options.policies, &options.spawn)?;
    let sizes = options.sizes.iter().cloned().zip(sizes).collect();
    let mut results = Results::new(trace, options.by, sizes, rows);
    for server in servers {
        progress.step(format!("{}: {}", trace.name, server.name));
        let (limit, cell) = server.replay(trace, stop)?;
        let name = server.name.clone();
        results.running.push(Running { name, limit, cell });
        progress.add(1);
    }
    Ok(results)
}
