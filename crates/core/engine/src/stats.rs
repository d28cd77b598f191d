//! The statistics of an engine.

use nuthatch_base::hash::sizing::IndexRule;
use nuthatch_base::sync::clock::Time;

/// Paths of up to this many displaced items have their own counters.
pub const PATH_LENGTH_MAX: usize = 8;

/// The number of age counters of evictions: below 1, 2, 4, ... seconds, and above.
pub const AGES: usize = 25;

/// The steps of more memory for which an engine estimates the hits, in percent.
pub const MORE_MEMORY: [u64; 4] = [10, 25, 50, 100];

/// Counters and sizes of an engine, summed over all handles at one moment (not atomically).
#[derive(Clone, Debug, Default)]
pub struct EngineStats {
    /// Items in the index now (expired ones not yet swept included).
    pub items: u64,
    /// Items stored since the start.
    pub total_items: u64,
    /// Bytes that the items occupy: header, key and value, not the rounding to a class.
    pub item_bytes: u64,
    /// The limit in bytes, for all memory that grows with the data.
    pub memory_limit: u64,
    /// Bytes in use under the limit: pages, index, recency bits.
    pub memory_used: u64,
    /// Bytes of the index (slots, not items).
    pub index_bytes: u64,
    /// Slots of the index.
    pub index_slots: u64,
    /// True while the index is growing.
    pub index_growing: bool,
    /// The rule that decided the index's size at the start, in an engine that has one.
    pub index_rule: Option<IndexRule>,
    /// Live items evicted to make room.
    pub evictions: u64,
    /// Those of them that no get had hit.
    pub evicted_unfetched: u64,
    /// Live items evicted, by the time since they were stored: at `n` those of less than `2^n` seconds (and not of less
    /// than half of that), and at the end all older ones. Empty if the engine does not count it.
    pub evicted_ages: Vec<u64>,
    /// The sum over evicted items of the seconds since they were stored.
    pub evicted_seconds: u64,
    /// Expired and flushed items whose memory was freed, by the sweep or by an eviction.
    pub expired: u64,
    /// Those of them that were flushed and had not expired, if the engine counts it.
    pub flushed: Option<u64>,
    /// Those of them that no get had hit.
    pub expired_unfetched: u64,
    /// Values that left and of which the listener, if there is one, was not told.
    pub untold: u64,
    /// Stores refused for want of memory.
    pub out_of_memory: u64,
    /// Pages moved from one size class to another, or, of a log, emptied.
    pub pages_moved: u64,
    /// Items looked at by the background sweep.
    pub swept: u64,
    /// Reads that found an item which had expired.
    pub read_expired: u64,
    /// Reads that found an item which had been flushed.
    pub read_flushed: u64,
    /// Searches of the index for a key, on behalf of any request.
    pub lookups: u64,
    /// Those of them that found the key's item, dead or alive.
    pub lookup_hits: u64,
    /// Items that successful searches looked at (the Linux paper's successful searches): at best one each. In chains
    /// all items on the way, in buckets with slots those whose tags matched.
    pub searched_hit: u64,
    /// Items that unsuccessful searches looked at: at best none.
    pub searched_miss: u64,
    /// Reads that met a change under way and read again.
    pub read_retries: u64,
    /// Tags that matched although the key did not.
    pub false_tags: u64,
    /// Items moved to their other bucket by inserts.
    pub displacements: u64,
    /// At `n`, inserts for which `n` items were moved, up to [`PATH_LENGTH_MAX`], and there also the
    /// longer ones. Inserts that found a free slot at once are not counted.
    pub path_lengths: [u64; PATH_LENGTH_MAX + 1],
    /// Size classes that have or had memory, smallest first.
    pub classes: Vec<ClassStats>,
    /// The other classes: none of them has memory, evictions or refused stores.
    pub vacant_classes: Vec<ClassStats>,
    /// The memory in use by purpose, if the engine reports it.
    pub memory_use: Option<MemoryUse>,
    /// The log, in an engine whose items lie in one.
    pub log: Option<LogStats>,
}

/// Bytes of memory by purpose: together [`EngineStats::memory_used`], if nothing changes meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Values.
    pub values: u64,
    /// Keys.
    pub keys: u64,
    /// Headers of items.
    pub headers: u64,
    /// The rest of the memory of items: rounding, links, tables and headers of the pieces of large values. Items whose
    /// value is still arriving count here as a whole.
    pub padding: u64,
    /// The unused part of pages in use: between items, behind the last, and in free chunks.
    pub gaps: u64,
    /// Bits and counters of the pages in use.
    pub bookkeeping: u64,
    /// The index and its locks.
    pub index: u64,
    /// Ghosts.
    pub ghosts: u64,
}

impl MemoryUse {
    /// All of it.
    pub fn total(&self) -> u64 {
        let Self {
            values,
            keys,
            headers,
            padding,
            gaps,
            bookkeeping,
            index,
            ghosts,
        } = self;
        values + keys + headers + padding + gaps + bookkeeping + index + ghosts
    }
}

/// A log of items, and the queues of its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of new items.
    pub probation_pages: u64,
    /// Pages of items that were used.
    pub main_pages: u64,
    /// When the oldest of the items looked at in the probation queue's oldest page was stored.
    pub probation_since: Option<Time>,
    /// The same of the main queue.
    pub main_since: Option<Time>,
    /// Items moved from the probation queue to the main one.
    pub moved_to_main: u64,
    /// Items that stayed in the main queue when their turn to leave came.
    pub moved_within_main: u64,
    /// Bytes of the table of ghosts.
    pub ghost_bytes: u64,
    /// Live items evicted from the probation queue.
    pub evicted_probation: u64,
    /// Live items evicted from the main queue.
    pub evicted_main: u64,
    /// Live items evicted because both of their key's buckets were full.
    pub evicted_slots: u64,
    /// Items stored again a short time after they were evicted from the probation queue.
    pub ghost_hits: u64,
    /// Items stored again that would still have been present with as much more memory as [`MORE_MEMORY`] says: an
    /// estimate, by a sample.
    pub more_hits: [u64; MORE_MEMORY.len()],
    /// Pages emptied.
    pub pages_cleaned: u64,
    /// Bytes of items moved to empty pages.
    pub bytes_moved: u64,
}

/// What an engine that holds copies has asked of the servers whose items they are, since the start or the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamStats {
    /// Reads that were sent.
    pub reads: u64,
    /// Those of them that found an item.
    pub found: u64,
    /// Reads that waited for another's.
    pub joined: u64,
    /// Copies that were stored.
    pub kept: u64,
    /// Changes that were sent.
    pub changes: u64,
    /// Reads and changes that got no answer.
    pub failed: u64,
}

/// Messages between the client threads and the engine's server threads, which carry out requests (CPHash, sections 3.4
/// and 6.2), summed over all threads since the start or the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageStats {
    /// Requests carried out.
    pub operations: u64,
    /// Message lines that clients sent.
    pub lines_sent: u64,
    /// Messages in them.
    pub messages_sent: u64,
    /// Lines of answers that clients received.
    pub lines_received: u64,
    /// Answers in them.
    pub answers_received: u64,
    /// Messages that server threads took.
    pub messages_served: u64,
    /// Messages that clients took themselves, while a partition's owner slept.
    pub self_served: u64,
    /// Nanoseconds that server threads spent serving, summed over them.
    pub busy_nanos: u64,
    /// Nanoseconds that they polled for work and found none.
    pub polling_nanos: u64,
    /// Nanoseconds that they slept while they owned partitions.
    pub sleeping_nanos: u64,
    /// How often a partition changed its owner.
    pub hand_overs: u64,
    /// Server threads that own partitions now.
    pub server_threads: u64,
}

impl MessageStats {
    /// Messages in a line that a client sent.
    pub fn messages_a_line(&self) -> f64 {
        ratio(self.messages_sent, self.lines_sent)
    }

    /// Lines an operation, sent and received together.
    pub fn lines_an_operation(&self) -> f64 {
        ratio(self.lines_sent + self.lines_received, self.operations)
    }

    /// Share of the server threads' time, sleep included, that they spent serving: 0 to 1.
    pub fn busy_share(&self) -> f64 {
        ratio(
            self.busy_nanos,
            self.busy_nanos + self.polling_nanos + self.sleeping_nanos,
        )
    }

    /// Nanoseconds of a server thread's serving for each message.
    pub fn nanos_a_message(&self) -> f64 {
        ratio(self.busy_nanos, self.messages_served)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// One size class.
#[derive(Clone, Debug, Default)]
pub struct ClassStats {
    /// Its number, from 1.
    pub class: usize,
    /// Bytes of a chunk.
    pub chunk_size: usize,
    /// Chunks in a page.
    pub chunks_per_page: usize,
    /// Pages it has.
    pub pages: usize,
    /// Items whose head is in one of its chunks: pieces of large values lie in other classes as well.
    pub items: u64,
    /// Chunks in use.
    pub used_chunks: usize,
    /// Chunks free.
    pub free_chunks: usize,
    /// Bytes asked for in its used chunks.
    pub requested_bytes: u64,
    /// Live items evicted from it.
    pub evictions: u64,
    /// Live items evicted from it that were never fetched.
    pub evicted_unfetched: u64,
    /// Live items evicted from it that had an expiry.
    pub evicted_expiring: u64,
    /// Live items evicted from it that had been used before: from a log's main queue.
    pub evicted_main: u64,
    /// Seconds from the store to the eviction of the item that was evicted from it last.
    pub evicted_age: u64,
    /// When the item that is next to leave was stored, if the engine keeps them in order.
    pub oldest: Option<Time>,
    /// Expired and flushed items whose memory was freed.
    pub expired: u64,
    /// Those of them that no get had hit.
    pub expired_unfetched: u64,
    /// Items that were removed on request.
    pub removed: u64,
    /// Items moved from a log's probation queue to its main one.
    pub moved_to_main: u64,
    /// Items that stayed in the main queue when their turn to leave came.
    pub moved_within_main: u64,
    /// Stores that it refused.
    pub out_of_memory: u64,
}
