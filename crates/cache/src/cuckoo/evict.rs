//! Making room: evicting by CLOCK, moving pages between classes, taking expired items back.
//!
//! Nobody is asked to wait for an eviction: a victim is taken out of the index like any removed item,
//! with its versions bumped before and after (MemC3 section 4), and late readers read again.

use nuthatch_sync::clock::Time;

use super::Cuckoo;
use super::index::{Locked, Moved, Place, Position};
use super::layout::{Design, Slot};
use super::local::Local;
use super::search::Searched;
use crate::count::Count;
use crate::departures::{Departed, Departure, Departures};
use crate::item::Header;
use crate::slab::arena::Chunk;
use crate::slab::unlinked::Unlinked;
use crate::table::Table;

/// Victims that are tried at least before a store is refused: each of them turned out to be in use by
/// another thread, or freed already, or held by a slow reader.
const VICTIMS_MAX: usize = 256;

/// Paths that other writers spoiled, before an item of the buckets has to go instead.
const SEARCHES_MAX: usize = 8;

/// Searches while the table doubles: each splits a few more buckets, and one split bucket within reach
/// is enough. By far the most end at the first.
const SEARCHES_MAX_GROWING: usize = 512;

impl<D: Design> Cuckoo<D> {
    /// A chunk of a class; evicts if it must.
    #[inline]
    pub(super) fn allocate_chunk(
        &self,
        local: &mut Local,
        now: Time,
        class: usize,
    ) -> Option<Chunk> {
        let free = self.store.allocate(class).ok();
        free.or_else(|| self.vacate_chunk(local, now, class))
    }

    /// A chunk of a class that has none to give without more ado.
    #[inline(never)]
    fn vacate_chunk(&self, local: &mut Local, now: Time, class: usize) -> Option<Chunk> {
        for turn in 0.. {
            self.tell_if_many(local);
            // In the first turn the caller has just tried that.
            if turn > 0
                && let Ok(chunk) = self.store.allocate(class)
            {
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
            let unlink = |chunk| self.drain_chunk(local, now, chunk);
            self.store.move_pages(class, false, unlink);
            let Some(victim) = self.store.victim(class) else {
                continue;
            };
            if let Some(chunk) = self.evict(local, now, class, victim) {
                return Some(chunk);
            }
        }
        None
    }

    /// Without eviction, only the dead make room.
    fn reclaim(&self, local: &Local, now: Time, class: usize) -> Option<Chunk> {
        for _ in 0..VICTIMS_MAX {
            self.tell_if_many(local);
            let victim = self.store.victim(class)?;
            let header = Header::load(&self.store.arena, victim);
            if header.is_item() && !self.is_live(&header, now) {
                self.unlink(local, now, victim, |header| !self.is_live(header, now));
            }
            if let Ok(chunk) = self.store.allocate(class) {
                return Some(chunk);
            }
        }
        None
    }

    /// Evicts whatever lies in a chunk. Returns the chunk if it is now the caller's.
    fn evict(&self, local: &Local, now: Time, class: usize, victim: Chunk) -> Option<Chunk> {
        let header = Header::load(&self.store.arena, victim);
        if let Some(head) = header.segment_of() {
            // A piece of a large value: all of it goes. The freed pieces are allocated next turn.
            if self.store.arena.contains(head) {
                self.unlink(local, now, head, |header| header.is_large());
            }
            return None;
        }
        let item = self.take_out(local, now, victim, |_| true)?;
        self.store.reuse(item, class)
    }

    /// Takes the item in a chunk out of the index and frees it, if it is an item and `doomed`.
    pub(super) fn unlink(
        &self,
        local: &Local,
        now: Time,
        chunk: Chunk,
        doomed: impl Fn(&Header) -> bool,
    ) {
        if let Some(item) = self.take_out(local, now, chunk, doomed) {
            self.store.retire(item);
        }
    }

    /// Takes the item in a chunk out of the index, if there is one and `doomed` says so under the
    /// lock.
    fn take_out(
        &self,
        local: &Local,
        now: Time,
        chunk: Chunk,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<Unlinked> {
        let key = self.store.copy_key(chunk)?;
        let place = self.index.place(self.hasher.hash(key.bytes()));
        let locked = self.index.lock(&place);
        // The key may have been torn, or the chunk reused: only a slot that refers to this very
        // chunk, under this key's tag, in this key's buckets, proves that it is linked.
        let slot = Slot::new::<D>(place.tag, chunk);
        let found = locked
            .find(slot)
            .map(|at| (at, Header::load(&self.store.arena, chunk)));
        let Some((at, header)) = found.filter(|(_, header)| doomed(header)) else {
            locked.release_unmodified();
            return None;
        };
        let item = locked.take_out(at, header);
        Some(self.count_departure(local, now, item))
    }

    /// Counts an item that had to go, and tells of it.
    fn count_departure(&self, local: &Local, now: Time, item: Unlinked) -> Unlinked {
        let header = item.header();
        local.counters.item_out(&self.store, header);
        let live = self.is_live(header, now);
        let counters = &local.counters;
        counters.departed(&self.store, item.chunk(), header, live);
        if let Some(departures) = &self.departures {
            let why = if live {
                Departure::Evicted
            } else {
                Departure::Expired
            };
            self.note_departure(departures, local, why, &item, now);
        }
        item
    }

    /// Copies an item that has left the index, whose chunks are still the caller's, to be told of.
    #[cold]
    fn note_departure(
        &self,
        departures: &Departures,
        local: &Local,
        why: Departure,
        gone: &Unlinked,
        now: Time,
    ) {
        let (chunk, header) = (gone.chunk(), *gone.header());
        let Some(key) = self.store.copy_key(chunk) else {
            return;
        };
        let key = key.bytes();
        let item = self.item(chunk, &header, Some(now));
        let shape = header.shape(self.store.chunk_max());
        let value_len = if header.is_large() { 0 } else { item.value_len };
        let mut data = Vec::with_capacity(key.len() + value_len);
        data.extend_from_slice(key);
        if value_len > 0 {
            self.store
                .each_piece(chunk, &shape, &mut |piece| data.extend_from_slice(piece));
        }
        let departed = Departed::new(why, item, key.len(), data);
        if !local.departed.borrow_mut().push(departed) {
            departures.count_untold(1);
        }
    }

    /// Tells of what this thread's operation has removed, if that is much, before it goes on. No lock is held and
    /// no memory gathered that a panic of the listener would lose.
    fn tell_if_many(&self, local: &Local) {
        // The paper's one writer holds its lock.
        let listens = !D::ONE_WRITER && self.departures.is_some();
        if listens && local.departed.borrow().is_long() {
            self.tell(local, 0);
        }
    }

    /// Tells of what this thread's operation has removed, and of some that was left to later ones.
    pub(super) fn tell(&self, local: &Local, follow_up: usize) {
        if let Some(departures) = &self.departures {
            departures.tell(local.departed.take(), follow_up);
        }
    }

    /// Where the key in a chunk belongs: sure only if its bucket is locked.
    pub(super) fn place_of(&self, chunk: Chunk) -> Option<Place> {
        let key = self.store.copy_key(chunk)?;
        Some(self.index.place(self.hasher.hash(key.bytes())))
    }

    fn drain_chunk(&self, local: &Local, now: Time, chunk: Chunk) {
        match Header::load(&self.store.arena, chunk).segment_of() {
            Some(head) if self.store.arena.contains(head) => {
                self.unlink(local, now, head, |header| header.is_large());
            }
            _ => self.unlink(local, now, chunk, |_| true),
        }
    }

    /// Makes a slot free in one of the key's buckets: by pushing items along a cuckoo path, by
    /// growing the index, or by evicting one of the sixteen items there. It may be taken by
    /// another writer before the caller comes. False if nothing may be evicted.
    #[cold]
    pub(super) fn make_room(&self, local: &mut Local, now: Time, place: &Place) -> bool {
        for turn in 0..SEARCHES_MAX_GROWING {
            let place_of = |item: Slot| self.place_of(item.chunk::<D>());
            let growing = match local.searcher.search(&self.index, place, place_of) {
                Searched::Near => false,
                // While there still are paths: so nobody ever waits for a doubling.
                Searched::Far | Searched::Full => self.start_growth(local, now),
            };
            if self.follow_path(local) {
                return true;
            }
            let patience = local.searcher.path.free.is_some() && turn < SEARCHES_MAX;
            if !growing && !patience {
                break;
            }
        }
        self.evict_from_buckets(local, now, place)
    }

    /// Moves the items of the path that was found, from its end. False if somebody was faster.
    fn follow_path(&self, local: &Local) -> bool {
        let path = &local.searcher.path;
        let Some(mut free) = path.free else {
            return false;
        };
        for &(from, item) in path.steps.iter().rev() {
            let place_of = |item: Slot| self.place_of(item.chunk::<D>());
            if self.index.relocate(from, free, item, place_of) == Moved::Stale {
                return false;
            }
            local.counters.one(Count::Displaced);
            free = from;
        }
        local.counters.path(path.steps.len());
        true
    }

    /// The table is full and may not grow, or not fast enough: one of the items in the key's buckets
    /// goes, one that was not used lately if possible. False if it may not.
    fn evict_from_buckets(&self, local: &Local, now: Time, place: &Place) -> bool {
        let locked = self.index.lock(place);
        let Some(at) = self.worst(&locked, now) else {
            // Somebody made room meanwhile.
            locked.release_unmodified();
            return true;
        };
        let chunk = locked.load(at).chunk::<D>();
        let header = Header::load(&self.store.arena, chunk);
        if !self.evicts && self.is_live(&header, now) {
            locked.release_unmodified();
            return false;
        }
        let item = locked.take_out(at, header);
        let item = self.count_departure(local, now, item);
        self.store.retire(item);
        true
    }

    /// The item of the two buckets that is missed least: a dead one, else one not used lately,
    /// else the first. `None` if a slot is free.
    fn worst(&self, locked: &Locked<'_, D>, now: Time) -> Option<Position> {
        let mut worst = None;
        for at in locked.positions() {
            let slot = locked.load(at);
            if slot.is_empty() {
                return None;
            }
            let chunk = slot.chunk::<D>();
            if !self.is_live(&Header::load(&self.store.arena, chunk), now) {
                return Some(at);
            }
            let idle = !self.store.recency.pass(chunk);
            if worst.is_none() || idle {
                worst = Some(at);
            }
        }
        worst
    }

    /// Looks at about `budget` chunks for expired and flushed items, where the last call stopped.
    pub(super) fn sweep(&self, local: &Local, now: Time, budget: usize) {
        if !self.lifetimes.may_have_dead() {
            return;
        }
        let looked = self.store.sweep(budget, |chunk| {
            let header = Header::load(&self.store.arena, chunk);
            if header.is_item() && !self.is_live(&header, now) {
                self.unlink(local, now, chunk, |header| !self.is_live(header, now));
                self.tell_if_many(local);
            }
        });
        local.counters.add(Count::Swept as usize, looked as u64);
    }

    /// Gives pages back while the limit is exceeded. True if there is more to do.
    pub(super) fn shrink(&self, local: &Local, now: Time, budget: usize) -> bool {
        self.store
            .shrink(budget, |chunk| self.drain_chunk(local, now, chunk))
    }
}
