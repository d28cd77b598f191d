//! The state of one thread.

use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use nuthatch_store::count::ThreadCounters;
use nuthatch_store::reclaim::PerThread;
use nuthatch_store::timestamps::SequenceBlock;

/// Items that a thread adds or removes before it publishes the change: so inserts share no line, and the table doubles
/// late by at most so many items a thread.
const UNPUBLISHED_MAX: u64 = if cfg!(loom) { 1 } else { 32 };

/// The state of one thread: counters, unused sequences, and the number of items that it has not published.
pub struct Local {
    /// Its counters.
    pub counters: ThreadCounters,
    /// Its unused sequences.
    pub sequences: SequenceBlock,
    /// Items added minus items removed, wrapping.
    unpublished: u64,
}

impl Local {
    /// The state of a new thread.
    pub fn new(counters: ThreadCounters) -> Self {
        Self {
            counters,
            sequences: SequenceBlock::default(),
            unpublished: 0,
        }
    }

    /// Counts an item that came into the table. True if the sum has just been published.
    #[inline]
    pub fn came(&mut self, population: &AtomicU64) -> bool {
        self.unpublished = self.unpublished.wrapping_add(1);
        self.tell_if_many(population)
    }

    /// Counts an item that left the table.
    #[inline]
    pub fn went(&mut self, population: &AtomicU64) {
        self.unpublished = self.unpublished.wrapping_sub(1);
        self.tell_if_many(population);
    }

    fn tell_if_many(&mut self, population: &AtomicU64) -> bool {
        // Between -UNPUBLISHED_MAX and UNPUBLISHED_MAX, moved up so that it does not wrap.
        let many = self.unpublished.wrapping_add(UNPUBLISHED_MAX - 1) > 2 * (UNPUBLISHED_MAX - 1);
        if many {
            self.tell(population);
        }
        many
    }

    /// Publishes the changes so far.
    pub fn tell(&mut self, population: &AtomicU64) {
        // Relaxed: a number by which a doubling is decided. Wraps like the counters.
        population.fetch_add(self.unpublished, Ordering::Relaxed);
        self.unpublished = 0;
    }
}

impl PerThread for Local {
    fn counters(&self) -> &ThreadCounters {
        &self.counters
    }

    fn sequences(&mut self) -> &mut SequenceBlock {
        &mut self.sequences
    }
}
