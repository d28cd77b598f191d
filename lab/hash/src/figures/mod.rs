//! `nuthatch-lab hash figures`: the Linux paper's histograms and tables, in kind.
//!
//! Block numbers are generated with the regularity of the paper's file system ([`generate`]) and collected from a real
//! one; dentries, inodes and pages are collected. The figures go into a folder, the tables to standard output as
//! Markdown or JSON. The tables of docs/hashing.md were made this way. [`table`] is one of the tables alone.

mod combined;
pub mod generate;
mod histograms;
mod searchable;
pub mod shrink;
pub mod table;
mod tables;

use std::path::{Path, PathBuf};

use crate::functions::{Entry, HashedKey, Registry, Sizes};
use crate::key::{Block, Dentry, Inode, Kind, Numeric, Page};
use clap::Args;
use nuthatch_plot::{Axis, DotChart, DotGroup, DotRow, Estimate};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use crate::analyze::SEED;
use crate::collect::{self, Listed, Options as Collecting};
use nuthatch_program::{Failure, output};
use searchable::Workload;
use tables::{Measured, PaperTable, TABLES};

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
    /// Print one line of JSON for each function of a histogram and each row of a table
    #[arg(long)]
    pub json: bool,
}

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
    let (folder, root) = (&options.output, &options.root);
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::run(format!("{}: {error}", folder.display())))?;
    let registry = Registry::new(SEED);
    let [page_cache, many_pages, buffers, dentry_cache, inode_cache] = TABLES;
    let full = generate::full(1);
    let inodes = random_sample(
        gather(root, collect::inodes, usize::MAX)?,
        2 * inode_cache.objects,
    );
    let first = &inodes[..inodes.len().min(inode_cache.objects)];
    let histograms = [
        histograms::buffers(&registry, folder, &full, &real_blocks(root)?)?,
        histograms::inodes(&registry, folder, first)?,
    ]
    .concat();
    histograms::search_lengths(&registry, folder, &full)?;

    let absent = generate::absent(&full, searches, 3);
    let of_pages = |table: &PaperTable| {
        let pages = gather(root, collect::pages, 2 * many_pages.objects)?;
        workload(random_sample(pages, 2 * table.objects), table, searches)
    };
    let dentries = gather(root, collect::dentries, usize::MAX)?;
    let dentries = random_sample(dentries, 2 * dentry_cache.objects);
    let workloads = Workloads {
        pages: of_pages(&page_cache)?,
        blocks: Workload::new(full, &absent, buffers.hit_ratio, searches)?,
        dentries: workload(dentries, &dentry_cache, searches)?,
        inodes: workload(inodes, &inode_cache, searches)?,
    };
    let run = Run {
        registry: &registry,
        folder,
        rounds,
        json: options.json,
    };
    let tables = [
        run.table(&page_cache, &workloads.pages)?,
        run.table(&many_pages, &of_pages(&many_pages)?)?,
        run.table(&buffers, &workloads.blocks)?,
        run.table(&dentry_cache, &workloads.dentries)?,
        run.table(&inode_cache, &workloads.inodes)?,
    ]
    .concat();
    output::print(&match options.json {
        true => histograms::json(&histograms)? + &tables,
        false => {
            let together = combined::run(&registry, &workloads, rounds)?;
            functions(&registry) + &histograms::markdown(&histograms) + &tables + &together
        }
    })
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
    json: bool,
}

impl Run<'_> {
    /// Measures and draws a table, and returns it as it is printed.
    fn table<K: HashedKey + Numeric>(
        &self,
        table: &PaperTable,
        workload: &Workload<K>,
    ) -> Result<String, Failure> {
        let rows = tables::measure(self.registry, table.kernels, workload, self.rounds)?;
        let table = &PaperTable {
            objects: workload.items(),
            ..*table
        };
        let name = format!("table-{}", table.number);
        save(self.folder, &name, &draw(&title(table), &rows)?)?;
        match self.json {
            true => tables::json(table, &rows),
            false => Ok(tables::markdown(&format!("### {}", title(table)), &rows)),
        }
    }
}

/// The title of a table of so many objects.
fn title(table: &PaperTable) -> String {
    let PaperTable {
        number,
        title,
        objects,
        ..
    } = table;
    format!("Table {number}: {title}: {objects} objects")
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
        let buckets = match kernel.buckets() {
            Some(_) => format!("2^{} buckets", kernel.bits),
            None => "trees".to_owned(),
        };
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
fn workload<K: HashedKey + Numeric>(
    mut keys: Vec<K>,
    table: &PaperTable,
    searches: usize,
) -> Result<Workload<K>, Failure> {
    let absent = keys.split_off(table.objects.min(keys.len() / 2));
    Workload::new(keys, &absent, table.hit_ratio, searches)
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
    root: &Path,
    collector: fn(&mut collect::Walk, collect::Sink<'_, K>) -> Result<(), Failure>,
    limit: usize,
) -> Result<Vec<K>, Failure> {
    let collecting = Collecting {
        root: root.to_owned(),
        listed: Listed {
            output: None,
            limit: Some(limit as u64),
        },
        skip_unreadable: true,
    };
    collect::gather(&collecting, collector)
}

/// Real block numbers, as many as the generated; none where the file system does not report them.
fn real_blocks(root: &Path) -> Result<Vec<Block>, Failure> {
    match gather(root, collect::blocks, 20 * generate::FULL) {
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
