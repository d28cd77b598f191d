//! Making room: evicting by CLOCK, moving pages between classes, taking expired items back.
//!
//! Nobody is asked to wait for an eviction: a victim is taken out of the index like any removed item,
//! with its versions bumped before and after (MemC3 section 4), and late readers read again.

use std::mem::MaybeUninit;

use nuthatch_sync::clock::Time;

use super::Cuckoo;
use super::config::Departure;
use super::index::{Locked, Moved, Place, Position};
use super::layout::{Design, Slot};
use super::local::Local;
use super::search::Searched;
use crate::count::Count;
use crate::item::Header;
use crate::slab::arena::Chunk;

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
        let (chunk, header) = self.take_out(local, now, victim, |_| true)?;
        let keep = !header.is_large()
            && self
                .store
                .class_of(header.shape(self.store.chunk_max()).head_bytes())
                == class
            && self.store.pins.may_free(chunk);
        if keep {
            return Some(chunk);
        }
        self.store.retire(chunk, &header);
        None
    }

    /// Takes the item in a chunk out of the index and frees it, if it is an item and `doomed`.
    pub(super) fn unlink(
        &self,
        local: &Local,
        now: Time,
        chunk: Chunk,
        doomed: impl Fn(&Header) -> bool,
    ) {
        if let Some((chunk, header)) = self.take_out(local, now, chunk, doomed) {
            self.store.retire(chunk, &header);
        }
    }

    /// Takes the item in a chunk out of the index, if there is one and `doomed` says so under the
    /// lock. The memory is then the caller's.
    fn take_out(
        &self,
        local: &Local,
        now: Time,
        chunk: Chunk,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<(Chunk, Header)> {
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
        locked.store(at, Slot::EMPTY);
        drop(locked);
        self.count_departure(local, now, chunk, &header);
        Some((chunk, header))
    }

    fn count_departure(&self, local: &Local, now: Time, chunk: Chunk, header: &Header) {
        local.counters.item_out(&self.store, header);
        let live = self.is_live(header, now);
        local.counters.departed(&self.store, chunk, header, live);
        if let Some(listener) = &self.listener {
            let departure = if live {
                Departure::Evicted
            } else {
                Departure::Expired
            };
            self.tell(listener, departure, chunk, header, now);
        }
    }

    #[cold]
    fn tell(
        &self,
        listener: &super::config::Listener,
        departure: Departure,
        chunk: Chunk,
        header: &Header,
        now: Time,
    ) {
        let Some(key) = self.store.copy_key(chunk) else {
            return;
        };
        let item = self.item(chunk, header, now);
        let shape = header.shape(self.store.chunk_max());
        let mut value = Vec::new();
        if !header.is_large() {
            value.resize(item.value_len, MaybeUninit::new(0));
            self.store.read_value(chunk, &shape, 0, &mut value);
        }
        // SAFETY: `resize` initialised every byte, and `read_value` only writes.
        let value: &[u8] = unsafe { value.assume_init_ref() };
        let unless_it_returns = Retire {
            engine: self,
            chunk,
            header,
        };
        listener(departure, key.bytes(), &item, value);
        std::mem::forget(unless_it_returns);
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
        locked.store(at, Slot::EMPTY);
        drop(locked);
        self.count_departure(local, now, chunk, &header);
        self.store.retire(chunk, &header);
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

/// Takes the memory of an item back that has left the index, if its listener does not return.
struct Retire<'a, D: Design> {
    engine: &'a Cuckoo<D>,
    chunk: Chunk,
    header: &'a Header,
}

impl<D: Design> Drop for Retire<'_, D> {
    fn drop(&mut self) {
        self.engine.store.retire(self.chunk, self.header);
    }
}
