//! The configuration of a chained engine.

use nuthatch_engine::{ConfigError, KeyHasher};
use nuthatch_store::eviction::slab::{PolicyKind, clock, lru};
use nuthatch_store::memory::limits::Limits;
use nuthatch_store::memory::sizes::PAGE;

/// Which operations exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Locks {
    /// One lock for the whole table, as in memcached 1.4 and MemC3's figures.
    Global,
    /// A lock for every few buckets, as in memcached since 1.4.24 and in MemC3's better baseline.
    #[default]
    Buckets,
}

/// The configuration of a chained engine.
#[derive(Clone)]
pub struct ChainedConfig {
    /// Bytes for items, index and recency bits together. At least
    /// [`MEMORY_MIN`](nuthatch_store::memory::limits::MEMORY_MIN).
    pub memory_limit: usize,
    /// Bytes up to which the limit may be raised while running. This much address space is reserved; only what is used
    /// of it becomes memory. 0, or less than the limit: the limit. A limit below 64 MiB can be raised to at most 16,384
    /// of its small pages: with a limit of 1 MiB, to 256 MiB.
    pub memory_limit_max: usize,
    /// The largest item in bytes (header, key, value), 1 KiB to 1 GiB.
    pub item_size_max: usize,
    /// False: a full store is refused instead of evicting.
    pub evicts: bool,
    /// Bytes of the smallest chunk, links included.
    pub chunk_min: usize,
    /// Ratio of neighbouring classes' chunks, over 1.
    pub growth_factor: f64,
    /// Items the index has room for at the start. `None`: one for each KiB of memory.
    pub initial_items: Option<usize>,
    /// Which operations exclude each other.
    pub locks: Locks,
    /// Which item leaves when there is no room: strict LRU by default, a list a class that every hit changes.
    pub eviction: &'static PolicyKind,
    /// The hash function; a random seed by default.
    pub hasher: KeyHasher,
}

/// The smallest chunk of a memcached with its usual options: 48 bytes of header, and 48 for key and
/// value (`-n 48`).
pub const MEMCACHED_CHUNK_MIN: usize = 96;

impl Default for ChainedConfig {
    fn default() -> Self {
        Self {
            memory_limit: 64 * PAGE,
            memory_limit_max: 0,
            item_size_max: PAGE,
            evicts: true,
            chunk_min: MEMCACHED_CHUNK_MIN,
            growth_factor: 1.25,
            initial_items: None,
            locks: Locks::default(),
            eviction: &lru::KIND,
            hasher: KeyHasher::random(),
        }
    }
}

impl ChainedConfig {
    /// The value of `--engine` for these locks, and for this eviction if there is one.
    pub fn name(&self) -> &'static str {
        match (self.locks, *self.eviction == clock::KIND) {
            (Locks::Global, false) => "chained-global",
            (Locks::Global, true) => "chained-global-clock",
            (Locks::Buckets, false) => "chained",
            (Locks::Buckets, true) => "chained-clock",
        }
    }

    /// Checks that an engine with this configuration is possible.
    pub fn check(&self) -> Result<(), ConfigError> {
        let limits = Limits {
            memory_limit: self.memory_limit,
            item_size_max: self.item_size_max,
            chunk_min: self.chunk_min,
            growth_factor: self.growth_factor,
        };
        limits.check()
    }
}
