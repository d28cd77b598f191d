//! The configuration of a cuckoo engine.

use nuthatch_engine::{ConfigError, KeyHasher};
use nuthatch_store::memory::limits::Limits;
pub use nuthatch_store::memory::limits::{ITEM_SIZE_LIMIT, MEMORY_MIN};
use nuthatch_store::memory::sizes::{CHUNK_MIN, PAGE};
pub use nuthatch_store::reclaim::removals::{Callback, Listener, RemovalCause};

/// The configuration of a cuckoo engine.
#[derive(Clone)]
pub struct CuckooConfig {
    /// Bytes for items, index and recency bits together. At least [`MEMORY_MIN`].
    pub memory_limit: usize,
    /// Bytes up to which the limit may be raised while running. This much address space is reserved; only what is used
    /// of it becomes memory. 0, or less than the limit: the limit. A limit below 64 MiB can be raised to at most 16,384
    /// of its small pages: with a limit of 1 MiB, to 256 MiB.
    pub memory_limit_max: usize,
    /// The largest item in bytes (header, key, value), 1 KiB to 1 GiB.
    pub item_size_max: usize,
    /// False: a full store is refused instead of evicting.
    pub evicts: bool,
    /// Where items lie, and which of them leave when memory is short.
    pub eviction: CuckooEviction,
    /// Bytes of the smallest chunk.
    pub chunk_min: usize,
    /// Ratio of neighbouring classes' chunks, over 1.
    pub growth_factor: f64,
    /// Items the index has room for at the start. `None`: one for each KiB of memory; see
    /// [`nuthatch_base::hash::sizing::index`].
    pub initial_items: Option<usize>,
    /// The hash function; a random seed by default.
    pub hasher: KeyHasher,
    /// Is told of values that leave.
    pub listener: Option<Listener>,
}

/// Where items lie, and which of them leave when memory is short. The paper's design has [`CuckooEviction::Clock`]
/// only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CuckooEviction {
    /// In a log of pages, with two queues and ghosts: see [`nuthatch_store::eviction::log::s3_fifo`].
    #[default]
    S3Fifo,
    /// In size classes, by CLOCK (MemC3 section 4).
    Clock,
}

impl Default for CuckooConfig {
    fn default() -> Self {
        Self {
            memory_limit: 64 * PAGE,
            memory_limit_max: 0,
            item_size_max: PAGE,
            evicts: true,
            eviction: CuckooEviction::default(),
            chunk_min: CHUNK_MIN,
            growth_factor: 1.25,
            initial_items: None,
            hasher: KeyHasher::random(),
            listener: None,
        }
    }
}

impl CuckooConfig {
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
