//! The program's command line: a PE's options, and the subcommands that print something instead.

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use nuthatch_pe::Options;
use nuthatch_program::{Failure, output};

/// The distributed store on OpenSHMEM: some PEs of a job serve, each of the others is a memcached gateway to them.
///
/// A launcher starts it, on one machine or many: oshrun -n 4 nuthatch-pe --servers 2 -m 512 -p 11211
#[derive(Debug, Parser)]
#[command(
    name = "nuthatch-pe",
    version,
    args_override_self = true,
    args_conflicts_with_subcommands = true
)]
pub struct CommandLine {
    #[command(flatten)]
    pub options: Options,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The subcommands, which print something instead of running a PE.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print completions for a shell
    Completions {
        /// The shell that the completions are for
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

impl Command {
    /// Prints the text of this subcommand.
    pub fn print(self) -> Result<(), Failure> {
        let (mut text, mut line) = (Vec::new(), CommandLine::command());
        match self {
            Self::Completions { shell } => {
                clap_complete::generate(shell, &mut line, "nuthatch-pe", &mut text);
            }
            Self::Man => clap_mangen::Man::new(line).render(&mut text)?,
        }
        output::print_bytes(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
