//! What a chained engine is made from.

use nuthatch_engine::{ConfigError, KeyHasher};
use nuthatch_store::slab::limits::Limits;
use nuthatch_store::slab::sizes::PAGE;

/// Which operations exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Locks {
    /// One lock for the whole table, as in memcached 1.4 and MemC3's figures.
    Global,
    /// A lock for every few buckets, as in memcached since 1.4.24 and in MemC3's better baseline.
    #[default]
    Buckets,
}

/// Which item leaves when memory is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ChainedEviction {
    /// The least recently used item of the size class, exactly: a list a class, under a lock of its
    /// own, that every hit changes.
    #[default]
    Lru,
    /// An item not used since the hand of the size class last came by (MemC3 section 4): a bit an
    /// item, and no lock.
    Clock,
}

/// What a chained engine is made from.
#[derive(Clone)]
pub struct ChainedConfig {
    /// Bytes for items, index and recency bits together. At least
    /// [`MEMORY_MIN`](nuthatch_store::slab::limits::MEMORY_MIN).
    pub memory_limit: usize,
    /// Bytes up to which the limit may be raised while running, and so the address space that is reserved. Only
    /// what is used of it becomes memory. 0, or less than the limit: the limit. Of a limit below 64 MiB at most
    /// 16,384 of its small pages, which is 256 MiB of a limit of 1 MiB.
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
    /// Which item leaves when there is no room.
    pub eviction: ChainedEviction,
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
            eviction: ChainedEviction::default(),
            hasher: KeyHasher::random(),
        }
    }
}

impl ChainedConfig {
    /// The name that `--engine` takes for these locks and this eviction.
    pub fn name(&self) -> &'static str {
        match (self.locks, self.eviction) {
            (Locks::Global, ChainedEviction::Lru) => "chained-global",
            (Locks::Global, ChainedEviction::Clock) => "chained-global-clock",
            (Locks::Buckets, ChainedEviction::Lru) => "chained",
            (Locks::Buckets, ChainedEviction::Clock) => "chained-clock",
        }
    }

    /// Locks and eviction of a name, the inverse of [`ChainedConfig::name`].
    pub fn design(name: &str) -> Option<(Locks, ChainedEviction)> {
        match name {
            "chained-global" => Some((Locks::Global, ChainedEviction::Lru)),
            "chained-global-clock" => Some((Locks::Global, ChainedEviction::Clock)),
            "chained" => Some((Locks::Buckets, ChainedEviction::Lru)),
            "chained-clock" => Some((Locks::Buckets, ChainedEviction::Clock)),
            _ => None,
        }
    }

    /// Whether there can be such an engine.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_designs_are_each_other() {
        for locks in [Locks::Global, Locks::Buckets] {
            for eviction in [ChainedEviction::Lru, ChainedEviction::Clock] {
                let config = ChainedConfig {
                    locks,
                    eviction,
                    ..ChainedConfig::default()
                };
                assert_eq!(
                    ChainedConfig::design(config.name()),
                    Some((locks, eviction))
                );
            }
        }
        assert_eq!(ChainedConfig::design("cuckoo"), None);
    }
}
