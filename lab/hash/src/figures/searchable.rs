//! One of a kernel's tables under load: the keys that it stores, and the searches.

use std::collections::HashMap;
use std::ops::Range;

use crate::distribution::chained::{Chained, Searched};
use crate::distribution::red_black::Forest;
use crate::functions::{Function, HashedKey, Registry};
use crate::key::Numeric;
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

impl<K: HashedKey + Numeric> Workload<K> {
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
                <K as HashedKey>::KIND.name()
            ))
        })?;
        Ok(Self { stored, searches })
    }

    /// These searches in a table of these keys.
    pub fn of(stored: Vec<K>, searches: Vec<K>) -> Self {
        Self { stored, searches }
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
        let function = registry.find(name).and_then(K::function).ok_or_else(|| {
            Failure::run(format!(
                "{name} takes no {} keys",
                <K as HashedKey>::KIND.name()
            ))
        })?;
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

impl<K: HashedKey + Numeric> Workload<K> {
    /// The stored keys in a tree for each first part, as for each inode. Whoever searches has the inode at hand: that
    /// costs no search.
    pub fn trees(&self) -> Box<dyn Searchable> {
        let mut owners = HashMap::new();
        let mut owned = |key: &K| {
            let [first, second] = key.parts();
            let next = owners.len();
            (*owners.entry(first).or_insert(next), second)
        };
        let stored: Vec<(usize, u64)> = self.stored.iter().map(&mut owned).collect();
        let searches: Vec<(usize, u64)> = self.searches.iter().map(&mut owned).collect();
        let mut forest = Forest::new(owners.len());
        for (owner, key) in stored {
            forest.insert(owner, key);
        }
        Box::new(LoadedTrees { forest, searches })
    }
}

/// A table that can be searched, independent of the type of its keys.
pub trait Searchable {
    /// Makes some of the searches.
    fn search(&self, range: Range<usize>) -> Searched;

    /// How many searches there are.
    fn searches(&self) -> usize;
}

/// Trees, and the searches: the owner's number and the key in its tree.
struct LoadedTrees {
    forest: Forest,
    searches: Vec<(usize, u64)>,
}

impl Searchable for LoadedTrees {
    fn search(&self, range: Range<usize>) -> Searched {
        let mut searched = Searched::default();
        for &(owner, key) in &self.searches[range] {
            searched.count(self.forest.find(owner, key));
        }
        searched
    }

    fn searches(&self) -> usize {
        self.searches.len()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Page;

    /// Trees find what a table finds.
    #[test]
    fn trees_hit_as_a_table_does() {
        let page = |number: u64| Page {
            inode: number / 100 * 352,
            offset: number % 100 * 4096,
        };
        let stored: Vec<Page> = (0..1000).map(page).collect();
        let absent: Vec<Page> = (1000..2000).map(page).collect();
        let workload = Workload::new(stored, &absent, 0.7, 5000).unwrap();
        let registry = Registry::new(1);
        let table = workload.table(&registry, "page-shift-add", Table::of_bits(8));
        let table = table.unwrap().search(0..5000);
        let trees = workload.trees().search(0..5000);
        assert_eq!((trees.hits, trees.misses), (table.hits, table.misses));
        // A hundred keys of a tree are 6 or 7 levels; the absent ones' inodes have no tree.
        assert!((4.0..7.0).contains(&trees.per_hit()), "{}", trees.per_hit());
        assert_eq!(trees.per_miss(), 0.0);
    }
}
