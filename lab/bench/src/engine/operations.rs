//! The list of operations of a thread, made before the clock starts. Keys lie one behind the other, so that reading
//! them costs a stream and not a cache miss each.

use std::ops::Range;

use clap::ValueEnum;
use nuthatch_workload::{KeyMaker, Mix, Popularity, Seed, etc};
use rand::Rng;
use serde::{Deserialize, Serialize};

use nuthatch_workload::proof::write_value;

/// Which keys are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All keys equally often.
    #[default]
    Uniform,
    /// A few keys often: Zipf with exponent 0.99, as in YCSB.
    Zipf,
}

impl From<Distribution> for nuthatch_workload::Distribution {
    fn from(typed: Distribution) -> Self {
        match typed {
            Distribution::Uniform => Self::Uniform,
            Distribution::Zipf => Self::YCSB,
        }
    }
}

/// Sizes that differ from item to item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mixed {
    /// Keys of some 36 bytes and values of some 190, as measured at Facebook (Atikoglu et al., 2012): many of a few
    /// bytes, most of some hundred, a few of many thousand.
    Etc,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Bytes of the key's value.
    pub value_size: usize,
    /// The value to set, or nothing: a get.
    pub set: Option<&'a [u8]>,
}

/// A list of operations.
pub struct Operations {
    keys: Vec<u8>,
    values: Vec<u8>,
    places: Vec<Place>,
    /// Gets of keys that are stored.
    hits: u64,
    /// Its sets are of keys that are new only once.
    is_once: bool,
}

/// Where an operation's bytes are.
#[derive(Clone, Copy)]
struct Place {
    key_at: u32,
    key_size: u32,
    /// [`GET`] for a get.
    value_at: u32,
    value_size: u32,
}

const GET: u32 = u32::MAX;

/// The same operations in every run: runs are compared.
pub(crate) const SEED: Seed = Seed(1);

/// The choice of gets that miss does not depend on the choice of keys.
const SEED_OF_MISSES: Seed = Seed(2);

/// Bytes of the values that are made beforehand, at most; those of the keys are fewer.
const VALUES_MAX: usize = 512 << 20;

/// Sizes and numbers of the items that operations are about.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    /// How many keys there are.
    pub count: u64,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// The sizes differ; then `key_size` and `value_size` are the means.
    pub mixed: Option<Mixed>,
}

impl Items {
    /// So many items of these sizes.
    pub const fn alike(count: u64, key_size: usize, value_size: usize) -> Self {
        Self {
            count,
            key_size,
            value_size,
            mixed: None,
        }
    }

    /// So many items of different sizes.
    pub fn mixed(count: u64, mixed: Mixed) -> Self {
        let mut items = Self {
            mixed: Some(mixed),
            ..Self::alike(count, 0, 0)
        };
        let (mut keys, mut values) = (0, 0);
        for (key, value) in items.sizes_of(0..count) {
            keys += key;
            values += value;
        }
        items.key_size = keys / count as usize;
        items.value_size = values / count as usize;
        items
    }

    /// Bytes of an item's key and of its value.
    #[inline]
    pub fn sizes(&self, number: u64) -> (usize, usize) {
        match self.mixed {
            None => (self.key_size, self.value_size),
            Some(Mixed::Etc) => etc::sizes(number),
        }
    }

    /// The sizes of these items.
    pub fn sizes_of(&self, numbers: Range<u64>) -> impl Iterator<Item = (usize, usize)> {
        numbers.map(|number| self.sizes(number))
    }

    /// `count`, or as many items as have values of [`VALUES_MAX`] bytes together if those are fewer: at least 1.
    pub fn at_most(&self, count: u64) -> u64 {
        count.min((VALUES_MAX / self.value_size).max(1) as u64)
    }
}

/// What is requested.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The share of gets; the rest are sets of stored keys.
    pub get_ratio: f64,
    /// The share of gets that ask for keys that are not stored.
    pub miss_ratio: f64,
    /// Which of the keys.
    pub distribution: Distribution,
    /// The number of the first new key, if sets are of new keys: then each is of the next one.
    pub new_from: Option<u64>,
}

impl Load {
    /// Of stored keys.
    pub fn new(get_ratio: f64, distribution: Distribution) -> Self {
        Self {
            get_ratio,
            miss_ratio: 0.0,
            distribution,
            new_from: None,
        }
    }
}

impl Operations {
    /// An empty list.
    fn new(items: &Items, capacity: usize) -> Self {
        Self {
            keys: Vec::with_capacity(capacity * items.key_size),
            values: Vec::new(),
            places: Vec::with_capacity(capacity),
            hits: 0,
            is_once: false,
        }
    }

    /// Sets of the items numbered `from` to `to`, in order.
    pub fn sets(items: &Items, from: u64, to: u64) -> Self {
        let mut list = Self::new(items, (to - from) as usize);
        for number in from..to {
            list.push(items, number, true);
        }
        list
    }

    /// Gets of the items numbered `from` to `to`, in order.
    pub fn gets(items: &Items, from: u64, to: u64) -> Self {
        let mut list = Self::new(items, (to - from) as usize);
        for number in from..to {
            list.push(items, number, false);
        }
        list
    }

    /// `count` operations of one thread on random items.
    pub fn random(items: &Items, count: usize, load: &Load, thread: usize) -> Self {
        let popularity = Popularity::new(load.distribution.into(), items.count);
        let plan = Mix::new(load.get_ratio).plan(&popularity, SEED, thread, count);
        let mut misses = SEED_OF_MISSES.thread(thread);
        let mut list = Self::new(items, count);
        list.is_once = load.new_from.is_some();
        let mut new = load.new_from.map(|from| from..);
        for operation in plan.iter() {
            match operation {
                // The numbers behind those of the items are of keys alike, which are not stored.
                nuthatch_workload::Operation::Get(number)
                    if misses.random_bool(load.miss_ratio) =>
                {
                    list.push(items, items.count + number, false);
                }
                nuthatch_workload::Operation::Get(number) => {
                    list.push(items, number, false);
                    list.hits += 1;
                }
                nuthatch_workload::Operation::Set(number) => {
                    let new = new.as_mut().and_then(Iterator::next);
                    list.push(items, new.unwrap_or(number), true);
                }
            }
        }
        list
    }

    fn push(&mut self, items: &Items, number: u64, set: bool) {
        let (key_size, value_size) = items.sizes(number);
        let key_at = self.keys.len();
        self.keys.resize(key_at + key_size, 0);
        let key = &mut self.keys[key_at..];
        KeyMaker::new(key_size).write(number, key);
        let mut place = Place {
            key_at: position(key_at),
            key_size: key_size as u32,
            value_at: GET,
            value_size: value_size as u32,
        };
        if set {
            let value_at = self.values.len();
            place.value_at = position(value_at);
            self.values.resize(value_at + value_size, 0);
            write_value(&mut self.values[value_at..], key);
        }
        self.places.push(place);
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// True if it is gone through once at most, since its new keys are new only then.
    pub fn is_once(&self) -> bool {
        self.is_once
    }

    /// How many gets find a value if all items are stored: of a random list.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Operations `from` to `to`.
    #[inline]
    pub fn range(&self, from: usize, to: usize) -> impl ExactSizeIterator<Item = Operation<'_>> {
        self.places[from..to].iter().map(|place| {
            let (key_at, value_at) = (place.key_at as usize, place.value_at as usize);
            let value_size = place.value_size as usize;
            let value = || &self.values[value_at..value_at + value_size];
            Operation {
                key: &self.keys[key_at..key_at + place.key_size as usize],
                value_size,
                set: (place.value_at != GET).then(value),
            }
        })
    }
}

fn position(at: usize) -> u32 {
    u32::try_from(at)
        .expect("a list has fewer than 2^23 keys of 250 bytes, and values of VALUES_MAX")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_workload::proof::vouches;

    const ITEMS: Items = Items::alike(1000, 16, 32);

    #[test]
    fn sets_come_in_order_with_their_values() {
        let list = Operations::sets(&ITEMS, 10, 13);
        let keys: Vec<&[u8]> = list.range(0, list.len()).map(|one| one.key).collect();
        assert_eq!(keys[0], b"kkkkkkkkkkkkkkka");
        assert_eq!(keys[2], b"kkkkkkkkkkkkkkkc");
        assert!(
            list.range(0, 3)
                .all(|one| vouches(one.set.unwrap(), one.key))
        );
    }

    #[test]
    fn large_values_are_made_a_few_at_a_time() {
        assert_eq!(ITEMS.at_most(1000), 1000);
        for (value_size, count) in [(VALUES_MAX / 8, 8), (VALUES_MAX, 1), (2 * VALUES_MAX, 1)] {
            let large = Items {
                value_size,
                ..ITEMS
            };
            assert_eq!(large.at_most(1000), count);
        }
    }

    #[test]
    fn mixes_and_distributions_are_what_they_say() {
        for (distribution, least, most) in [
            (Distribution::Uniform, 1, 60),
            (Distribution::Zipf, 1000, 3000),
        ] {
            let list = Operations::random(&ITEMS, 20_000, &Load::new(0.75, distribution), 0);
            let gets = list.range(0, list.len()).filter(|one| one.set.is_none());
            assert!((14_500..15_500).contains(&gets.count()));
            let mut counts = std::collections::HashMap::new();
            for one in list.range(0, list.len()) {
                *counts.entry(one.key).or_insert(0) += 1;
            }
            let top = counts.into_values().max().unwrap();
            assert!((least..=most).contains(&top), "{distribution:?}: {top}");
        }
    }

    #[test]
    fn misses_are_keys_beside_those_of_the_items() {
        let mut load = Load::new(1.0, Distribution::Uniform);
        load.miss_ratio = 0.1;
        let list = Operations::random(&ITEMS, 20_000, &load, 0);
        let known = Operations::gets(&ITEMS, 0, ITEMS.count);
        let known: std::collections::HashSet<&[u8]> =
            known.range(0, known.len()).map(|one| one.key).collect();
        let hits = list
            .range(0, list.len())
            .filter(|one| known.contains(one.key));
        assert_eq!(hits.count() as u64, list.hits());
        assert!((17_700..18_300).contains(&list.hits()), "{}", list.hits());
    }

    #[test]
    fn new_keys_come_in_order_behind_those_of_the_items() {
        let mut load = Load::new(0.5, Distribution::Uniform);
        load.new_from = Some(2000);
        let list = Operations::random(&ITEMS, 1000, &load, 0);
        assert!(list.is_once());
        let sets = list.range(0, 1000).filter(|one| one.set.is_some());
        let keys = KeyMaker::new(16);
        for (number, set) in (2000..).zip(sets) {
            assert_eq!(set.key, keys.key(number));
        }
        assert!((400..600).contains(&list.hits()), "{}", list.hits());
    }

    #[test]
    fn an_item_of_a_mixture_always_has_the_same_sizes() {
        let items = Items::mixed(2000, Mixed::Etc);
        assert!((30..45).contains(&items.key_size), "{items:?}");
        assert!((100..400).contains(&items.value_size), "{items:?}");
        let (sets, gets) = (
            Operations::sets(&items, 0, 2000),
            Operations::gets(&items, 0, 2000),
        );
        for (set, get) in sets.range(0, 2000).zip(gets.range(0, 2000)) {
            assert_eq!((set.key, set.set.unwrap().len()), (get.key, get.value_size));
            assert!(vouches(set.set.unwrap(), get.key));
        }
    }
}
