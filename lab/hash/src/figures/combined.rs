//! The paper's section 4 in kind: all four caches together, the old kernel and combinations of the
//! best.
//!
//! No surviving text says what kernels A to D of its Table 6 were. The kernels here are ours, combined from the winners
//! of the single tables. The caches are searched alternately, a few lookups at a time, so that each runs with the
//! processor's caches as the others left them.

use std::fmt::Write;

use crate::functions::Registry;
use crate::table::Table;

use super::Workloads;
use super::searchable::Searchable;
use super::tables::spread;
use crate::measure::{CpuTime, median};
use nuthatch_program::Failure;

/// Lookups in each cache at a time: page, buffer, dentry, inode. The paper says of the inode cache that
/// it is searched an order of magnitude less often; the rest is ours.
const MIX: [usize; 4] = [40, 12, 40, 4];

/// A function and log2 of the buckets.
type Choice = (&'static str, u32);

/// A kernel: page, buffer, dentry and inode cache.
struct Kernel {
    name: &'static str,
    caches: [Choice; 4],
    shrunk: bool,
}

const KERNELS: [Kernel; 7] = [
    Kernel {
        name: "reference (2.2.5)",
        caches: [
            ("page-shift-add", 11),
            ("buffer-xor", 15),
            ("dentry-shift-xor", 10),
            ("inode-shift-add", 8),
        ],
        shrunk: false,
    },
    Kernel {
        name: "a: larger tables, old functions but for the buffers",
        caches: [
            ("page-shift-add", 13),
            ("steiner", 14),
            ("dentry-shift-xor", 14),
            ("inode-shift-add", 12),
        ],
        shrunk: false,
    },
    Kernel {
        name: "b: multiplicative everywhere but for the inodes",
        caches: [
            ("mult-top", 13),
            ("mult-11", 14),
            ("mult-11", 14),
            ("inode-shift-add", 12),
        ],
        shrunk: false,
    },
    Kernel {
        name: "c: b with 2^14 pages, and shift-add for 2^15 buffers",
        caches: [
            ("mult-top", 14),
            ("steiner", 15),
            ("mult-11", 14),
            ("inode-shift-add", 12),
        ],
        shrunk: false,
    },
    Kernel {
        name: "d: c with smaller tables, and the dentries pruned",
        caches: [
            ("mult-top", 13),
            ("steiner", 14),
            ("mult-11", 14),
            ("inode-shift-add", 12),
        ],
        shrunk: true,
    },
    Kernel {
        name: "today: hash_64",
        caches: [
            ("hash_64", 14),
            ("hash_64", 14),
            ("hash_64", 14),
            ("hash_64", 12),
        ],
        shrunk: false,
    },
    Kernel {
        name: "our default, seeded",
        caches: [
            ("rapidhash-seeded", 14),
            ("rapidhash-seeded", 14),
            ("rapidhash-seeded", 14),
            ("rapidhash-seeded", 12),
        ],
        shrunk: false,
    },
];

/// Measures all kernels alternately, round by round, and returns a table of Markdown.
pub fn run(registry: &Registry, workloads: &Workloads, rounds: usize) -> Result<String, Failure> {
    let shrunk = workloads.dentries.shrunk();
    let built: Vec<[Box<dyn Searchable + '_>; 4]> = KERNELS
        .iter()
        .map(|kernel| {
            let [page, buffer, dentry, inode] = kernel.caches;
            let dentries = if kernel.shrunk {
                &shrunk
            } else {
                &workloads.dentries
            };
            let of = Table::of_bits;
            Ok([
                workloads.pages.table(registry, page.0, of(page.1))?,
                workloads.blocks.table(registry, buffer.0, of(buffer.1))?,
                dentries.table(registry, dentry.0, of(dentry.1))?,
                workloads.inodes.table(registry, inode.0, of(inode.1))?,
            ])
        })
        .collect::<Result<_, Failure>>()?;
    let mut times = vec![Vec::new(); built.len()];
    let mut lookups = 0;
    for round in 0..=rounds {
        for (caches, times) in built.iter().zip(&mut times) {
            let start = CpuTime::now();
            lookups = search_mixed(caches);
            if round > 0 {
                times.push(start.elapsed_ns());
            }
        }
    }
    Ok(markdown(&times, lookups))
}

/// Goes through the searches of all caches, some of each at a time, and returns their number.
fn search_mixed(caches: &[Box<dyn Searchable + '_>; 4]) -> usize {
    let steps = caches
        .iter()
        .zip(MIX)
        .map(|(cache, count)| cache.searches() / count)
        .min();
    let steps = steps.unwrap_or(0);
    for step in 0..steps {
        for (cache, count) in caches.iter().zip(MIX) {
            std::hint::black_box(cache.search(step * count..(step + 1) * count));
        }
    }
    steps * MIX.iter().sum::<usize>()
}

fn markdown(times: &[Vec<f64>], lookups: usize) -> String {
    let mut text = "### Section 4: all four caches together\n\n\
        | kernel | page, buffer, dentry, inode | million lookups a second | / the reference |\n\
        |---|---|---|---|\n"
        .to_owned();
    for (kernel, own) in KERNELS.iter().zip(times) {
        let ratios = times[0]
            .iter()
            .zip(own)
            .map(|(one, own)| one / own)
            .collect();
        let [ratio, least, most] = spread(ratios);
        let caches: Vec<String> = kernel
            .caches
            .iter()
            .map(|(function, bits)| format!("{function} 2^{bits}"))
            .collect();
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} | {ratio:.2} ({least:.2} to {most:.2}) |",
            kernel.name,
            caches.join(", "),
            lookups as f64 / median(own.clone()) * 1e3
        );
    }
    text.push('\n');
    text
}
