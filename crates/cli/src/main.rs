//! The `nuthatch` binary: parses, builds, runs. Errors become exit codes here and nowhere else.

#![forbid(unsafe_code)]

mod bench;
mod command;
mod engine;
mod extended;
mod flags;
mod flow;
mod hash;
mod process;
mod serve;
mod settings;
mod tuning;

use std::process::ExitCode;

use clap::Parser;

use command::{Command, CommandLine};

/// Why a run ended.
pub enum Failure {
    /// The command line or its file cannot be meant so: 2, as clap's own errors.
    Usage(String),
    /// It was meant well, and did not work: 1.
    Runtime(String),
}

fn main() -> ExitCode {
    // Ends by itself, with 2, for what is not a command line, and with 0 for help and version.
    let line = CommandLine::parse();
    let outcome = match line.command {
        None => serve::run(line.serve),
        Some(Command::Serve(serve)) => serve::run(serve),
        Some(Command::Bench(bench)) => bench.run().map_err(Failure::Runtime),
        Some(Command::Flow(flow)) => flow.run(),
        Some(Command::Hash(hash)) => hash.run(),
        Some(Command::Completions { shell }) => {
            command::completions(shell).map_err(Failure::Runtime)
        }
        Some(Command::Man) => command::man().map_err(Failure::Runtime),
    };
    let (code, message) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => (2, message),
        Err(Failure::Runtime(message)) => (1, message),
    };
    eprintln!("nuthatch: {message}");
    ExitCode::from(code)
}
