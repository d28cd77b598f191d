//! `nuthatch-lab hash shrink`: what pruning the dentry cache gives a search, and what it takes (section 3.3).
//!
//! The paper's "shrink" kernels call `prune_dcache(nr_unused / (priority + 1))` at each step of the loop that looks for
//! free pages, whose priority falls from 6 on until enough are free. So a loop that stops at priority P has left P of
//! each 7 unused dentries. The kernel prunes those first that were not used for the longest time; for comparison others
//! are pruned by chance.
//!
//! Names are looked up with a popularity of Zipf's law. What a miss costs, a read of a directory, is not timed: the
//! share of the hits says how many there are.

use std::path::PathBuf;

use clap::Args;
use nuthatch_workload::{Distribution, Popularity, Seed};
use rand::seq::SliceRandom;
use serde::Serialize;

use super::searchable::{Searchable, Workload};
use super::tables::{mean, search_all};
use super::{gather, random_sample};
use crate::analyze::SEED;
use crate::collect;
use crate::functions::Registry;
use crate::key::Dentry;
use crate::table::Table;
use nuthatch_program::{Failure, output};

/// The priority at which the kernel's loop begins; it prunes at each, down to 1 at the least here.
const PRIORITY: u64 = 6;
/// Lookups before the pruning / dentries: they decide which were used last.
const BEFORE: usize = 8;

/// Of what, and how often.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Directory in which dentries are collected
    #[arg(long, value_name = "DIR", default_value = "/usr")]
    pub root: PathBuf,
    /// Dentries in the cache before it is pruned
    #[arg(long, value_name = "N", default_value_t = 32_768, value_parser = clap::value_parser!(u32).range(7..=1 << 24))]
    pub objects: u32,
    /// Buckets of the table, a power of two
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub buckets: u32,
    /// Function of the table
    #[arg(long, value_name = "NAME", default_value = "dentry-shift-add")]
    pub function: String,
    /// Exponent of Zipf's law, after which names are looked up
    #[arg(long, default_value_t = 0.99, value_parser = theta)]
    pub theta: f64,
    /// Runs of each table
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub runs: u32,
    /// Searches of a run
    #[arg(long, value_name = "N", default_value_t = 1 << 17, value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub searches: u32,
    /// Print one line of JSON for each table
    #[arg(long)]
    pub json: bool,
}

fn theta(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(theta) if (0.0..=10.0).contains(&theta) => Ok(theta),
        _ => Err("an exponent from 0 to 10".to_owned()),
    }
}

/// One pruned table.
#[derive(Clone, Debug, Serialize)]
struct Row {
    /// `none`, `oldest` or `any`: which dentries are pruned.
    policy: &'static str,
    /// The priority at which the loop stopped; 7 if it did not begin.
    priority: u64,
    /// Dentries that are left.
    kept: usize,
    /// The share of the searches that found their name.
    hit_ratio: f64,
    searched_per_search: f64,
    /// Million searches a second, without the first run.
    average: f64,
    deviation: f64,
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<(), Failure> {
    let registry = Registry::new(SEED);
    let table =
        Table::new(options.buckets.into()).map_err(|error| Failure::usage(error.to_string()))?;
    let entry = registry
        .find(&options.function)
        .ok_or_else(|| Failure::usage(format!("--function: no {}", options.function)))?;
    let fits = entry.check(table);
    fits.map_err(|error| Failure::usage(format!("--buckets: {error}")))?;
    let rows = measure(&registry, table, options)?;
    let mut text = String::new();
    if !options.json {
        text += "pruned   priority     kept     hits  objects a search  million searches a second (s)\n";
    }
    for row in &rows {
        text += &match options.json {
            true => serde_json::to_string(row).map_err(|error| Failure::run(error.to_string()))?,
            false => format!(
                "{:<8} {:>8} {:>8} {:>7.1}% {:>17.2} {:>17.2} ({:.2})",
                row.policy,
                row.priority,
                row.kept,
                100.0 * row.hit_ratio,
                row.searched_per_search,
                row.average,
                row.deviation
            ),
        };
        text.push('\n');
    }
    output::print(&text)
}

fn measure(registry: &Registry, table: Table, options: &Options) -> Result<Vec<Row>, Failure> {
    let objects = options.objects as usize;
    let dentries = random_sample(
        gather(&options.root, collect::dentries, usize::MAX)?,
        objects,
    );
    if dentries.len() < PRIORITY as usize + 1 {
        return Err(Failure::run("too few names; choose a larger --root"));
    }
    let popularity = Popularity::new(
        Distribution::Zipf {
            theta: options.theta,
        },
        dentries.len() as u64,
    );
    let mut random = Seed(SEED).thread(0);
    let mut by_age = by_age(&dentries, || popularity.draw(&mut random) as usize);
    let searches: Vec<Dentry> = (0..options.searches)
        .map(|_| dentries[popularity.draw(&mut random) as usize])
        .collect();
    let kept_of = |priority: u64| dentries.len() * priority as usize / (PRIORITY as usize + 1);
    let priorities = || (1..=PRIORITY).rev();
    // Chains are in the order of the walk, in which names come into the cache, whatever was used last.
    let left = |dentries: &[Dentry], priority: u64| {
        let mut kept = dentries[..kept_of(priority)].to_vec();
        kept.sort_unstable();
        kept
    };
    let mut cases = vec![("none", PRIORITY + 1, left(&by_age, PRIORITY + 1))];
    cases.extend(priorities().map(|priority| ("oldest", priority, left(&by_age, priority))));
    by_age.shuffle(&mut random);
    cases.extend(priorities().map(|priority| ("any", priority, left(&by_age, priority))));

    let workloads: Vec<Workload<Dentry>> = cases
        .iter()
        .map(|(_, _, kept)| Workload::of(kept.clone(), searches.clone()))
        .collect();
    let tables: Vec<Box<dyn Searchable + '_>> = workloads
        .iter()
        .map(|workload| workload.table(registry, &options.function, table))
        .collect::<Result<_, _>>()?;
    let timed = search_all(&tables, options.runs as usize - 1);
    let row = |((policy, priority, kept), timed): (&(&'static str, u64, Vec<Dentry>), _)| {
        let timed: &super::tables::Timed = timed;
        let [average, deviation] = mean(&timed.runs[1..]);
        let searched = &timed.searched;
        Row {
            policy,
            priority: *priority,
            kept: kept.len(),
            hit_ratio: searched.hits as f64 / (searched.hits + searched.misses) as f64,
            searched_per_search: searched.per_search(),
            average,
            deviation,
        }
    };
    Ok(cases.iter().zip(&timed).map(row).collect())
}

/// The dentries in the order of their last lookup, the last one first, after some lookups.
fn by_age(dentries: &[Dentry], mut draw: impl FnMut() -> usize) -> Vec<Dentry> {
    let mut last = vec![0; dentries.len()];
    for time in 1..=BEFORE * dentries.len() {
        last[draw()] = time;
    }
    let mut order: Vec<usize> = (0..dentries.len()).collect();
    order.sort_by_key(|&number| std::cmp::Reverse(last[number]));
    order.into_iter().map(|number| dentries[number]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_last() {
        let dentry = |name_hash| Dentry {
            parent: 0,
            name_hash,
        };
        let dentries = [dentry(0), dentry(1), dentry(2)];
        // Each in turn; the last lookup is of number 2.
        let mut next = 0;
        let order = by_age(&dentries, || {
            next += 1;
            (next - 1) % 3
        });
        assert_eq!(order, [dentry(2), dentry(1), dentry(0)]);
    }
}
