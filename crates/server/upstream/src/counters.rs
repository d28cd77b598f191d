//! What was asked of the servers behind this one, since the start or the last reset.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nuthatch_engine::stats::UpstreamStats;

/// The counters of [`UpstreamStats`]. Relaxed: nothing is concluded from one about another.
#[derive(Debug, Default)]
pub struct Counters {
    pub reads: AtomicU64,
    pub found: AtomicU64,
    pub joined: AtomicU64,
    pub kept: AtomicU64,
    pub changes: AtomicU64,
    pub failed: AtomicU64,
}

/// Adds to one of them.
pub fn add(counter: &AtomicU64, number: usize) {
    counter.fetch_add(number as u64, Relaxed);
}

impl Counters {
    /// What they show now.
    pub fn read(&self) -> UpstreamStats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        UpstreamStats {
            reads: read(&self.reads),
            found: read(&self.found),
            joined: read(&self.joined),
            kept: read(&self.kept),
            changes: read(&self.changes),
            failed: read(&self.failed),
        }
    }

    /// Sets them to zero.
    pub fn reset(&self) {
        for counter in [
            &self.reads,
            &self.found,
            &self.joined,
            &self.kept,
            &self.changes,
            &self.failed,
        ] {
            counter.store(0, Relaxed);
        }
    }
}
