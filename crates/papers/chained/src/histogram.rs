//! The chain lengths of the running table.

use super::Chained;
use super::layout::NEXT;
use nuthatch_engine::index_stats::IndexHistogram;

impl Chained {
    /// Locks each bucket that it looks at, one after the other: no request waits for longer than for another request.
    /// In a table that is doubling, these are the buckets that hold items now.
    pub(super) fn histogram(&self, sample: u64) -> IndexHistogram {
        let buckets = self.index.geometry().live_buckets();
        IndexHistogram::take(buckets, sample, 0, |bucket| {
            let locked = self.index.lock_bucket(bucket);
            let next = |&address: &_| NEXT.load(&self.store.arena, address);
            std::iter::successors(locked.first(), next).count()
        })
    }
}
