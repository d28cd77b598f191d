//! Look-ups in each step from memcached's table to MemC3's: of keys that are there, and of keys that are not.
//!
//! As in the paper, one thread alone takes no locks; then the steps that change nothing else are left out.

use std::fmt::{self, Display};
use std::time::{Duration, Instant};

use clap::Args;
use nuthatch_bench::engine::on_cores;
use nuthatch_bench::host::Host;
use nuthatch_bench::report::Spread;
use nuthatch_memc3::{
    Compare, Design, Index, Inserted, KEY, Key, Paths, Records, Reference, SLOTS, Shape, Visit,
    visit,
};
use nuthatch_program::Failure;
use nuthatch_workload::{Distribution, KeyMaker, Popularity, Seed};
use serde::{Deserialize, Serialize};

use super::records;

/// Look-ups of a thread's list before it repeats.
const LIST: usize = 1 << 20;

/// Look-ups between two looks at the clock.
const LOOK: usize = 1024;

/// Items that a reference has room for.
const ITEMS_MAX: u64 = 1 << 31;

/// Options of the bench of look-ups.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Items in each table. Cuckoo tables have the least power of two of slots of which they fill 95 % at most, chains half
    /// as many buckets: with three quarters of a power of two, 1.5 items in each, as in the paper
    #[arg(long, value_name = "N", default_value_t = 12_582_912)]
    pub items: u64,
    /// Threads, each pinned to a core; one thread takes no locks
    #[arg(long, value_name = "T", default_value_t = 1)]
    pub threads: usize,
    /// Seconds for each table and kind of key, over all rounds
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    pub seconds: f64,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

impl Options {
    fn check(&self) -> Result<(), Failure> {
        if self.threads == 0 || self.rounds == 0 {
            return Err(Failure::usage("--threads, --rounds: at least 1"));
        }
        if !(1..=ITEMS_MAX).contains(&self.items) {
            return Err(Failure::usage(format!("--items: 1 to {ITEMS_MAX}")));
        }
        if !(0.0..=1e6).contains(&self.seconds) {
            return Err(Failure::usage("--seconds: 0 to a million"));
        }
        Ok(())
    }

    /// Slots of a cuckoo table.
    fn slots(&self) -> u64 {
        let least = (self.items as f64 / 0.95).ceil() as u64;
        least.next_power_of_two().max(4 * SLOTS as u64)
    }

    fn round_time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds / self.rounds as f64)
    }
}

/// Which keys are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// Those that are there.
    Positive,
    /// Those that are not.
    Negative,
}

/// The results of a table and a kind of key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The step.
    pub table: String,
    /// Which keys were looked up.
    pub keys: Keys,
    /// Million look-ups a second, of all threads.
    pub mops: Spread,
}

/// The results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// Items in each table.
    pub items: u64,
    /// Slots of a cuckoo table; chains have half as many buckets.
    pub slots: u64,
    /// Threads.
    pub threads: usize,
    /// Each table with each kind of key.
    pub rows: Vec<Row>,
}

/// A key to look up, and the item that has it.
#[derive(Clone, Copy)]
struct Wanted {
    key: Key,
    /// [`NONE`] if no item has it.
    number: u32,
}

const NONE: u32 = u32::MAX;

/// A thread's list.
fn list(items: u64, keys: Keys, thread: usize) -> Vec<Wanted> {
    let popularity = Popularity::new(Distribution::Uniform, items);
    let mut random = Seed(1).thread(thread);
    let wanted = (0..LIST.min(4 * items as usize)).map(|_| {
        let number = popularity.draw(&mut random);
        let mut key = [0; KEY];
        let of = match keys {
            Keys::Positive => number,
            Keys::Negative => items + number,
        };
        KeyMaker::new(KEY).write(of, &mut key);
        let number = match keys {
            Keys::Positive => number as u32,
            Keys::Negative => NONE,
        };
        Wanted { key, number }
    });
    wanted.collect()
}

/// A table: its index, and the items in it.
struct Table<'r, I> {
    index: I,
    records: &'r Records,
}

impl<'r, I: Index> Table<'r, I> {
    /// An index of all records.
    fn fill(records: &'r Records, shape: Shape) -> Result<Self, String> {
        let index = I::new(shape).map_err(|error| error.to_string())?;
        let mut paths = Paths::new(2, 1);
        for item in (0..records.count()).map(Reference::to) {
            let hash = records.hash_of(records.key(item));
            if index.insert(hash, item, records, &mut paths) == Inserted::Full {
                return Err("the index is full before all items are in it".to_owned());
            }
        }
        Ok(Self { index, records })
    }

    /// The number of the item with a key.
    #[inline(always)]
    fn find<C: Compare>(&self, key: &Key) -> u32 {
        let records = self.records;
        let hash = records.hash_of(key);
        let look = |item| records.is::<C>(item, key).then_some(item);
        let found = self.index.find(hash, records, look);
        found.map_or(NONE, |item| item.number() as u32)
    }

    /// Looks up the whole list once, and each value that it finds.
    fn prove<C: Compare>(&self, list: &[Wanted]) -> Result<(), String> {
        let is_right = |wanted: &Wanted| {
            let found = self.find::<C>(&wanted.key);
            let value = |number| self.records.value(Reference::to(number as usize));
            found == wanted.number && (found == NONE || value(found).starts_with(&wanted.key))
        };
        match list.iter().all(is_right) {
            true => Ok(()),
            false => Err("a wrong answer".to_owned()),
        }
    }

    /// Looks up the list over and over for about `time`. Returns million look-ups a second.
    fn run_for<C: Compare>(&self, list: &[Wanted], time: Duration) -> Result<f64, String> {
        let (mut operations, mut wrong) = (0, 0);
        let started = Instant::now();
        loop {
            for wanted in list.chunks(LOOK) {
                for wanted in wanted {
                    wrong += u64::from(self.find::<C>(&wanted.key) != wanted.number);
                }
                operations += wanted.len();
                let elapsed = started.elapsed();
                if elapsed >= time {
                    return match wrong {
                        0 => Ok(operations as f64 / elapsed.as_secs_f64() / 1e6),
                        _ => Err(format!("{wrong} wrong answers")),
                    };
                }
            }
        }
    }

    /// All rounds of a thread.
    fn rounds<C: Compare>(&self, list: &[Wanted], options: &Options) -> Result<Vec<f64>, String> {
        self.prove::<C>(list)?;
        let time = options.round_time();
        (0..options.rounds)
            .map(|_| self.run_for::<C>(list, time))
            .collect()
    }
}

/// Measures each step in turn.
struct Steps<'o> {
    options: &'o Options,
    /// Lists of both kinds, one of each for each thread.
    lists: [(Keys, Vec<Vec<Wanted>>); 2],
    /// The items, and whether they lie on huge pages. A step's chains replace those of the step before.
    records: Option<(bool, Records)>,
    rows: Result<Vec<Row>, String>,
}

impl Steps<'_> {
    fn measure<D: Design>(&mut self) -> Result<(), String> {
        let options = self.options;
        let records = match self.records.take() {
            Some((huge_pages, records)) if huge_pages == D::HUGE_PAGES => records,
            _ => {
                records(options.items as usize, D::HUGE_PAGES).map_err(|error| error.to_string())?
            }
        };
        let (_, records) = self.records.insert((D::HUGE_PAGES, records));
        let mut found = Vec::new();
        if options.threads == 1 {
            // Without locks an index stays on its thread.
            let each = on_cores(1, |_| {
                || {
                    let table = Table::<D::Alone>::fill(records, shape::<D>(options))?;
                    let rounds = self.lists.iter().map(|(keys, lists)| {
                        let rounds = table.rounds::<D::Compare>(&lists[0], options)?;
                        Ok((*keys, vec![rounds]))
                    });
                    rounds.collect::<Result<Vec<_>, String>>()
                }
            })?;
            for each in each {
                found.extend(each?);
            }
        } else {
            let table = Table::<D::Shared>::fill(records, shape::<D>(options))?;
            for (keys, lists) in &self.lists {
                let each = on_cores(options.threads, |thread| {
                    let (table, list) = (&table, &lists[thread]);
                    move || table.rounds::<D::Compare>(list, options)
                })?;
                found.push((*keys, each.into_iter().collect::<Result<_, _>>()?));
            }
        }
        let rows = found.into_iter().map(|(keys, threads)| Row {
            table: D::NAME.to_owned(),
            keys,
            mops: sum(&threads),
        });
        if let Ok(all) = &mut self.rows {
            all.extend(rows);
        }
        Ok(())
    }
}

impl Visit for Steps<'_> {
    fn design<D: Design>(&mut self) {
        let is_same = self.options.threads == 1 && D::IS_LOCKS;
        if is_same || self.rows.is_err() {
            return;
        }
        if let Err(error) = self.measure::<D>() {
            self.rows = Err(format!("{}: {error}", D::NAME));
        }
    }
}

fn shape<D: Design>(options: &Options) -> Shape {
    let slots = options.slots();
    Shape {
        buckets: match D::Alone::LINKS {
            0 => slots / SLOTS as u64,
            _ => slots / 2,
        },
        huge_pages: D::HUGE_PAGES,
    }
}

/// The rounds of all threads together.
fn sum(threads: &[Vec<f64>]) -> Spread {
    let rounds = threads.first().map_or(0, Vec::len);
    Spread::of((0..rounds).map(|round| threads.iter().map(|thread| thread[round]).sum()))
}

/// Runs the bench of look-ups.
pub fn run(options: &Options) -> Result<Report, Failure> {
    options.check()?;
    let lists = [Keys::Positive, Keys::Negative].map(|keys| {
        let lists = (0..options.threads).map(|thread| list(options.items, keys, thread));
        (keys, lists.collect())
    });
    let mut steps = Steps {
        options,
        lists,
        records: None,
        rows: Ok(Vec::new()),
    };
    visit(&mut steps);
    Ok(Report {
        host: Host::ask(),
        items: options.items,
        slots: options.slots(),
        threads: options.threads,
        rows: steps.rows?,
    })
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.host)?;
        writeln!(
            out,
            "look-ups in tables of {} items ({} slots), {} threads{}",
            self.items,
            self.slots,
            self.threads,
            if self.threads == 1 { ", no locks" } else { "" }
        )?;
        for row in &self.rows {
            let keys = match row.keys {
                Keys::Positive => "positive",
                Keys::Negative => "negative",
            };
            writeln!(out, "  {:<15} {keys}  {:.2} Mop/s", row.table, row.mops)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(threads: usize) -> Options {
        Options {
            items: 3000,
            threads,
            seconds: 0.002,
            rounds: 2,
            json: false,
        }
    }

    #[test]
    fn one_thread_measures_what_differs_without_locks() {
        let report = run(&options(1)).unwrap();
        let names: Vec<&str> = report.rows.iter().map(|row| &*row.table).collect();
        let expected = ["chaining", "+ hugepage", "+ int keycmp", "cuckoo", "+ tag"];
        assert_eq!(names, expected.map(|name| [name; 2]).as_flattened());
        assert!(report.rows.iter().all(|row| row.mops.min > 0.0), "{report}");
        assert_eq!(report.slots, 4096);
    }

    #[test]
    fn several_threads_measure_every_step() {
        let report = run(&options(2)).unwrap();
        assert_eq!(report.rows.len(), 14, "{report}");
        let negative = report.rows.iter().filter(|row| row.keys == Keys::Negative);
        assert_eq!(negative.count(), 7);
    }

    #[test]
    fn an_index_that_cannot_hold_all_is_an_error() {
        let mut options = options(1);
        options.items = 0;
        assert!(run(&options).is_err());
        let records = records(100, true).unwrap();
        let shape = Shape {
            buckets: 16,
            huge_pages: true,
        };
        type Alone = <nuthatch_memc3::OptimisticLocks as Design>::Alone;
        assert!(Table::<Alone>::fill(&records, shape).is_err());
    }
}
