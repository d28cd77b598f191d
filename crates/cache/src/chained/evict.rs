//! Making room: evicting, moving pages between classes, taking expired items back.
//!
//! A victim is chosen without its bucket's lock, because that is a list's lock or the hand's to tell,
//! and looked at again under it: it is evicted only if it is still in the table, and, with strict
//! LRU, still the oldest of its class.

use nuthatch_sync::clock::Time;

use super::Chained;
use super::local::Local;
use super::lru::Lists;
use crate::item::Header;
use crate::slab::arena::Chunk;
use crate::slab::unlinked::Unlinked;

/// Victims that are tried at least before a store is refused: each of them turned out to be in use by
/// another thread, or freed already, or held by a slow reader.
const VICTIMS_MAX: usize = 256;

impl Chained {
    /// A chunk of a class; evicts if it must.
    pub(super) fn allocate_chunk(
        &self,
        local: &mut Local,
        now: Time,
        class: usize,
    ) -> Option<Chunk> {
        for turn in 0.. {
            if let Ok(chunk) = self.store.allocate(class) {
                return Some(chunk);
            }
            if !self.evicts {
                return self.reclaim(local, now, class);
            }
            // A large value on its way has all its pieces side by side in the largest classes: so
            // many are tried there that the hand passes all of them.
            if turn >= VICTIMS_MAX && turn >= 4 * self.store.class(class).pages.len() {
                break;
            }
            let evicted = match &self.lists {
                Some(lists) => self.evict_oldest(local, now, class, lists),
                None => self.evict_by_hand(local, now, class),
            };
            if evicted.is_some() {
                return evicted;
            }
        }
        None
    }

    /// Strict LRU: evicts the oldest item of the class. Returns its chunk if it is now the caller's.
    fn evict_oldest(
        &self,
        local: &mut Local,
        now: Time,
        class: usize,
        lists: &Lists,
    ) -> Option<Chunk> {
        // A class may be full of heads and last pieces of large values, which are in the largest
        // class's list.
        let candidates = [class, self.largest_class()];
        let starving = candidates.iter().all(|&list| lists.oldest(list).is_none());
        self.move_pages(local, now, class, starving);
        let (list, victim) = candidates
            .into_iter()
            .find_map(|list| Some((list, lists.oldest(list)?)))?;
        let still = |_: &Header| lists.oldest(list) == Some(victim);
        self.evict(local, now, class, victim, still)
    }

    /// CLOCK: evicts what the class's hand stops at.
    fn evict_by_hand(&self, local: &mut Local, now: Time, class: usize) -> Option<Chunk> {
        self.move_pages(local, now, class, false);
        let victim = self.store.victim(class)?;
        if self.unlink_whole(local, now, victim) {
            return None;
        }
        self.evict(local, now, class, victim, |_| true)
    }

    /// Evicts an item. Returns its chunk if it is now the caller's.
    fn evict(
        &self,
        local: &mut Local,
        now: Time,
        class: usize,
        victim: Chunk,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<Chunk> {
        let item = self.take_out(local, now, victim, doomed)?;
        if self.lists.is_some() {
            self.store.note_victim(class, &item);
        }
        // The freed pieces of a large value are allocated next turn.
        self.store.reuse(item, class)
    }

    /// Without eviction, only the dead make room.
    fn reclaim(&self, local: &mut Local, now: Time, class: usize) -> Option<Chunk> {
        for _ in 0..VICTIMS_MAX {
            let victim = self.store.victim(class)?;
            self.unlink_dead(local, now, victim);
            if let Ok(chunk) = self.store.allocate(class) {
                return Some(chunk);
            }
        }
        None
    }

    /// Takes the item in a chunk out of the table, if there is one and `doomed` says so under its
    /// lock.
    fn take_out(
        &self,
        local: &mut Local,
        now: Time,
        chunk: Chunk,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<Unlinked> {
        let key = self.store.copy_key(chunk)?;
        let locked = self.index.lock(self.hasher.hash(key.bytes()));
        // The key may have been torn, or the chunk reused: only that it is in this very chain
        // proves that an item is there.
        let found = self.find_chunk(&locked, chunk)?;
        if !doomed(&found.header) {
            return None;
        }
        let item = self.leave(&locked, &found);
        drop(locked);
        local.went(&self.population);
        let header = item.header();
        local.counters.item_out(&self.store, header);
        let live = self.is_live(header, now);
        local.counters.departed(&self.store, chunk, header, live);
        Some(item)
    }

    /// Takes the item in a chunk out and frees it, if `doomed`.
    fn unlink(&self, local: &mut Local, now: Time, chunk: Chunk, doomed: impl Fn(&Header) -> bool) {
        if let Some(item) = self.take_out(local, now, chunk, doomed) {
            self.store.retire(item);
        }
    }

    /// The same for an expired or flushed item.
    fn unlink_dead(&self, local: &mut Local, now: Time, chunk: Chunk) {
        let header = Header::load(&self.store.arena, chunk);
        if header.is_item() && !self.is_live(&header, now) {
            self.unlink(local, now, chunk, |header| !self.is_live(header, now));
        }
    }

    /// If the chunk is a piece of a large value, takes all of that out. False if it is not.
    fn unlink_whole(&self, local: &mut Local, now: Time, chunk: Chunk) -> bool {
        let header = Header::load(&self.store.arena, chunk);
        let Some(head) = header.segment_of() else {
            return false;
        };
        if self.store.arena.contains(head) {
            self.unlink(local, now, head, |header| header.is_large());
        }
        true
    }

    fn drain_chunk(&self, local: &mut Local, now: Time, chunk: Chunk) {
        if !self.unlink_whole(local, now, chunk) {
            self.unlink(local, now, chunk, |_| true);
        }
    }

    fn move_pages(&self, local: &mut Local, now: Time, class: usize, starving: bool) {
        let unlink = |chunk| self.drain_chunk(local, now, chunk);
        self.store.move_pages(class, starving, unlink);
    }

    /// Gives pages back while the limit is exceeded. True if there is more to do.
    pub(super) fn shrink(&self, local: &mut Local, now: Time, budget: usize) -> bool {
        let unlink = |chunk| self.drain_chunk(local, now, chunk);
        self.store.shrink(budget, unlink)
    }

    /// Looks at about `budget` chunks for expired and flushed items, where the last call stopped.
    pub(super) fn sweep(&self, local: &mut Local, now: Time, budget: usize) {
        if !self.lifetimes.may_have_dead() {
            return;
        }
        let look = |chunk| self.unlink_dead(local, now, chunk);
        let looked = self.store.sweep(budget, look);
        local
            .counters
            .add(crate::count::Count::Swept as usize, looked as u64);
    }
}
