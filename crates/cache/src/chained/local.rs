//! What each thread has for itself.

use std::sync::Arc;

use nuthatch_sync::shim::{AtomicU64, Ordering};

use crate::count::Counted;
use crate::lifetime::Sequences;
use crate::table::Own;

/// Items that a thread takes in or out before it tells the others: so inserts share no line, and the
/// table doubles late by so many items a thread at most.
const UNTOLD_MAX: u64 = if cfg!(loom) { 1 } else { 32 };

/// A thread's own: counters, unused sequences, and the items it has not told of.
pub struct Local {
    /// Its counters.
    pub counters: Arc<Counted>,
    /// Its unused sequences.
    pub sequences: Sequences,
    /// Items taken in less items taken out, wrapping.
    untold: u64,
}

impl Local {
    /// A new thread's.
    pub fn new(counters: Arc<Counted>) -> Self {
        Self {
            counters,
            sequences: Sequences::default(),
            untold: 0,
        }
    }

    /// An item came into the table. True if the sum has just been told.
    #[inline]
    pub fn came(&mut self, population: &AtomicU64) -> bool {
        self.untold = self.untold.wrapping_add(1);
        self.tell_if_many(population)
    }

    /// An item left it.
    #[inline]
    pub fn went(&mut self, population: &AtomicU64) {
        self.untold = self.untold.wrapping_sub(1);
        self.tell_if_many(population);
    }

    fn tell_if_many(&mut self, population: &AtomicU64) -> bool {
        // Between -UNTOLD_MAX and UNTOLD_MAX, moved up so that it does not wrap.
        let many = self.untold.wrapping_add(UNTOLD_MAX - 1) > 2 * (UNTOLD_MAX - 1);
        if many {
            self.tell(population);
        }
        many
    }

    /// Adds what was not told.
    pub fn tell(&mut self, population: &AtomicU64) {
        // Relaxed: a number to decide a doubling by. Wraps like the counters.
        population.fetch_add(self.untold, Ordering::Relaxed);
        self.untold = 0;
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
