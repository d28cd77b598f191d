//! Finding an item in its chain, and taking it in and out: the parts that every operation shares.

use super::Chained;
use super::index::Locked;
use super::layout::Link;
use super::local::Local;
use crate::count::Count;
use crate::item::{Header, plain_item};
use crate::reply::Item;
use crate::request::Key;
use crate::slab::arena::{Chunk, WORD};
use crate::slab::unlinked::Unlinked;
use crate::table::Asked;

/// An item found in a locked chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Where it lies.
    pub chunk: Chunk,
    /// Its header.
    pub header: Header,
    /// The item before it in the chain; `None` if it is the first.
    pub before: Option<Chunk>,
}

impl Found {
    /// What a client is told of it.
    pub fn item(&self) -> Item {
        plain_item(&self.header)
    }
}

impl Chained {
    /// Looks for a key's item, dead or alive.
    #[inline]
    pub(super) fn find(&self, local: &Local, locked: &Locked<'_>, key: &Key<'_>) -> Option<Found> {
        let (mut searched, mut before, mut at) = (0, None, locked.first());
        while let Some(chunk) = at {
            searched += 1;
            let header = Header::load(&self.store.arena, chunk);
            if self.is_key(chunk, &header, key) {
                local.counters.one(Count::Lookups);
                local.counters.one(Count::Hits);
                local.counters.add(Count::SearchedHit as usize, searched);
                return Some(Found {
                    chunk,
                    header,
                    before,
                });
            }
            before = at;
            at = Link::Next.load(&self.store.arena, chunk);
        }
        local.counters.one(Count::Lookups);
        local.counters.add(Count::SearchedMiss as usize, searched);
        None
    }

    /// The same, without the dead.
    #[inline]
    pub(super) fn find_live(
        &self,
        local: &Local,
        locked: &Locked<'_>,
        asked: &Asked<'_>,
    ) -> Option<Found> {
        let found = self.find(local, locked, &asked.key);
        found.filter(|found| self.is_live(&found.header, asked.now))
    }

    fn is_key(&self, chunk: Chunk, header: &Header, key: &Key<'_>) -> bool {
        header.key_len() == key.bytes().len()
            && self
                .store
                .arena
                .equals(chunk, header.key_start() / WORD, key.bytes())
    }

    /// Looks for a very chunk in a locked chain.
    pub(super) fn find_chunk(&self, locked: &Locked<'_>, wanted: Chunk) -> Option<Found> {
        let (mut before, mut at) = (None, locked.first());
        while at.is_some_and(|chunk| chunk != wanted) {
            before = at;
            at = at.and_then(|chunk| Link::Next.load(&self.store.arena, chunk));
        }
        at.map(|chunk| Found {
            chunk,
            header: Header::load(&self.store.arena, chunk),
            before,
        })
    }

    /// Makes a complete item the first of its chain, and the newest of its class.
    pub(super) fn enter(&self, locked: &Locked<'_>, chunk: Chunk, header: &Header) {
        Link::Next.store(&self.store.arena, chunk, locked.first());
        locked.set_first(Some(chunk));
        if let Some(lists) = &self.lists {
            lists.add(&self.store.arena, self.list_of(header), chunk);
        }
    }

    /// Takes an item out of its chain and of its class's list.
    pub(super) fn leave(&self, locked: &Locked<'_>, found: &Found) -> Unlinked {
        let arena = &self.store.arena;
        let next = Link::Next.load(arena, found.chunk);
        match found.before {
            Some(before) => Link::Next.store(arena, before, next),
            None => locked.set_first(next),
        }
        if let Some(lists) = &self.lists {
            lists.remove(arena, self.list_of(&found.header), found.chunk);
        }
        Unlinked::new(found.chunk, found.header)
    }
}
