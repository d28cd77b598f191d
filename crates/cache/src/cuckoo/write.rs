//! Writing: stores and removals.
//!
//! A store fills its chunk first, while nobody else knows of it, and takes the lock only to look at
//! what is there and to swap one word. What the chunk's size depends on (append) is looked at under
//! the lock, memory is fetched without it, and then it is looked at again: no memory is ever
//! allocated, and so nothing evicted, under a lock.

use nuthatch_sync::clock::Time;

use super::find::Asked;
use super::index::Locked;
use super::layout::{Design, Slot};
use super::local::Local;
use super::{Cuckoo, Found, plain_item};
use crate::count::{ClassCount, Count};
use crate::item::{Fields, Header, Shape};
use crate::reply::{Item, Reply};
use crate::request::{Condition, Key, Leave, Removal, Store, StoreMode};
use crate::semantics::{Concatenated, Rewrite, allows, concatenated, left, permit};
use crate::slab::arena::Chunk;
use crate::slab::fresh::Fresh;

impl<D: Design> Cuckoo<D> {
    /// A store of any mode.
    pub(super) fn store(&self, local: &mut Local, asked: &Asked<'_>, store: &Store<'_>) -> Reply {
        let reply = match store.mode {
            StoreMode::Append => self.concatenate(local, asked, store, b"", store.value),
            StoreMode::Prepend => self.concatenate(local, asked, store, store.value, b""),
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => self.put(local, asked, store),
        };
        self.help_growth();
        reply
    }

    pub(super) fn put(&self, local: &mut Local, asked: &Asked<'_>, store: &Store<'_>) -> Reply {
        let Asked { now, ref key, .. } = *asked;
        let wide = Shape::needs_wide(store.flags, store.new_cas);
        match self.allocate(local, now, key, store.value.len(), wide) {
            Ok(fresh) => {
                self.store
                    .write_value(fresh.chunk, &fresh.shape, 0, store.value);
                self.publish(local, asked, fresh, store)
            }
            Err(refusal) => refusal,
        }
    }

    /// Makes a complete item the key's item, if the store's mode and condition allow it.
    pub(super) fn publish(
        &self,
        local: &mut Local,
        asked: &Asked<'_>,
        mut fresh: Fresh,
        store: &Store<'_>,
    ) -> Reply {
        let Asked { now, ref key, .. } = *asked;
        let place = &self.index.place(key.hash());
        self.lifetimes.note_expiry(store.expiry);
        // Ends when there is room: each turn either finds a slot or makes one.
        loop {
            let locked = self.index.lock(place);
            let found = self.find_locked(local, &locked, key);
            let live = found.filter(|found| self.is_live(&found.header, now));
            let stale = match allows(store, live.as_ref().map(|found| &found.header)) {
                Ok(stale) => stale,
                Err(refusal) => {
                    locked.release_unmodified();
                    self.discard(fresh);
                    return refusal;
                }
            };
            let old = live.map(|found| found.header);
            let fields = Fields {
                flags: store.flags,
                expiry: match old {
                    Some(old) if stale => old.expiry(),
                    _ => store.expiry,
                },
                sequence: self.lifetimes.next_sequence(
                    &mut local.sequences,
                    now,
                    found.map_or(0, |f| f.header.sequence()),
                ),
                cas: store.new_cas,
                stale,
                won: stale && old.is_some_and(|old| old.is_won()),
            };
            match self.link(local, locked, found, fresh, &fields) {
                Ok(header) => {
                    local.counters.one(Count::Stored);
                    return Reply::Stored(plain_item(&header));
                }
                Err(unlinked) => fresh = unlinked,
            }
            if !self.make_room(local, now, place) {
                self.discard(fresh);
                local.counters.one(Count::OutOfMemory);
                return Reply::OutOfMemory;
            }
        }
    }

    /// Finishes the header and stores the slot: the moment from which readers find the item. Takes
    /// the place of `found`, or a free slot; gives the item back if there is none.
    pub(super) fn link(
        &self,
        local: &mut Local,
        locked: Locked<'_, D>,
        found: Option<Found>,
        fresh: Fresh,
        fields: &Fields,
    ) -> Result<Header, Fresh> {
        let Some(at) = found.map(|found| found.at).or_else(|| locked.free_slot()) else {
            locked.release_unmodified();
            return Err(fresh);
        };
        let header = Header::new(&fresh.shape, fields);
        header.store(&self.store.arena, fresh.chunk);
        self.store.recency.start(fresh.chunk);
        locked.store(at, Slot::new::<D>(locked.place.tag, fresh.chunk));
        drop(locked);
        match found {
            Some(found) => {
                local
                    .counters
                    .item_swapped(&self.store, &found.header, &header);
                self.store.retire(found.chunk, &found.header);
            }
            None => local.counters.item_in(&self.store, &header),
        }
        Ok(header)
    }

    /// Append and prepend.
    fn concatenate(
        &self,
        local: &mut Local,
        asked: &Asked<'_>,
        store: &Store<'_>,
        before: &[u8],
        after: &[u8],
    ) -> Reply {
        let Asked { ref key, .. } = *asked;
        let alone = self.shape(key.bytes().len(), store.value.len(), false);
        if alone.total_bytes() > self.item_size_max {
            return Reply::TooLarge;
        }
        let reply = self.rewrite(local, asked, |header| {
            permit(store.condition, header)?;
            Ok(Rewrite {
                new_cas: store.new_cas,
                ..Rewrite::of(header, before, true, after)
            })
        });
        match concatenated(reply, store) {
            Concatenated::Stored(item) => {
                local.counters.one(Count::Stored);
                Reply::Stored(item)
            }
            // Between the miss and the add another client may have stored: then append to that.
            Concatenated::AddInstead(add) => match self.put(local, asked, &add) {
                Reply::NotStored => self.concatenate(local, asked, store, before, after),
                reply => reply,
            },
            Concatenated::Refused(refusal) => refusal,
        }
    }

    /// Replaces the key's item by one made from it. `plan` is asked under the lock and may refuse.
    /// Missing items are answered with `Reply::NotFound`.
    pub(super) fn rewrite<'v>(
        &self,
        local: &mut Local,
        asked: &Asked<'_>,
        plan: impl Fn(&Header) -> Result<Rewrite<'v>, Reply>,
    ) -> Result<Item, Reply> {
        let Asked { now, ref key, .. } = *asked;
        let place = &self.index.place(key.hash());
        let mut spare: Option<Fresh> = None;
        let reply = loop {
            let locked = self.index.lock(place);
            let found = self.find_locked(local, &locked, key);
            let Some(found) = found.filter(|found| self.is_live(&found.header, now)) else {
                locked.release_unmodified();
                break Err(Reply::NotFound);
            };
            let rewrite = match plan(&found.header) {
                Ok(rewrite) => rewrite,
                Err(refusal) => {
                    locked.release_unmodified();
                    break Err(refusal);
                }
            };
            let value_len = rewrite.value_len(&found.header);
            let wide = Shape::needs_wide(rewrite.flags, rewrite.new_cas);
            let shape = self.shape(key.bytes().len(), value_len, wide);
            if let Some(fresh) = spare.take_if(|fresh| fresh.shape == shape) {
                let item = self.finish_rewrite(local, now, locked, &found, fresh, &rewrite);
                break Ok(item);
            }
            locked.release_unmodified();
            if let Some(unfit) = spare.take() {
                self.discard(unfit);
            }
            match self.allocate(local, now, key, value_len, wide) {
                Ok(fresh) => spare = Some(fresh),
                Err(refusal) => break Err(refusal),
            }
        };
        if let Some(unused) = spare {
            self.discard(unused);
        }
        reply
    }

    fn finish_rewrite(
        &self,
        local: &mut Local,
        now: Time,
        locked: Locked<'_, D>,
        found: &Found,
        fresh: Fresh,
        rewrite: &Rewrite<'_>,
    ) -> Item {
        let mut offset = 0;
        let mut put = |bytes: &[u8]| {
            self.store
                .write_value(fresh.chunk, &fresh.shape, offset, bytes);
            offset += bytes.len();
        };
        put(rewrite.before);
        if rewrite.keep {
            let old = found.header.shape(self.store.chunk_max());
            self.store.each_piece(found.chunk, &old, &mut put);
        }
        put(rewrite.after);
        let fields = Fields {
            flags: rewrite.flags,
            expiry: rewrite.expiry,
            sequence: self.lifetimes.next_sequence(
                &mut local.sequences,
                now,
                found.header.sequence(),
            ),
            cas: rewrite.new_cas,
            stale: rewrite.stale,
            won: rewrite.won,
        };
        self.lifetimes.note_expiry(rewrite.expiry);
        self.store.recency.carry(found.chunk, fresh.chunk);
        let header = Header::new(&fresh.shape, &fields);
        header.store(&self.store.arena, fresh.chunk);
        locked.store(found.at, Slot::new::<D>(locked.place.tag, fresh.chunk));
        drop(locked);
        local
            .counters
            .item_swapped(&self.store, &found.header, &header);
        self.store.retire(found.chunk, &found.header);
        plain_item(&header)
    }

    /// A removal of any kind.
    pub(super) fn remove(&self, local: &mut Local, asked: &Asked<'_>, removal: &Removal) -> Reply {
        if removal.leave == Leave::Nothing {
            return self.delete(local, asked, removal.condition);
        }
        match self.rewrite(local, asked, |header| left(removal, header)) {
            Ok(_) => Reply::Removed,
            Err(refusal) => refusal,
        }
    }

    fn delete(&self, local: &mut Local, asked: &Asked<'_>, condition: Condition) -> Reply {
        let Asked { now, ref key, .. } = *asked;
        let place = &self.index.place(key.hash());
        let locked = self.index.lock(place);
        let Some(found) = self.find_locked(local, &locked, key) else {
            locked.release_unmodified();
            return Reply::NotFound;
        };
        let live = self.is_live(&found.header, now);
        if live && permit(condition, &found.header).is_err() {
            locked.release_unmodified();
            return Reply::Exists;
        }
        // A dead item is taken out as well: its memory comes back at once.
        locked.store(found.at, Slot::EMPTY);
        drop(locked);
        local.counters.item_out(&self.store, &found.header);
        self.store.retire(found.chunk, &found.header);
        if live {
            Reply::Removed
        } else {
            Reply::NotFound
        }
    }

    /// Memory for an item, with its key written. Evicts if it must.
    pub(super) fn allocate(
        &self,
        local: &mut Local,
        now: Time,
        key: &Key<'_>,
        value_len: usize,
        wide: bool,
    ) -> Result<Fresh, Reply> {
        let shape = self.shape(key.bytes().len(), value_len, wide);
        if shape.total_bytes() > self.item_size_max {
            return Err(Reply::TooLarge);
        }
        let chunk = self.allocate_shape(local, now, &shape)?;
        self.store.begin_fill();
        self.store
            .arena
            .write(chunk, shape.key_start(), key.bytes());
        Ok(Fresh { chunk, shape })
    }

    fn allocate_shape(&self, local: &mut Local, now: Time, shape: &Shape) -> Result<Chunk, Reply> {
        let chunk_of = |class| self.allocate_chunk(local, now, class);
        self.store.allocate_item(shape, chunk_of).map_err(|class| {
            local.counters.one(Count::OutOfMemory);
            local.counters.one_in(class, ClassCount::OutOfMemory);
            Reply::OutOfMemory
        })
    }

    /// Frees an item that was never linked.
    pub(super) fn discard(&self, fresh: Fresh) {
        self.store.discard(fresh);
    }
}
