//! What each thread has for itself.

use std::cell::RefCell;
use std::sync::Arc;

use super::search::Searcher;
use crate::count::{Count, Counted};
use crate::departures::Queue;
use crate::lifetime::Sequences;
use crate::table::Own;

/// A thread's own: counters, search buffers, unused sequences.
pub struct Local {
    /// Its counters.
    pub counters: Arc<Counted>,
    /// Its search for cuckoo paths.
    pub searcher: Searcher,
    /// Its unused sequences.
    pub sequences: Sequences,
    /// What its operation has removed and not told yet; never borrowed while the listener is called.
    pub departed: RefCell<Queue>,
}

impl Local {
    /// A new thread's.
    pub fn new(counters: Arc<Counted>, seed: u64) -> Self {
        Self {
            counters,
            searcher: Searcher::new(seed),
            sequences: Sequences::default(),
            departed: RefCell::default(),
        }
    }

    /// Counts plain gets that went the usual way: a hit looked at one item, a miss at none.
    #[inline(always)]
    pub fn count_usual(&self, hits: u64, misses: u64) {
        self.counters.add(Count::UsualHits as usize, hits);
        self.counters.add(Count::UsualMisses as usize, misses);
    }
}

impl Own for Local {
    fn counters(&self) -> &Counted {
        &self.counters
    }

    fn sequences(&mut self) -> &mut Sequences {
        &mut self.sequences
    }
}
