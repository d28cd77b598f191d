//! Strict LRU: a list a size class, from the item used last to the one used longest ago.
//!
//! The links are two words in front of each item, beyond those of the engine. A class's lock guards its list and
//! the links of all items in it. It is taken under the lock of an item's bucket, and nothing is locked under it.
//! Where *not* to use it: a hit writes three items' links under a lock that all hits in the class share.

use std::collections::HashMap;

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_engine::AuditError;

use super::{Policy, PolicyKind, Victim};
use crate::item::Header;
use crate::item::links::Link;
use crate::item::unlinked::Unlinked;
use crate::memory::arena::{Address, Arena};
use crate::slab::Slab;
use crate::store::Store;

/// Strict LRU, as it is chosen.
pub static KIND: PolicyKind = PolicyKind {
    name: "lru",
    // An item's links to its neighbours.
    words: 2,
    build: |classes, front| Box::new(Lru::new(classes, front)),
};

/// A list's ends.
#[derive(Debug, Default)]
struct List {
    /// Used last.
    newest: Option<Address>,
    /// Used longest ago: the next victim.
    oldest: Option<Address>,
}

/// A lock in a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Padded(Mutex<List>);

/// An item's links in its class's list.
#[derive(Clone, Copy)]
struct Links {
    /// To the item used next after this one.
    newer: Link,
    /// To the item used last before this one.
    older: Link,
}

/// The lists of all classes. An item is in the list of the class whose chunks it holds.
pub struct Lru {
    lists: Box<[Padded]>,
    links: Links,
}

impl Lru {
    /// Empty lists, for items with so many words of the engine between the links and the header.
    pub fn new(classes: usize, front: usize) -> Self {
        let front = front as u64;
        Self {
            lists: (0..classes).map(|_| Padded::default()).collect(),
            links: Links {
                newer: Link(front + 1),
                older: Link(front + 2),
            },
        }
    }

    fn last(&self, class: usize) -> Option<Address> {
        self.lock(class).oldest
    }

    /// The lists from which room for a class may come: its own, and the largest class's, because a class may be full of
    /// heads and last pieces of large values, which are in that list.
    fn candidates(store: &Store<Slab>, class: usize) -> [usize; 2] {
        [class, store.sizes.count() - 1]
    }

    fn lock(&self, class: usize) -> MutexGuard<'_, List> {
        self.lists[class].0.lock()
    }
}

impl Policy for Lru {
    fn add(&self, store: &Store<Slab>, address: Address, header: &Header) {
        let mut list = self.lock(store.class_of_item(header));
        list.push(self.links, &store.arena, address);
    }

    fn remove(&self, store: &Store<Slab>, address: Address, header: &Header) {
        let mut list = self.lock(store.class_of_item(header));
        list.cut(self.links, &store.arena, address);
    }

    #[inline]
    fn hit(&self, store: &Store<Slab>, address: Address, header: &Header) {
        let mut list = self.lock(store.class_of_item(header));
        if list.newest != Some(address) {
            list.cut(self.links, &store.arena, address);
            list.push(self.links, &store.arena, address);
        }
    }

    fn victim(&self, store: &Store<Slab>, class: usize) -> Option<Victim> {
        let oldest = |class| self.last(class).map(|address| Victim { address, class });
        Self::candidates(store, class).into_iter().find_map(oldest)
    }

    fn is_still(&self, victim: &Victim) -> bool {
        self.last(victim.class) == Some(victim.address)
    }

    fn oldest(&self, _: &Store<Slab>, class: usize) -> Option<Address> {
        self.lock(class).oldest
    }

    fn is_starving(&self, store: &Store<Slab>, class: usize) -> bool {
        let candidates = Self::candidates(store, class);
        candidates.iter().all(|&class| self.last(class).is_none())
    }

    fn evicted(&self, store: &Store<Slab>, class: usize, item: &Unlinked) {
        store.note_victim(class, item);
    }

    fn audit(
        &self,
        store: &Store<Slab>,
        items: &HashMap<Address, usize>,
    ) -> Result<(), AuditError> {
        let mut seen = 0;
        for class in 0..self.lists.len() {
            let list = self.lock(class);
            let (mut newer, mut at) = (None, list.newest);
            while let Some(address) = at {
                if items.get(&address) != Some(&class) {
                    return Err(format!(
                        "lru: list {class} has {address:?}, which is no item of it"
                    )
                    .into());
                }
                if self.links.newer.load(&store.arena, address) != newer {
                    return Err(format!("lru: {address:?} does not know the item before it").into());
                }
                seen += 1;
                if seen > items.len() {
                    return Err(format!("lru: list {class} has a circle").into());
                }
                newer = at;
                at = self.links.older.load(&store.arena, address);
            }
            if list.oldest != newer {
                let oldest = list.oldest;
                return Err(
                    format!("lru: list {class} ends in {newer:?}, not in {oldest:?}").into(),
                );
            }
        }
        if seen != items.len() {
            let items = items.len();
            return Err(format!("lru: {items} items in the index, {seen} in lists").into());
        }
        Ok(())
    }
}

impl List {
    fn push(&mut self, links: Links, arena: &Arena, address: Address) {
        links.newer.store(arena, address, None);
        links.older.store(arena, address, self.newest);
        match self.newest {
            Some(newest) => links.newer.store(arena, newest, Some(address)),
            None => self.oldest = Some(address),
        }
        self.newest = Some(address);
    }

    fn cut(&mut self, links: Links, arena: &Arena, address: Address) {
        let newer = links.newer.load(arena, address);
        let older = links.older.load(arena, address);
        match newer {
            Some(newer) => links.older.store(arena, newer, older),
            None => self.newest = older,
        }
        match older {
            Some(older) => links.newer.store(arena, older, newer),
            None => self.oldest = newer,
        }
    }
}
