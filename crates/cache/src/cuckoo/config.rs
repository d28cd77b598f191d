//! What a cuckoo engine is made from.

use std::sync::Arc;

use crate::slab::limits::Limits;
pub use crate::slab::limits::{ITEM_SIZE_LIMIT, MEMORY_MIN};
use crate::slab::sizes::{CHUNK_MIN, PAGE};
use crate::{Item, KeyHasher};

/// Why an item left without being asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// To make room.
    Evicted,
    /// Its time was over (or a flush ended it) and its memory was taken back.
    Expired,
}

/// Told of every item that leaves without being asked to. Called on the thread that needed the room,
/// with no lock held (but that of the paper's one writer), so it may call the engine through another
/// handle; it must not block for long. If it panics, the caller sees the panic and memory that it
/// was just gathering is lost. Values in segments (over half a page) come as an empty slice;
/// `item.value_len` tells their length.
pub type Listener = Arc<dyn Fn(Departure, &[u8], &Item, &[u8]) + Send + Sync>;

/// What a cuckoo engine is made from.
#[derive(Clone)]
pub struct CuckooConfig {
    /// Bytes for items, index and recency bits together. At least [`MEMORY_MIN`].
    pub memory_limit: usize,
    /// Bytes up to which the limit may be raised while running (address space is reserved for
    /// it). 0: the limit, or the machine's memory if that is more.
    pub memory_limit_max: usize,
    /// The largest item in bytes (header, key, value), 1 KiB to 1 GiB.
    pub item_size_max: usize,
    /// False: a full store is refused instead of evicting.
    pub evicts: bool,
    /// Bytes of the smallest chunk.
    pub chunk_min: usize,
    /// Ratio of neighbouring classes' chunks, over 1.
    pub growth_factor: f64,
    /// Items the index has room for at the start. `None`: one for each KiB of memory.
    pub initial_items: Option<usize>,
    /// The hash function; a random seed by default.
    pub hasher: KeyHasher,
    /// Told of evictions.
    pub listener: Option<Listener>,
}

impl Default for CuckooConfig {
    fn default() -> Self {
        Self {
            memory_limit: 64 * PAGE,
            memory_limit_max: 0,
            item_size_max: PAGE,
            evicts: true,
            chunk_min: CHUNK_MIN,
            growth_factor: 1.25,
            initial_items: None,
            hasher: KeyHasher::random(),
            listener: None,
        }
    }
}

impl CuckooConfig {
    /// An error in words, or nothing.
    pub fn check(&self) -> Result<(), String> {
        let limits = Limits {
            memory_limit: self.memory_limit,
            item_size_max: self.item_size_max,
            chunk_min: self.chunk_min,
            growth_factor: self.growth_factor,
        };
        limits.check()
    }
}
