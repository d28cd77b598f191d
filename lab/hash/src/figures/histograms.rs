//! Histograms 1 to 5 of the paper in kind, and the search length over the table's size.

use std::fmt::Write;
use std::path::Path;

use crate::functions::{HashedKey, Registry};
use crate::key::{Block, Inode};
use crate::table::Table;
use nuthatch_base::spread::{Histogram, Perfect};
use nuthatch_plot::{Axis, Curve, LineChart};

use super::{generate, save};
use crate::analyze::histogram;
use crate::bucket_sizes;
use crate::report::{Bar, histogram_to_15};
use nuthatch_program::Failure;
use serde::Serialize;

/// The paper's table of buffers.
const BUFFERS: Table = Table::of_bits(14);
/// The functions that it compares there.
const COMPARED: [&str; 3] = ["buffer-xor", "mult-11", "steiner"];

/// One of the paper's histograms, under several functions.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The paper's number, or what it is of.
    name: &'static str,
    title: String,
    functions: Vec<(&'static str, Histogram)>,
    /// How many of them are printed with all sizes.
    whole: usize,
}

/// One function of a histogram, as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    figure: &'a str,
    function: &'a str,
    buckets: u64,
    items: u64,
    used_buckets: u64,
    largest: u64,
    searched_hit: f64,
    searched_miss: f64,
    histogram: Vec<Bar>,
}

/// Draws Histograms 1 to 4 from generated blocks, and the same from real ones if there are any.
pub fn buffers(
    registry: &Registry,
    folder: &Path,
    full: &[Block],
    real: &[Block],
) -> Result<Vec<Drawn>, Failure> {
    let after = generate::after(full, 2);
    let mut drawn = Vec::new();
    let cases: [(&str, &str, &[Block]); 3] = [
        (
            "Histograms 1 and 3: a full buffer cache (generated)",
            "histograms-1-3",
            full,
        ),
        (
            "Histograms 2 and 4: after the benchmark (generated)",
            "histograms-2-4",
            &after,
        ),
        (
            "The buffer cache with block numbers of a real file system",
            "histograms-real-blocks",
            real,
        ),
    ];
    for (title, name, keys) in cases {
        if keys.is_empty() {
            continue;
        }
        let functions = of_functions(registry, keys, BUFFERS, &COMPARED)?;
        save(
            folder,
            name,
            &bucket_sizes::figure(title, &shown(&functions))?,
        )?;
        drawn.push(Drawn {
            name,
            title: format!(
                "{title}: {} keys in {} buckets",
                keys.len(),
                BUFFERS.buckets()
            ),
            functions,
            whole: if name == "histograms-1-3" { 2 } else { 0 },
        });
    }
    Ok(drawn)
}

/// Draws Histogram 5: an inode table that is far too small, and one that is not.
pub fn inodes(registry: &Registry, folder: &Path, keys: &[Inode]) -> Result<Vec<Drawn>, Failure> {
    let mut drawn = Vec::new();
    for (bits, name) in [(8, "histogram-5"), (12, "histogram-5-12-bits")] {
        let table = Table::of_bits(bits);
        let functions = of_functions(registry, keys, table, &["inode-shift-add", "mult-top"])?;
        let figure = bucket_sizes::figure("Histogram 5: inodes", &shown(&functions))?;
        save(folder, name, &figure)?;
        drawn.push(Drawn {
            name,
            title: format!(
                "Histogram 5: {} inodes in {} buckets",
                keys.len(),
                table.buckets()
            ),
            functions,
            whole: 0,
        });
    }
    Ok(drawn)
}

fn shown<'a>(functions: &'a [(&'static str, Histogram)]) -> Vec<(&'a str, &'a Histogram)> {
    functions.iter().map(|(name, seen)| (*name, seen)).collect()
}

/// The histograms as sections of a document.
pub fn markdown(drawn: &[Drawn]) -> String {
    let mut text = String::new();
    for one in drawn {
        let shown = shown(&one.functions);
        text += &summary(&one.title, &shown);
        for (name, seen) in &shown[..one.whole] {
            let _ = writeln!(text, "{name}:\n\n```text\n{seen}```\n");
        }
    }
    text
}

/// The histograms for programs: one line for each function, with the paper's columns.
pub fn json(drawn: &[Drawn]) -> Result<String, Failure> {
    let mut text = String::new();
    for one in drawn {
        for (function, seen) in &one.functions {
            let line = Line {
                figure: one.name,
                function,
                buckets: seen.buckets(),
                items: seen.items(),
                used_buckets: seen.used_buckets(),
                largest: seen.largest(),
                searched_hit: seen.searched_hit(),
                searched_miss: seen.searched_miss(),
                histogram: histogram_to_15(seen, &Perfect::of(seen.items(), seen.buckets())),
            };
            let line =
                serde_json::to_string(&line).map_err(|error| Failure::run(error.to_string()))?;
            text += &line;
            text.push('\n');
        }
    }
    Ok(text)
}

/// Draws objects searched for a miss over the number of buckets.
pub fn search_lengths(registry: &Registry, folder: &Path, full: &[Block]) -> Result<(), Failure> {
    let names = [
        "buffer-xor",
        "mult-11",
        "mult-18",
        "steiner",
        "mult-top",
        "mult-top-64",
        "hash_64",
    ];
    let curve = |name: &&str| {
        let entry = registry
            .find(name)
            .ok_or_else(|| Failure::run(format!("no {name}")))?;
        let point = |bits| {
            let table = Table::of_bits(bits);
            let miss = histogram(entry, full, table).searched_miss();
            (table.buckets() as f64, miss)
        };
        Ok(Curve::measured(*name, (8..=18).map(point).collect()))
    };
    let curves = names
        .iter()
        .map(curve)
        .collect::<Result<Vec<_>, Failure>>()?;
    let chart = LineChart {
        title: "Objects searched for a miss, over the size of the table".to_owned(),
        note: format!("{} generated block numbers", full.len()),
        x: Axis::binary("buckets"),
        y: Axis::logarithmic("objects searched"),
        curves,
    };
    let svg = chart
        .svg()
        .map_err(|error| Failure::run(error.to_string()))?;
    save(folder, "search-lengths", &svg)
}

fn of_functions<K: HashedKey>(
    registry: &Registry,
    keys: &[K],
    table: Table,
    names: &[&'static str],
) -> Result<Vec<(&'static str, Histogram)>, Failure> {
    let one = |&name: &&'static str| {
        let entry = registry
            .find(name)
            .ok_or_else(|| Failure::run(format!("no {name}")))?;
        Ok((name, histogram(entry, keys, table)))
    };
    names.iter().map(one).collect()
}

/// The lines of the paper's histograms that matter, a row for each function.
fn summary(title: &str, shown: &[(&str, &Histogram)]) -> String {
    let mut text = format!(
        "### {title}\n\n| function | buckets used | largest | items in buckets over 15 | objects a hit | \
         objects a miss |\n|---|---|---|---|---|---|\n"
    );
    for (name, seen) in shown {
        let small: u64 = (0..=15).map(|size| size * seen.buckets_of(size)).sum();
        let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "| {name} | {:.1} % | {} | {:.1} % | {:.2} | {:.2} |",
            percent(seen.used_buckets(), seen.buckets()),
            seen.largest(),
            percent(seen.items() - small, seen.items()),
            seen.searched_hit(),
            seen.searched_miss()
        );
    }
    text.push('\n');
    text
}
