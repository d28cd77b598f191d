//! The command line: memcached's flags at the top, and subcommands beside them.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use nuthatch_cli::cuckoo::{DefaultEngine, went_where};
use nuthatch_program::{Failure, command_line, output};
use nuthatch_server::config::MEMCACHED_VERSION;

use crate::ping::Ping;
use crate::top::Top;

/// How `nuthatch` serves.
pub type Serve = nuthatch_cli::serve::Serve<DefaultEngine>;

/// The flag that makes `-V` and `-h` begin with memcached's name, as a program of that name does.
const AS_MEMCACHED: &str = "--as-memcached";

/// An in-memory key-value cache at the speed of memory, for any memcached client.
#[derive(Debug, Parser)]
#[command(
    name = "nuthatch",
    version,
    args_conflicts_with_subcommands = true,
    // As for memcached, the last word counts: wrappers put theirs behind the usual ones.
    args_override_self = true
)]
pub struct CommandLine {
    /// The subcommand; serving is the default.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The flags of serving, the default.
    #[command(flatten)]
    pub serve: Serve,
}

impl CommandLine {
    /// Reads a command line, as [`command_line::parse`] does.
    pub fn read(words: Vec<OsString>) -> Result<Self, Failure> {
        command_line::parse_or(definition(&words), words, elsewhere)
    }
}

/// What to say of a flag that another program has.
fn elsewhere(error: &clap::Error) -> Option<Failure> {
    let ContextValue::String(flag) = error.get(ContextKind::InvalidArg)? else {
        return None;
    };
    let why = went_where(flag.strip_prefix("--")?)?;
    (error.kind() == ErrorKind::UnknownArgument).then(|| Failure::usage(format!("{flag}: {why}")))
}

/// The definition of the command line, under the name that the program was called by: tools that look for a memcached
/// read the beginning of its version and help.
fn definition(words: &[OsString]) -> clap::Command {
    let command = CommandLine::command();
    let program = words.first().map(Path::new).and_then(Path::file_name);
    let is_called = program.is_some_and(|name| name == "memcached");
    if !is_called && !words.iter().any(|word| word == AS_MEMCACHED) {
        return command;
    }
    let version = memcached_version();
    command
        .display_name("memcached")
        .version(version)
        .before_help(format!("memcached {version}").leak() as &str)
}

/// memcached's version, and this program's. It is called once.
fn memcached_version() -> &'static str {
    let (theirs, ours) = (MEMCACHED_VERSION, env!("CARGO_PKG_VERSION"));
    format!("{theirs} (nuthatch {ours})").leak()
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve memcached clients; the default command, with the same flags
    Serve(Box<Serve>),
    /// Show live statistics of a server that speaks memcached's protocol, in a terminal
    Top(Top),
    /// Ask a server whether it answers: exit code 0 if it does, 1 if it does not
    Ping(Ping),
    /// Print completions for a shell
    Completions {
        /// The shell that the completions are for
        shell: Shell,
    },
    /// Print the manual page
    Man {
        /// Print the page of this command instead of the program's: serve, top, ping, completions or man
        command: Option<String>,
    },
}

/// Prints completions.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "nuthatch", &mut text);
    output::print_bytes(&text)
}

/// Prints the manual page, of the program or of one of its commands.
pub fn man(of: Option<&str>) -> Result<(), Failure> {
    // A page refers to the page of each command. The subcommand `help` has none.
    let mut program = CommandLine::command().disable_help_subcommand(true);
    program.build();
    let page = match of {
        None => program,
        Some(name) => {
            let found = program.find_subcommand(name).cloned();
            found.ok_or_else(|| Failure::usage(format!("man: {name} is no command")))?
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    output::print_bytes(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<CommandLine, clap::Error> {
        CommandLine::try_parse_from(std::iter::once("nuthatch").chain(line.split_whitespace()))
    }

    #[test]
    fn the_definition_is_consistent() {
        for program in ["nuthatch", "/usr/bin/memcached"] {
            definition(&[program.into()]).debug_assert();
        }
    }

    #[test]
    fn serving_is_the_default() {
        let line = "-m 1024 -p 11211 -t 4";
        let plain = parse(line).unwrap();
        assert!(plain.command.is_none());
        let Some(Command::Serve(serve)) = parse(&format!("serve {line}")).unwrap().command else {
            panic!("not serve");
        };
        assert_eq!(serve.flags, plain.serve.flags);
        assert_eq!(serve.flags.threads, Some(4));
    }

    #[test]
    fn of_a_flag_said_twice_the_last_counts() {
        let said = parse("-m 64 -p 1 -M -l a -v -m 128 -M -p 2 -l b,c -v").unwrap();
        let flags = said.serve.flags;
        assert_eq!((flags.memory_limit, flags.port), (Some(128 << 20), Some(2)));
        // These add up.
        assert_eq!(flags.listen, ["a", "b", "c"]);
        assert_eq!(
            (flags.verbosity(), flags.disable_evictions),
            (2, Some(true))
        );
        let Some(Command::Serve(serve)) = parse("serve -t 1 -t 2").unwrap().command else {
            panic!("not serve");
        };
        assert_eq!(serve.flags.threads, Some(2));
    }
}
