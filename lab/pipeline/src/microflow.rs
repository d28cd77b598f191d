//! The interface of the microflow cache, and its implementations: the library's tables, rivals, or none.

use hashbrown::HashMap;
use nuthatch_base::hash::KeyHasher;
use nuthatch_flow::{Entry, FlowHandle};
use nuthatch_workload::Seed;
use rand::Rng;
use rand::rngs::SmallRng;

/// The first stage of the pipeline: a cache of values under the hashes of keys.
pub trait FlowCache: Send {
    /// Looks keys up by their hashes. For key `i`, bit `i % 64` of `hits[i / 64]` says whether it was
    /// found, and `values[i]` is its value if it was. `values` is as long as `hashes`, and `hits` has
    /// a bit for each.
    fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]);

    /// Adds a key, or gives it another value. Values are at most [`FlowCache::value_max`].
    fn insert(&mut self, hash: u64, value: u64);

    /// The largest value that it can keep.
    fn value_max(&self) -> u64;

    /// Slots in use, if it knows.
    fn occupied(&self) -> Option<u64> {
        None
    }

    /// Keys that hits or inserts moved to another slot so far.
    fn moves(&self) -> u64 {
        0
    }
}

impl FlowCache for nuthatch_flow::FlowCache {
    fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) {
        self.lookup_many(hashes, values, hits);
    }

    fn insert(&mut self, hash: u64, value: u64) {
        let inserted = self.insert(hash, value);
        debug_assert!(inserted.is_ok(), "a value that is too wide for the entry");
    }

    fn value_max(&self) -> u64 {
        self.entry().value_max()
    }

    fn occupied(&self) -> Option<u64> {
        Some(self.count())
    }

    fn moves(&self) -> u64 {
        self.moves()
    }
}

/// One thread's handle of a table that several threads share.
pub struct SharedCache {
    /// The handle.
    pub handle: FlowHandle,
    /// The format of the table's entries.
    pub entry: Entry,
}

impl FlowCache for SharedCache {
    fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) {
        self.handle.lookup_many(hashes, values, hits);
    }

    fn insert(&mut self, hash: u64, value: u64) {
        let inserted = self.handle.insert(hash, value);
        debug_assert!(inserted.is_ok(), "a value that is too wide for the entry");
    }

    fn value_max(&self) -> u64 {
        self.entry.value_max()
    }

    fn moves(&self) -> u64 {
        self.handle.moves()
    }
}

/// A rival: DPDK's table, which compares whole keys. Here the hash is the key.
impl FlowCache for nuthatch_rte_hash::RteHash {
    fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) {
        Self::lookup_many(self, hashes, hashes, values, hits);
    }

    fn insert(&mut self, hash: u64, value: u64) {
        Self::insert(self, hash, hash, value);
    }

    fn value_max(&self) -> u64 {
        u64::MAX
    }
}

/// No cache: every packet goes on to the next stage.
#[derive(Clone, Copy, Debug)]
pub struct NoCache;

impl FlowCache for NoCache {
    fn lookup_many(&mut self, _: &[u64], _: &mut [u64], hits: &mut [u64]) {
        hits.fill(0);
    }

    fn insert(&mut self, _: u64, _: u64) {}

    fn value_max(&self) -> u64 {
        u64::MAX
    }
}

/// A rival: hashbrown's map with as many keys as a table of ours has entries. When it is full, a random key is evicted.
#[derive(Clone, Debug)]
pub struct MapCache {
    /// Value, and place in `keys`, by hash. The key is a hash already, so it is not hashed again.
    map: HashMap<u64, (u64, usize), PassHash>,
    keys: Vec<u64>,
    limit: usize,
    random: SmallRng,
}

impl MapCache {
    /// For `limit` keys, at least 1.
    pub fn new(limit: usize, seed: u64) -> Result<Self, OutOfMemory> {
        let mut cache = Self {
            map: HashMap::with_hasher(PassHash),
            keys: Vec::new(),
            limit: limit.max(1),
            random: Seed(seed).thread(0),
        };
        cache
            .map
            .try_reserve(cache.limit)
            .map_err(|_| OutOfMemory)?;
        cache
            .keys
            .try_reserve_exact(cache.limit)
            .map_err(|_| OutOfMemory)?;
        Ok(cache)
    }
}

/// The system has no memory for this many keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("no memory for a map of so many keys")
    }
}

impl std::error::Error for OutOfMemory {}

impl FlowCache for MapCache {
    fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) {
        for (chunk, (hashes, values)) in hits
            .iter_mut()
            .zip(hashes.chunks(64).zip(values.chunks_mut(64)))
        {
            *chunk = 0;
            for (bit, (hash, value)) in hashes.iter().zip(values).enumerate() {
                if let Some(&(found, _)) = self.map.get(hash) {
                    *value = found;
                    *chunk |= 1 << bit;
                }
            }
        }
    }

    fn insert(&mut self, hash: u64, value: u64) {
        if let Some((old, _)) = self.map.get_mut(&hash) {
            *old = value;
            return;
        }
        let place = if self.keys.len() < self.limit {
            self.keys.push(hash);
            self.keys.len() - 1
        } else {
            let place = self.random.random_range(0..self.limit);
            let victim = std::mem::replace(&mut self.keys[place], hash);
            self.map.remove(&victim);
            place
        };
        self.map.insert(hash, (value, place));
    }

    fn value_max(&self) -> u64 {
        u64::MAX
    }

    fn occupied(&self) -> Option<u64> {
        Some(self.keys.len() as u64)
    }
}

/// Takes a `u64` for its own hash.
#[derive(Clone, Copy, Debug, Default)]
struct PassHash;

impl std::hash::BuildHasher for PassHash {
    type Hasher = PassHasher;

    fn build_hasher(&self) -> PassHasher {
        PassHasher(0)
    }
}

/// See [`PassHash`].
struct PassHasher(u64);

impl std::hash::Hasher for PassHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only for keys other than `u64`, of which there are none here.
        self.0 = KeyHasher::seeded(self.0).hash(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cache: &mut impl FlowCache, hash: u64) -> Option<u64> {
        let (mut values, mut hits) = ([0], [0]);
        cache.lookup_many(&[hash], &mut values, &mut hits);
        (hits[0] == 1).then_some(values[0])
    }

    #[test]
    fn the_rival_keeps_as_many_as_it_may() {
        let mut cache = MapCache::new(8, 1).unwrap();
        for hash in 0..100 {
            cache.insert(hash, hash + 1);
            assert_eq!(found(&mut cache, hash), Some(hash + 1));
        }
        cache.insert(99, 7);
        assert_eq!(found(&mut cache, 99), Some(7));
        let kept = (0..100).filter(|&hash| found(&mut cache, hash).is_some());
        assert_eq!(kept.count(), 8);
        assert_eq!((cache.map.len(), cache.keys.len()), (8, 8));
    }

    #[test]
    fn the_rival_answers_bursts_of_any_length() {
        let mut cache = MapCache::new(1000, 1).unwrap();
        (0..1000)
            .step_by(3)
            .for_each(|hash| cache.insert(hash, hash));
        let hashes: Vec<u64> = (0..200).collect();
        let (mut values, mut hits) = (vec![0; 200], vec![u64::MAX; 4]);
        cache.lookup_many(&hashes, &mut values, &mut hits);
        for hash in 0..200 {
            let hit = hits[hash / 64] >> (hash % 64) & 1 == 1;
            assert_eq!(hit, hash % 3 == 0);
            assert!(!hit || values[hash] == hash as u64);
        }
    }
}
