//! What a store and its items may be sized like.

use super::sizes::PAGE;

/// The smallest memory limit, in bytes.
pub const MEMORY_MIN: usize = if cfg!(loom) { 4 * PAGE } else { 1 << 20 };
/// The smallest item limit.
const ITEM_SIZE_MIN: usize = if cfg!(loom) { 2 * PAGE } else { 1 << 10 };
/// The largest item limit.
pub const ITEM_SIZE_LIMIT: usize = 1 << 30;
/// The largest smallest chunk, in bytes.
const CHUNK_MIN_MAX: usize = PAGE / 4;

/// What every engine on a store is told about memory.
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
    /// An error in words, or nothing.
    pub fn check(&self) -> Result<(), String> {
        if self.memory_limit < MEMORY_MIN {
            let (least, asked) = (MEMORY_MIN >> 10, self.memory_limit >> 10);
            return Err(format!(
                "memory limit: at least {least} KiB, not {asked} KiB"
            ));
        }
        if !(ITEM_SIZE_MIN..=ITEM_SIZE_LIMIT).contains(&self.item_size_max) {
            return Err("item size limit: from 1 KiB to 1 GiB".into());
        }
        if self.item_size_max > self.memory_limit / 2 {
            return Err("item size limit: at most half of the memory limit".into());
        }
        if !self.growth_factor.is_finite() || self.growth_factor <= 1.0 {
            return Err("growth factor: a number over 1".into());
        }
        // A small limit has small pages, which cut it down further.
        if self.chunk_min > CHUNK_MIN_MAX {
            return Err("smallest chunk: at most 256 KiB".into());
        }
        Ok(())
    }
}
