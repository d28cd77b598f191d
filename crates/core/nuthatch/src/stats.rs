//! [`Stats`]: counters and sizes of a cache.

use nuthatch_engine::stats::EngineStats;

/// Counters since the cache was made, and sizes now: sums over all threads, which are not taken at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Items in the cache. Expired ones count until their memory is taken back.
    pub entry_count: u64,
    /// Bytes of these items: header, key and value.
    pub weighted_size: u64,
    /// The limit in bytes of all that grows with the data.
    pub memory_limit: u64,
    /// Bytes taken of it: items with the room between them, index, bookkeeping.
    pub memory_used: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
    /// Reads that found a value: [`Cache::get`](crate::Cache::get) and its kin, each key of a batch, and
    /// [`Cache::get_or_insert_with`](crate::Cache::get_or_insert_with) and its kin, each call once.
    pub hits: u64,
    /// Reads that found none.
    pub misses: u64,
    /// Searches for a key by the index, of any operation: a get is one, and a store is one.
    pub lookups: u64,
    /// Lookups that found an item, expired ones included.
    pub lookup_hits: u64,
    /// Items stored.
    pub insertions: u64,
    /// Items removed to make room.
    pub evictions: u64,
    /// Items whose memory was taken back because they had expired, or because an
    /// [`invalidate_all`](crate::Cache::invalidate_all) had removed them.
    pub expirations: u64,
    /// Stores refused for lack of memory.
    pub out_of_memory: u64,
    /// Notifications dropped: values that the listener was not called with, because too many waited; see
    /// [`Builder::removal_listener`](crate::Builder::removal_listener).
    pub untold: u64,
}

impl Stats {
    /// Hits among the reads, from 0 to 1; `None` before the first read.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let cache = nuthatch::Cache::new(16 << 20)?;
    /// assert_eq!(cache.stats().hit_ratio(), None);
    /// cache.insert("a", "1")?;
    /// cache.get_many(&["a", "b"]);
    /// assert_eq!(cache.stats().hit_ratio(), Some(0.5));
    /// # Ok(())
    /// # }
    /// ```
    pub fn hit_ratio(&self) -> Option<f64> {
        let reads = self.hits + self.misses;
        (reads > 0).then(|| self.hits as f64 / reads as f64)
    }

    pub(crate) fn of(engine: &EngineStats, hits: u64, misses: u64) -> Self {
        Self {
            hits,
            misses,
            entry_count: engine.items,
            weighted_size: engine.item_bytes,
            memory_limit: engine.memory_limit,
            memory_used: engine.memory_used,
            index_bytes: engine.index_bytes,
            lookups: engine.lookups,
            lookup_hits: engine.lookup_hits,
            insertions: engine.total_items,
            evictions: engine.evictions,
            expirations: engine.expired,
            out_of_memory: engine.out_of_memory,
            untold: engine.untold,
        }
    }
}
