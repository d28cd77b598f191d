//! Finding a key's item in its two buckets: the part that every operation shares.

use super::index::{LockedBuckets, Position};
use super::layout::Variant;
use super::local::Local;
use super::{Cuckoo, Found};
use nuthatch_engine::request::Key;
use nuthatch_store::count::Count;
use nuthatch_store::item::Header;
use nuthatch_store::memory::arena::{Address, WORD};
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
        let mut mask = self.index.matches(buckets, tag);
        let mut false_tags = 0;
        while mask != 0 {
            let at = Position::matched::<D>(buckets, mask);
            mask &= mask - 1;
            let slot = self.index.load(at);
            if slot.is_empty() {
                continue;
            }
            let address = slot.address::<D>();
            let header = Header::load(&self.store.arena, address);
            if self.is_key(address, &header, key) {
                local.counters.one(Count::Lookups);
                local.counters.one(Count::Hits);
                local
                    .counters
                    .add(Count::SearchedHit as usize, false_tags + 1);
                local.counters.add(Count::FalseTags as usize, false_tags);
                return Some(Found {
                    at,
                    address,
                    header,
                });
            }
            false_tags += 1;
        }
        local.counters.one(Count::Lookups);
        local.counters.add(Count::SearchedMiss as usize, false_tags);
        local.counters.add(Count::FalseTags as usize, false_tags);
        None
    }

    /// True if there lies this key's item (under a lock, or as far as a reader can tell).
    #[inline(always)]
    pub(super) fn is_key(&self, address: Address, header: &Header, key: &Key<'_>) -> bool {
        header.key_len() == key.bytes().len()
            && self
                .store
                .arena
                .equals(address, header.key_start() / WORD, key.bytes())
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
