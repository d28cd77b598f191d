//! The configuration of a CPHash engine.

use nuthatch_engine::{ConfigError, KeyHasher};
use nuthatch_partition::Eviction;
use nuthatch_store::memory::sizes::PAGE;

/// The number of server threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerThreads {
    /// Always this many, and no other thread ever serves (CPHash section 3).
    Fixed(usize),
    /// From `min` to `max` of them own partitions, depending on the load; the others sleep (section 8.1). While the
    /// load is so small that an owner sleeps too, clients serve themselves.
    Adaptive {
        /// At least.
        min: usize,
        /// At most.
        max: usize,
    },
}

/// The configuration of a CPHash engine.
#[derive(Clone)]
pub struct CpHashConfig {
    /// Bytes for elements and buckets together. At least [`MEMORY_MIN`].
    pub memory_limit: usize,
    /// Bytes up to which the limit may be raised while running, and so the address space that is reserved.
    /// Only what is used of it becomes memory. 0, or less than the limit: the limit.
    pub memory_limit_max: usize,
    /// The largest item in bytes (header, key, value), 1 KiB to 1 GiB.
    pub item_size_max: usize,
    /// False: a full store is refused instead of evicting.
    pub evicts: bool,
    /// Which item leaves when a partition is full.
    pub eviction: Eviction,
    /// Partitions: from 2 to [`PARTITIONS_MAX`]. 0: the maximum number of server threads, or fewer, so that each can
    /// hold several of the largest items.
    pub partitions: usize,
    /// Server threads: 1 to the number of partitions.
    pub server_threads: ServerThreads,
    /// A server thread loads what a line of messages needs before it serves the first of them.
    pub look_ahead: bool,
    /// Requests that a client may have under way at a time, answered or not, from 1 to [`WINDOW_MAX`].
    pub window: usize,
    /// The core of the first server thread; the others run on the following cores. `None`: the system chooses.
    pub pin: Option<usize>,
    /// The hash function; a random seed by default.
    pub hasher: KeyHasher,
    /// Items the index has room for at the start. `None`: by the rule of
    /// [`nuthatch_base::hash::sizing::index`].
    pub initial_items: Option<usize>,
}

/// The smallest memory limit, in bytes.
pub const MEMORY_MIN: usize = 1 << 20;
/// The most partitions: a client has a ring for each.
pub const PARTITIONS_MAX: usize = 1024;
/// Requests of a client under way: the paper's thousand.
pub const WINDOW: usize = 1024;
/// The most: the paper's largest batch.
pub const WINDOW_MAX: usize = 8192;
/// The largest item limit.
pub const ITEM_SIZE_LIMIT: usize = 1 << 30;
/// A partition holds at least this many of the largest items, if the configuration does not set the number of
/// partitions.
const ITEMS_A_PARTITION: usize = 4;

impl Default for CpHashConfig {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            memory_limit: 64 * PAGE,
            memory_limit_max: 0,
            item_size_max: PAGE,
            evicts: true,
            eviction: Eviction::Lru,
            partitions: 0,
            server_threads: ServerThreads::Adaptive { min: 1, max: cores },
            look_ahead: true,
            window: WINDOW,
            pin: None,
            hasher: KeyHasher::random(),
            initial_items: None,
        }
    }
}

impl CpHashConfig {
    /// The fewest and the most server threads.
    pub fn threads(&self) -> (usize, usize) {
        match self.server_threads {
            ServerThreads::Fixed(threads) => (threads, threads),
            ServerThreads::Adaptive { min, max } => (min, max),
        }
    }

    /// Whether clients serve themselves while a partition's owner sleeps.
    pub fn self_service(&self) -> bool {
        matches!(self.server_threads, ServerThreads::Adaptive { .. })
    }

    /// How many partitions there will be.
    pub fn partition_count(&self) -> usize {
        if self.partitions != 0 {
            return self.partitions;
        }
        let (_, threads) = self.threads();
        let most = self.memory_limit / self.item_size_max.max(1) / ITEMS_A_PARTITION;
        threads.clamp(2, most.clamp(2, PARTITIONS_MAX))
    }

    /// Checks that an engine with this configuration is possible.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (asked, least) = (self.memory_limit, MEMORY_MIN);
        if asked < least {
            return Err(ConfigError::MemoryTooLow { asked, least });
        }
        if !(1024..=ITEM_SIZE_LIMIT).contains(&self.item_size_max) {
            return Err(ConfigError::ItemSize);
        }
        let partitions = self.partition_count();
        if !(2..=PARTITIONS_MAX).contains(&partitions) {
            return Err(ConfigError::PartitionCount {
                asked: partitions,
                most: PARTITIONS_MAX,
            });
        }
        if !(1..=WINDOW_MAX).contains(&self.window) {
            return Err(ConfigError::Window {
                asked: self.window,
                most: WINDOW_MAX,
            });
        }
        let partition = self.memory_limit / partitions;
        if self.item_size_max > partition / 2 {
            return Err(ConfigError::ItemOverHalfPartition { partition });
        }
        let (least, threads) = self.threads();
        if least == 0 || least > threads {
            return Err(ConfigError::ServerThreads);
        }
        // A fixed number of threads share the partitions out. Where the load decides, the others sleep.
        if threads > partitions && matches!(self.server_threads, ServerThreads::Fixed(_)) {
            return Err(ConfigError::ServerThreadsOverPartitions {
                threads,
                partitions,
            });
        }
        Ok(())
    }
}
