//! YCSB's core workloads (Cooper et al., "Benchmarking cloud serving systems with YCSB", SoCC 2010, and the files
//! `workloads/workloada` to `workloadf` of its repository).
//!
//! | | of a hundred requests | which record |
//! |---|---|---|
//! | A | 50 reads, 50 updates | zipfian |
//! | B | 95 reads, 5 updates | zipfian |
//! | C | 100 reads | zipfian |
//! | D | 95 reads, 5 inserts | latest: the newest records are the most popular |
//! | E | 95 scans of 1 to 100 records, 5 inserts | zipfian |
//! | F | 50 reads, 50 read-modify-writes | zipfian |
//!
//! Zipf's exponent is 0.99. Records have numbers in the order in which they are inserted; the first ones are loaded before
//! the run. As YCSB scatters popular records over the keys, so does [`Popularity`].

use rand::Rng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution as _, Zipf};

use crate::distribution::{Distribution, Popularity};
use crate::seed::Seed;

/// YCSB's exponent.
const THETA: f64 = 0.99;

/// Records of the longest scan.
const SCAN_MAX: u16 = 100;

/// A core workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ycsb {
    /// Update heavy.
    A,
    /// Read mostly.
    B,
    /// Read only.
    C,
    /// Read latest.
    D,
    /// Short ranges.
    E,
    /// Read-modify-write.
    F,
}

/// A request; records go by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reads a record.
    Read(u64),
    /// Replaces a record.
    Update(u64),
    /// Stores a record that was not there.
    Insert(u64),
    /// Reads so many records in the order of their keys.
    Scan {
        /// The first one.
        from: u64,
        /// How many.
        records: u16,
    },
    /// Reads a record, and replaces it.
    ReadModifyWrite(u64),
}

impl Request {
    /// The number of its record; a scan's first one.
    pub fn record(self) -> u64 {
        match self {
            Self::Read(number)
            | Self::Update(number)
            | Self::Insert(number)
            | Self::Scan { from: number, .. }
            | Self::ReadModifyWrite(number) => number,
        }
    }
}

/// What is there before a run, and how long the run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Records that are loaded: numbers from 0 on.
    pub records: u64,
    /// Requests of each thread, as far as that is known. Workload E spreads the popularity over the records that it
    /// will insert.
    pub requests: u64,
    /// Threads. Each inserts records of its own: from the first behind the loaded ones, in turn.
    pub threads: usize,
}

/// Shares of a hundred requests. What is missing to a hundred is reads.
struct Shares {
    updates: u32,
    inserts: u32,
    scans: u32,
    read_modify_writes: u32,
}

impl Ycsb {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::A, Self::B, Self::C, Self::D, Self::E, Self::F];

    fn shares(self) -> Shares {
        let reads = Shares {
            updates: 0,
            inserts: 0,
            scans: 0,
            read_modify_writes: 0,
        };
        match self {
            Self::A => Shares {
                updates: 50,
                ..reads
            },
            Self::B => Shares {
                updates: 5,
                ..reads
            },
            Self::C => reads,
            Self::D => Shares {
                inserts: 5,
                ..reads
            },
            Self::E => Shares {
                inserts: 5,
                scans: 95,
                ..reads
            },
            Self::F => Shares {
                read_modify_writes: 50,
                ..reads
            },
        }
    }

    /// The requests of one thread, without an end. Panics if there is no record, or no such thread.
    pub fn requests(self, run: Run, seed: Seed, thread: usize) -> Requests {
        assert!(run.records > 0, "there must be a record to ask for");
        assert!(thread < run.threads, "there are {} threads", run.threads);
        let shares = self.shares();
        let choice = match self {
            Self::D => Choice::Latest,
            _ => {
                // As YCSB does: twice as many as are expected, so that they do not run out.
                let inserts = run.requests * u64::from(shares.inserts) / 100;
                let more = 2 * inserts * run.threads as u64;
                Choice::Zipfian(Popularity::new(Distribution::YCSB, run.records + more))
            }
        };
        Requests {
            shares,
            choice,
            inserted: Inserted {
                loaded: run.records,
                threads: run.threads as u64,
                thread: thread as u64,
                own: 0,
            },
            random: seed.thread(thread),
        }
    }
}

/// Which record a request is about.
enum Choice {
    /// By Zipf, the popular ones scattered over all.
    Zipfian(Popularity),
    /// By Zipf, the newest first.
    Latest,
}

/// The requests of a thread.
pub struct Requests {
    shares: Shares,
    choice: Choice,
    inserted: Inserted,
    random: SmallRng,
}

/// The records that a thread may ask for: those that were loaded, and its own. What other threads have inserted by now
/// cannot be known before the run.
struct Inserted {
    loaded: u64,
    threads: u64,
    thread: u64,
    own: u64,
}

impl Inserted {
    /// The number of the thread's next record.
    fn insert(&mut self) -> u64 {
        let number = self.loaded + self.thread + self.own * self.threads;
        self.own += 1;
        number
    }

    /// Records of all threads, if each has inserted as many as this one.
    fn count(&self) -> u64 {
        self.loaded + self.own * self.threads
    }

    /// The record of an age, the newest having 0. A record of this thread stands for those of the others that are as
    /// old.
    fn of_age(&self, age: u64) -> u64 {
        let number = self.count() - 1 - age;
        match number.checked_sub(self.loaded) {
            Some(behind) => self.loaded + behind / self.threads * self.threads + self.thread,
            None => number,
        }
    }

    fn has(&self, number: u64) -> bool {
        number < self.loaded
            || (number < self.count() && (number - self.loaded) % self.threads == self.thread)
    }
}

impl Requests {
    /// The number behind all records, if each thread has inserted as many as this one: a next run begins there.
    pub fn records(&self) -> u64 {
        self.inserted.count()
    }

    /// A new record. If the popularity does not reach so far, it does from now on: over the next power of two, up to which the
    /// popular records stay the same.
    fn insert(&mut self) -> u64 {
        let number = self.inserted.insert();
        if let Choice::Zipfian(popularity) = &mut self.choice
            && popularity.count() <= number
        {
            *popularity = Popularity::new(Distribution::YCSB, (number + 1).next_power_of_two());
        }
        number
    }

    fn record(&mut self) -> u64 {
        match &self.choice {
            Choice::Zipfian(popularity) => loop {
                let number = popularity.draw(&mut self.random);
                if self.inserted.has(number) {
                    return number;
                }
            },
            Choice::Latest => {
                let count = self.inserted.count();
                let ranks = Zipf::new(count as f64, THETA).expect("there are records");
                let rank = ranks.sample(&mut self.random) as u64;
                self.inserted.of_age(rank.clamp(1, count) - 1)
            }
        }
    }
}

impl Iterator for Requests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let Shares {
            updates,
            inserts,
            scans,
            read_modify_writes,
        } = self.shares;
        let mut left = self.random.random_range(0..100);
        // True for so many of a hundred, if none before was.
        let mut is = |share: u32| {
            let is = left < share;
            left = if is { 100 } else { left - share };
            is
        };
        let (update, insert) = (is(updates), is(inserts));
        let (scan, modify) = (is(scans), is(read_modify_writes));
        if insert {
            return Some(Request::Insert(self.insert()));
        }
        let number = self.record();
        Some(if update {
            Request::Update(number)
        } else if scan {
            Request::Scan {
                from: number,
                records: self.random.random_range(1..=SCAN_MAX),
            }
        } else if modify {
            Request::ReadModifyWrite(number)
        } else {
            Request::Read(number)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const RUN: Run = Run {
        records: 1000,
        requests: 20_000,
        threads: 2,
    };

    fn drawn(workload: Ycsb, thread: usize) -> Vec<Request> {
        let requests = workload.requests(RUN, Seed(1), thread);
        requests.take(RUN.requests as usize).collect()
    }

    #[test]
    fn each_has_its_shares_and_repeats_by_seed() {
        let shares = |workload| {
            let all = drawn(workload, 0);
            assert_eq!(all, drawn(workload, 0));
            assert_ne!(all, drawn(workload, 1));
            let share = |is: fn(&Request) -> bool| {
                let count = all.iter().filter(|request| is(request)).count();
                (100.0 * count as f64 / all.len() as f64).round() as i32
            };
            [
                share(|request| matches!(request, Request::Read(_))),
                share(|request| matches!(request, Request::Update(_))),
                share(|request| matches!(request, Request::Insert(_))),
                share(|request| matches!(request, Request::Scan { .. })),
                share(|request| matches!(request, Request::ReadModifyWrite(_))),
            ]
        };
        for (workload, expected) in Ycsb::ALL.into_iter().zip([
            [50, 50, 0, 0, 0],
            [95, 5, 0, 0, 0],
            [100, 0, 0, 0, 0],
            [95, 0, 5, 0, 0],
            [0, 0, 5, 95, 0],
            [50, 0, 0, 0, 50],
        ]) {
            let found = shares(workload);
            let near = found.iter().zip(expected).all(|(&a, b)| (a - b).abs() <= 1);
            assert!(near, "{workload:?}: {found:?}");
        }
    }

    #[test]
    fn only_records_that_are_there_are_asked_for() {
        for workload in Ycsb::ALL {
            let mut inserted = HashSet::new();
            for thread in 0..RUN.threads {
                let mut own: HashSet<u64> = (0..RUN.records).collect();
                for request in drawn(workload, thread) {
                    match request {
                        Request::Insert(number) => {
                            assert!(own.insert(number) && inserted.insert(number), "{number}");
                        }
                        Request::Scan { from, records } => {
                            assert!(own.contains(&from) && (1..=SCAN_MAX).contains(&records));
                        }
                        Request::Read(number)
                        | Request::Update(number)
                        | Request::ReadModifyWrite(number) => assert!(own.contains(&number)),
                    }
                }
            }
            // In turn, so that all numbers are used.
            let most = inserted.iter().max().map_or(0, |most| most - RUN.records);
            assert!(most <= 2 * inserted.len() as u64 + 200, "{workload:?}");
        }
    }

    #[test]
    fn records_that_are_inserted_become_popular_and_are_not_inserted_again() {
        // Nothing is known of how many requests there will be.
        let run = Run {
            requests: 0,
            threads: 1,
            ..RUN
        };
        let mut first = Ycsb::E.requests(run, Seed(1), 0);
        let scans_of_new = first.by_ref().take(40_000).filter(
            |request| matches!(request, Request::Scan { from, .. } if *from >= run.records),
        );
        assert!(scans_of_new.count() > 1000);
        let records = first.records();
        assert!((2_800..3_200).contains(&records), "{records}");
        let next = Run { records, ..run };
        let mut second = Ycsb::E.requests(next, Seed(2), 0);
        let insert = second.find(|request| matches!(request, Request::Insert(_)));
        assert_eq!(insert, Some(Request::Insert(records)));
    }

    #[test]
    fn d_asks_for_the_newest_and_the_others_for_scattered_ones() {
        let mut newest = RUN.records;
        let (mut near, mut reads) = (0, 0);
        for request in drawn(Ycsb::D, 1) {
            match request {
                Request::Insert(number) => newest = number,
                Request::Read(number) => {
                    reads += 1;
                    near += u32::from(newest.abs_diff(number) < 20);
                }
                _ => panic!("D has reads and inserts"),
            }
        }
        // Zipf's law gives the first 20 of 1000 to 3000 about four in ten.
        assert!((0.35..0.60).contains(&(f64::from(near) / f64::from(reads))));
        let last = |request: &Request| matches!(request, Request::Read(980..1000));
        let near = drawn(Ycsb::C, 0).iter().filter(|one| last(one)).count();
        assert!(near < 2_000, "{near}");
    }
}
