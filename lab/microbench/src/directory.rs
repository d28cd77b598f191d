//! The pointer directory of the distributed store's clients beside one of the same bytes on the flow cache's layout.
//!
//! The directory stores a pointer and a tail for a key, and a flow cache's entry has one word beside the hash. So the
//! other side is two flow caches, and a key that is not in both is not found. (It lacks the lower half of the
//! generation, for which it has no room.)
//!
//! A session looks up each key that it reads or updates, and learns the pointer of one that it did not find. It learns the
//! pointer of a pair that it inserts, too, which is no lookup that could hit.

use std::fmt::{self, Display};
use std::iter;
use std::time::Instant;

use clap::{Args, ValueEnum};
use nuthatch_base::hash::KeyHasher;
use nuthatch_bench::host::Host;
use nuthatch_bench::report::Spread;
use nuthatch_cluster::directory::{Bars, Directory, Hint, Pointer};
use nuthatch_flow::{Config, Entry, Eviction, FlowCache, Layout};
use nuthatch_program::Failure;
use nuthatch_workload::ycsb::{Request, Run, Ycsb};
use nuthatch_workload::{Distribution, Popularity, Seed};
use serde::{Deserialize, Serialize};

/// Requests of an epoch.
const EPOCH: usize = 100_000;

/// The flow cache's entries are 16 bytes, two of which are one of the directory's.
const _: () = assert!(Entry::Hash64.bytes() == 16);

/// Which keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// YCSB A: half reads, half updates, by Zipf 0.99
    YcsbA,
    /// YCSB B: 95 % reads, 5 % updates, by Zipf 0.99
    YcsbB,
    /// YCSB C: reads by Zipf 0.99
    YcsbC,
    /// YCSB D: 95 % reads, of the latest, and 5 % inserts
    YcsbD,
    /// Reads of all keys equally often
    Uniform,
}

/// A key's number, or its hash, and whether a session looks for its pointer; else it learns that of a new pair.
type Access = (u64, bool);

impl Workload {
    /// What a session does, without an end, after so many keys were stored.
    fn accesses(self, records: u64, requests: u64) -> Box<dyn Iterator<Item = Access>> {
        let run = Run {
            records,
            requests,
            threads: 1,
        };
        let ycsb = match self {
            Self::YcsbA => Ycsb::A,
            Self::YcsbB => Ycsb::B,
            Self::YcsbC => Ycsb::C,
            Self::YcsbD => Ycsb::D,
            Self::Uniform => {
                let popularity = Popularity::new(Distribution::Uniform, records);
                let mut random = Seed(1).thread(0);
                return Box::new(iter::repeat_with(move || {
                    (popularity.draw(&mut random), true)
                }));
            }
        };
        let requests = ycsb.requests(run, Seed(1), 0);
        Box::new(requests.map(|request| {
            let is_new = matches!(request, Request::Insert(_));
            (request.record(), !is_new)
        }))
    }
}

/// Options of the comparison.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    /// Which keys are asked for: several make rows of their own
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Workload::YcsbC])]
    pub workload: Vec<Workload>,
    /// Number of keys that are stored before
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
    /// Which keys were asked for.
    pub workload: Workload,
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
    /// A row a workload and size.
    pub rows: Vec<Row>,
}

/// A directory that finds keys, and learns those that it has not found.
trait Remembers {
    /// True if it finds the key.
    fn finds(&mut self, hash: u64, epoch: u32) -> bool;
    /// Stores the key's pointer.
    fn learns(&mut self, hash: u64, epoch: u32);
}

impl Remembers for Directory {
    #[inline]
    fn finds(&mut self, hash: u64, epoch: u32) -> bool {
        let Some((at, hint)) = self.find(hash) else {
            return false;
        };
        assert_eq!(hint, hint_of(hash), "another key's");
        self.touch(at, epoch);
        true
    }

    #[inline]
    fn learns(&mut self, hash: u64, epoch: u32) {
        self.learn(hash, hint_of(hash), epoch, Bars::NONE, true);
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
    fn finds(&mut self, hash: u64, _: u32) -> bool {
        let Hint { pointer, tail, .. } = hint_of(hash);
        let Self([pointers, tails]) = self;
        let (Some(found), Some(its_tail)) = (pointers.lookup(hash), tails.lookup(hash)) else {
            return false;
        };
        assert_eq!((found, its_tail), (pointer.word(), tail), "another key's");
        true
    }

    #[inline]
    fn learns(&mut self, hash: u64, _: u32) {
        let Hint { pointer, tail, .. } = hint_of(hash);
        let Self([pointers, tails]) = self;
        // Any word is a value of a 64-bit entry.
        let stored = pointers
            .insert(hash, pointer.word())
            .and(tails.insert(hash, tail));
        assert!(stored.is_ok(), "a value too wide");
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

/// Carries out a round: returns the share of lookups that found their key, and nanoseconds of an access.
fn round(directory: &mut dyn Remembers, accesses: &[Access], epoch: &mut u32) -> (f64, f64) {
    let (mut looked, mut found) = (0_usize, 0_usize);
    let started = Instant::now();
    for accesses in accesses.chunks(EPOCH) {
        *epoch += 1;
        for &(hash, looks) in accesses {
            looked += usize::from(looks);
            match looks && directory.finds(hash, *epoch) {
                true => found += 1,
                false => directory.learns(hash, *epoch),
            }
        }
    }
    let took = started.elapsed().as_nanos() as f64;
    (
        found as f64 / looked.max(1) as f64,
        took / accesses.len() as f64,
    )
}

/// Compares them. The first round fills both and is not counted; each round goes on where the one before ended.
pub fn run(options: &Options) -> Result<Report, Failure> {
    let mut rows = Vec::new();
    for &workload in &options.workload {
        for &entries in &options.entries {
            rows.push(row(options, workload, entries)?);
        }
    }
    Ok(Report {
        host: Host::ask(),
        options: options.clone(),
        rows,
    })
}

fn row(options: &Options, workload: Workload, entries: u32) -> Result<Row, Failure> {
    let hasher = KeyHasher::seeded(1);
    let all = u64::from(options.requests) * (u64::from(options.rounds) + 1);
    let hashed = |(number, looks): Access| (hasher.hash(&number.to_le_bytes()), looks);
    let mut accesses = workload.accesses(options.keys, all).map(hashed);
    let mut next = || accesses.by_ref().take(options.requests as usize).collect();
    let (mut own, mut flow) = (Directory::new(entries as usize), FlowCaches::new(entries)?);
    let mut epochs = [1; 2];
    let mut both = |accesses: Vec<Access>| {
        let own = round(&mut own, &accesses, &mut epochs[0]);
        (own, round(&mut flow, &accesses, &mut epochs[1]))
    };
    both(next());
    let (own, flow): (Vec<_>, Vec<_>) = (0..options.rounds).map(|_| both(next())).unzip();
    let ratios = |rounds: &[(f64, f64)]| Spread::of(rounds.iter().map(|round| round.0)).median;
    let (hit_ratio, flow_hit_ratio) = (ratios(&own), ratios(&flow));
    let times = |rounds: Vec<(f64, f64)>| rounds.into_iter().map(|round| round.1);
    let [own, flow] = [own, flow].map(|rounds| times(rounds).collect::<Vec<f64>>());
    Ok(Row {
        workload,
        entries,
        hit_ratio,
        flow_hit_ratio,
        nanoseconds: Spread::of(own.iter().copied()),
        flow_nanoseconds: Spread::of(flow.iter().copied()),
        ratio: Spread::of_ratios(&flow, &own),
    })
}

impl Display for Workload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::YcsbA => "YCSB A",
            Self::YcsbB => "YCSB B",
            Self::YcsbC => "YCSB C",
            Self::YcsbD => "YCSB D",
            Self::Uniform => "uniform",
        })
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Options { keys, rounds, .. } = &self.options;
        writeln!(out, "{}", self.host)?;
        writeln!(
            out,
            "{keys} keys; 32 bytes an entry; medians of {rounds} rounds"
        )?;
        writeln!(
            out,
            "{:<8} {:>9}  {:>10} {:>11}  {:>24} {:>24}  flow caches / directory",
            "workload", "entries", "directory", "flow caches", "directory, ns", "flow caches, ns"
        )?;
        for row in &self.rows {
            writeln!(
                out,
                "{:<8} {:>9}  {:>10.4} {:>11.4}  {:>24} {:>24}  {}",
                row.workload,
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

    fn options(workload: &[Workload]) -> Options {
        Options {
            workload: workload.to_vec(),
            keys: 500,
            entries: vec![64, 2048],
            requests: 20_000,
            rounds: 1,
            json: false,
        }
    }

    #[test]
    fn both_find_what_they_have_learnt() {
        let report = run(&options(&[Workload::YcsbC])).unwrap();
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

    #[test]
    fn the_more_alike_keys_are_the_fewer_are_found() {
        let report = run(&options(Workload::value_variants())).unwrap();
        let small = |workload| {
            let mut rows = report.rows.iter();
            let row = rows.find(|row| row.workload == workload && row.entries == 64);
            row.unwrap().hit_ratio
        };
        let c = small(Workload::YcsbC);
        for same in [Workload::YcsbA, Workload::YcsbB] {
            assert!((small(same) - c).abs() < 0.02, "{report}");
        }
        // An eighth of the keys.
        assert!((0.09..0.17).contains(&small(Workload::Uniform)), "{report}");
        // Its popular keys are new ones, and those that were popular before are still in the way.
        assert!((0.05..0.6).contains(&small(Workload::YcsbD)), "{report}");
    }
}
