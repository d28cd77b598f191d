//! What each thread has for itself.

use nuthatch_sync::shim::{AtomicU64, Ordering};

use nuthatch_store::count::ThreadCounters;
use nuthatch_store::eviction::reclaim::PerThread;
use nuthatch_store::timestamps::SequenceBlock;

/// Items that a thread takes in or out before it tells the others: so inserts share no line, and the
/// table doubles late by so many items a thread at most.
const UNPUBLISHED_MAX: u64 = if cfg!(loom) { 1 } else { 32 };

/// A thread's own: counters, unused sequences, and the items it has not told of.
pub struct Local {
    /// Its counters.
    pub counters: ThreadCounters,
    /// Its unused sequences.
    pub sequences: SequenceBlock,
    /// Items taken in less items taken out, wrapping.
    unpublished: u64,
}

impl Local {
    /// A new thread's.
    pub fn new(counters: ThreadCounters) -> Self {
        Self {
            counters,
            sequences: SequenceBlock::default(),
            unpublished: 0,
        }
    }

    /// An item came into the table. True if the sum has just been told.
    #[inline]
    pub fn came(&mut self, population: &AtomicU64) -> bool {
        self.unpublished = self.unpublished.wrapping_add(1);
        self.tell_if_many(population)
    }

    /// An item left it.
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

    /// Adds what was not told.
    pub fn tell(&mut self, population: &AtomicU64) {
        // Relaxed: a number to decide a doubling by. Wraps like the counters.
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
