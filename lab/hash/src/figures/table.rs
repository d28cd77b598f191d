//! `nuthatch-lab hash table`: one of the Linux paper's tables in kind, with all of its columns.

use std::path::PathBuf;

use clap::Args;

use super::searchable::Workload;
use super::tables::{self, Measured, PaperTable, TABLES};
use super::{gather, generate, random_sample, title, workload};
use crate::analyze::{SEED, share};
use crate::collect;
use crate::functions::Registry;
use nuthatch_program::{Failure, output};

/// Which table, and of what.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Number of the table in the paper: 1 and 2 the page cache, 3 the buffer cache, 4 the dentry cache, 5 the inode
    /// cache
    #[arg(value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=TABLES.len() as i64))]
    pub number: u8,
    /// Directory in which pages, dentries and inodes are collected; blocks are generated with the regularity of the
    /// paper's file system
    #[arg(long, value_name = "DIR", default_value = "/usr")]
    pub root: PathBuf,
    /// Objects that are stored [default: as in the paper, or 128 MB of pages]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub objects: Option<u32>,
    /// Share of the searches that find their key, from 0 to 1 [default: as in the paper, or 0.9]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub hit_ratio: Option<f64>,
    /// Runs of each kernel, the first with cold caches
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub runs: u32,
    /// Searches of a run
    #[arg(long, value_name = "N", default_value_t = 1 << 17, value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub searches: u32,
    /// Print one line of JSON for each row
    #[arg(long)]
    pub json: bool,
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<(), Failure> {
    let paper = TABLES[usize::from(options.number) - 1];
    let wanted = PaperTable {
        objects: options
            .objects
            .map_or(paper.objects, |count| count as usize),
        hit_ratio: options.hit_ratio.unwrap_or(paper.hit_ratio),
        ..paper
    };
    let (objects, rows) = measure(options, &wanted)?;
    let table = PaperTable { objects, ..wanted };
    output::print(&match options.json {
        true => tables::json(&table, &rows)?,
        false => tables::markdown(&format!("### {}", title(&table)), &rows),
    })
}

/// The objects that were found and stored, and the rows.
fn measure(options: &Options, table: &PaperTable) -> Result<(usize, Vec<Measured>), Failure> {
    let (root, searches) = (&options.root, options.searches as usize);
    let (registry, rounds) = (Registry::new(SEED), options.runs as usize - 1);
    let twice = 2 * table.objects;
    macro_rules! of_collected {
        ($collector:expr, $limit:expr) => {{
            let keys = random_sample(gather(root, $collector, $limit)?, twice);
            let workload = workload(keys, table, searches)?;
            let rows = tables::measure(&registry, table.kernels, &workload, rounds)?;
            (workload.items(), rows)
        }};
    }
    Ok(match table.number {
        1 | 2 => of_collected!(collect::pages, twice),
        3 => {
            let full = generate::full(1);
            let absent = generate::absent(&full, searches, 3);
            if table.objects > full.len() {
                return Err(Failure::usage(format!(
                    "--objects: {} blocks are generated at most",
                    full.len()
                )));
            }
            let stored = random_sample(full, table.objects);
            let workload = Workload::new(stored, &absent, table.hit_ratio, searches)?;
            let rows = tables::measure(&registry, table.kernels, &workload, rounds)?;
            (workload.items(), rows)
        }
        4 => of_collected!(collect::dentries, usize::MAX),
        _ => of_collected!(collect::inodes, usize::MAX),
    })
}
