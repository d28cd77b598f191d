//! Making room in size classes: evicting one item for another, moving pages between classes, freeing dead items.

use nuthatch_base::sync::clock::Time;

use super::Slab;
use super::walk::Cleared;
use crate::item::{Header, Shape};
use crate::memory::arena::Address;
use crate::reclaim::{MakeRoom, Reclaim};
use crate::store::HasStore;

/// Victims that are tried, at least, before a store is refused: each of them turned out to be in use by another thread,
/// or freed already, or held by a slow reader.
const VICTIMS_MAX: usize = 256;

/// Looks for dead items in pages of any class that a store may take, before it is refused: see `Store::clear_page`.
const LOOKS_MAX: usize = 256;

impl<E: Reclaim + HasStore<Placement = Slab>> MakeRoom<E> for Slab {
    #[inline]
    fn admit(_: &E, _: &E::Local, _: u64, _: bool) -> ((), u8) {
        ((), 0)
    }

    #[inline]
    fn obtain(
        engine: &E,
        local: &mut E::Local,
        now: Time,
        (): (),
        bytes: usize,
        _: Option<&Shape>,
    ) -> Option<Address> {
        engine.allocate_chunk(local, now, engine.store().class_of(bytes))
    }

    fn shrink(engine: &E, local: &mut E::Local, now: Time, budget: usize) -> bool {
        let drain = |chunk| engine.drain_chunk(local, now, chunk);
        engine.store().shrink(budget, drain)
    }

    fn sweep_dead(engine: &E, local: &mut E::Local, now: Time, budget: usize) -> bool {
        engine.sweep_in_turn(local, now, budget);
        false
    }

    /// Gives up pages that are empty or whose items are all dead.
    fn reclaim_unused(engine: &E, local: &mut E::Local, now: Time, bytes: usize) {
        let store = engine.store();
        if !store.return_empty_pages(bytes) {
            let room = || store.return_empty_pages(bytes).then_some(());
            engine.clear_pages(local, now, room);
        }
    }
}

impl<E: Reclaim + HasStore<Placement = Slab>> Evict for E {}

/// What an engine does with the chunks of its size classes.
trait Evict: Reclaim + HasStore<Placement = Slab> {
    /// A chunk of a class; evicts if it must.
    #[inline]
    fn allocate_chunk(&self, local: &mut Self::Local, now: Time, class: usize) -> Option<Address> {
        let free = self.store().allocate(class).ok();
        free.or_else(|| self.reclaim_chunk(local, now, class))
    }

    /// A chunk of a class that has none free.
    #[inline(never)]
    fn reclaim_chunk(&self, local: &mut Self::Local, now: Time, class: usize) -> Option<Address> {
        for attempt in 0.. {
            self.notify_if_many(local);
            // In the first attempt the caller has just tried to allocate.
            if attempt > 0
                && let Ok(chunk) = self.store().allocate(class)
            {
                return Some(chunk);
            }
            if !self.evicts() {
                return self.reclaim_unused(local, now, class);
            }
            // A large value whose value is still arriving may have all its pieces side by side in the largest classes:
            // so many victims are tried there that the hand passes all of them.
            if attempt >= VICTIMS_MAX && attempt >= 4 * self.store().class(class).pages.len() {
                break;
            }
            if let Some(chunk) = self.evict(local, now, class) {
                return Some(chunk);
            }
        }
        None
    }

    /// Without eviction, room comes from empty pages of any class, and from dead items. If there is neither, that costs
    /// a bounded number of looks, or none where no item can be dead: a store that is full refuses at once.
    fn reclaim_unused(&self, local: &mut Self::Local, now: Time, class: usize) -> Option<Address> {
        let store = self.store();
        let free = store.allocate_from_any(class).ok();
        if free.is_some() || !self.timestamps().may_have_dead() {
            return free;
        }
        // Dead items of the class itself give their chunks. Those of others make room if a whole page is dead.
        for _ in 0..VICTIMS_MAX {
            let Some(candidate) = store.victim(class) else {
                break;
            };
            if self.remove_expired(local, now, candidate) {
                self.notify_if_many(local);
                if let Ok(chunk) = store.allocate_from_any(class) {
                    return Some(chunk);
                }
            }
        }
        self.clear_pages(local, now, || store.allocate_from_any(class).ok())
    }

    /// Frees dead items, page by page, until there is `room`, or no look is left.
    fn clear_pages<R>(
        &self,
        local: &mut Self::Local,
        now: Time,
        room: impl Fn() -> Option<R>,
    ) -> Option<R> {
        let mut looks = LOOKS_MAX;
        while looks > 0 && self.timestamps().may_have_dead() {
            let clear = |chunk| self.clear_chunk(local, now, chunk);
            self.store().clear_page(&mut looks, clear);
            if let Some(room) = room() {
                return Some(room);
            }
        }
        None
    }

    /// Removes the item in a chunk, or the one that the chunk is a piece of, if it is dead.
    fn clear_chunk(&self, local: &mut Self::Local, now: Time, chunk: Address) -> Cleared {
        let arena = &self.store().arena;
        let header = Header::load(arena, chunk);
        let head = header
            .piece_of()
            .filter(|&head| arena.contains(head))
            .unwrap_or(chunk);
        if self.remove_expired(local, now, head) {
            self.notify_if_many(local);
            Cleared::Freed
        } else if Header::load(arena, head).is_item() {
            Cleared::Stays
        } else {
            Cleared::Free
        }
    }

    /// Evicts the policy's choice. Returns its chunk if the caller owns it now; other freed memory is allocated by the
    /// next attempt.
    fn evict(&self, local: &mut Self::Local, now: Time, class: usize) -> Option<Address> {
        let store = self.store();
        let policy = &store.slab().policy;
        let starving = policy.is_starving(store, class);
        store.move_pages(class, starving, |chunk| self.drain_chunk(local, now, chunk));
        let victim = policy.victim(store, class)?;
        if self.remove_whole(local, now, victim.address) {
            return None;
        }
        let item = self.take_out(local, now, victim.address, |_| policy.is_still(&victim))?;
        policy.evicted(store, class, &item);
        store.reuse(item, class)
    }

    /// If the chunk is a piece of a large value, removes the whole value. False if it is not.
    fn remove_whole(&self, local: &mut Self::Local, now: Time, chunk: Address) -> bool {
        let Some(head) = Header::load(&self.store().arena, chunk).piece_of() else {
            return false;
        };
        if self.store().arena.contains(head) {
            self.remove_item(local, now, head, |header| header.is_large());
        }
        true
    }

    /// Removes the item or piece in a chunk, whichever it is.
    fn drain_chunk(&self, local: &mut Self::Local, now: Time, chunk: Address) {
        if !self.remove_whole(local, now, chunk) {
            self.remove_item(local, now, chunk, |_| true);
        }
    }
}
