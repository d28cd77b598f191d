//! Histograms 1 to 5 of the paper in kind, and the search length over the table's size.

use std::fmt::Write;
use std::path::Path;

use crate::functions::{HashedKey, Registry};
use crate::key::{Block, Inode};
use crate::table::Table;
use nuthatch_base::spread::Histogram;
use nuthatch_plot::{Axis, Curve, LineChart};

use super::{generate, save};
use crate::analyze::histogram;
use crate::bucket_sizes;
use nuthatch_program::Failure;

/// The paper's table of buffers.
const BUFFERS: Table = Table::of_bits(14);
/// The functions that it compares there.
const COMPARED: [&str; 3] = ["buffer-xor", "mult-11", "steiner"];

/// Draws Histograms 1 to 4 from generated blocks, and the same from real ones if there are any.
pub fn buffers(
    registry: &Registry,
    folder: &Path,
    full: &[Block],
    real: &[Block],
) -> Result<String, Failure> {
    let after = generate::after(full, 2);
    let mut text = String::new();
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
        let seen = of_functions(registry, keys, BUFFERS, &COMPARED)?;
        let shown: Vec<(&str, &Histogram)> =
            seen.iter().map(|(name, seen)| (*name, seen)).collect();
        save(folder, name, &bucket_sizes::figure(title, &shown)?)?;
        let title = format!(
            "{title}: {} keys in {} buckets",
            keys.len(),
            BUFFERS.buckets()
        );
        text += &summary(&title, &shown);
        if name == "histograms-1-3" {
            for (name, seen) in &shown[..2] {
                let _ = writeln!(text, "{name}:\n\n```text\n{seen}```\n");
            }
        }
    }
    Ok(text)
}

/// Draws Histogram 5: an inode table that is far too small, and one that is not.
pub fn inodes(registry: &Registry, folder: &Path, keys: &[Inode]) -> Result<String, Failure> {
    let mut text = String::new();
    for (bits, name) in [(8, "histogram-5"), (12, "histogram-5-12-bits")] {
        let table = Table::of_bits(bits);
        let seen = of_functions(registry, keys, table, &["inode-shift-add", "mult-top"])?;
        let shown: Vec<(&str, &Histogram)> =
            seen.iter().map(|(name, seen)| (*name, seen)).collect();
        let title = format!(
            "Histogram 5: {} inodes in {} buckets",
            keys.len(),
            table.buckets()
        );
        let figure = bucket_sizes::figure("Histogram 5: inodes", &shown)?;
        save(folder, name, &figure)?;
        text += &summary(&title, &shown);
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
