//! Hash functions: the paper's, and later ones.
//!
//! One file a family, as plain functions from a typed key and a [`Table`] to a bucket. [`Registry`]
//! knows them all by name; [`Function`] is one of them, made for one type of key.

pub mod buffer_cache;
pub mod bytes;
pub mod dentry;
pub mod golden;
pub mod inode;
pub mod jhash;
pub mod multiplicative;
pub mod page_cache;
mod registry;
pub mod table_driven;
pub mod task;
mod word;

use std::hint::black_box;

pub use registry::{DEFAULT, Entry, HashedKey, Registry, Sizes};

use crate::distribution::chained::{Chained, Searched};
use crate::table::Table;

/// A hash function over keys of type `K`.
///
/// The loops are here so that each is compiled for its function, with the function inside it: chosen
/// by name, a function costs one indirect call for many keys.
pub trait Function<K: Copy>: Send + Sync {
    /// The key's bucket, below `table.buckets()`.
    fn bucket(&self, key: K, table: Table) -> u64;

    /// All 64 bits, if the function makes 64 good ones.
    fn hash(&self, key: K) -> Option<u64>;

    /// Counts the keys of each bucket. `counts` has `table.buckets()` places.
    fn count(&self, keys: &[K], table: Table, counts: &mut [u32]) {
        for &key in keys {
            let count = &mut counts[self.bucket(key, table) as usize];
            *count = count.saturating_add(1);
        }
    }

    /// Computes the bucket of each key and discards it: the cost of the function alone. Keys are processed one at a
    /// time: vectorised code for eight keys would measure something that no lookup does.
    fn compute(&self, keys: &[K], table: Table) {
        for &key in keys {
            black_box(self.bucket(key, table));
        }
    }

    /// Looks each key up: the cost of the function where it overlaps the cache misses of the search.
    fn look_up(&self, keys: &[K], chained: &Chained<K>) -> Searched
    where
        K: PartialEq,
    {
        let table = chained.table();
        let mut searched = Searched::default();
        for &key in keys {
            searched.count(chained.find(self.bucket(key, table), key));
        }
        searched
    }
}

/// A function that gives a bucket and nothing more.
pub(crate) struct ToBucket<F>(pub F);

impl<K: Copy, F: Fn(K, Table) -> u64 + Send + Sync> Function<K> for ToBucket<F> {
    #[inline(always)]
    fn bucket(&self, key: K, table: Table) -> u64 {
        (self.0)(key, table)
    }

    fn hash(&self, _: K) -> Option<u64> {
        None
    }
}

/// A function that gives 64 good bits, cut to the table by [`Table::cut`].
pub(crate) struct ToHash<F>(pub F);

impl<K: Copy, F: Fn(K) -> u64 + Send + Sync> Function<K> for ToHash<F> {
    #[inline(always)]
    fn bucket(&self, key: K, table: Table) -> u64 {
        table.cut((self.0)(key))
    }

    fn hash(&self, key: K) -> Option<u64> {
        Some((self.0)(key))
    }
}
