//! How a cuckoo table fills, by the number of search paths: how fast, how far, and what an insert costs at each load;
//! beside memcached's chains of as many bytes.

use std::fmt::{self, Display};
use std::time::{Duration, Instant};

use clap::Args;
use nuthatch_bench::engine::on_cores;
use nuthatch_bench::host::Host;
use nuthatch_memc3::{
    Design, Index, Inserted, OptimisticLocks, Paths, Records, Reference, SLOTS, Shape,
};
use nuthatch_program::Failure;
use serde::{Deserialize, Serialize};

use super::records;

/// Places at which an insert's costs are told, over all slots.
const PLACES: usize = 100;

/// Options of the bench of search paths.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Numbers of search paths, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 4, 8],
        value_parser = clap::value_parser!(u16).range(1..=64))]
    pub paths: Vec<u16>,
    /// Buckets of the cuckoo tables, a power of two; chains have twice as many, and 1.5 items in each, as in the paper
    #[arg(long, value_name = "N", default_value_t = 1 << 22,
        value_parser = clap::value_parser!(u64).range(32..=1 << 30))]
    pub buckets: u64,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The costs of inserts at one load.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AtLoad {
    /// Items / slots when they ended.
    pub load: f64,
    /// Nanoseconds of one.
    pub insert_ns: f64,
    /// Items that one moved.
    pub displacements: f64,
    /// Items that all paths of one would have moved.
    pub kicks: f64,
}

/// A table that was filled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// `chaining`, or `2 paths`.
    pub name: String,
    /// Search paths; nothing for chains.
    pub paths: Option<u16>,
    /// Bytes of the index, with the links in the items.
    pub index_bytes: u64,
    /// Items in it.
    pub items: u64,
    /// Bytes of the index for each.
    pub bytes_per_item: f64,
    /// Items / slots; of chains, items / buckets.
    pub load: f64,
    /// Million items inserted a second.
    pub mops: f64,
    /// Items of the fullest bucket.
    pub fullest: usize,
    /// The costs by load; nothing for chains.
    pub loads: Vec<AtLoad>,
}

/// The results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// Buckets of the cuckoo tables.
    pub buckets: u64,
    /// The tables.
    pub tables: Vec<Table>,
}

/// What is counted between two places.
#[derive(Default)]
struct Costs {
    inserts: usize,
    displaced: usize,
    kicked: usize,
}

impl Costs {
    fn at(&self, load: f64, took: Duration) -> AtLoad {
        let each = |sum: usize| sum as f64 / self.inserts as f64;
        AtLoad {
            load,
            insert_ns: took.as_nanos() as f64 / self.inserts as f64,
            displacements: each(self.displaced),
            kicks: each(self.kicked),
        }
    }
}

/// Inserts records until none fits.
fn cuckoo(records: &Records, buckets: u64, paths: u16) -> Result<Table, String> {
    type Alone = <OptimisticLocks as Design>::Alone;
    let shape = Shape {
        buckets,
        huge_pages: true,
    };
    let index = Alone::new(shape).map_err(|error| error.to_string())?;
    let slots = buckets as usize * SLOTS;
    let mut searched = Paths::new(paths.into(), 1);
    let mut loads = Vec::with_capacity(PLACES);
    let mut items = 0;
    let started = Instant::now();
    let mut last = Duration::ZERO;
    for place in 1..=PLACES {
        let mut costs = Costs::default();
        let mut is_full = false;
        while items < slots * place / PLACES && !is_full {
            let item = Reference::to(items);
            let hash = records.hash_of(records.key(item));
            match index.insert(hash, item, records, &mut searched) {
                Inserted::Yes { displaced, kicked } => {
                    costs.displaced += displaced;
                    costs.kicked += kicked;
                    costs.inserts += 1;
                    items += 1;
                }
                Inserted::Full => is_full = true,
            }
        }
        let now = started.elapsed();
        if costs.inserts > 0 {
            let load = match is_full {
                true => items as f64 / slots as f64,
                false => place as f64 / PLACES as f64,
            };
            loads.push(costs.at(load, now - last));
        }
        last = now;
        if is_full {
            break;
        }
    }
    let name = match paths {
        1 => "1 path".to_owned(),
        _ => format!("{paths} paths"),
    };
    let table = Table::new(name, &index, records, items, last);
    Ok(Table {
        paths: Some(paths),
        load: items as f64 / slots as f64,
        loads,
        ..table
    })
}

/// Inserts 1.5 records for each of so many buckets.
fn chains(records: &Records, buckets: u64) -> Result<Table, String> {
    let shape = Shape {
        buckets,
        huge_pages: true,
    };
    type Alone = <nuthatch_memc3::IntegerKeys as Design>::Alone;
    let index = Alone::new(shape).map_err(|error| error.to_string())?;
    let items = buckets as usize * 3 / 2;
    let mut paths = Paths::new(1, 1);
    let started = Instant::now();
    for item in (0..items).map(Reference::to) {
        let hash = records.hash_of(records.key(item));
        index.insert(hash, item, records, &mut paths);
    }
    let took = started.elapsed();
    let table = Table::new("chaining".to_owned(), &index, records, items, took);
    Ok(Table {
        load: items as f64 / buckets as f64,
        ..table
    })
}

impl Table {
    fn new(
        name: String,
        index: &impl Index,
        records: &Records,
        items: usize,
        took: Duration,
    ) -> Self {
        let index_bytes = index.bytes(items as u64);
        Self {
            name,
            paths: None,
            index_bytes,
            items: items as u64,
            bytes_per_item: index_bytes as f64 / items as f64,
            load: 0.0,
            mops: items as f64 / took.as_secs_f64() / 1e6,
            fullest: index.fullest(records),
            loads: Vec::new(),
        }
    }
}

/// Runs the bench of search paths, on one core.
pub fn run(options: &Options) -> Result<Report, Failure> {
    let buckets = options.buckets;
    if !buckets.is_power_of_two() {
        let words = format!("--buckets {buckets}: not a power of two");
        return Err(Failure::usage(words));
    }
    let slots = buckets as usize * SLOTS;
    let records = records(slots, true).map_err(|error| error.to_string())?;
    let each = on_cores(1, |_| {
        || {
            let mut tables = vec![chains(&records, 2 * buckets)?];
            for &paths in &options.paths {
                tables.push(cuckoo(&records, buckets, paths)?);
            }
            Ok(tables)
        }
    })?;
    let tables = each.into_iter().collect::<Result<Vec<_>, String>>()?;
    Ok(Report {
        host: Host::ask(),
        buckets,
        tables: tables.into_iter().flatten().collect(),
    })
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.host)?;
        for table in &self.tables {
            writeln!(
                out,
                "  {:<9} {:>6} MiB  {:>10} items, {:.2} bytes each, load {:.4}; {:.2} million a second; {} in the fullest \
                 bucket",
                table.name,
                table.index_bytes >> 20,
                table.items,
                table.bytes_per_item,
                table.load,
                table.mops,
                table.fullest
            )?;
            for at in table.loads.iter().rev().take(6).rev() {
                writeln!(
                    out,
                    "            at {:.4}: {:.0} ns, {:.2} items moved, {:.1} looked at",
                    at.load, at.insert_ns, at.displacements, at.kicks
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_filled_until_an_insert_fails() {
        let options = Options {
            paths: vec![1, 4],
            buckets: 4096,
            json: false,
        };
        let report = run(&options).unwrap();
        let [chaining, one, four] = &report.tables[..] else {
            panic!("{report}");
        };
        assert_eq!((chaining.items, chaining.paths), (8192 * 3 / 2, None));
        assert!((chaining.bytes_per_item - 40.0 / 3.0).abs() < 0.01 && chaining.fullest > 4);
        for table in [one, four] {
            assert!((0.9..0.999).contains(&table.load), "{report}");
            assert_eq!(table.fullest, SLOTS);
            let (first, last) = (table.loads[0], *table.loads.last().unwrap());
            assert_eq!((first.displacements, first.kicks), (0.0, 0.0));
            assert!(last.displacements > 1.0 && last.kicks >= last.displacements);
            assert!((last.load - table.load).abs() < 1e-3);
        }
        // The shortest of four paths is no longer than the only one.
        let at_ninety = |table: &Table| table.loads[89].displacements;
        assert!(at_ninety(four) < at_ninety(one), "{report}");
    }

    #[test]
    fn buckets_are_a_power_of_two() {
        let options = Options {
            paths: vec![1],
            buckets: 100,
            json: false,
        };
        assert!(run(&options).is_err());
    }
}
