//! Tables in Markdown of the benches' results, as `scripts/bench.sh` puts them into README.md and docs, so that no
//! figure is copied by hand.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use nuthatch_bench::report::Spread;
use nuthatch_bench::server::Protocol;
use nuthatch_bench::{engine, fill, full, growth, versus};

mod detail;
mod summary;

/// Options of the tables.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// File of the lines that benches printed with --json
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// Print every figure, not only the README's table
    #[arg(long)]
    pub detail: bool,
    /// Commit of the program, which the tables name
    #[arg(long, value_name = "COMMIT", default_value = "")]
    pub commit: String,
}

/// Prints the tables.
pub fn run(options: &Options) -> Result<(), String> {
    let name = options.from.display();
    let lines = fs::read_to_string(&options.from).map_err(|error| format!("{name}: {error}"))?;
    let found = Found::read(&lines).map_err(|error| format!("{name}: {error}"))?;
    let tables = if options.detail {
        detail::tables(&found, &options.commit)
    } else {
        summary::table(&found)
    };
    std::io::stdout()
        .write_all(tables.as_bytes())
        .map_err(|error| format!("standard output: {error}"))
}

/// A line of a bench's output.
#[derive(Deserialize)]
#[serde(tag = "bench", rename_all = "snake_case")]
enum Line {
    Engine(engine::Report),
    Fill(fill::Report),
    Full(full::Report),
    Growth(growth::Report),
    Insert(engine::insert::Report),
    Versus(versus::Report),
}

/// The results of benches, in the order in which they ran.
#[derive(Default)]
struct Found {
    engines: Vec<engine::Report>,
    fills: Vec<fill::Report>,
    fulls: Vec<full::Report>,
    growths: Vec<growth::Report>,
    inserts: Vec<engine::insert::Report>,
    versus: Vec<versus::Report>,
    /// The machine; the same for all.
    host: Option<nuthatch_bench::host::Host>,
}

impl Found {
    /// From lines of JSON. Errors name the line. Figures of several machines or programs are refused.
    fn read(lines: &str) -> Result<Self, String> {
        let mut found = Self::default();
        for (number, text) in (1..).zip(lines.lines()) {
            let line: Line =
                serde_json::from_str(text).map_err(|error| format!("line {number}: {error}"))?;
            let host = match &line {
                Line::Engine(report) => &report.host,
                Line::Fill(report) => &report.host,
                Line::Full(report) => &report.host,
                Line::Growth(report) => &report.host,
                Line::Insert(report) => &report.host,
                Line::Versus(report) => &report.host,
            };
            if found.host.get_or_insert_with(|| host.clone()) != host {
                return Err(format!(
                    "line {number}: of another machine or program: {host}"
                ));
            }
            match line {
                Line::Engine(report) => found.engines.push(report),
                Line::Fill(report) => found.fills.push(report),
                Line::Full(report) => found.fulls.push(report),
                Line::Growth(report) => found.growths.push(report),
                Line::Insert(report) => found.inserts.push(report),
                Line::Versus(report) => found.versus.push(report),
            }
        }
        Ok(found)
    }

    /// Versions of the servers that were rivals, each once.
    fn servers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for rival in self.versus.iter().flat_map(|report| &report.rivals) {
            let name = server_name(&rival.side);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The warnings about the rivals, each once.
    fn warnings(&self) -> BTreeSet<&str> {
        let rivals = self.versus.iter().flat_map(|report| &report.rivals);
        rivals
            .filter_map(|rival| rival.warning.as_deref())
            .collect()
    }

    /// What it was measured on, as a sentence.
    fn host(&self, commit: &str) -> String {
        let Some(host) = &self.host else {
            return "Nothing was measured.".to_owned();
        };
        let commit = match commit {
            "" => String::new(),
            commit => format!(" ({commit})"),
        };
        format!(
            "nuthatch {}{commit}, {}, on {} cores of {} with {} of last-level cache, {}, huge pages: {}.",
            host.nuthatch,
            host.compiler,
            host.cores,
            host.processor,
            host.cache,
            host.kernel,
            host.huge_pages
        )
    }
}

/// A server's name in a table.
fn server_name(side: &versus::Side) -> String {
    match &side.version {
        Some(version) => format!("{} {version}", side.program),
        None => side.program.clone(),
    }
}

/// The load on an engine, in words.
fn work(report: &engine::Report) -> String {
    let mut gets = match report.get_ratio {
        1.0 => "GET".to_owned(),
        0.0 => "SET of stored keys".to_owned(),
        ratio => format!("GET {:.0} %, SET", ratio * 100.0),
    };
    if report.miss_ratio > 0.0 {
        let _ = write!(gets, ", {:.0} % misses", report.miss_ratio * 100.0);
    }
    if report.dist == engine::Distribution::Zipf {
        gets.push_str(", by Zipf 0.99");
    }
    match report.batch {
        1 => format!("{gets}, one at a time"),
        batch => format!("{gets}, {batch} at a time"),
    }
}

/// The load on a server, in words.
fn load(report: &versus::Report) -> String {
    let what = match report.get_ratio {
        1.0 => "GET".to_owned(),
        0.0 => "SET".to_owned(),
        ratio => format!("GET {:.0} %, SET", ratio * 100.0),
    };
    let how = match report.protocol {
        Protocol::Memcached => String::new(),
        Protocol::Binary => "binary ".to_owned(),
        Protocol::Redis => "Redis' ".to_owned(),
        Protocol::Cpserver | Protocol::CpserverExtended => "CPServer's ".to_owned(),
    };
    let tls = if report.tls { "TLS: " } else { "" };
    let what = format!("{tls}{how}{what}");
    match (report.pipeline, report.multiget) {
        (1, 1) => format!("{what}, one at a time"),
        (pipeline, 1) => format!("{what}, pipelines of {pipeline}"),
        (1, keys) => format!("{what}, {keys} keys each"),
        (pipeline, keys) => format!("{what}, {keys} keys each, pipelines of {pipeline}"),
    }
}

/// A median with its spread, with as many digits as are significant.
fn spread(spread: &Spread) -> String {
    let places = places(spread.median);
    format!(
        "{:.places$} ({:.places$} to {:.places$})",
        spread.median, spread.min, spread.max
    )
}

/// Decimal places that leave two to three digits.
fn places(number: f64) -> usize {
    match number.abs() {
        number if number >= 20.0 => 0,
        number if number >= 5.0 => 1,
        number if number >= 0.2 => 2,
        _ => 3,
    }
}

/// A number with commas between thousands.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table in Markdown.
struct Table {
    text: String,
}

impl Table {
    fn new<S: AsRef<str>>(head: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self {
            text: String::new(),
        };
        let head: Vec<S> = head.into_iter().collect();
        let columns = head.len();
        table.row(head);
        table.row(std::iter::repeat_n("---", columns));
        // The line below the head has no room between its bars.
        table.text = table.text.replace(" --- ", "---");
        table
    }

    fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        for cell in cells {
            let _ = write!(self.text, "| {} ", cell.as_ref());
        }
        self.text.push_str("|\n");
    }
}

#[cfg(test)]
mod tests;
