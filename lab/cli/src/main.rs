//! The binary `nuthatch-lab`: parses the command line and runs the laboratory's command.

#![forbid(unsafe_code)]

mod bench;
mod command;
mod flow;
mod hash;

use std::process::ExitCode;

use clap::CommandFactory;
use nuthatch_hits::{hit_ratio, items_held};
use nuthatch_program::{Failure, command_line, on_own_stack, output};

use command::{Command, CommandLine};

fn main() -> ExitCode {
    on_own_stack(program)
}

fn program() -> ExitCode {
    // Ends the process itself: with 2 for an invalid command line, and with 0 for help and version.
    let line = command_line::parse(CommandLine::command(), std::env::args_os());
    match line.and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::note(&failure.to_string());
            failure.exit_code()
        }
    }
}

fn run(line: CommandLine) -> Result<(), Failure> {
    match line.command {
        Command::Bench(bench) => bench.run(),
        Command::Flow(flow) => flow.run(),
        Command::Hash(hash) => hash.run(),
        Command::HitRatio(options) => hit_ratio::run(&options),
        Command::ItemsHeld(options) => items_held::run(&options),
        Command::Completions { shell } => command::completions(shell),
        Command::Man => command::man(),
    }
}
