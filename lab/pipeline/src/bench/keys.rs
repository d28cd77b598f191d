//! The keys of a bench: drawn from a working set, a block at a time, before the clock starts.

use nuthatch_base::hash::KeyHasher;
use nuthatch_workload::{Distribution, Popularity, Seed};
use rand::rngs::SmallRng;

use crate::microflow::FlowCache;

/// Keys that are drawn before the clock starts.
pub(crate) const BLOCK: usize = 4096;

/// Rounds of a bench, at most: each has a generator of its own.
pub(crate) const ROUNDS_MAX: u64 = 1000;

/// Keys of a working set, a block at a time.
pub(crate) struct Keys {
    popularity: Popularity,
    value_max: u64,
    hasher: KeyHasher,
    seed: u64,
    random: SmallRng,
    /// The hashes of the block.
    pub hashes: Vec<u64>,
    /// The values of its keys.
    pub values: Vec<u64>,
}

impl Keys {
    pub fn new(count: u64, distribution: Distribution, value_max: u64, seed: u64) -> Self {
        Self {
            popularity: Popularity::new(distribution, count),
            value_max,
            hasher: KeyHasher::seeded(seed),
            seed,
            random: Seed(seed).thread(0),
            hashes: Vec::with_capacity(BLOCK),
            values: Vec::with_capacity(BLOCK),
        }
    }

    /// Begins a round: the same keys for all designs, others for each thread. Before the first round the keys are those
    /// of the warm-up.
    pub fn begin(&mut self, round: u64, thread: u64) {
        let stream = 1 + round + thread * ROUNDS_MAX;
        self.random = Seed(self.seed).thread(stream as usize);
    }

    /// The number of the next key.
    pub fn next_key(&mut self) -> u64 {
        self.popularity.draw(&mut self.random)
    }

    /// The hash of a key.
    pub fn hash(&self, key: u64) -> u64 {
        self.hasher.hash(&key.to_le_bytes())
    }

    /// The key of a rank: that of the first is requested most.
    pub fn key_of_rank(&self, rank: u64) -> u64 {
        self.popularity.key_of_rank(rank)
    }

    /// Draws a block of `count` keys.
    pub fn draw(&mut self, count: usize) {
        self.hashes.clear();
        self.values.clear();
        for _ in 0..count {
            let key = self.next_key();
            self.hashes.push(self.hash(key));
            // All bits of the key take part, so that two keys of the same tag hardly ever have the same value.
            self.values.push((key ^ key >> 16) & self.value_max);
        }
    }
}

/// Buffers for the results of a batch.
#[derive(Default)]
pub(crate) struct LookupBuffers {
    values: Vec<u64>,
    hits: Vec<u64>,
}

impl LookupBuffers {
    #[inline(always)]
    pub fn lookup(&mut self, cache: &mut dyn FlowCache, hashes: &[u64]) {
        self.values.resize(hashes.len(), 0);
        self.hits.resize(hashes.len().div_ceil(64), 0);
        cache.lookup_many(hashes, &mut self.values, &mut self.hits);
    }

    #[inline(always)]
    pub fn found(&self, index: usize) -> Option<u64> {
        let hit = self.hits[index / 64] >> (index % 64) & 1 == 1;
        hit.then(|| self.values[index])
    }
}
