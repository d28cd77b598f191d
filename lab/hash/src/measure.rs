//! The cost of a function: alone, and in a search whose cache misses it overlaps.
//!
//! All functions are measured alternately, in one run, and each cost is a median over the rounds. Time is the thread's
//! own CPU time: machines are shared, and other processes must not count as a function's cost.

use crate::distribution::chained::{Chained, Searched};
use crate::functions::{Entry, Function};
use crate::table::Table;
use nix::time::{ClockId, clock_gettime};
use nuthatch_base::spread::Histogram;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use crate::keys::{AnyKey, Visit};

/// Keys that are searched for at most: half of them are in the table. Their objects take 16 MiB, more
/// than a core's own caches.
pub const SEARCHED_KEYS: usize = 1 << 19;
/// Keys that a function is measured on alone at most: few enough to stay in a core's cache.
const COMPUTED_KEYS: usize = 1 << 14;
/// Keys computed in one round, at least.
const COMPUTED_PER_ROUND: usize = 1 << 17;
/// Rounds of a function alone, and of searches.
const ROUNDS: usize = 5;
const SEARCH_ROUNDS: usize = 3;
/// About the most objects that the searches of one round examine.
const OBJECTS_PER_ROUND: f64 = 4e6;

/// The cost of a function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Nanoseconds a key, the function alone.
    pub ns_per_key: f64,
    /// Nanoseconds a search of a chained table, hashing included; half of the keys are stored, and as many searches as
    /// asked for hit.
    pub ns_per_search: f64,
    /// The objects that those searches examined.
    pub searched: Searched,
}

/// Measures functions over the keys of a sample.
pub struct Measure<'a> {
    /// The functions, all of which take the keys.
    pub entries: &'a [&'a Entry],
    /// The table, of a size that all take, for the whole of the keys.
    pub table: Table,
    /// How many keys the whole table holds, from which the sample was taken.
    pub items: u64,
    /// The share of the searches that hit, from 0 to 1.
    pub hit_ratio: f64,
}

impl Visit for Measure<'_> {
    /// One for each function, in their order.
    type Output = Vec<Cost>;

    fn visit<K: AnyKey>(self, keys: &[K]) -> Vec<Cost> {
        let sample = Sample::of(keys, self.table, self.items, self.hit_ratio);
        let functions: Vec<&dyn Function<K>> = self
            .entries
            .iter()
            .filter_map(|entry| K::function(entry))
            .collect();
        let mut alone = vec![Vec::new(); functions.len()];
        for _ in 0..ROUNDS {
            for (function, rounds) in functions.iter().zip(&mut alone) {
                rounds.push(time_alone(*function, &sample.computed, self.table));
            }
        }
        functions
            .iter()
            .zip(alone)
            .map(|(function, rounds)| {
                let (ns_per_search, searched) = sample.search(*function);
                Cost {
                    ns_per_key: median(rounds),
                    ns_per_search,
                    searched,
                }
            })
            .collect()
    }
}

/// Nanoseconds a key.
fn time_alone<K: AnyKey>(function: &dyn Function<K>, keys: &[K], table: Table) -> f64 {
    let keys = &keys[..keys.len().min(COMPUTED_KEYS)];
    let passes = COMPUTED_PER_ROUND.div_ceil(keys.len());
    let start = CpuTime::now();
    for _ in 0..passes {
        function.compute(keys, table);
    }
    start.elapsed_ns() / (passes * keys.len()) as f64
}

/// The keys of one search: those in the table, and those to search.
pub struct Sample<K> {
    /// Those that the function alone is measured on: all.
    computed: Vec<K>,
    stored: Vec<K>,
    searched: Vec<K>,
    table: Table,
}

impl<K: AnyKey> Sample<K> {
    /// Half of the keys are stored. As many of them, and of the others, are searched for, in another order, as make this
    /// share of hits. The table is smaller than `table` by the same power of two by which the stored keys are fewer than
    /// `items`.
    pub fn of(keys: &[K], table: Table, items: u64, hit_ratio: f64) -> Self {
        let mut random = SmallRng::seed_from_u64(1);
        let mut computed = keys.to_vec();
        computed.shuffle(&mut random);
        computed.truncate(SEARCHED_KEYS);
        let (stored, absent) = computed.split_at(computed.len().div_ceil(2));
        let stored = stored.to_vec();
        let (hits, misses) = searches(stored.len(), absent.len(), hit_ratio);
        let mut searched = [&stored[..hits], &absent[..misses]].concat();
        searched.shuffle(&mut random);
        let smaller = (items / stored.len().max(1) as u64).max(1).ilog2();
        Self {
            table: Table::new((table.buckets() >> smaller).max(1)).unwrap_or(table),
            computed,
            stored,
            searched,
        }
    }

    /// The median time of a search, and the objects that one round's searches examined.
    fn search(&self, function: &dyn Function<K>) -> (f64, Searched) {
        let bucketed = self
            .stored
            .iter()
            .map(|&key| (function.bucket(key, self.table), key));
        let chained = Chained::new(self.table, bucketed);
        let keys = &self.searched[..self.searches_per_round(function)];
        let mut searched = Searched::default();
        let rounds = (0..SEARCH_ROUNDS)
            .map(|_| {
                let start = CpuTime::now();
                searched = function.look_up(keys, &chained);
                start.elapsed_ns() / keys.len() as f64
            })
            .collect();
        (median(rounds), searched)
    }

    /// How many of the searches one round makes: under a function that puts all keys into one bucket,
    /// all of them would take hours.
    fn searches_per_round(&self, function: &dyn Function<K>) -> usize {
        let mut counts = vec![0; self.table.buckets() as usize];
        function.count(&self.stored, self.table, &mut counts);
        let seen = Histogram::of_counts(counts.into_iter().map(u64::from));
        let affordable = OBJECTS_PER_ROUND / (1.0 + seen.searched_miss());
        (affordable as usize).clamp(1, self.searched.len())
    }
}

/// Of so many stored and absent keys, how many of each are searched for, so that this share of the searches hits; all of
/// them if so few keys cannot have that share.
fn searches(stored: usize, absent: usize, hit_ratio: f64) -> (usize, usize) {
    let most = |keys: usize, share: f64| match share > 0.0 {
        true => keys as f64 / share,
        false => f64::INFINITY,
    };
    let total = most(stored, hit_ratio).min(most(absent, 1.0 - hit_ratio));
    let of_total = |share: f64| (total * share).round() as usize;
    match (of_total(hit_ratio), of_total(1.0 - hit_ratio)) {
        (0, 0) => (stored, absent),
        (hits, misses) => (hits.min(stored), misses.min(absent)),
    }
}

/// A moment in the CPU time of the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime(f64);

impl CpuTime {
    /// Now.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock");
        Self(now.tv_sec() as f64 * 1e9 + now.tv_nsec() as f64)
    }

    /// Nanoseconds of work since then, at least one.
    pub fn elapsed_ns(self) -> f64 {
        (Self::now().0 - self.0).max(1.0)
    }
}

/// The middle of an odd number of rounds.
pub fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds.get(rounds.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::Registry;
    use crate::keys::Keys;

    #[test]
    fn searches_are_counted_and_half_of_them_hit() {
        let registry = Registry::new(3);
        let entries = [
            registry.find("hash_64").unwrap(),
            registry.find("mult-top-64").unwrap(),
        ];
        let keys = Keys::Number((0..20_000).collect());
        let measure = Measure {
            entries: &entries,
            table: Table::of_bits(14),
            items: 20_000,
            hit_ratio: 0.5,
        };
        let costs = keys.visit(measure);
        let good = costs[0].searched;
        assert_eq!((good.hits, good.misses), (10_000, 10_000));
        // 10,000 objects in 8192 buckets.
        assert!(good.per_miss() < 2.0);
        // All in one bucket: a part of the searches is enough to show that.
        let bad = costs[1].searched;
        assert_eq!(bad.per_miss(), 10_000.0);
        assert!(bad.hits + bad.misses <= 400, "{bad:?}");
        assert!(
            costs
                .iter()
                .all(|cost| cost.ns_per_key > 0.0 && cost.ns_per_search > 0.0)
        );
    }

    #[test]
    fn one_key_is_enough() {
        let registry = Registry::new(3);
        let entries = [registry.find("xxh3").unwrap()];
        let keys = Keys::Number(vec![7]);
        let measure = Measure {
            entries: &entries,
            table: Table::of_bits(0),
            items: 1,
            hit_ratio: 0.5,
        };
        assert_eq!(keys.visit(measure)[0].searched.hits, 1);
    }

    #[test]
    fn as_many_searches_hit_as_asked_for() {
        for (hit_ratio, expected) in [
            (0.0, (0, 100)),
            (0.03, (3, 100)),
            (0.5, (100, 100)),
            (0.8, (100, 25)),
            (1.0, (100, 0)),
        ] {
            assert_eq!(searches(100, 100, hit_ratio), expected, "{hit_ratio}");
        }
        // One key is stored, and none is absent.
        assert_eq!(searches(1, 0, 0.5), (1, 0));
    }
}
