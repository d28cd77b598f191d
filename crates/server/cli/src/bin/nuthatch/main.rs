//! The `nuthatch` binary: parses, builds, runs. Errors become exit codes here and nowhere else.

#![forbid(unsafe_code)]

mod command;
mod connect;
mod ping;
mod top;

use std::process::ExitCode;

use command::{Command, CommandLine};
use nuthatch_base::memory::reserve;
use nuthatch_cli::serve;
use nuthatch_program::{Failure, on_own_stack};

/// A machine that gives no more memory must not end the server, and with it the items.
#[global_allocator]
static ALLOCATOR: reserve::Allocator = reserve::Allocator;

fn main() -> ExitCode {
    on_own_stack(program)
}

fn program() -> ExitCode {
    // Ends the process itself: with 2 for an invalid command line, and with 0 for help and version.
    let line = CommandLine::read(std::env::args_os().collect());
    let code = match line.and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            nuthatch_log::fail(&failure.to_string());
            failure.exit_code()
        }
    };
    nuthatch_log::flush();
    code
}

fn run(line: CommandLine) -> Result<(), Failure> {
    match line.command {
        None => serve::run(line.serve),
        Some(Command::Serve(serve)) => serve::run(*serve),
        Some(Command::Top(top)) => top::run(&top),
        Some(Command::Ping(ping)) => ping::run(&ping),
        Some(Command::Completions { shell }) => command::completions(shell),
        Some(Command::Man { command }) => command::man(command.as_deref()),
    }
}
