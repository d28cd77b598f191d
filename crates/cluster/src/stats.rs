//! What servers and clients count, and how it is added up.

use std::sync::atomic::{AtomicU64, Ordering};

use nuthatch_engine::stats::EngineStats;
use nuthatch_fabric::Fabric;

use crate::server::Shard;

/// What a server tells of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Pairs in the table.
    pub items: u64,
    /// Bytes of their blocks.
    pub item_bytes: u64,
    /// Pairs stored by messages.
    pub stored: u64,
    /// Live pairs that went to make room.
    pub evictions: u64,
    /// Those of them that no get had hit.
    pub evicted_unfetched: u64,
    /// Expired and flushed pairs whose memory came back.
    pub expired: u64,
    /// Those of them that no get had hit.
    pub expired_unfetched: u64,
    /// Stores refused.
    pub out_of_memory: u64,
    /// Pages that left their class.
    pub pages_moved: u64,
    /// Pairs that the sweep looked at.
    pub swept: u64,
    /// Searches for a key.
    pub lookups: u64,
    /// Those that found it.
    pub lookup_hits: u64,
    /// Tags that matched though the key did not.
    pub false_tags: u64,
    /// Messages carried out.
    pub messages: u64,
    /// Pairs for which their bucket has no room.
    pub overflowed: u64,
    /// Pairs taken out because their writer was gone.
    pub recovered: u64,
    /// The limit, in bytes.
    pub memory_limit: u64,
    /// Bytes taken of it.
    pub memory_used: u64,
    /// Bytes of the table.
    pub index_bytes: u64,
    /// The present epoch.
    pub epoch: u64,
}

const WORDS: usize = 20;

impl ServerStats {
    pub(crate) fn of<F: Fabric>(shard: &Shard<F>) -> Self {
        let counts = shard.counts;
        Self {
            items: counts.items,
            item_bytes: counts.item_bytes,
            stored: counts.stored,
            evictions: counts.evictions,
            evicted_unfetched: counts.evicted_unfetched,
            expired: counts.expired,
            expired_unfetched: counts.expired_unfetched,
            out_of_memory: counts.out_of_memory,
            pages_moved: counts.pages_moved,
            swept: counts.swept,
            lookups: counts.lookups,
            lookup_hits: counts.lookup_hits,
            false_tags: counts.false_tags,
            messages: counts.messages,
            overflowed: counts.overflowed,
            recovered: counts.recovered,
            memory_limit: shard.config.memory as u64,
            memory_used: shard.memory_used() as u64,
            index_bytes: (shard.layout.buckets * crate::bucket::WORDS * 8) as u64,
            epoch: shard.epoch.into(),
        }
    }

    /// As words.
    pub fn words(&self) -> [u64; WORDS] {
        [
            self.items,
            self.item_bytes,
            self.stored,
            self.evictions,
            self.evicted_unfetched,
            self.expired,
            self.expired_unfetched,
            self.out_of_memory,
            self.pages_moved,
            self.swept,
            self.lookups,
            self.lookup_hits,
            self.false_tags,
            self.messages,
            self.overflowed,
            self.recovered,
            self.memory_limit,
            self.memory_used,
            self.index_bytes,
            self.epoch,
        ]
    }

    /// Of a message's words.
    pub fn of_words(words: &[u64]) -> Self {
        let mut words = words.iter().copied();
        let mut next = || words.next().unwrap_or(0);
        Self {
            items: next(),
            item_bytes: next(),
            stored: next(),
            evictions: next(),
            evicted_unfetched: next(),
            expired: next(),
            expired_unfetched: next(),
            out_of_memory: next(),
            pages_moved: next(),
            swept: next(),
            lookups: next(),
            lookup_hits: next(),
            false_tags: next(),
            messages: next(),
            overflowed: next(),
            recovered: next(),
            memory_limit: next(),
            memory_used: next(),
            index_bytes: next(),
            epoch: next(),
        }
    }

    /// Adds a server's to the engine's.
    pub fn add_to(&self, sum: &mut EngineStats) {
        sum.items += self.items;
        sum.total_items += self.stored;
        sum.item_bytes += self.item_bytes;
        sum.memory_limit += self.memory_limit;
        sum.memory_used += self.memory_used;
        sum.index_bytes += self.index_bytes;
        sum.index_slots += self.index_bytes / 64 * crate::bucket::ENTRIES as u64;
        sum.evictions += self.evictions;
        sum.evicted_unfetched += self.evicted_unfetched;
        sum.expired += self.expired;
        sum.expired_unfetched += self.expired_unfetched;
        sum.out_of_memory += self.out_of_memory;
        sum.pages_moved += self.pages_moved;
        sum.swept += self.swept;
        sum.lookups += self.lookups;
        sum.lookup_hits += self.lookup_hits;
        sum.false_tags += self.false_tags;
    }
}

/// What a PE's sessions count.
#[derive(Debug, Default)]
pub struct ClientCounts {
    /// Gets that the directory led to a pair.
    pub directory_hits: AtomicU64,
    /// Gets for which it had no pointer.
    pub directory_misses: AtomicU64,
    /// Pointers that led nowhere any more.
    pub stale_pointers: AtomicU64,
    /// Gets answered by one-sided reads alone.
    pub direct_gets: AtomicU64,
    /// Misses told by a bucket alone.
    pub direct_misses: AtomicU64,
    /// Sets by one-sided operations alone.
    pub direct_sets: AtomicU64,
    /// Requests sent as messages.
    pub active: AtomicU64,
    /// Blocks that had to be read again.
    pub torn: AtomicU64,
    /// Compare-swaps of a recency.
    pub recency_swaps: AtomicU64,
}

/// The same at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStats {
    /// Gets that the directory led to a pair.
    pub directory_hits: u64,
    /// Gets for which it had no pointer.
    pub directory_misses: u64,
    /// Pointers that led nowhere any more.
    pub stale_pointers: u64,
    /// Gets answered by one-sided reads alone.
    pub direct_gets: u64,
    /// Misses told by a bucket alone.
    pub direct_misses: u64,
    /// Sets by one-sided operations alone.
    pub direct_sets: u64,
    /// Requests sent as messages.
    pub active: u64,
    /// Blocks that had to be read again.
    pub torn: u64,
    /// Compare-swaps of a recency.
    pub recency_swaps: u64,
}

impl ClientCounts {
    /// The sums now.
    pub fn read(&self) -> ClientStats {
        // Relaxed, here and below: each number for itself.
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ClientStats {
            directory_hits: load(&self.directory_hits),
            directory_misses: load(&self.directory_misses),
            stale_pointers: load(&self.stale_pointers),
            direct_gets: load(&self.direct_gets),
            direct_misses: load(&self.direct_misses),
            direct_sets: load(&self.direct_sets),
            active: load(&self.active),
            torn: load(&self.torn),
            recency_swaps: load(&self.recency_swaps),
        }
    }

    /// Adds what a session counted since.
    pub fn add(&self, stats: &ClientStats) {
        let add = |counter: &AtomicU64, more: u64| {
            if more != 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        };
        add(&self.directory_hits, stats.directory_hits);
        add(&self.directory_misses, stats.directory_misses);
        add(&self.stale_pointers, stats.stale_pointers);
        add(&self.direct_gets, stats.direct_gets);
        add(&self.direct_misses, stats.direct_misses);
        add(&self.direct_sets, stats.direct_sets);
        add(&self.active, stats.active);
        add(&self.torn, stats.torn);
        add(&self.recency_swaps, stats.recency_swaps);
    }

    /// Counts from zero.
    pub fn reset(&self) {
        let Self {
            directory_hits,
            directory_misses,
            stale_pointers,
            direct_gets,
            direct_misses,
            direct_sets,
            active,
            torn,
            recency_swaps,
        } = self;
        for counter in [
            directory_hits,
            directory_misses,
            stale_pointers,
            direct_gets,
            direct_misses,
            direct_sets,
            active,
            torn,
            recency_swaps,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let mut words = [0; WORDS];
        for (at, word) in words.iter_mut().enumerate() {
            *word = at as u64 + 1;
        }
        let stats = ServerStats::of_words(&words);
        assert_eq!(stats.words()[..], words[..]);
    }
}
