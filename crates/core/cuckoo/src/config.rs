//! The configuration of a cuckoo engine.

use std::io;

use nuthatch_base::memory::Source;
use nuthatch_engine::{CommonSettings, ConfigError, KeyHasher};
pub use nuthatch_store::eviction::log::{LogPolicyKind, POLICIES};
use nuthatch_store::eviction::slab::clock;
use nuthatch_store::log::Log;
use nuthatch_store::memory::limits::Limits;
pub use nuthatch_store::memory::limits::{ITEM_SIZE_LIMIT, MEMORY_MIN};
use nuthatch_store::memory::sizes::{CHUNK_MIN, PAGE, Sizes};
pub use nuthatch_store::reclaim::removals::{Callback, Listener, RemovalCause};
use nuthatch_store::slab::Slab;
use nuthatch_store::store::Store;

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
    /// Which items leave a log when memory is short. In size classes CLOCK decides.
    pub eviction: &'static LogPolicyKind,
    /// Bytes of the smallest chunk.
    pub chunk_min: usize,
    /// Ratio of neighbouring classes' chunks, over 1.
    pub growth_factor: f64,
    /// Items the index has room for at the start. `None`: one for each 4 KiB of memory; see
    /// [`nuthatch_base::hash::sizing::index`].
    pub initial_items: Option<usize>,
    /// The hash function; a random seed by default.
    pub hasher: KeyHasher,
    /// Other processes can read the memory ([`Engine::sharing`](nuthatch_engine::Engine::sharing)). Then the limit cannot
    /// be raised (`memory_limit_max` is ignored), memory that was used is kept when the limit is lowered, and the hash
    /// function gets a seed of its own in place of `hasher`.
    pub shared: bool,
    /// Is told of values that leave.
    pub listener: Option<Listener>,
}

impl Default for CuckooConfig {
    fn default() -> Self {
        Self {
            memory_limit: 64 * PAGE,
            memory_limit_max: 0,
            item_size_max: PAGE,
            evicts: true,
            eviction: LogPolicyKind::default_kind(),
            chunk_min: CHUNK_MIN,
            growth_factor: 1.25,
            initial_items: None,
            hasher: KeyHasher::random(),
            shared: false,
            listener: None,
        }
    }
}

impl From<&CommonSettings> for CuckooConfig {
    fn from(settings: &CommonSettings) -> Self {
        let default = Self::default();
        Self {
            memory_limit: settings.memory_limit,
            memory_limit_max: settings.limit_max(usize::MAX),
            item_size_max: settings.item_size_max(1),
            evicts: settings.evicts,
            chunk_min: settings.chunk_min.unwrap_or(default.chunk_min),
            growth_factor: settings.growth_factor,
            initial_items: settings.initial_items,
            shared: settings.shared,
            ..default
        }
    }
}

impl CuckooConfig {
    /// A log for this configuration, with memory from `source`.
    pub fn log(&self, source: Source) -> io::Result<Store<Log>> {
        let sizes = self.sizes(Sizes::for_log);
        let limit_max = self.limit_max(&sizes);
        Store::<Log>::new_in(source, self.memory_limit, limit_max, sizes, self.eviction)
    }

    /// Size classes for this configuration, with CLOCK.
    pub fn size_classes(&self) -> io::Result<Store<Slab>> {
        let sizes = self.sizes(Sizes::new);
        let limit_max = self.limit_max(&sizes);
        Store::<Slab>::new(self.memory_limit, limit_max, sizes, 0, &clock::KIND)
    }

    fn sizes(&self, sizes: fn(usize, usize, f64) -> Sizes) -> Sizes {
        sizes(self.memory_limit, self.chunk_min, self.growth_factor)
    }

    /// Bytes to which the limit may be raised, with such pages.
    fn limit_max(&self, sizes: &Sizes) -> usize {
        // A file of shared memory is no larger than the limit: whoever maps it can have all of it filled.
        if self.shared {
            return self.memory_limit;
        }
        sizes
            .limit_max(self.memory_limit_max)
            .max(self.memory_limit)
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
