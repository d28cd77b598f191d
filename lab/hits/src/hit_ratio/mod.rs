//! `nuthatch-lab hit-ratio`: how many requests of a trace hit, under each policy and size.

mod contender;
mod jobs;
mod plot;
mod report;

use std::path::PathBuf;
use std::thread;

use clap::Args;
use nuthatch_program::progress::Progress;
use nuthatch_program::{Failure, output};

use crate::simulate::Charging;
use crate::size::{By, CacheSize};
use crate::trace::{ReadOptions, Trace};
use contender::Contender;
use jobs::Jobs;
use report::{Results, Summary};

/// What to replay, and on what.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The traces: files, or - for standard input
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// How they are read.
    #[command(flatten)]
    pub read: ReadOptions,
    /// Sizes of the cache: percent of the trace's values, each key's counted once, or bytes, as 64m
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_value = "0.1%,0.3%,1%,3%,10%,30%"
    )]
    pub sizes: Vec<CacheSize>,
    /// Which policies, with their parameters
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "fifo,clock,lru,slru,2q,arc,lirs,sieve,s3-fifo,w-tinylfu,gdsf,optimum",
        long_help = contender::help()
    )]
    pub policies: Vec<Contender>,
    /// What the simulated sizes count
    #[arg(long, value_enum, default_value_t = By::Bytes)]
    pub by: By,
    /// Bytes that each simulated item takes beside its value
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=65_536))]
    pub overhead: u32,
    /// Show hits by bytes instead of by requests
    #[arg(long)]
    pub bytes: bool,
    /// Compare the misses of all with those of this one, over all traces
    #[arg(long, value_name = "NAME", default_value = "lru")]
    pub baseline: Contender,
    /// Simulate so many at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Write a line of JSON for each trace, policy and size into this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the misses of each trace into this folder
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,
}

/// Replays, and prints a table for each trace and one of all.
pub fn run(options: &Options) -> Result<(), Failure> {
    if let Some(folder) = &options.plot {
        let failed = |error| Failure::run(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let cells = options.policies.len() * options.sizes.len();
    let progress = Progress::steps(options.traces.len() * cells);
    let mut json = String::new();
    let mut summary = Summary::default();
    for path in &options.traces {
        progress.step(format!("reading {}", path.display()));
        let trace = Trace::read(path, &options.read)?;
        if trace.broken.count > 0 {
            output::note(&format!("{}{}", path.display(), trace.broken.in_words()));
        }
        let results = replay(&trace, options, &progress)?;
        output::print(&results.text(options.bytes))?;
        json += &results.json()?;
        if let Some(folder) = &options.plot {
            let path = folder.join(format!("{}.svg", results.trace));
            output::save(&path, plot::figure(&results, options.bytes)?.as_bytes())?;
        }
        summary.add(&results, &options.baseline.to_string());
    }
    drop(progress);
    output::print(&summary.text(&options.baseline.to_string()))?;
    match &options.json {
        Some(path) => output::save(path, json.as_bytes()),
        None => Ok(()),
    }
}

fn replay(trace: &Trace, options: &Options, progress: &Progress) -> Result<Results, Failure> {
    let charging = Charging {
        by: options.by,
        overhead: options.overhead,
    };
    let sizes: Vec<u64> = options
        .sizes
        .iter()
        .map(|size| size.of(trace, options.by))
        .collect();
    let threads = match options.threads {
        Some(threads) => usize::from(threads),
        None => thread::available_parallelism().map_or(1, Into::into),
    };
    let jobs = Jobs {
        trace,
        sizes: &sizes,
        charging,
        threads,
        progress,
    };
    let rows = jobs.run(&options.policies)?;
    let sizes = options.sizes.iter().cloned().zip(sizes).collect();
    Ok(Results::new(trace, options.by, sizes, rows))
}
