//! The binary `nuthatch-lab`: parses the command line and runs the laboratory's command.

#![forbid(unsafe_code)]

mod bench;
mod command;
mod flow;
mod hash;
mod machine;
mod rows;
mod serve;

use std::process::ExitCode;

use clap::CommandFactory;
use nuthatch_base::memory::reserve;
use nuthatch_hits::{hit_ratio, items_held};
use nuthatch_program::{Failure, command_line, on_own_stack};

use command::{Command, CommandLine};

/// As in `nuthatch`: a machine that gives no more memory must not end the server, and with it the items.
#[global_allocator]
static ALLOCATOR: reserve::Allocator = reserve::Allocator;

fn main() -> ExitCode {
    on_own_stack(program)
}

fn program() -> ExitCode {
    // Ends the process itself: with 2 for an invalid command line, and with 0 for help and version.
    let line = command_line::parse(CommandLine::command(), std::env::args_os());
    let code = match line.and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            nuthatch_log::fail(&failure.to_string());
            failure.exit_code()
        }
    };
    // Of `serve`.
    nuthatch_log::flush();
    code
}

fn run(line: CommandLine) -> Result<(), Failure> {
    match line.command {
        Command::Serve(serve) => nuthatch_cli::serve::run(*serve),
        Command::Bench(bench) => bench.run(),
        Command::Figure(options) => nuthatch_figures::run(&options, &machine::machine()),
        Command::Report(options) => nuthatch_figures::report::run(&options),
        Command::Flow(flow) => flow.run(),
        Command::Hash(hash) => hash.run(),
        Command::HitRatio(options) => hit_ratio::run(&options),
        Command::Record(options) => nuthatch_record::run(&options),
        Command::ItemsHeld(options) => items_held::run(&options),
        Command::Completions { shell } => command::completions(shell),
        Command::Man => command::man(),
    }
}
