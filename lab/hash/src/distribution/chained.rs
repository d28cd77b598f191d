//! A table of chains, as in the paper's kernels, whose searches are counted.
//!
//! A new object goes to the head of its chain (last in, first out); objects lie in memory in the
//! order of their insertion, each in a place of its own, so that a search misses the processor's
//! caches as it would in a kernel.

use crate::table::Table;

/// No object.
const NONE: u32 = u32::MAX;

/// An object: the key, the next in its chain, and padding for its other fields, so that two never share a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Object<K> {
    key: K,
    next: u32,
}

/// A table of chains.
#[derive(Clone, Debug)]
pub struct Chained<K> {
    table: Table,
    heads: Vec<u32>,
    objects: Vec<Object<K>>,
}

/// How one search ended, and after how many objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Found, after this many objects, the found one included.
    Hit(u32),
    /// Not found, after this many objects.
    Miss(u32),
}

/// Searches counted: hits and misses apart, since a miss walks the whole chain (section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// Searches that found.
    pub hits: u64,
    /// Searches that did not.
    pub misses: u64,
    /// Objects examined by hits.
    pub hit_objects: u64,
    /// Objects examined by misses.
    pub miss_objects: u64,
}

impl Searched {
    /// Adds one.
    #[inline(always)]
    pub fn count(&mut self, search: Search) {
        match search {
            Search::Hit(objects) => {
                self.hits += 1;
                self.hit_objects += u64::from(objects);
            }
            Search::Miss(objects) => {
                self.misses += 1;
                self.miss_objects += u64::from(objects);
            }
        }
    }

    /// Objects a hit, on average; 0 without hits.
    pub fn per_hit(&self) -> f64 {
        self.hit_objects as f64 / self.hits.max(1) as f64
    }

    /// Objects a miss, on average; 0 without misses.
    pub fn per_miss(&self) -> f64 {
        self.miss_objects as f64 / self.misses.max(1) as f64
    }

    /// Objects a search, on average.
    pub fn per_search(&self) -> f64 {
        let searches = (self.hits + self.misses).max(1);
        (self.hit_objects + self.miss_objects) as f64 / searches as f64
    }
}

impl<K: Copy + PartialEq> Chained<K> {
    /// A table of the given keys, each with its bucket. Keys are taken as they are: two equal ones are
    /// two objects. Panics if there are 2^32 - 1 of them or more, or if a bucket is not of this table.
    pub fn new(table: Table, keys: impl IntoIterator<Item = (u64, K)>) -> Self {
        let mut chained = Self {
            table,
            heads: vec![NONE; table.buckets() as usize],
            objects: Vec::new(),
        };
        for (bucket, key) in keys {
            let number = chained.objects.len() as u32;
            assert!(number < NONE, "at most 2^32 - 1 objects");
            let head = &mut chained.heads[bucket as usize];
            chained.objects.push(Object { key, next: *head });
            *head = number;
        }
        chained
    }

    /// Its size.
    pub fn table(&self) -> Table {
        self.table
    }

    /// Looks for a key in a bucket.
    #[inline(always)]
    pub fn find(&self, bucket: u64, key: K) -> Search {
        let mut next = self.heads[bucket as usize];
        let mut objects = 0;
        // At most as many steps as there are objects: a chain never comes back to itself, since each
        // object points to an earlier one.
        while next != NONE {
            let object = &self.objects[next as usize];
            objects += 1;
            if object.key == key {
                return Search::Hit(objects);
            }
            next = object.next;
        }
        Search::Miss(objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_base::spread::Histogram;

    #[test]
    fn last_in_first_out() {
        let table = Table::new(2).unwrap();
        let chained = Chained::new(table, [(0, 'a'), (0, 'b'), (1, 'c'), (0, 'd')]);
        assert_eq!(chained.find(0, 'd'), Search::Hit(1));
        assert_eq!(chained.find(0, 'a'), Search::Hit(3));
        assert_eq!(chained.find(1, 'c'), Search::Hit(1));
        assert_eq!(chained.find(0, 'x'), Search::Miss(3));
        assert_eq!(chained.find(1, 'x'), Search::Miss(1));
    }

    #[test]
    fn counted_searches_are_those_of_the_histogram() {
        let table = Table::new(100).unwrap();
        let keys: Vec<u64> = (0..1000).collect();
        let bucket = |key: u64| key * key % 100;
        let chained = Chained::new(table, keys.iter().map(|&key| (bucket(key), key)));
        let mut counts = vec![0; 100];
        let mut searched = Searched::default();
        for &key in &keys {
            counts[bucket(key) as usize] += 1;
            searched.count(chained.find(bucket(key), key));
        }
        let histogram = Histogram::of_counts(counts);
        assert_eq!(searched.hits, 1000);
        assert!((searched.per_hit() - histogram.searched_hit()).abs() < 1e-9);
    }

    #[test]
    fn counts_are_kept_apart() {
        let mut searched = Searched::default();
        for search in [Search::Hit(2), Search::Hit(4), Search::Miss(9)] {
            searched.count(search);
        }
        assert_eq!((searched.per_hit(), searched.per_miss()), (3.0, 9.0));
        assert_eq!(searched.per_search(), 5.0);
        assert_eq!(Searched::default().per_search(), 0.0);
    }
}
