//! `nuthatch-lab hash figures`: the Linux paper's histograms and tables, in kind.
//!
//! Block numbers are generated with the regularity of the paper's file system ([`generate`]) and collected from a real
//! one; dentries, inodes and pages are collected. The figures go into a folder, the tables to standard output as
//! Markdown. The tables of docs/hashing.md were made this way.

mod combined;
pub mod generate;
mod histograms;
mod searchable;
mod tables;

use std::path::{Path, PathBuf};

use crate::functions::{Entry, HashedKey, Registry, Sizes};
use crate::key::{Block, Dentry, Inode, Kind, Page};
use clap::Args;
use nuthatch_plot::{Axis, DotChart, DotGroup, DotRow, Estimate};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use crate::analyze::SEED;
use crate::collect::{self, Options as Collecting};
use nuthatch_program::{Failure, output};
use searchable::Workload;
use tables::{Kernel, Measured};

/// What to draw, from what, and where to.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The folder for the figures
    #[arg(long, value_name = "DIR", default_value = "docs/figures/hash")]
    pub output: PathBuf,
    /// Directory in which dentries, inodes, pages and real blocks are collected
    #[arg(long, value_name = "DIR", default_value = "/usr")]
    pub root: PathBuf,
    /// Run fewer searches: a trial that measures little
    #[arg(long)]
    pub quick: bool,
}

/// Objects of the page, dentry and inode cache. The inodes are Histogram 5's; 32768 pages are 128 MB, and
/// the paper does not say how many dentries there were.
const PAGES: usize = 32_768;
const DENTRIES: usize = 32_768;
const INODES: usize = 9_785;
/// Pages of the machine with 512 MB (Table 2).
const ALL_PAGES: usize = 131_072;
/// Share of the lookups that hit: the buffers' and inodes' are the paper's (Histograms 1 and 5), the
/// others ours.
const PAGES_HIT: f64 = 0.9;
const BLOCKS_HIT: f64 = 0.54;
const DENTRIES_HIT: f64 = 0.9;
const INODES_HIT: f64 = 0.03;

/// The workloads of the four caches.
pub struct Workloads {
    pages: Workload<Page>,
    blocks: Workload<Block>,
    dentries: Workload<Dentry>,
    inodes: Workload<Inode>,
}

/// Collects, measures, draws, and prints the tables.
pub fn run(options: &Options) -> Result<(), Failure> {
    let (searches, rounds) = if options.quick {
        (1 << 12, 3)
    } else {
        (1 << 17, 9)
    };
    let folder = &options.output;
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::run(format!("{}: {error}", folder.display())))?;
    let registry = Registry::new(SEED);
    let full = generate::full(1);
    let inodes = random_sample(gather(options, collect::inodes, usize::MAX)?, 2 * INODES);
    let mut text = functions(&registry);
    text += &histograms::buffers(&registry, folder, &full, &real_blocks(options)?)?;
    text += &histograms::inodes(&registry, folder, &inodes[..inodes.len().min(INODES)])?;
    histograms::search_lengths(&registry, folder, &full)?;

    let pages = gather(options, collect::pages, 2 * ALL_PAGES)?;
    let (many_pages, fewer) = (
        random_sample(pages.clone(), 2 * ALL_PAGES),
        random_sample(pages, 2 * PAGES),
    );
    let dentries = random_sample(
        gather(options, collect::dentries, usize::MAX)?,
        2 * DENTRIES,
    );
    let absent = generate::absent(&full, searches, 3);
    let workloads = Workloads {
        pages: workload(fewer, PAGES, PAGES_HIT, searches)?,
        blocks: Workload::new(full, &absent, BLOCKS_HIT, searches)?,
        dentries: workload(dentries, DENTRIES, DENTRIES_HIT, searches)?,
        inodes: workload(inodes, INODES, INODES_HIT, searches)?,
    };
    let many_pages = workload(many_pages, ALL_PAGES, PAGES_HIT, searches)?;
    let run = Run {
        registry: &registry,
        folder,
        rounds,
    };
    text += &run.table(
        "Table 1: the page cache",
        "table-1",
        &tables::TABLE_1,
        &workloads.pages,
    )?;
    text += &run.table(
        "Table 2: 512 MB of pages",
        "table-2",
        &tables::TABLE_2,
        &many_pages,
    )?;
    text += &run.table(
        "Table 3: the buffer cache",
        "table-3",
        &tables::TABLE_3,
        &workloads.blocks,
    )?;
    text += &run.table(
        "Table 4: the dentry cache",
        "table-4",
        &tables::TABLE_4,
        &workloads.dentries,
    )?;
    text += &run.table(
        "Table 5: the inode cache",
        "table-5",
        &tables::TABLE_5,
        &workloads.inodes,
    )?;
    text += &combined::run(&registry, &workloads, rounds)?;
    output::print(&text)
}

/// The functions, as a table of Markdown.
fn functions(registry: &Registry) -> String {
    let mut text =
        "| function | computes | takes | tables | from |\n|---|---|---|---|---|\n".to_owned();
    for entry in registry.entries() {
        let kinds: Vec<&str> = Kind::ALL
            .into_iter()
            .filter(|&kind| entry.takes(kind))
            .map(Kind::name)
            .collect();
        let kinds = match kinds.len() {
            all if all == Kind::ALL.len() => "all".to_owned(),
            _ => kinds.join(", "),
        };
        let sizes = match entry.sizes {
            Sizes::Any => "any size",
            Sizes::PowersOfTwo => "powers of two",
        };
        let seeded = if entry.seeded { ", seeded" } else { "" };
        let Entry {
            name,
            about,
            source,
            ..
        } = entry;
        text += &format!("| `{name}` | {about}{seeded} | {kinds} | {sizes} | {source} |\n");
    }
    text + "\n"
}

/// How tables are measured and drawn.
struct Run<'a> {
    registry: &'a Registry,
    folder: &'a Path,
    rounds: usize,
}

impl Run<'_> {
    fn table<K: HashedKey + 'static>(
        &self,
        title: &str,
        name: &str,
        kernels: &[Kernel],
        workload: &Workload<K>,
    ) -> Result<String, Failure> {
        let rows = tables::measure(self.registry, kernels, workload, self.rounds)?;
        let title = format!("{title}: {} objects", workload.items());
        save(self.folder, name, &draw(&title, &rows)?)?;
        Ok(tables::markdown(&format!("### {title}"), &rows))
    }
}

/// A dot for each kernel, grouped by the size of its table: which function, which size?
fn draw(title: &str, rows: &[Measured]) -> Result<String, Failure> {
    let mut groups: Vec<DotGroup> = Vec::new();
    for (number, Measured { kernel, ratio, .. }) in rows.iter().enumerate() {
        let mut name = kernel.function.to_owned();
        if kernel.shrunk {
            name += ", pruned";
        }
        if number == 0 {
            name += " (reference)";
        }
        let [median, least, most] = *ratio;
        let row = DotRow {
            name,
            estimates: vec![Estimate::spread(median, least, most)],
        };
        let buckets = format!("2^{} buckets", kernel.bits);
        match groups.iter_mut().find(|group| group.name == buckets) {
            Some(group) => group.rows.push(row),
            None => groups.push(DotGroup {
                name: buckets,
                rows: vec![row],
            }),
        }
    }
    let chart = DotChart {
        title: title.to_owned(),
        note: "dot: median of the rounds, line: least to greatest".to_owned(),
        axis: Axis::logarithmic("lookups a second / the reference's"),
        digits: 1,
        panels: vec![String::new()],
        groups,
    };
    chart.svg().map_err(|error| Failure::run(error.to_string()))
}

/// The first half of the keys is stored, the rest is absent.
fn workload<K: HashedKey + 'static>(
    mut keys: Vec<K>,
    stored: usize,
    hit_rate: f64,
    searches: usize,
) -> Result<Workload<K>, Failure> {
    let absent = keys.split_off(stored.min(keys.len() / 2));
    Workload::new(keys, &absent, hit_rate, searches)
}

/// Up to `count` different keys, in random order.
fn random_sample<K: HashedKey>(mut keys: Vec<K>, count: usize) -> Vec<K> {
    keys.sort_unstable();
    keys.dedup();
    keys.shuffle(&mut SmallRng::seed_from_u64(5));
    keys.truncate(count);
    keys
}

fn gather<K>(
    options: &Options,
    collector: fn(&mut collect::Walk, collect::Sink<'_, K>) -> Result<(), Failure>,
    limit: usize,
) -> Result<Vec<K>, Failure> {
    let collecting = Collecting {
        root: options.root.clone(),
        output: None,
        limit: Some(limit as u64),
        skip_unreadable: true,
    };
    collect::gather(&collecting, collector)
}

/// Real block numbers, as many as the generated; none where the file system does not report them.
fn real_blocks(options: &Options) -> Result<Vec<Block>, Failure> {
    match gather(options, collect::blocks, 20 * generate::FULL) {
        Ok(blocks) => Ok(random_sample(blocks, generate::FULL)),
        Err(Failure::Run(words)) => {
            nuthatch_program::output::note(&format!("no figure of real blocks: {words}"));
            Ok(Vec::new())
        }
        Err(failure) => Err(failure),
    }
}

fn save(folder: &Path, name: &str, svg: &str) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.svg"));
    output::save(&path, svg.as_bytes())
}
