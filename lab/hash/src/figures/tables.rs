//! Tables 1 to 5 of the paper in kind: lookups a second under each function and size.
//!
//! The paper ran a whole benchmark on each kernel and counted scripts an hour; here only the tables are searched, so
//! the differences are larger than the paper's, and only the order can be compared. All kernels of a table are searched
//! alternately, round by round, in one run.

use std::fmt::Write;

use crate::distribution::chained::Searched;
use crate::functions::{HashedKey, Registry};
use crate::table::Table;

use super::generate;
use super::searchable::{Searchable, Workload};
use crate::key::Numeric;
use crate::measure::{CpuTime, median};
use nuthatch_program::Failure;
use serde::Serialize;

/// A kernel of the paper: one row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The paper's name for it; in parentheses if the row is ours.
    pub name: &'static str,
    /// The function's name, or [`RBTREE`].
    pub function: &'static str,
    /// log2 of the buckets; 0 for trees.
    pub bits: u32,
    /// True if the cache is pruned to half of its objects.
    pub shrunk: bool,
    /// The paper's throughput in scripts an hour.
    pub paper: Option<f64>,
}

/// In place of a function: a red-black tree for each inode, and no table.
pub const RBTREE: &str = "rbtree";

impl Kernel {
    /// Buckets of its table, if it has one.
    pub fn buckets(&self) -> Option<u64> {
        (self.function != RBTREE).then_some(1 << self.bits)
    }
}

/// One of the paper's tables.
#[derive(Clone, Copy, Debug)]
pub struct PaperTable {
    /// Its number.
    pub number: u8,
    /// The cache.
    pub title: &'static str,
    /// Its rows, the reference first.
    pub kernels: &'static [Kernel],
    /// Objects that are stored.
    pub objects: usize,
    /// The share of the searches that hit: the buffers' and inodes' are the paper's (Histograms 1 and 5), the others
    /// ours.
    pub hit_ratio: f64,
}

const fn kernel(name: &'static str, function: &'static str, bits: u32, paper: f64) -> Kernel {
    let (shrunk, paper) = (false, Some(paper));
    Kernel {
        name,
        function,
        bits,
        shrunk,
        paper,
    }
}

const fn modern(name: &'static str, function: &'static str, bits: u32) -> Kernel {
    let (shrunk, paper) = (false, None);
    Kernel {
        name,
        function,
        bits,
        shrunk,
        paper,
    }
}

const fn shrunk(mut kernel: Kernel) -> Kernel {
    kernel.shrunk = true;
    kernel
}

/// Table 1: the page cache on the machine with two processors, 48 scripts: the largest load without
/// swapping in the way.
const TABLE_1: [Kernel; 9] = [
    kernel("reference", "page-shift-add", 11, 1739.9),
    kernel("13-bit", "page-shift-add", 13, 1765.5),
    kernel("14-bit", "page-shift-add", 14, 1770.5),
    kernel("15-bit", "page-shift-add", 15, 1770.3),
    kernel("offset", "page-shift-add-offset", 14, 1774.5),
    kernel("mult", "mult-top", 14, 1773.7),
    kernel("rbtree", RBTREE, 0, 1755.3),
    modern("(hash_64)", "hash_64", 14),
    modern("(rapidhash-seeded)", "rapidhash-seeded", 14),
];

/// Table 2: the page cache on the machine with 512 MB (averages without the first run).
const TABLE_2: [Kernel; 3] = [
    kernel("2048", "page-shift-add", 11, 4295.2),
    kernel("8192", "page-shift-add", 13, 4398.5),
    kernel("32768", "page-shift-add", 15, 4407.4),
];

/// Table 3: the buffer cache (averages without the first run).
const TABLE_3: [Kernel; 11] = [
    kernel("reference", "buffer-xor", 15, 4295.2),
    kernel("mult, shift 16", "mult-16", 15, 4376.4),
    kernel("mult, shift 11", "mult-11", 15, 4382.8),
    kernel("shift-add", "steiner", 15, 4397.2),
    kernel("mult, shift 11", "mult-11", 14, 4394.6),
    kernel("mult, shift 17", "mult-17", 14, 4369.9),
    kernel("shift-add", "steiner", 14, 4399.6),
    kernel("mult, shift 18", "mult-18", 13, 4333.7),
    kernel("shift-add", "steiner", 13, 4362.8),
    modern("(hash_64)", "hash_64", 14),
    modern("(rapidhash-seeded)", "rapidhash-seeded", 14),
];

/// Table 4: the dentry cache.
const TABLE_4: [Kernel; 9] = [
    kernel("reference", "dentry-shift-xor", 10, 4282.8),
    kernel("14 bit", "dentry-shift-add", 14, 4375.2),
    kernel("mult, shift 11", "mult-11", 14, 4368.7),
    kernel("mult, shift 17", "mult-17", 14, 4375.9),
    shrunk(kernel("shrink", "dentry-shift-add", 14, 4368.7)),
    shrunk(kernel("shrink + mult 11", "mult-11", 14, 4380.4)),
    shrunk(kernel("shrink + mult 17", "mult-17", 14, 4368.5)),
    modern("(hash_64)", "hash_64", 14),
    modern("(rapidhash-seeded)", "rapidhash-seeded", 14),
];

/// Table 5: the inode cache.
const TABLE_5: [Kernel; 6] = [
    kernel("reference", "inode-shift-add", 8, 4282.8),
    kernel("12 bit", "inode-shift-add", 12, 4361.3),
    kernel("mult", "mult-top", 12, 4346.0),
    kernel("14 bit", "inode-shift-add", 14, 4368.3),
    modern("(hash_64)", "hash_64", 12),
    modern("(rapidhash-seeded)", "rapidhash-seeded", 12),
];

/// All of them that compare functions and sizes. The inodes are Histogram 5's; 32768 pages are 128 MB, 131072 those of the
/// machine with 512 MB, and the paper does not say how many dentries there were.
pub const TABLES: [PaperTable; 5] = [
    table(1, "the page cache", &TABLE_1, (32_768, 0.9)),
    table(2, "512 MB of pages", &TABLE_2, (131_072, 0.9)),
    table(3, "the buffer cache", &TABLE_3, (generate::FULL, 0.54)),
    table(4, "the dentry cache", &TABLE_4, (32_768, 0.9)),
    table(5, "the inode cache", &TABLE_5, (9_785, 0.03)),
];

const fn table(
    number: u8,
    title: &'static str,
    kernels: &'static [Kernel],
    (objects, hit_ratio): (usize, f64),
) -> PaperTable {
    PaperTable {
        number,
        title,
        kernels,
        objects,
        hit_ratio,
    }
}

/// The measurements of a kernel.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Which.
    pub kernel: Kernel,
    /// Million lookups a second of CPU time, run by run. The first one fills the processor's caches.
    pub runs: Vec<f64>,
    /// Seconds of CPU time that all runs took.
    pub elapsed_seconds: f64,
    /// Million lookups a second, the median of the runs without the first.
    pub mops: f64,
    /// Lookups a second / those of the table's first kernel: the median of the rounds, the least, the greatest.
    pub ratio: [f64; 3],
    /// Objects that one round looked at.
    pub searched: Searched,
}

/// Searches all kernels alternately, round by round: one run more than `rounds`.
pub fn measure<K: HashedKey + Numeric>(
    registry: &Registry,
    kernels: &[Kernel],
    workload: &Workload<K>,
    rounds: usize,
) -> Result<Vec<Measured>, Failure> {
    let pruned = workload.shrunk();
    let table = |kernel: &Kernel| {
        let workload = if kernel.shrunk { &pruned } else { workload };
        match kernel.buckets() {
            Some(_) => workload.table(registry, kernel.function, Table::of_bits(kernel.bits)),
            None => Ok(workload.trees()),
        }
    };
    let tables: Vec<Box<dyn Searchable + '_>> =
        kernels.iter().map(table).collect::<Result<_, _>>()?;
    let timed = search_all(&tables, rounds);
    let row = |(kernel, timed_one): (&Kernel, &Timed)| {
        // The first run warms caches and clocks.
        let (reference, own) = (&timed[0].runs[1..], &timed_one.runs[1..]);
        let ratios = reference.iter().zip(own).map(|(one, own)| own / one);
        Measured {
            kernel: *kernel,
            runs: timed_one.runs.clone(),
            elapsed_seconds: timed_one.elapsed_seconds,
            mops: median(own.to_vec()),
            ratio: spread(ratios.collect()),
            searched: timed_one.searched,
        }
    };
    Ok(kernels.iter().zip(&timed).map(row).collect())
}

/// The searches of one table.
pub struct Timed {
    /// Million lookups a second of CPU time, run by run.
    pub runs: Vec<f64>,
    /// Seconds of CPU time that all runs took.
    pub elapsed_seconds: f64,
    /// Objects that one run looked at.
    pub searched: Searched,
}

/// Searches all tables alternately, round by round: one run more than `rounds`.
pub fn search_all(tables: &[Box<dyn Searchable + '_>], rounds: usize) -> Vec<Timed> {
    let none = || Timed {
        runs: Vec::new(),
        elapsed_seconds: 0.0,
        searched: Searched::default(),
    };
    let mut timed: Vec<Timed> = tables.iter().map(|_| none()).collect();
    for _ in 0..=rounds {
        for (table, timed) in tables.iter().zip(&mut timed) {
            let start = CpuTime::now();
            timed.searched = table.search(0..table.searches());
            let elapsed_ns = start.elapsed_ns();
            timed.runs.push(table.searches() as f64 / elapsed_ns * 1e3);
            timed.elapsed_seconds += elapsed_ns / 1e9;
        }
    }
    timed
}

/// Median, least, greatest.
pub fn spread(values: Vec<f64>) -> [f64; 3] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    [median(values), least, most]
}

/// Mean and standard deviation of a sample.
pub fn mean(values: &[f64]) -> [f64; 2] {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    [mean, (squares / (count - 1.0).max(1.0)).sqrt()]
}

/// A row of a table, as one line of JSON. Throughputs are million lookups a second.
#[derive(Serialize)]
struct Line<'a> {
    table: u8,
    kernel: &'a str,
    function: &'a str,
    buckets: Option<u64>,
    objects: usize,
    hit_ratio: f64,
    searched_per_search: f64,
    runs: usize,
    average: f64,
    deviation: f64,
    average_without_first: f64,
    deviation_without_first: f64,
    average_middle: f64,
    deviation_middle: f64,
    first: f64,
    maximum: f64,
    elapsed_seconds: f64,
    ratio: f64,
    ratio_min: f64,
    ratio_max: f64,
    paper: Option<f64>,
}

/// The rows of a table for programs: one line each.
pub fn json(table: &PaperTable, rows: &[Measured]) -> Result<String, Failure> {
    let mut text = String::new();
    for row in rows {
        let line = serde_json::to_string(&line(table, row))
            .map_err(|error| Failure::run(error.to_string()))?;
        text += &line;
        text.push('\n');
    }
    Ok(text)
}

fn line<'a>(table: &PaperTable, row: &'a Measured) -> Line<'a> {
    let runs = &row.runs[..];
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = match sorted.len() {
        few if few < 3 => &sorted[..],
        many => &sorted[1..many - 1],
    };
    let ([average, deviation], [average_middle, deviation_middle]) = (mean(runs), mean(middle));
    let [average_without_first, deviation_without_first] = mean(&runs[1..]);
    let [ratio, ratio_min, ratio_max] = row.ratio;
    Line {
        table: table.number,
        kernel: row.kernel.name,
        function: row.kernel.function,
        buckets: row.kernel.buckets(),
        objects: table.objects,
        hit_ratio: table.hit_ratio,
        searched_per_search: row.searched.per_search(),
        runs: runs.len(),
        average,
        deviation,
        average_without_first,
        deviation_without_first,
        average_middle,
        deviation_middle,
        first: runs[0],
        maximum: sorted[sorted.len() - 1],
        elapsed_seconds: row.elapsed_seconds,
        ratio,
        ratio_min,
        ratio_max,
        paper: row.kernel.paper,
    }
}

/// A table of a document.
pub fn markdown(title: &str, rows: &[Measured]) -> String {
    let mut text = format!(
        "{title}\n\n| kernel | function | buckets | objects a search | million lookups a second (s) | \
         without the first run (s) | maximum | elapsed | / the reference | rank | paper: scripts an hour | \
         paper's rank |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    let of_paper: Vec<f64> = rows.iter().filter_map(|row| row.kernel.paper).collect();
    let of_ours: Vec<f64> = rows
        .iter()
        .filter(|row| row.kernel.paper.is_some())
        .map(|row| row.mops)
        .collect();
    for row in rows {
        let [ratio, least, most] = row.ratio;
        let ([all, s], [steady, steady_s]) = (mean(&row.runs), mean(&row.runs[1..]));
        let maximum = row.runs.iter().copied().fold(0.0, f64::max);
        let kernel = &row.kernel;
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "| {} | {} | {} | {:.2} | {all:.1} ({s:.1}) | {steady:.1} ({steady_s:.1}) | {maximum:.1} | {:.2} s | \
             {ratio:.2} ({least:.2} to {most:.2}) ",
            kernel.name,
            kernel.function,
            kernel
                .buckets()
                .map_or("-".to_owned(), |buckets| buckets.to_string()),
            row.searched.per_search(),
            row.elapsed_seconds
        );
        let _ = match kernel.paper {
            Some(paper) => writeln!(
                text,
                "| {} | {paper:.1} | {} |",
                rank_of(row.mops, &of_ours),
                rank_of(paper, &of_paper)
            ),
            None => writeln!(text, "| - | - | - |"),
        };
    }
    text.push('\n');
    text
}

/// The value's rank among all, the greatest first.
fn rank_of(value: f64, all: &[f64]) -> usize {
    1 + all.iter().filter(|&&other| other > value).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_spreads() {
        assert_eq!(rank_of(4.0, &[4.0, 5.0, 3.0, 5.0]), 3);
        assert_eq!(spread(vec![3.0, 1.0, 2.0]), [2.0, 1.0, 3.0]);
        assert_eq!(mean(&[1.0, 3.0]), [2.0, 2.0_f64.sqrt()]);
        assert_eq!(mean(&[5.0]), [5.0, 0.0]);
    }

    #[test]
    fn a_line_has_the_papers_columns() {
        let row = Measured {
            kernel: TABLE_3[0],
            runs: vec![1.0, 4.0, 2.0, 3.0],
            elapsed_seconds: 0.5,
            mops: 3.0,
            ratio: [1.0; 3],
            searched: Searched::default(),
        };
        let line = line(&TABLES[2], &row);
        assert_eq!((line.table, line.buckets), (3, Some(1 << 15)));
        assert_eq!((line.first, line.maximum, line.average), (1.0, 4.0, 2.5));
        assert_eq!(
            (line.average_without_first, line.average_middle),
            (3.0, 2.5)
        );
        let text = markdown("", &[row]);
        assert!(
            text.contains("| 2.5 (1.3) | 3.0 (1.0) | 4.0 | 0.50 s |"),
            "{text}"
        );
    }

    #[test]
    fn each_kernel_takes_the_keys_of_its_table() {
        let registry = Registry::new(1);
        let takes = |kernels: &[Kernel], kind| {
            let entry = |kernel: &Kernel| registry.find(kernel.function).unwrap();
            let tables = kernels.iter().filter(|kernel| kernel.buckets().is_some());
            tables.into_iter().all(|kernel| entry(kernel).takes(kind))
        };
        use crate::key::Kind;
        assert!(takes(&TABLE_1, Kind::Page) && takes(&TABLE_2, Kind::Page));
        assert!(takes(&TABLE_3, Kind::Block) && takes(&TABLE_4, Kind::Dentry));
        assert!(takes(&TABLE_5, Kind::Inode));
    }
}
