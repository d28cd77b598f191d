//! The list of operations of a thread, made before the clock starts. Keys lie one behind the other, so that reading
//! them costs a stream and not a cache miss each.

use clap::ValueEnum;
use nuthatch_workload::{KeyMaker, Mix, Popularity, Seed};

use crate::proof::write_value;

/// Which keys are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Distribution {
    /// All keys equally often.
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

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// The value to set, or nothing: a get.
    pub set: Option<&'a [u8]>,
}

/// A list of operations.
pub struct Operations {
    key_size: usize,
    value_size: usize,
    keys: Vec<u8>,
    /// Where an operation's value begins, in values; [`GET`] for a get.
    kinds: Vec<u32>,
    values: Vec<u8>,
}

const GET: u32 = u32::MAX;

/// The same operations in every run: runs are compared.
pub(crate) const SEED: Seed = Seed(1);

/// Bytes of the values that are made beforehand, at most.
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
}

impl Items {
    /// `count`, or as many items as have values of [`VALUES_MAX`] bytes together if those are fewer: at least 1.
    pub fn at_most(&self, count: u64) -> u64 {
        count.min((VALUES_MAX / self.value_size).max(1) as u64)
    }
}

impl Operations {
    /// An empty list.
    fn new(items: &Items, capacity: usize) -> Self {
        Self {
            key_size: items.key_size,
            value_size: items.value_size,
            keys: Vec::with_capacity(capacity * items.key_size),
            kinds: Vec::with_capacity(capacity),
            values: Vec::new(),
        }
    }

    /// Sets of the items numbered `from` to `to`, in order.
    pub fn sets(items: &Items, from: u64, to: u64) -> Self {
        let mut list = Self::new(items, (to - from) as usize);
        for number in from..to {
            list.push(number, true);
        }
        list
    }

    /// Gets of the items numbered `from` to `to`, in order.
    pub fn gets(items: &Items, from: u64, to: u64) -> Self {
        let mut list = Self::new(items, (to - from) as usize);
        for number in from..to {
            list.push(number, false);
        }
        list
    }

    /// `count` operations of one thread on random items, of which about `get_ratio` are gets.
    pub fn random(
        items: &Items,
        count: usize,
        get_ratio: f64,
        distribution: Distribution,
        thread: usize,
    ) -> Self {
        let popularity = Popularity::new(distribution.into(), items.count);
        let plan = Mix::new(get_ratio).plan(&popularity, SEED, thread, count);
        let mut list = Self::new(items, count);
        for operation in plan.iter() {
            match operation {
                nuthatch_workload::Operation::Get(number) => list.push(number, false),
                nuthatch_workload::Operation::Set(number) => list.push(number, true),
            }
        }
        list
    }

    fn push(&mut self, number: u64, set: bool) {
        let at = self.keys.len();
        self.keys.resize(at + self.key_size, 0);
        let key = &mut self.keys[at..];
        KeyMaker::new(self.key_size).write(number, key);
        if set {
            self.kinds
                .push((self.values.len() / self.value_size) as u32);
            let value_at = self.values.len();
            self.values.resize(value_at + self.value_size, 0);
            write_value(&mut self.values[value_at..], key);
        } else {
            self.kinds.push(GET);
        }
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Bytes of every value in the list, and of every answer to it.
    pub fn value_size(&self) -> usize {
        self.value_size
    }

    /// Operations `from` to `to`.
    #[inline]
    pub fn range(&self, from: usize, to: usize) -> impl ExactSizeIterator<Item = Operation<'_>> {
        let keys = self.keys[from * self.key_size..to * self.key_size].chunks_exact(self.key_size);
        keys.zip(&self.kinds[from..to]).map(|(key, &kind)| {
            let value = || {
                let at = kind as usize * self.value_size;
                &self.values[at..at + self.value_size]
            };
            Operation {
                key,
                set: (kind != GET).then(value),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::vouches;

    const ITEMS: Items = Items {
        count: 1000,
        key_size: 16,
        value_size: 32,
    };

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
            let list = Operations::random(&ITEMS, 20_000, 0.75, distribution, 0);
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
}
