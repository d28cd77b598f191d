//! The configuration of a LockHash engine.

use super::PARTITIONS;
use crate::Eviction;
use crate::memory::{BLOCK, MEMORY_MAX};
use nuthatch_engine::{ConfigError, KeyHasher};

/// The configuration of a LockHash engine.
#[derive(Clone)]
pub struct LockHashConfig {
    /// Bytes for elements, buckets and partitions together. At least [`MEMORY_MIN`].
    pub memory_limit: usize,
    /// Bytes up to which the limit may be raised while running, and so the address space that is reserved.
    /// Only what is used of it becomes memory. 0, or less than the limit: the limit.
    pub memory_limit_max: usize,
    /// The largest item in bytes (header, key, value), 1 KiB to 1 GiB.
    pub item_size_max: usize,
    /// False: a full store is refused instead of evicting.
    pub evicts: bool,
    /// Which item leaves when there is no room.
    pub eviction: Eviction,
    /// Partitions, each behind a lock. `None`: the paper's 4096, or as many as can hold the largest item.
    pub partitions: Option<u32>,
    /// The hash function; a random seed by default.
    pub hasher: KeyHasher,
    /// Items the index has room for at the start. `None`: by the rule of
    /// [`nuthatch_base::hash::sizing::index`].
    pub initial_items: Option<usize>,
}

/// The smallest memory limit, in bytes.
pub const MEMORY_MIN: usize = 1 << 20;
/// The largest item limit, in bytes.
pub const ITEM_SIZE_LIMIT: usize = 1 << 30;
/// Bytes that a partition has on average, at least, if the configuration does not set the number of partitions.
const SHARE_MIN: usize = 64 * BLOCK;

impl Default for LockHashConfig {
    fn default() -> Self {
        Self {
            memory_limit: 64 << 20,
            memory_limit_max: 0,
            item_size_max: 1 << 20,
            evicts: true,
            eviction: Eviction::Lru,
            partitions: None,
            hasher: KeyHasher::random(),
            initial_items: None,
        }
    }
}

impl LockHashConfig {
    /// Checks that an engine with this configuration is possible.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (asked, least) = (self.memory_limit, MEMORY_MIN);
        if asked < least {
            return Err(ConfigError::MemoryTooLow { asked, least });
        }
        if self.memory_limit.max(self.memory_limit_max) > MEMORY_MAX {
            return Err(ConfigError::MemoryTooHigh { most: MEMORY_MAX });
        }
        if !(1024..=ITEM_SIZE_LIMIT).contains(&self.item_size_max) {
            return Err(ConfigError::ItemSize);
        }
        if self.item_size_max > self.memory_limit / 2 {
            return Err(ConfigError::ItemOverHalf);
        }
        let most = (self.memory_limit / 4 / BLOCK).min(1 << 20) as u32;
        match self.partitions {
            Some(asked) if !(1..=most).contains(&asked) => {
                Err(ConfigError::PartitionBlocks { most })
            }
            _ => Ok(()),
        }
    }

    /// How many partitions there will be.
    pub fn partition_count(&self) -> u32 {
        self.partitions.unwrap_or_else(|| {
            let share = self.item_size_max.max(SHARE_MIN);
            ((self.memory_limit / share) as u32).clamp(1, PARTITIONS)
        })
    }
}
