//! The program that a launcher starts on each PE: `oshrun -n 2 nuthatch-fabric check`, or `latency`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nuthatch_fabric::Fabric;
use nuthatch_fabric::openshmem::{CannotOpen, OpenShmem, Threads};
use nuthatch_fabric_lab::conformance::{self, Sizes};
use nuthatch_fabric_lab::latency;

/// Examines the OpenSHMEM of this machine. Started by its launcher, once for each PE.
#[derive(Parser)]
#[command(version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Checks that it does what the store is built on
    Check {
        /// Rounds of each check
        #[arg(long, default_value_t = 100)]
        rounds: u64,
        /// Threads of each PE that call it at once
        #[arg(long, default_value_t = 3)]
        threads: usize,
        /// Ask the library for turns: as if it had no threads
        #[arg(long)]
        serialized: bool,
    },
    /// Measures its operations between the first two PEs
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
            // As for a dozen PEs: how many there are is known when it is open.
            with(sizes.words(12), most, |fabric| check(fabric, sizes))
        }
        Command::Latency { count, json } => with(latency::WORDS, Threads::Multiple, |fabric| {
            measure(fabric, count, json)
        }),
    }
}

/// Opens the fabric for so many words, and does the work.
fn with(
    words: usize,
    most: Threads,
    work: impl FnOnce(&OpenShmem) -> Result<(), String>,
) -> ExitCode {
    // SAFETY: the only thread there is, and the only place that starts it.
    let fabric = match unsafe { OpenShmem::open_with(words, most) } {
        Ok(fabric) => fabric,
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
