//! Finding an item in its chain, and taking it in and out: the parts that every operation shares.

use super::Chained;
use super::index::LockedBucket;
use super::layout::NEXT;
use super::local::Local;
use nuthatch_engine::reply::Item;
use nuthatch_engine::request::Key;
use nuthatch_store::count::Count;
use nuthatch_store::item::unlinked::Unlinked;
use nuthatch_store::item::{Header, plain_item};
use nuthatch_store::memory::arena::{Address, WORD};
use nuthatch_store::reclaim::Reclaim;
use nuthatch_store::table::Lookup;

/// An item found in a locked chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Where it lies.
    pub address: Address,
    /// Its header.
    pub header: Header,
    /// The item before it in the chain; `None` if it is the first.
    pub before: Option<Address>,
}

impl Found {
    /// The metadata that clients see.
    pub fn item(&self) -> Item {
        plain_item(&self.header)
    }
}

impl Chained {
    /// Looks for a key's item, dead or alive.
    #[inline]
    pub(super) fn find(
        &self,
        local: &Local,
        locked: &LockedBucket<'_>,
        key: &Key<'_>,
    ) -> Option<Found> {
        let (mut searched, mut before, mut at) = (0, None, locked.first());
        while let Some(address) = at {
            searched += 1;
            let header = Header::load(&self.store.arena, address);
            if self.is_key(address, &header, key) {
                local.counters.one(Count::Lookups);
                local.counters.one(Count::Hits);
                local.counters.add(Count::SearchedHit as usize, searched);
                return Some(Found {
                    address,
                    header,
                    before,
                });
            }
            before = at;
            at = NEXT.load(&self.store.arena, address);
        }
        local.counters.one(Count::Lookups);
        local.counters.add(Count::SearchedMiss as usize, searched);
        None
    }

    /// The same for live items only.
    #[inline]
    pub(super) fn find_live(
        &self,
        local: &Local,
        locked: &LockedBucket<'_>,
        lookup: &Lookup<'_>,
    ) -> Option<Found> {
        let found = self.find(local, locked, &lookup.key)?;
        if !self.is_live(&found.header, lookup.now) {
            local.counters.read_dead(&found.header, lookup.now);
            return None;
        }
        Some(found)
    }

    fn is_key(&self, address: Address, header: &Header, key: &Key<'_>) -> bool {
        header.key_len() == key.bytes().len()
            && self
                .store
                .arena
                .equals(address, header.key_start() / WORD, key.bytes())
    }

    /// Looks for an item in a locked chain by its chunk.
    pub(super) fn find_at(&self, locked: &LockedBucket<'_>, wanted: Address) -> Option<Found> {
        let (mut before, mut at) = (None, locked.first());
        while at.is_some_and(|address| address != wanted) {
            before = at;
            at = at.and_then(|address| NEXT.load(&self.store.arena, address));
        }
        at.map(|address| Found {
            address,
            header: Header::load(&self.store.arena, address),
            before,
        })
    }

    /// Makes a complete item the first of its chain, and the newest of its class.
    pub(super) fn enter(&self, locked: &LockedBucket<'_>, address: Address, header: &Header) {
        NEXT.store(&self.store.arena, address, locked.first());
        locked.set_first(Some(address));
        self.policy().add(&self.store, address, header);
    }

    /// Takes an item out of its chain and of its class's list.
    pub(super) fn leave(&self, locked: &LockedBucket<'_>, found: &Found) -> Unlinked {
        let arena = &self.store.arena;
        let next = NEXT.load(arena, found.address);
        match found.before {
            Some(before) => NEXT.store(arena, before, next),
            None => locked.set_first(next),
        }
        self.policy()
            .remove(&self.store, found.address, &found.header);
        Unlinked::new(found.address, found.header)
    }
}
