//! Strict LRU: a list a size class, from the item used last to the one used longest ago.
//!
//! The links are in the items (see [`layout`](super::layout)); a class's lock guards its list and the
//! [`Newer`](Link::Newer) and [`Older`](Link::Older) links of all items in it. It is taken under a
//! bucket's lock, and nothing is locked under it.

use nuthatch_sync::shim::{Mutex, MutexGuard};

use super::layout::Link;
use crate::slab::arena::{Arena, Chunk};

/// A list's ends.
#[derive(Debug, Default)]
struct List {
    /// Used last.
    newest: Option<Chunk>,
    /// Used longest ago: the next victim.
    oldest: Option<Chunk>,
}

/// A lock in a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Padded(Mutex<List>);

/// The lists of all classes.
pub struct Lists(Box<[Padded]>);

impl Lists {
    /// Empty lists.
    pub fn new(classes: usize) -> Self {
        Self((0..classes).map(|_| Padded::default()).collect())
    }

    /// The item used longest ago.
    pub fn oldest(&self, class: usize) -> Option<Chunk> {
        self.lock(class).oldest
    }

    /// Takes a new item in, as just used.
    pub fn add(&self, arena: &Arena, class: usize, chunk: Chunk) {
        self.lock(class).push(arena, chunk);
    }

    /// Lets go of an item.
    pub fn remove(&self, arena: &Arena, class: usize, chunk: Chunk) {
        self.lock(class).cut(arena, chunk);
    }

    /// An item was used just now.
    #[inline]
    pub fn hit(&self, arena: &Arena, class: usize, chunk: Chunk) {
        let mut list = self.lock(class);
        if list.newest != Some(chunk) {
            list.cut(arena, chunk);
            list.push(arena, chunk);
        }
    }

    /// Calls `see` for each item from the newest to the oldest, with its two neighbours as its links
    /// tell them. Stops at the first error.
    pub fn each<E>(
        &self,
        arena: &Arena,
        class: usize,
        mut see: impl FnMut(Option<Chunk>, Chunk) -> Result<(), E>,
    ) -> Result<Option<Chunk>, E> {
        let list = self.lock(class);
        let (mut newer, mut at) = (None, list.newest);
        while let Some(chunk) = at {
            see(newer, chunk)?;
            newer = at;
            at = Link::Older.load(arena, chunk);
        }
        Ok(list.oldest)
    }

    fn lock(&self, class: usize) -> MutexGuard<'_, List> {
        // No user code runs under it, so the list is whole even after a panic.
        self.0[class]
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl List {
    fn push(&mut self, arena: &Arena, chunk: Chunk) {
        Link::Newer.store(arena, chunk, None);
        Link::Older.store(arena, chunk, self.newest);
        match self.newest {
            Some(newest) => Link::Newer.store(arena, newest, Some(chunk)),
            None => self.oldest = Some(chunk),
        }
        self.newest = Some(chunk);
    }

    fn cut(&mut self, arena: &Arena, chunk: Chunk) {
        let newer = Link::Newer.load(arena, chunk);
        let older = Link::Older.load(arena, chunk);
        match newer {
            Some(newer) => Link::Older.store(arena, newer, older),
            None => self.newest = older,
        }
        match older {
            Some(older) => Link::Newer.store(arena, older, newer),
            None => self.oldest = newer,
        }
    }
}
