//! The state of one thread.

use super::search::Searcher;
use nuthatch_store::count::{Count, ThreadCounters};
use nuthatch_store::reclaim::PerThread;
use nuthatch_store::reclaim::removals::Queue;
use nuthatch_store::timestamps::SequenceBlock;
use std::cell::RefCell;

/// The state of one thread: counters, search buffers, unused sequences.
pub struct Local {
    /// Its number among all threads of the engine.
    pub number: usize,
    /// Its counters.
    pub counters: ThreadCounters,
    /// Its search for cuckoo paths.
    pub searcher: Searcher,
    /// Its unused sequences.
    pub sequences: SequenceBlock,
    /// The items that its operation has removed and not told yet; never borrowed while the listener is called.
    pub removed: RefCell<Queue>,
}

impl Local {
    /// The state of a new thread.
    pub fn new(number: usize, counters: ThreadCounters, seed: u64) -> Self {
        Self {
            number,
            counters,
            searcher: Searcher::new(seed),
            sequences: SequenceBlock::default(),
            removed: RefCell::default(),
        }
    }

    /// Counts plain gets on the fast path: a hit looked at one item, a miss at none.
    #[inline(always)]
    pub fn count_fast(&self, hits: u64, misses: u64) {
        self.counters.add(Count::FastHits as usize, hits);
        self.counters.add(Count::FastMisses as usize, misses);
    }
}

impl PerThread for Local {
    fn number(&self) -> usize {
        self.number
    }

    fn counters(&self) -> &ThreadCounters {
        &self.counters
    }

    fn sequences(&mut self) -> &mut SequenceBlock {
        &mut self.sequences
    }

    fn removed(&self) -> Option<&RefCell<Queue>> {
        Some(&self.removed)
    }
}
