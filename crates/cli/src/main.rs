//! The `nuthatch` binary: parses, builds, runs. Errors become exit codes here and nowhere else.

#![deny(unsafe_code)]

mod bench;
mod command;
mod daemon;
mod engine;
mod extended;
mod flags;
mod flow;
mod hash;
mod log;
mod missing;
mod process;
mod reload;
mod serve;
mod settings;
mod tuning;

use std::io;
use std::process::ExitCode;

use command::{Command, CommandLine};

/// Why a run ended.
pub enum Failure {
    /// The command line or its file cannot be meant so: 2, as clap's own errors.
    Usage(String),
    /// It was meant well, and did not work: 1.
    Runtime(String),
}

/// Engines call a configuration that cannot be an invalid input.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidInput => Self::Usage(error.to_string()),
            _ => Self::Runtime(error.to_string()),
        }
    }
}

fn main() -> ExitCode {
    // Ends by itself, with 2, for what is not a command line, and with 0 for help and version.
    let line = CommandLine::read(std::env::args_os().collect());
    let outcome = match line.command {
        None => serve::run(line.serve),
        Some(Command::Serve(serve)) => serve::run(*serve),
        Some(Command::Bench(bench)) => bench.run(),
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
    log::say(&message);
    ExitCode::from(code)
}
