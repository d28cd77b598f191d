//! The counters of partitions.

use super::memory::{BLOCK_LINES, LINE};
use nuthatch_engine::counters::Counters;
use nuthatch_engine::stats::{ClassStats, EngineStats};

/// Searches of a partition for a key.
///
/// Apart from the other counts, because every lookup changes them: they lie beside the fields that a lookup reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Searches {
    /// Searches that found their key's element, dead or alive.
    pub hits: u64,
    /// Searches that did not find it.
    pub misses: u64,
    /// Elements that successful searches looked at, the found one included.
    pub searched_hit: u64,
    /// Elements that unsuccessful searches looked at.
    pub searched_miss: u64,
}

impl Searches {
    /// How many counts there are.
    pub(super) const COUNTS: usize = 4;

    /// Adds these counts to the counters of the thread, from which sums over all threads are made, and starts from
    /// zero.
    #[inline]
    pub(super) fn hand_in(&mut self, counters: &Counters<{ Searches::COUNTS }>) {
        for (index, count) in std::mem::take(self).in_order().into_iter().enumerate() {
            counters.add(index, count);
        }
    }

    /// Adds counts that threads handed in.
    pub(super) fn add(&mut self, counts: [u64; Self::COUNTS]) {
        self.hits += counts[0];
        self.misses += counts[1];
        self.searched_hit += counts[2];
        self.searched_miss += counts[3];
    }

    fn in_order(&self) -> [u64; Self::COUNTS] {
        [
            self.hits,
            self.misses,
            self.searched_hit,
            self.searched_miss,
        ]
    }

    /// Counts one more search, which looked at so many elements.
    #[inline(always)]
    pub(super) fn count(&mut self, found: bool, searched: u64) {
        if found {
            self.hits += 1;
            self.searched_hit += searched;
        } else {
            self.misses += 1;
            self.searched_miss += searched;
        }
    }

    fn since(&self, base: &Searches) -> Searches {
        Searches {
            hits: self.hits.saturating_sub(base.hits),
            misses: self.misses.saturating_sub(base.misses),
            searched_hit: self.searched_hit.saturating_sub(base.searched_hit),
            searched_miss: self.searched_miss.saturating_sub(base.searched_miss),
        }
    }
}

/// The counters of a partition, and its present sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Elements in the table now.
    pub items: u64,
    /// Bytes that they need: header, key and value.
    pub item_bytes: u64,
    /// Elements that are not in the table: NOT READY, or removed and still read.
    pub held: u64,
    /// Lines in use, by elements of both kinds.
    pub lines: u64,
    /// Lines free.
    pub free_lines: u64,
    /// Buckets.
    pub buckets: u64,
    /// Bytes of all blocks, those of the buckets included, with all their bookkeeping.
    pub bytes: u64,
    /// Stores.
    pub stored: u64,
    /// Live elements evicted.
    pub evicted: u64,
    /// Of these, never fetched.
    pub evicted_unfetched: u64,
    /// Expired or flushed elements whose memory was freed.
    pub expired: u64,
    /// Of these, never fetched.
    pub expired_unfetched: u64,
    /// Stores refused for want of memory.
    pub out_of_memory: u64,
    /// Elements that the sweep looked at.
    pub swept: u64,
    /// Elements moved so that their block could be given away.
    pub moved: u64,
    /// Searches for keys.
    pub searches: Searches,
}

impl Counts {
    /// Adds the counts of another partition.
    pub fn add(&mut self, other: &Counts) {
        for (sum, more) in self.fields().into_iter().zip(other.clone().fields()) {
            *sum += *more;
        }
    }

    /// The present sizes, and the counts since `base`; zero where `base` is the later one, as it is for a thread that
    /// counted while the statistics were reset.
    pub fn since(&self, base: &Counts) -> Counts {
        Counts {
            stored: self.stored.saturating_sub(base.stored),
            evicted: self.evicted.saturating_sub(base.evicted),
            evicted_unfetched: self
                .evicted_unfetched
                .saturating_sub(base.evicted_unfetched),
            expired: self.expired.saturating_sub(base.expired),
            expired_unfetched: self
                .expired_unfetched
                .saturating_sub(base.expired_unfetched),
            out_of_memory: self.out_of_memory.saturating_sub(base.out_of_memory),
            swept: self.swept.saturating_sub(base.swept),
            moved: self.moved.saturating_sub(base.moved),
            searches: self.searches.since(&base.searches),
            ..*self
        }
    }

    /// An engine's statistics, without its memory and its rule: the present sizes, and the counts since `base`.
    pub fn engine_stats(&self, base: &Counts) -> EngineStats {
        let since = self.since(base);
        let lines = ClassStats {
            class: 1,
            chunk_size: LINE,
            chunks_per_page: BLOCK_LINES as usize,
            pages: (self.lines + self.free_lines) as usize / BLOCK_LINES as usize,
            items: self.items,
            used_chunks: self.lines as usize,
            free_chunks: self.free_lines as usize,
            requested_bytes: self.item_bytes,
            evictions: since.evicted,
            evicted_unfetched: since.evicted_unfetched,
            expired: since.expired,
            expired_unfetched: since.expired_unfetched,
            out_of_memory: since.out_of_memory,
            ..ClassStats::default()
        };
        EngineStats {
            items: self.items,
            total_items: since.stored,
            item_bytes: self.item_bytes,
            index_bytes: self.buckets * size_of::<u32>() as u64,
            index_slots: self.buckets,
            evictions: since.evicted,
            evicted_unfetched: since.evicted_unfetched,
            expired: since.expired,
            expired_unfetched: since.expired_unfetched,
            out_of_memory: since.out_of_memory,
            swept: since.swept,
            lookups: since.searches.hits + since.searches.misses,
            lookup_hits: since.searches.hits,
            searched_hit: since.searches.searched_hit,
            searched_miss: since.searches.searched_miss,
            displacements: since.moved,
            classes: vec![lines],
            ..EngineStats::default()
        }
    }

    fn fields(&mut self) -> [&mut u64; 19] {
        let Self {
            items,
            item_bytes,
            held,
            lines,
            free_lines,
            buckets,
            bytes,
            stored,
            evicted,
            evicted_unfetched,
            expired,
            expired_unfetched,
            out_of_memory,
            swept,
            moved,
            searches:
                Searches {
                    hits,
                    misses,
                    searched_hit,
                    searched_miss,
                },
        } = self;
        [
            items,
            item_bytes,
            held,
            lines,
            free_lines,
            buckets,
            bytes,
            stored,
            evicted,
            evicted_unfetched,
            expired,
            expired_unfetched,
            out_of_memory,
            swept,
            moved,
            hits,
            misses,
            searched_hit,
            searched_miss,
        ]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// `stats` beside `stats reset`: its sums may be older than the ones that it is compared with.
    #[test]
    fn nothing_was_counted_since_a_later_moment() {
        let mut early = Counts::default();
        let mut late = Counts::default();
        for (number, field) in late.fields().into_iter().enumerate() {
            *field = number as u64 + 1;
        }
        early.items = 7;
        let stats = early.engine_stats(&late);
        let counted = [
            stats.total_items,
            stats.evictions,
            stats.evicted_unfetched,
            stats.expired,
            stats.expired_unfetched,
            stats.out_of_memory,
            stats.swept,
            stats.lookups,
            stats.lookup_hits,
            stats.searched_hit,
            stats.searched_miss,
            stats.displacements,
        ];
        assert_eq!((stats.items, counted), (7, [0; 12]));
        assert_eq!(late.since(&early).stored, late.stored);
    }
}
