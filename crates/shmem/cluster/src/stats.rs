//! The counters of servers and sessions, and how they are summed.

use std::sync::atomic::Ordering;

use bytemuck::{Pod, Zeroable};
use nuthatch_engine::stats::EngineStats;
use nuthatch_fabric::Word;

/// The statistics of a server, as they lie in a message.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ServerStats {
    /// Pairs in the table.
    pub items: u64,
    /// Bytes of their blocks.
    pub item_bytes: u64,
    /// Pairs stored by messages.
    pub stored: u64,
    /// Live pairs that were evicted to make room.
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
    /// Times that a session's messages had to wait because there was no room for replies to it.
    pub rings_full: u64,
    /// Blocks that are never used again, because a PE that is gone was writing to them.
    pub blocks_lost: u64,
    /// Messages that were invalid: a PE had written over them.
    pub refused: u64,
    /// The limit, in bytes.
    pub memory_limit: u64,
    /// Bytes taken of it.
    pub memory_used: u64,
    /// Bytes of the table.
    pub index_bytes: u64,
    /// The present epoch.
    pub epoch: u64,
    /// The server's present moment when it sends this, in ticks.
    pub tick: u64,
}

/// The number of words of these statistics.
pub(crate) const WORDS: usize = size_of::<ServerStats>() / 8;

impl ServerStats {
    /// Reads the statistics that a server has put to a PE. (Words are whole, but may be of two moments.)
    pub(crate) fn read(words: &[Word]) -> Self {
        let mut read = [0; WORDS];
        for (into, word) in read.iter_mut().zip(words) {
            // Relaxed: counts.
            *into = word.load(Ordering::Relaxed);
        }
        bytemuck::cast(read)
    }

    /// Stores them in the words that are put to other PEs.
    pub(crate) fn lay(&self, words: &[Word]) {
        let all: &[u64] = bytemuck::cast_slice(std::slice::from_ref(self));
        for (into, word) in words.iter().zip(all) {
            // Relaxed: the fabric reads the words when it is called, or later, and then they are younger.
            into.store(*word, Ordering::Relaxed);
        }
    }

    /// Adds a server's counts to the engine's.
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

/// What a session counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    DirectoryHits,
    DirectoryMisses,
    StalePointers,
    DirectGets,
    DirectMisses,
    DirectSets,
    Active,
    Torn,
    LocksLost,
    RingsFull,
    RecencySwaps,
}

/// How many counts there are.
pub(crate) const COUNTS: usize = Count::RecencySwaps as usize + 1;

/// What a PE's sessions counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStats {
    /// Gets that the directory led to a pair.
    pub directory_hits: u64,
    /// Gets for which the directory had no pointer.
    pub directory_misses: u64,
    /// Pointers that no longer led to a pair of the key.
    pub stale_pointers: u64,
    /// Gets answered by one-sided reads alone.
    pub direct_gets: u64,
    /// Misses answered from a bucket alone.
    pub direct_misses: u64,
    /// Sets by one-sided operations alone.
    pub direct_sets: u64,
    /// Requests sent as messages.
    pub active: u64,
    /// Blocks that had to be read again.
    pub torn: u64,
    /// Blocks that another writer had locked or changed before a set could lock them.
    pub locks_lost: u64,
    /// Messages that had to wait for room on their way to a server.
    pub rings_full: u64,
    /// Compare-swaps of a recency.
    pub recency_swaps: u64,
}

impl ClientStats {
    /// The statistics with these sums.
    pub(crate) fn of(sums: &[u64; COUNTS]) -> Self {
        let count = |count: Count| sums[count as usize];
        Self {
            directory_hits: count(Count::DirectoryHits),
            directory_misses: count(Count::DirectoryMisses),
            stale_pointers: count(Count::StalePointers),
            direct_gets: count(Count::DirectGets),
            direct_misses: count(Count::DirectMisses),
            direct_sets: count(Count::DirectSets),
            active: count(Count::Active),
            torn: count(Count::Torn),
            locks_lost: count(Count::LocksLost),
            rings_full: count(Count::RingsFull),
            recency_swaps: count(Count::RecencySwaps),
        }
    }
}
