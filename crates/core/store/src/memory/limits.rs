//! The limits of a store: the memory that it may use, and the sizes of its items.

use super::sizes::PAGE;
use nuthatch_engine::ConfigError;

/// The smallest memory limit, in bytes.
pub const MEMORY_MIN: usize = if cfg!(loom) { 4 * PAGE } else { 1 << 20 };
/// The smallest item limit.
const ITEM_SIZE_MIN: usize = if cfg!(loom) { 2 * PAGE } else { 1 << 10 };
/// The largest item limit.
pub const ITEM_SIZE_LIMIT: usize = 1 << 30;
/// The largest value that the smallest chunk may have, in bytes.
const CHUNK_MIN_MAX: usize = PAGE / 4;

/// The settings for memory, the same for every engine on a store.
pub struct Limits {
    /// Bytes for items, index and recency bits together.
    pub memory_limit: usize,
    /// The largest item in bytes (header, key, value).
    pub item_size_max: usize,
    /// Bytes of the smallest chunk.
    pub chunk_min: usize,
    /// Ratio of neighbouring classes' chunks.
    pub growth_factor: f64,
}

impl Limits {
    /// Checks that a store with these limits is possible.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (asked, least) = (self.memory_limit, MEMORY_MIN);
        if asked < least {
            return Err(ConfigError::MemoryTooLow { asked, least });
        }
        if !(ITEM_SIZE_MIN..=ITEM_SIZE_LIMIT).contains(&self.item_size_max) {
            return Err(ConfigError::ItemSize);
        }
        if self.item_size_max > self.memory_limit / 2 {
            return Err(ConfigError::ItemOverHalf);
        }
        if !self.growth_factor.is_finite() || self.growth_factor <= 1.0 {
            return Err(ConfigError::GrowthFactor);
        }
        // A small limit has small pages, which cut it down further.
        if self.chunk_min > CHUNK_MIN_MAX {
            return Err(ConfigError::ChunkMin);
        }
        Ok(())
    }
}
