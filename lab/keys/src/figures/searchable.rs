//! One of a kernel's tables under load: keys stored, and keys asked for.

use std::ops::Range;

use nuthatch_hash::distribution::chained::{Chained, Searched};
use nuthatch_hash::functions::{Function, HashedKey, Registry};
use nuthatch_hash::table::Table;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::Failure;

/// Keys stored, and those that are asked for.
#[derive(Clone, Debug)]
pub struct Load<K> {
    stored: Vec<K>,
    searches: Vec<K>,
}

impl<K: HashedKey + 'static> Load<K> {
    /// Stores keys, and asks for `searches`: each by chance one of those that are there, with a chance
    /// of `hit_rate`, else one of those that are not.
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
            Failure::data(format!(
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

    /// A table of this size under the function of this name, with this load.
    pub fn table<'a>(
        &'a self,
        registry: &'a Registry,
        name: &str,
        table: Table,
    ) -> Result<Box<dyn Searchable + 'a>, Failure> {
        let function = registry
            .find(name)
            .and_then(K::function)
            .ok_or_else(|| Failure::data(format!("{name} takes no {} keys", K::KIND.name())))?;
        let bucketed = self
            .stored
            .iter()
            .map(|&key| (function.bucket(key, table), key));
        Ok(Box::new(Loaded {
            chained: Chained::new(table, bucketed),
            searches: &self.searches,
            function,
        }))
    }
}

/// A table that can be searched, whatever its keys are.
pub trait Searchable {
    /// Makes some of the searches.
    fn search(&self, range: Range<usize>) -> Searched;

    /// How many searches there are.
    fn searches(&self) -> usize;
}

struct Loaded<'a, K> {
    chained: Chained<K>,
    searches: &'a [K],
    function: &'a dyn Function<K>,
}

impl<K: HashedKey> Searchable for Loaded<'_, K> {
    fn search(&self, range: Range<usize>) -> Searched {
        self.function.look_up(&self.searches[range], &self.chained)
    }

    fn searches(&self) -> usize {
        self.searches.len()
    }
}
