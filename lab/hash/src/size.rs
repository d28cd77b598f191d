//! `nuthatch-lab hash size`: the table that each rule gives for an amount of memory.

use std::fmt::{self, Write};
use std::fs;

use clap::Args;
use nuthatch_base::hash::sizing::{self, IndexShape};
use nuthatch_base::spread::Perfect;
use serde::Serialize;

use nuthatch_program::{Failure, output};

use crate::kernel_size::{self, KernelTable, Rule};

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Our default index, and its buckets at least.
const SHAPE: IndexShape = IndexShape::cuckoo(8);
const BUCKETS_MIN: u64 = 64;

/// What to size for.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Memory in bytes or with a suffix K, M, G or T [default: this machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,
    /// Items that a table holds [default: one for each page of memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub items: Option<u64>,
    /// Print one line of JSON for each rule and table
    #[arg(long)]
    pub json: bool,
}

/// A number of bytes with a unit of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || "a size such as 64M, 1G, or a number of bytes".to_owned();
    let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let size = number.checked_mul(1 << shift).ok_or_else(wrong)?;
    match size {
        small if small < PAGE => Err(format!("at least one page of {PAGE} bytes")),
        large if large > 1 << 50 => Err("at most 1024T".to_owned()),
        size => Ok(size),
    }
}

/// The result of one rule for one table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The rule.
    pub rule: String,
    /// The table.
    pub table: &'static str,
    /// Buckets.
    pub buckets: u64,
    /// Bytes of all buckets.
    pub bytes: u64,
    /// Those bytes / the memory's.
    pub share: f64,
    /// Items in the table.
    pub items: u64,
    /// Objects searched for a hit.
    pub searched_hit: f64,
    /// Objects searched for a miss.
    pub searched_miss: f64,
}

/// Computes and prints.
pub fn run(options: &Options) -> Result<(), Failure> {
    let memory = match options.memory {
        Some(memory) => memory,
        None => machine_memory()?,
    };
    let items = options.items.unwrap_or(memory / PAGE);
    let rows = rows(memory, items);
    let text = match options.json {
        true => json(&rows)?,
        false => text(memory, items, &rows).map_err(|error| Failure::run(error.to_string()))?,
    };
    output::print(&text)
}

/// All rules, ours last.
pub fn rows(memory: u64, items: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in KernelTable::ALL {
        for rule in Rule::ALL {
            let Some(size) = kernel_size::kernel(rule, table, memory) else {
                continue;
            };
            let expected = Perfect::of(items, size.buckets);
            rows.push(Row {
                rule: rule.name().to_owned(),
                table: table.name(),
                buckets: size.buckets,
                bytes: size.bytes,
                share: size.bytes as f64 / memory as f64,
                items,
                searched_hit: expected.searched_hit(),
                searched_miss: expected.searched_miss(),
            });
        }
    }
    let start = sizing::index(memory, None, SHAPE, BUCKETS_MIN);
    rows.push(index(
        &format!("nuthatch, at start: {}", start.rule),
        start,
        memory,
        items,
    ));
    let sized = sizing::index(memory, Some(items), SHAPE, BUCKETS_MIN);
    if sized != start {
        rows.push(index(
            &format!("nuthatch, at start: {}", sized.rule),
            sized,
            memory,
            items,
        ));
    }
    let grown = start.grown_to(items);
    if grown.buckets != start.buckets {
        rows.push(index("nuthatch, grown to the items", grown, memory, items));
    }
    rows
}

/// Our index: a hit examines the item and those with a false tag match, a miss only the latter. If not all given items
/// fit, it holds as many as it can.
fn index(rule: &str, size: sizing::IndexSize, memory: u64, items: u64) -> Row {
    let held = items.min(size.buckets * size.slots);
    let false_tags = size.false_tags(held);
    Row {
        rule: rule.to_owned(),
        table: "index of 8-slot buckets",
        buckets: size.buckets,
        bytes: size.bytes(),
        share: size.bytes() as f64 / memory as f64,
        items: held,
        searched_hit: 1.0 + false_tags,
        searched_miss: false_tags,
    }
}

fn json(rows: &[Row]) -> Result<String, Failure> {
    rows.iter()
        .map(|row| serde_json::to_string(row).map(|line| line + "\n"))
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::run(error.to_string()))
}

fn text(memory: u64, items: u64, rows: &[Row]) -> Result<String, fmt::Error> {
    let mut text = String::new();
    writeln!(
        text,
        "{:.1} MiB of memory, {items} items",
        memory as f64 / 1_048_576.0
    )?;
    let mut table = "";
    for row in rows {
        if row.table != table {
            table = row.table;
            writeln!(
                text,
                "\n{table:<46} {:>11} {:>12} {:>8} {:>10} {:>10}",
                "buckets", "KiB", "memory", "hit", "miss"
            )?;
        }
        writeln!(
            text,
            "  {:<44} {:>11} {:>12.1} {:>7.3}% {:>10.4} {:>10.4}",
            row.rule,
            row.buckets,
            row.bytes as f64 / 1024.0,
            100.0 * row.share,
            row.searched_hit,
            row.searched_miss
        )?;
    }
    text.push_str(
        "\nhit, miss: objects searched, under a perfect hash. The kernel's buckets are heads of chains of\n\
         8-byte pointers; ours hold eight tagged references each, and double when 96 % are taken.\n",
    );
    if let Some(held) = rows.iter().map(|row| row.items).find(|&held| held < items) {
        writeln!(
            text,
            "Our index at its first size is shown with the {held} items that it holds."
        )?;
    }
    Ok(text)
}

/// Bytes of this machine's memory.
fn machine_memory() -> Result<u64, Failure> {
    let path = "/proc/meminfo";
    let failed = |words: &str| Failure::run(format!("{path}: {words}; give --memory"));
    let text = fs::read_to_string(path).map_err(|error| failed(&error.to_string()))?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> = total.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| failed("no MemTotal"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(bytes("1gib"), Ok(1 << 30));
        assert_eq!(bytes("8192"), Ok(8192));
        for bad in [
            "",
            "M",
            "64X",
            "-1",
            "1.5G",
            "18446744073709551615T",
            "0",
            "4095",
            "2048T",
        ] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_papers_64_megabytes() {
        let rows = rows(64 << 20, 16_384);
        let find = |rule: &str, table: &str| {
            let mut found = rows
                .iter()
                .filter(|row| row.rule.contains(rule) && row.table == table);
            found.next().unwrap()
        };
        let pages = find("2.2.16 (", "page cache");
        assert_eq!((pages.buckets, pages.bytes), (16_384, 131_072));
        assert_eq!(pages.share, 131_072.0 / f64::from(64 << 20));
        assert!((pages.searched_hit - 1.5).abs() < 0.001);
        assert!((find("2.2.5", "page cache").searched_miss - 8.0).abs() < 0.001);
        let ours = find("nuthatch", "index of 8-slot buckets");
        assert!(ours.searched_hit < 1.001 && ours.bytes == 1 << 18);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(machine_memory().unwrap() > 1 << 20);
    }
}
