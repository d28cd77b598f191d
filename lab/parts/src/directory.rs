//! The pointer directory of the distributed store's clients beside one of the same bytes on the flow cache's layout.
//!
//! The directory stores a pointer and a tail for a key, and a flow cache's entry has one word beside the hash. So the
//! other side is two flow caches, and a key that is not in both is not found. (It lacks the lower half of the
//! generation, for which it has no room.) Keys are drawn as in YCSB; a key that is not found is inserted.

use std::fmt::{self, Display};
use std::time::Instant;

use clap::Args;
use nuthatch_base::hash::KeyHasher;
use nuthatch_bench::host::Host;
use nuthatch_bench::report::Spread;
use nuthatch_cluster::directory::{Bars, Directory, Hint, Pointer};
use nuthatch_flow::{Config, Entry, Eviction, FlowCache, Layout};
use nuthatch_program::Failure;
use nuthatch_workload::{Distribution, Popularity};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};

/// Requests of an epoch.
const EPOCH: usize = 100_000;

/// The flow cache's entries are 16 bytes, two of which are one of the directory's.
const _: () = assert!(Entry::Hash64.bytes() == 16);

/// Options of the comparison.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    /// Number of keys, which are requested by Zipf 0.99
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub keys: u64,
    /// Entries of each directory
    #[arg(long, value_delimiter = ',', default_values_t = [1024, 4096, 16384, 65536],
        value_parser = clap::value_parser!(u32).range(8..1 << 28))]
    pub entries: Vec<u32>,
    /// Requests of a round
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub requests: u32,
    /// Number of rounds, in which the two directories take turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The results of one size of directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Entries of each.
    pub entries: u32,
    /// The directory's share of keys found.
    pub hit_ratio: f64,
    /// The flow caches' share of keys found.
    pub flow_hit_ratio: f64,
    /// The directory's nanoseconds for a request.
    pub nanoseconds: Spread,
    /// The flow caches' nanoseconds for a request.
    pub flow_nanoseconds: Spread,
    /// The flow caches' nanoseconds / the directory's.
    pub ratio: Spread,
}

/// The results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// How it was measured.
    pub options: Options,
    /// A row a size.
    pub rows: Vec<Row>,
}

/// A directory that finds keys, and inserts those that it has not found.
trait Remembers {
    /// True if it found the key.
    fn ask(&mut self, hash: u64, epoch: u32) -> bool;
}

impl Remembers for Directory {
    #[inline]
    fn ask(&mut self, hash: u64, epoch: u32) -> bool {
        if let Some((at, hint)) = self.find(hash) {
            assert_eq!(hint, hint_of(hash), "another key's");
            self.touch(at, epoch);
            return true;
        }
        self.learn(hash, hint_of(hash), epoch, Bars::NONE, true);
        false
    }
}

/// Pointers and tails.
struct FlowCaches([FlowCache; 2]);

impl FlowCaches {
    fn new(entries: u32) -> Result<Self, Failure> {
        let config = |seed| Config {
            layout: Layout::Blp2x8,
            eviction: Eviction::PBLRU,
            entry: Entry::Hash64,
            seed,
            ..Config::new(entries.into())
        };
        let caches = [config(1).build(), config(2).build()];
        let [pointers, tails] = caches.map(|made| made.map_err(Failure::usage));
        Ok(Self([pointers?, tails?]))
    }
}

impl Remembers for FlowCaches {
    #[inline]
    fn ask(&mut self, hash: u64, _: u32) -> bool {
        let Hint { pointer, tail, .. } = hint_of(hash);
        let Self([pointers, tails]) = self;
        if let Some(found) = pointers.lookup(hash)
            && let Some(its_tail) = tails.lookup(hash)
        {
            assert_eq!((found, its_tail), (pointer.word(), tail), "another key's");
            return true;
        }
        // Any word is a value of a 64-bit entry.
        let stored = pointers
            .insert(hash, pointer.word())
            .and(tails.insert(hash, tail));
        assert!(stored.is_ok(), "a value too wide");
        false
    }
}

/// What the directory stores for a key.
fn hint_of(hash: u64) -> Hint {
    Hint {
        pointer: Pointer::new(3, hash >> 40),
        generation: 1,
        tail: hash << 16,
    }
}

/// Looks up all keys: returns the share that was found, and nanoseconds for each.
fn round(directory: &mut dyn Remembers, hashes: &[u64], epoch: &mut u32) -> (f64, f64) {
    let mut found = 0;
    let started = Instant::now();
    for hashes in hashes.chunks(EPOCH) {
        *epoch += 1;
        for &hash in hashes {
            found += usize::from(directory.ask(hash, *epoch));
        }
    }
    let count = hashes.len() as f64;
    let took = started.elapsed().as_nanos() as f64;
    (found as f64 / count, took / count)
}

/// Compares them. The first round fills both and is not counted.
pub fn run(options: &Options) -> Result<Report, Failure> {
    let popularity = Popularity::new(Distribution::YCSB, options.keys);
    let mut random = SmallRng::seed_from_u64(1);
    let hasher = KeyHasher::seeded(1);
    let draws = (0..options.requests).map(|_| popularity.draw(&mut random));
    let hashes: Vec<u64> = draws.map(|key| hasher.hash(&key.to_le_bytes())).collect();
    let row = |&entries: &u32| {
        let (mut own, mut flow) = (Directory::new(entries as usize), FlowCaches::new(entries)?);
        let mut epochs = [1; 2];
        round(&mut own, &hashes, &mut epochs[0]);
        round(&mut flow, &hashes, &mut epochs[1]);
        let pairs = (0..options.rounds).map(|_| {
            let own = round(&mut own, &hashes, &mut epochs[0]);
            (own, round(&mut flow, &hashes, &mut epochs[1]))
        });
        let (own, flow): (Vec<_>, Vec<_>) = pairs.unzip();
        let ratios = |rounds: &[(f64, f64)]| Spread::of(rounds.iter().map(|round| round.0)).median;
        let (hit_ratio, flow_hit_ratio) = (ratios(&own), ratios(&flow));
        let times = |rounds: Vec<(f64, f64)>| rounds.into_iter().map(|round| round.1);
        let [own, flow] = [own, flow].map(|rounds| times(rounds).collect::<Vec<f64>>());
        Ok(Row {
            entries,
            hit_ratio,
            flow_hit_ratio,
            nanoseconds: Spread::of(own.iter().copied()),
            flow_nanoseconds: Spread::of(flow.iter().copied()),
            ratio: Spread::of_ratios(&flow, &own),
        })
    };
    Ok(Report {
        host: Host::ask(),
        options: options.clone(),
        rows: options
            .entries
            .iter()
            .map(row)
            .collect::<Result<_, Failure>>()?,
    })
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { keys, rounds, .. } = self.options;
        writeln!(out, "{}", self.host)?;
        writeln!(
            out,
            "{keys} keys, Zipf 0.99; 32 bytes an entry; medians of {rounds} rounds"
        )?;
        writeln!(
            out,
            "{:>9}  {:>10} {:>11}  {:>24} {:>24}  flow caches / directory",
            "entries", "directory", "flow caches", "directory, ns", "flow caches, ns"
        )?;
        for row in &self.rows {
            writeln!(
                out,
                "{:>9}  {:>10.4} {:>11.4}  {:>24} {:>24}  {}",
                row.entries,
                row.hit_ratio,
                row.flow_hit_ratio,
                format!("{:.1}", row.nanoseconds),
                format!("{:.1}", row.flow_nanoseconds),
                row.ratio
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_find_what_they_have_learnt() {
        let options = Options {
            keys: 500,
            entries: vec![64, 2048],
            requests: 20_000,
            rounds: 1,
            json: false,
        };
        let report = run(&options).unwrap();
        let [small, large] = &report.rows[..] else {
            panic!("a row a size");
        };
        for (hits, room) in [
            (small.hit_ratio, large.hit_ratio),
            (small.flow_hit_ratio, large.flow_hit_ratio),
        ] {
            // 64 of 500 keys have more than half of the requests, and not all.
            assert!((0.4..0.9).contains(&hits), "{report}");
            assert!(room > 0.99, "{report}");
        }
    }
}
