//! Finding a key's item in its two buckets: the part that every operation shares.

use super::index::LockedBuckets;
use super::layout::Variant;
use super::local::Local;
use super::reading::Reading;
use super::{Cuckoo, Found};
use nuthatch_engine::request::Key;
use nuthatch_store::count::Count;
pub(super) use nuthatch_store::table::Lookup;

impl<D: Variant> Cuckoo<D> {
    /// Looks for the key's item in two buckets. The result is valid only under a lock or after a version check.
    #[inline(always)]
    pub(super) fn find(
        &self,
        local: &Local,
        tag: u64,
        buckets: [u64; 2],
        key: &Key<'_>,
    ) -> Option<Found> {
        let (found, false_tags) = self.reading().find(tag, buckets, key);
        local.counters.one(Count::Lookups);
        local.counters.add(Count::FalseTags as usize, false_tags);
        match found {
            Some(_) => {
                local.counters.one(Count::Hits);
                local
                    .counters
                    .add(Count::SearchedHit as usize, false_tags + 1);
            }
            None => local.counters.add(Count::SearchedMiss as usize, false_tags),
        }
        found
    }

    /// What a reader of this table needs.
    #[inline(always)]
    pub(super) fn reading(&self) -> Reading<'_, D> {
        Reading {
            index: &self.index,
            arena: &self.store.arena,
        }
    }

    /// Looks for the key's item under its lock, dead or alive.
    #[inline]
    pub(super) fn find_locked(
        &self,
        local: &Local,
        locked: &LockedBuckets<'_, D>,
        key: &Key<'_>,
    ) -> Option<Found> {
        self.find(local, locked.place.tag, [locked.first, locked.second], key)
    }
}
