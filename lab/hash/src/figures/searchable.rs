//! One of a kernel's tables under load: the keys that it stores, and the searches.

use std::ops::Range;

use crate::distribution::chained::{Chained, Searched};
use crate::functions::{Function, HashedKey, Registry};
use crate::table::Table;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use nuthatch_program::Failure;

/// Keys to store, and keys to search.
#[derive(Clone, Debug)]
pub struct Workload<K> {
    stored: Vec<K>,
    searches: Vec<K>,
}

impl<K: HashedKey + 'static> Workload<K> {
    /// `searches` random keys to search: a stored one with the probability `hit_rate`, else an absent one.
    pub fn new(
        stored: Vec<K>,
        absent: &[K],
        hit_rate: f64,
        searches: usize,
    ) -> Result<Self, Failure> {
        let mut random = SmallRng::seed_from_u64(4);
        let one = |_| match random.random_bool(hit_rate) {
            true => stored.choose(&mut random).copied(),
            false => absent.choose(&mut random).copied(),
        };
        let searches: Option<Vec<K>> = (0..searches).map(one).collect();
        let searches = searches.ok_or_else(|| {
            Failure::run(format!(
                "too few {} keys for a table; choose a larger --root",
                K::KIND.name()
            ))
        })?;
        Ok(Self { stored, searches })
    }

    /// The same searches on a table that was pruned: every second key is stored.
    pub fn shrunk(&self) -> Self {
        Self {
            stored: self.stored.iter().copied().step_by(2).collect(),
            searches: self.searches.clone(),
        }
    }

    /// Keys stored.
    pub fn items(&self) -> usize {
        self.stored.len()
    }

    /// A table of this size under the function of this name, filled with the stored keys.
    pub fn table<'a>(
        &'a self,
        registry: &'a Registry,
        name: &str,
        table: Table,
    ) -> Result<Box<dyn Searchable + 'a>, Failure> {
        let function = registry
            .find(name)
            .and_then(K::function)
            .ok_or_else(|| Failure::run(format!("{name} takes no {} keys", K::KIND.name())))?;
        let bucketed = self
            .stored
            .iter()
            .map(|&key| (function.bucket(key, table), key));
        Ok(Box::new(LoadedTable {
            chained: Chained::new(table, bucketed),
            searches: &self.searches,
            function,
        }))
    }
}

/// A table that can be searched, independent of the type of its keys.
pub trait Searchable {
    /// Makes some of the searches.
    fn search(&self, range: Range<usize>) -> Searched;

    /// How many searches there are.
    fn searches(&self) -> usize;
}

struct LoadedTable<'a, K> {
    chained: Chained<K>,
    searches: &'a [K],
    function: &'a dyn Function<K>,
}

impl<K: HashedKey> Searchable for LoadedTable<'_, K> {
    fn search(&self, range: Range<usize>) -> Searched {
        self.function.look_up(&self.searches[range], &self.chained)
    }

    fn searches(&self) -> usize {
        self.searches.len()
    }
}
