//! The rows of `make bench` that run in this process: each a command line of `nuthatch-lab bench` with a name. One of them
//! by itself is `nuthatch-lab bench row NAME`.

use clap::{Args, CommandFactory, FromArgMatches, Parser};
use nuthatch_program::{Failure, output};

use crate::bench::Bench;

/// One row.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// How often it is measured.
    pub times: usize,
    /// The bench and its options.
    pub words: &'static str,
}

const fn row(name: &'static str, words: &'static str) -> Row {
    Row {
        name,
        times: 1,
        words,
    }
}

/// All rows, in their order in docs/measured.md.
pub const ROWS: &[Row] = &[
    row("bytes-32", "engine --batch 32 --rivals bytes"),
    row("bytes-1", "engine --batch 1 --rivals bytes"),
    row("arrays-32", "engine --batch 32 --rivals arrays"),
    row("arrays-1", "engine --batch 1 --rivals arrays"),
    row("threads-2", "engine --batch 32 --threads 2"),
    row("paper-32", "engine --engine cuckoo-paper --batch 32"),
    row(
        "value-100-32",
        "engine --items 5000000 --value-size 100 --batch 32 --rivals bytes --seconds 5",
    ),
    row(
        "value-100-1",
        "engine --items 5000000 --value-size 100 --batch 1 --rivals bytes --seconds 5",
    ),
    row(
        "value-300-32",
        "engine --items 3000000 --value-size 300 --batch 32 --rivals bytes --seconds 5",
    ),
    row(
        "etc-32",
        "engine --items 3000000 --mixed etc --batch 32 --rivals bytes --seconds 5",
    ),
    row(
        "misses-10-32",
        "engine --items 5000000 --value-size 100 --miss-ratio 0.1 --batch 32 --rivals bytes --seconds 5",
    ),
    row(
        "misses-50-32",
        "engine --items 5000000 --value-size 100 --miss-ratio 0.5 --batch 32 --rivals bytes --seconds 5",
    ),
    row(
        "zipf-32",
        "engine --items 5000000 --value-size 100 --dist zipf --batch 32 --rivals bytes --seconds 5",
    ),
    row("new-keys", "insert --rivals"),
    row(
        "overwrites-held",
        "engine --items 5000000 --get-ratio 0 --hold 100000 --batch 32 --rivals bytes --seconds 5",
    ),
    row("full", "full --memory 64M --value-size 100 --rivals"),
    Row {
        times: 3,
        ..row("growth", "engine --grow 1000000:16000000")
    },
];

/// The words that make a row small enough for a test. Its figures are worthless.
fn trial(words: &str) -> &'static str {
    match words {
        _ if words.contains("--grow") => "--grow 1000:16000",
        _ if words.starts_with("insert") => "--items 2000 --rounds 2",
        _ if words.starts_with("full") => "--memory 1M --requests 2000 --rounds 2",
        _ => "--items 2000 --seconds 0.05 --rounds 2",
    }
}

/// One row of `make bench`.
#[derive(Args, Debug)]
pub struct Options {
    /// Its name; without one, all rows are listed: name, how often `make bench` measures it, options
    name: Option<String>,
    /// With so little of everything that figures are worthless: to see that the row works
    #[arg(long)]
    trial: bool,
    /// More options of the row's bench: the last of each kind counts
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    more: Vec<String>,
}

/// A row's command line.
#[derive(Parser)]
#[command(name = "nuthatch-lab bench")]
struct Line {
    #[command(subcommand)]
    bench: Bench,
}

/// Lists the rows, or runs one.
pub fn run(options: &Options) -> Result<(), Failure> {
    let Some(name) = &options.name else {
        let lines = ROWS
            .iter()
            .map(|row| format!("{}\t{}\t{}\n", row.name, row.times, row.words));
        return output::print(&lines.collect::<String>());
    };
    let Some(row) = ROWS.iter().find(|row| row.name == name) else {
        return Err(Failure::Usage(format!(
            "{name}: no row; `nuthatch-lab bench row` lists them"
        )));
    };
    let trial = if options.trial { trial(row.words) } else { "" };
    let own = row.words.split_whitespace().chain(trial.split_whitespace());
    let more = options.more.iter().map(String::as_str);
    let words: Vec<&str> = own.chain(more).collect();
    output::note(&format!("$ nuthatch-lab bench {}", words.join(" ")));
    let matches = Line::command()
        .mut_subcommands(|bench| bench.args_override_self(true))
        .try_get_matches_from(std::iter::once("nuthatch-lab bench").chain(words))
        .and_then(|matches| Line::from_arg_matches(&matches));
    match matches {
        Ok(line) => line.bench.run(),
        Err(error) => Err(Failure::Usage(error.to_string())),
    }
}
