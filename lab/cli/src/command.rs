//! The command line of the laboratory.

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use nuthatch_hits::{hit_ratio, items_held};
use nuthatch_program::{Failure, output};

use crate::bench::Bench;
use crate::flow::Flow;
use crate::hash::Hash;
use crate::serve::Serve;

/// Runs, measures and explains caches: engines, servers, flow caches, hash functions.
#[derive(Debug, Parser)]
#[command(name = "nuthatch-lab", version)]
pub struct CommandLine {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve clients as nuthatch does, on any engine, with the switches of papers
    // As for `nuthatch`, the last word counts, and of its flags one is about the output of its own -V and -h.
    #[command(
        args_override_self = true,
        mut_arg("as_memcached", |flag| flag.hide(true))
    )]
    Serve(Box<Serve>),
    /// Measure engines and servers
    #[command(subcommand)]
    Bench(Bench),
    /// Run the papers' figures and tables, draw them, and judge their shapes
    Figure(nuthatch_figures::Options),
    /// Show all figures that were run on one page, with their verdicts and how to repeat them
    Report(nuthatch_figures::report::Options),
    /// Compare flow caches: on captures, on generated keys, under attack
    #[command(subcommand)]
    Flow(Flow),
    /// Find the hash function and the table size that suit a set of keys
    #[command(subcommand)]
    Hash(Hash),
    /// Replay request traces on eviction policies, and compare their hits
    HitRatio(hit_ratio::Options),
    /// Record the requests of a running server as a trace
    Record(nuthatch_record::Options),
    /// Fill engines and servers, and count the items that they hold
    ItemsHeld(items_held::Options),
    /// Print completions for a shell
    Completions {
        /// The shell that the completions are for
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

/// Prints completions.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(
        shell,
        &mut CommandLine::command(),
        "nuthatch-lab",
        &mut text,
    );
    output::print_bytes(&text)
}

/// Prints the manual page.
pub fn man() -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(CommandLine::command()).render(&mut text)?;
    output::print_bytes(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<CommandLine, clap::Error> {
        CommandLine::try_parse_from(std::iter::once("nuthatch-lab").chain(line.split_whitespace()))
    }

    #[test]
    fn the_definition_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn benches_take_what_they_are_documented_with() {
        for line in [
            "bench engine --engine cuckoo --items 10 --key-size 16 --value-size 32 --threads 1 \
             --batch 32 --get-ratio 1 --dist zipf --seconds 1 --memory 64M --rivals --json",
            "bench engine --engine cuckoo-paper --grow 1000000:16000000",
            "bench fill --memory 64M --key-size 16 --value-size 32",
            "bench server --target 127.0.0.1:1 --pid 1 --conns 5 --pipeline 100 --multiget 1 \
             --get-ratio 0.5 --keys 10 --value-size 32 --seconds 1 --threads 1 --json",
            "bench versus --rival memcached --rounds 3 --ours -t --conns 5",
        ] {
            parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        assert!(parse("bench versus").is_err());
        assert!(parse("").is_err());
    }
}
