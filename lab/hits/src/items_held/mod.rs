//! `nuthatch-lab items-held`: how many items a cache holds, and what it takes for them.
//!
//! It writes keys and values of three times the limit, and then gets all keys, the newest first. A get evicts nothing,
//! so the items found are the items held.

mod report;
mod sizes;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Args;
use nuthatch_bench::started::stop_on_signals;
use nuthatch_program::progress::Progress;
use nuthatch_program::{Failure, output};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::hit_ratio::{SpawnCommand, is_standard, json_output};
use crate::live::{Cache, EngineCache, EngineChoice, ServerCache, refuse_if};
use report::{Cell, Report, Row};
pub use sizes::ValueSizes;

/// What to fill, and with what.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Engines in this process, as NAME or NAME:EVICTION [default: cuckoo, unless there is a server]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub engines: Vec<EngineChoice>,
    /// Start this server. COMMAND is its command line, split at spaces; {mib} becomes the memory and {port} a free
    /// port. NAME= in front names the server. Repeat the option for each server
    #[arg(long, value_name = "COMMAND")]
    pub spawn: Vec<SpawnCommand>,
    /// Sizes of values, each with a fill of its own: a number of bytes, pareto (shape 1.2, from 60 bytes),
    /// pareto:SHAPE:LEAST, uniform:FROM-TO, drift:FROM-TO
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_value = "32,100,300,1000,4000,20000,pareto,uniform:1-30000"
    )]
    pub values: Vec<ValueSizes>,
    /// Memory of the cache, in MiB
    #[arg(
        short = 'm',
        long,
        value_name = "MIB",
        default_value_t = 64,
        value_parser = clap::value_parser!(u64).range(1..=1 << 20)
    )]
    pub memory: u64,
    /// Share of writes that overwrite an existing item with a value of a size drawn anew, from 0 to less than 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_share)]
    pub overwrite: f64,
    /// Write one line of JSON for each cache and size of values to this file; - writes them to standard output in place of
    /// the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Bytes of a key.
const KEY_SIZE: usize = 16;
/// Bytes of keys and values written / the memory limit.
const TIMES: u64 = 3;
/// Keys of one get.
const BATCH: usize = 256;
/// The same keys and sizes in each run.
const SEED: u64 = 0x6865_6c64;

fn parse_share(text: &str) -> Result<f64, String> {
    let share: Option<f64> = text.parse().ok();
    share
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or_else(|| format!("`{text}`: a share of 0 or more, and less than 1, expected"))
}

/// Fills and counts, and prints the tables.
pub fn run(options: &Options) -> Result<(), Failure> {
    // Now, and not after all engines and servers: it may be a file that cannot be written.
    let json = options.json.as_deref().map(json_output);
    let json = json.transpose()?;
    let stop = stop_on_signals()?;
    let limit = options.memory << 20;
    let engines = match (options.engines.is_empty(), options.spawn.is_empty()) {
        (true, true) => vec!["cuckoo".parse().map_err(Failure::Usage)?],
        _ => options.engines.clone(),
    };
    let rows = engines.len() + options.spawn.len();
    let progress = Progress::steps(rows * options.values.len());
    let mut report = Report::new(options.memory, &options.values);
    for engine in &engines {
        let name = format!("engine:{engine}");
        let mut cells = Vec::new();
        for values in &options.values {
            progress.step(format!("{name}: {values}"));
            let mut cache = EngineCache::new(engine, limit).map_err(Failure::Usage)?;
            cells.push(fill(&mut cache, values, limit, options.overwrite, &stop)?);
            progress.add(1);
        }
        report.rows.push(Row { name, cells });
    }
    for command in &options.spawn {
        let name = command.name().to_owned();
        let mut cells = Vec::new();
        for values in &options.values {
            progress.step(format!("{name}: {values}"));
            let server = command.start(limit, &stop)?;
            let mut cache = ServerCache::connect(server.address(), Some(server.pid()))?;
            cells.push(fill(&mut cache, values, limit, options.overwrite, &stop)?);
            progress.add(1);
        }
        report.rows.push(Row { name, cells });
    }
    drop(progress);
    if !options.json.as_deref().is_some_and(is_standard) {
        output::print(&report.text())?;
    }
    if let Some(mut file) = json {
        file.write(report.json()?.as_bytes())?;
        file.finish()?;
    }
    Ok(())
}

/// Writes items, then counts those that the cache still holds.
fn fill(
    cache: &mut impl Cache,
    values: &ValueSizes,
    limit: u64,
    overwrite: f64,
    stop: &AtomicBool,
) -> Result<Cell, Failure> {
    let sizes = write(cache, values, limit, overwrite, stop)?;
    let mut cell = Cell::default();
    let mut newest = sizes.len();
    while newest > 0 {
        refuse_if(stop)?;
        let oldest = newest.saturating_sub(BATCH);
        let keys: Vec<[u8; KEY_SIZE]> = (oldest..newest).rev().map(key).collect();
        let found = cache.get_all(&keys)?;
        for (number, found) in (oldest..newest).rev().zip(found) {
            if found {
                cell.items += 1;
                cell.bytes += KEY_SIZE as u64 + u64::from(sizes[number]);
            }
        }
        newest = oldest;
    }
    cell.written = sizes.len() as u64;
    cell.memory = cache.memory();
    Ok(cell)
}

/// Writes items until their keys and values, overwritten ones too, are three times the limit. Returns the last size of
/// each.
fn write(
    cache: &mut impl Cache,
    values: &ValueSizes,
    limit: u64,
    overwrite: f64,
    stop: &AtomicBool,
) -> Result<Vec<u32>, String> {
    let mut random = SmallRng::seed_from_u64(SEED);
    let mut sizes: Vec<u32> = Vec::new();
    let mut written = 0;
    // An overwritten item is one of the newest, which take half of the limit, so that the cache still holds it.
    let (mut recent, mut recent_bytes) = (0, 0);
    let taken = |size: u32| KEY_SIZE as u64 + u64::from(size);
    while written < TIMES * limit {
        let size = values.draw(&mut random, written as f64 / (TIMES * limit) as f64);
        written += taken(size);
        let number = if overwrite > 0.0 && recent < sizes.len() && random.random_bool(overwrite) {
            let number = random.random_range(recent..sizes.len());
            recent_bytes -= taken(sizes[number]);
            sizes[number] = size;
            number
        } else {
            sizes.push(size);
            sizes.len() - 1
        };
        recent_bytes += taken(size);
        while recent_bytes > limit / 2 {
            recent_bytes -= taken(sizes[recent]);
            recent += 1;
        }
        if number.is_multiple_of(BATCH) {
            refuse_if(stop)?;
        }
        cache.set(&key(number), size)?;
    }
    Ok(sizes)
}

/// Sixteen digits that look random, and differ for each number.
fn key(number: usize) -> [u8; KEY_SIZE] {
    let mut mixed = number as u64;
    for factor in [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93_u64] {
        // Multiplication by an odd factor and a shift to the right can both be undone: no two numbers become the same.
        mixed = mixed.wrapping_mul(factor);
        mixed ^= mixed >> 32;
    }
    let mut key = [0; KEY_SIZE];
    for (digit, place) in key.iter_mut().enumerate() {
        *place = b"0123456789abcdef"[(mixed >> (4 * digit) & 15) as usize];
    }
    key
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use crate::live::MemoryUse;

    use super::*;

    /// A cache of FIFO with an overhead for each item.
    #[derive(Default)]
    struct Fifo {
        items: VecDeque<(Vec<u8>, u32)>,
        used: u64,
        limit: u64,
    }

    const OVERHEAD: u64 = 50;

    impl Cache for Fifo {
        fn get(&mut self, key: &[u8]) -> Result<bool, String> {
            Ok(self.items.iter().any(|(held, _)| held == key))
        }

        fn set(&mut self, key: &[u8], size: u32) -> Result<(), String> {
            let taken = |size: u32| OVERHEAD + KEY_SIZE as u64 + u64::from(size);
            if let Some(at) = self.items.iter().position(|(held, _)| held == key) {
                self.used -= taken(self.items.remove(at).unwrap().1);
            }
            self.items.push_back((key.to_vec(), size));
            self.used += taken(size);
            while self.used > self.limit {
                self.used -= taken(self.items.pop_front().unwrap().1);
            }
            Ok(())
        }

        fn memory(&mut self) -> MemoryUse {
            MemoryUse {
                used: Some(self.used),
                ..MemoryUse::default()
            }
        }
    }

    #[test]
    fn what_is_held_is_counted() {
        let stop = AtomicBool::new(false);
        for (values, overwrite) in [
            ("100", 0.0),
            ("uniform:1-1000", 0.0),
            ("uniform:1-1000", 0.5),
            ("drift:10-1000", 0.3),
        ] {
            let mut cache = Fifo {
                limit: 50_000,
                ..Fifo::default()
            };
            let values: ValueSizes = values.parse().unwrap();
            let cell = fill(&mut cache, &values, 50_000, overwrite, &stop).unwrap();
            assert_eq!(cell.items, cache.items.len() as u64, "{values}");
            assert_eq!(cell.bytes, cache.used - OVERHEAD * cell.items, "{values}");
            assert!(cell.written > cell.items);
        }
    }

    #[test]
    fn keys_differ() {
        let mut keys: Vec<_> = (0..100_000).map(key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 100_000);
    }

    #[test]
    fn an_interrupted_run_ends() {
        let mut cache = Fifo {
            limit: 50_000,
            ..Fifo::default()
        };
        let stop = AtomicBool::new(true);
        let values = "100".parse().unwrap();
        assert!(fill(&mut cache, &values, 50_000, 0.0, &stop).is_err());
    }
}
