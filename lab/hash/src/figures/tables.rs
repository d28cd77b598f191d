//! Tables 1 to 5 of the paper in kind: lookups a second under each function and size.
//!
//! The paper ran a whole benchmark on each kernel and counted scripts an hour; here only the tables are searched, so
//! the differences are larger than the paper's, and only the order can be compared. All kernels of a table are searched
//! alternately, round by round, in one run.

use std::fmt::Write;

use crate::distribution::chained::Searched;
use crate::functions::{HashedKey, Registry};
use crate::table::Table;

use super::searchable::{Searchable, Workload};
use crate::measure::{CpuTime, median};
use nuthatch_program::Failure;

/// A kernel of the paper: one row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The paper's name for it; in parentheses if the row is ours.
    pub name: &'static str,
    /// The function's name.
    pub function: &'static str,
    /// log2 of the buckets.
    pub bits: u32,
    /// True if the cache is pruned to half of its objects.
    pub shrunk: bool,
    /// The paper's throughput in scripts an hour.
    pub paper: Option<f64>,
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

const fn modern(function: &'static str, bits: u32) -> Kernel {
    let (name, shrunk, paper) = ("(today)", false, None);
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
pub const TABLE_1: [Kernel; 8] = [
    kernel("reference", "page-shift-add", 11, 1739.9),
    kernel("13-bit", "page-shift-add", 13, 1765.5),
    kernel("14-bit", "page-shift-add", 14, 1770.5),
    kernel("15-bit", "page-shift-add", 15, 1770.3),
    kernel("offset", "page-shift-add-offset", 14, 1774.5),
    kernel("mult", "mult-top", 14, 1773.7),
    modern("hash_64", 14),
    modern("rapidhash-seeded", 14),
];

/// Table 2: the page cache on the machine with 512 MB (averages without the first run).
pub const TABLE_2: [Kernel; 3] = [
    kernel("2048", "page-shift-add", 11, 4295.2),
    kernel("8192", "page-shift-add", 13, 4398.5),
    kernel("32768", "page-shift-add", 15, 4407.4),
];

/// Table 3: the buffer cache (averages without the first run).
pub const TABLE_3: [Kernel; 11] = [
    kernel("reference", "buffer-xor", 15, 4295.2),
    kernel("mult, shift 16", "mult-16", 15, 4376.4),
    kernel("mult, shift 11", "mult-11", 15, 4382.8),
    kernel("shift-add", "steiner", 15, 4397.2),
    kernel("mult, shift 11", "mult-11", 14, 4394.6),
    kernel("mult, shift 17", "mult-17", 14, 4369.9),
    kernel("shift-add", "steiner", 14, 4399.6),
    kernel("mult, shift 18", "mult-18", 13, 4333.7),
    kernel("shift-add", "steiner", 13, 4362.8),
    modern("hash_64", 14),
    modern("rapidhash-seeded", 14),
];

/// Table 4: the dentry cache.
pub const TABLE_4: [Kernel; 9] = [
    kernel("reference", "dentry-shift-xor", 10, 4282.8),
    kernel("14 bit", "dentry-shift-add", 14, 4375.2),
    kernel("mult, shift 11", "mult-11", 14, 4368.7),
    kernel("mult, shift 17", "mult-17", 14, 4375.9),
    shrunk(kernel("shrink", "dentry-shift-add", 14, 4368.7)),
    shrunk(kernel("shrink + mult 11", "mult-11", 14, 4380.4)),
    shrunk(kernel("shrink + mult 17", "mult-17", 14, 4368.5)),
    modern("hash_64", 14),
    modern("rapidhash-seeded", 14),
];

/// Table 5: the inode cache.
pub const TABLE_5: [Kernel; 6] = [
    kernel("reference", "inode-shift-add", 8, 4282.8),
    kernel("12 bit", "inode-shift-add", 12, 4361.3),
    kernel("mult", "mult-top", 12, 4346.0),
    kernel("14 bit", "inode-shift-add", 14, 4368.3),
    modern("hash_64", 12),
    modern("rapidhash-seeded", 12),
];

/// The measurements of a kernel.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Which.
    pub kernel: Kernel,
    /// Million lookups a second of CPU time, the median of the rounds.
    pub mops: f64,
    /// Lookups a second / those of the table's first kernel: the median of the rounds, the least, the greatest.
    pub ratio: [f64; 3],
    /// Objects that one round looked at.
    pub searched: Searched,
}

/// Searches all kernels alternately, round by round.
pub fn measure<K: HashedKey + 'static>(
    registry: &Registry,
    kernels: &[Kernel],
    workload: &Workload<K>,
    rounds: usize,
) -> Result<Vec<Measured>, Failure> {
    let pruned = workload.shrunk();
    let table = |kernel: &Kernel| {
        let workload = if kernel.shrunk { &pruned } else { workload };
        workload.table(registry, kernel.function, Table::of_bits(kernel.bits))
    };
    let tables: Vec<Box<dyn Searchable + '_>> =
        kernels.iter().map(table).collect::<Result<_, _>>()?;
    let mut times = vec![Vec::new(); tables.len()];
    let mut searched = vec![Searched::default(); tables.len()];
    for round in 0..=rounds {
        for (number, table) in tables.iter().enumerate() {
            let start = CpuTime::now();
            searched[number] = table.search(0..table.searches());
            let time = start.elapsed_ns();
            // The first round warms caches and clocks.
            if round > 0 {
                times[number].push(time);
            }
        }
    }
    let row = |number: usize| {
        let searches = tables[number].searches() as f64;
        let ratios: Vec<f64> = times[0]
            .iter()
            .zip(&times[number])
            .map(|(one, own)| one / own)
            .collect();
        Measured {
            kernel: kernels[number],
            mops: searches / median(times[number].clone()) * 1e3,
            ratio: spread(ratios),
            searched: searched[number],
        }
    };
    Ok((0..kernels.len()).map(row).collect())
}

/// Median, least, greatest.
pub fn spread(values: Vec<f64>) -> [f64; 3] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    [median(values), least, most]
}

/// A table of a document.
pub fn markdown(title: &str, rows: &[Measured]) -> String {
    let mut text = format!(
        "{title}\n\n| kernel | function | buckets | objects a search | million lookups a second | / the \
         first | rank | paper: scripts an hour | paper's rank |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    let of_paper: Vec<f64> = rows.iter().filter_map(|row| row.kernel.paper).collect();
    let of_ours: Vec<f64> = rows
        .iter()
        .filter(|row| row.kernel.paper.is_some())
        .map(|row| row.mops)
        .collect();
    for row in rows {
        let [ratio, least, most] = row.ratio;
        let kernel = &row.kernel;
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "| {} | {} | {} | {:.2} | {:.1} | {ratio:.2} ({least:.2} to {most:.2}) ",
            kernel.name,
            kernel.function,
            1_u64 << kernel.bits,
            row.searched.per_search(),
            row.mops
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
    }

    #[test]
    fn each_kernel_takes_the_keys_of_its_table() {
        let registry = Registry::new(1);
        let takes = |kernels: &[Kernel], kind| {
            let entry = |kernel: &Kernel| registry.find(kernel.function).unwrap();
            kernels.iter().all(|kernel| entry(kernel).takes(kind))
        };
        use crate::key::Kind;
        assert!(takes(&TABLE_1, Kind::Page) && takes(&TABLE_2, Kind::Page));
        assert!(takes(&TABLE_3, Kind::Block) && takes(&TABLE_4, Kind::Dentry));
        assert!(takes(&TABLE_5, Kind::Inode));
    }
}
