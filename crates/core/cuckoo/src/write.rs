//! Writing: stores and removals.
//!
//! A store fills its memory first, while only its thread has access to it, and takes the lock only to check the present
//! item and to swap one word. Stores that depend on the present item: see [`table`].

use std::sync::Arc;

use nuthatch_base::sync::clock::Time;

use super::handle::{COPY_MAX, CuckooValue};
use super::index::{LockedBuckets, Position};
use super::layout::{SlotWord, Variant};
use super::local::Local;
use super::{Cuckoo, Found, plain_item};
use nuthatch_engine::reply::{Replies, Reply};
use nuthatch_engine::request::{Condition, Store};
use nuthatch_engine::semantics::permit;
use nuthatch_store::count::Count;
use nuthatch_store::item::fresh::Fresh;
use nuthatch_store::item::unlinked::Unlinked;
use nuthatch_store::item::{Fields, Header, Shape, record_words};
use nuthatch_store::memory::arena::Address;
use nuthatch_store::reclaim::removals::RemovalCause;
use nuthatch_store::reclaim::{ItemState, Reclaim};
use nuthatch_store::store::Placement;
use nuthatch_store::table;
use nuthatch_store::table::{Lookup, Table};

/// Slots that a store makes free and other writers take, before the store replaces an item under the lock.
const ROOMS_MAX: usize = 16;

/// An item, dead or alive, that another one replaces.
pub(super) struct Replaced {
    pub found: Found,
    /// The moment at which it leaves.
    pub now: Time,
    /// Its value is that of the new item.
    pub same_value: bool,
}

impl Replaced {
    /// Replaced by an item with another value.
    pub fn by_another(found: Found, now: Time) -> Self {
        Self {
            found,
            now,
            same_value: false,
        }
    }
}

impl<D: Variant> Cuckoo<D> {
    /// Puts a filled item into the table: in the place of another, or into a free slot. Returns the item if there is
    /// none.
    pub(super) fn link(
        &self,
        local: &mut Local,
        locked: LockedBuckets<'_, D>,
        replaced: Option<Replaced>,
        fresh: Fresh,
        fields: &Fields,
    ) -> Result<Header, Fresh> {
        let place = replaced.as_ref().map(|replaced| replaced.found.at);
        match place.or_else(|| locked.free_slot()) {
            Some(at) => Ok(self.link_at(at, local, locked, replaced, fresh, fields)),
            None => {
                locked.release_unmodified();
                Err(fresh)
            }
        }
    }

    /// Puts a filled item into the place of an item in its buckets, which is evicted. Returns the new item if nothing
    /// may be evicted.
    fn link_over(
        &self,
        local: &mut Local,
        now: Time,
        locked: LockedBuckets<'_, D>,
        fresh: Fresh,
        fields: &Fields,
    ) -> Result<Header, Fresh> {
        let Some(at) = self.worst(&locked, now) else {
            return self.link(local, locked, None, fresh, fields);
        };
        let address = locked.load(at).address::<D>();
        let gone = Unlinked::new(address, Header::load(&self.store.arena, address));
        if !self.evicts && self.is_live(gone.header(), now) {
            locked.release_unmodified();
            return Err(fresh);
        }
        let header = self.link_at(at, local, locked, None, fresh, fields);
        self.slot_cleared(local, now, gone);
        Ok(header)
    }

    /// Notes and frees an item that has left to make a slot free.
    pub(super) fn slot_cleared(&self, local: &Local, now: Time, gone: Unlinked) {
        if self.note_removal(local, now, &gone) == ItemState::Live {
            local.counters.one(Count::EvictedSlots);
        }
        self.store.retire(gone);
    }

    /// Makes a complete item the key's item, if the store allows it. Returns the item if there is no slot. `over`: a
    /// slot is made free under the same lock, by an eviction.
    pub(super) fn enter(
        &self,
        local: &mut Local,
        lookup: &Lookup<'_>,
        mut fresh: Fresh,
        store: &Store<'_>,
        over: bool,
    ) -> Result<Reply, Fresh> {
        let Lookup { now, ref key, .. } = *lookup;
        let locked = self.index.lock(&self.index.place(key.hash()));
        let found = self.find_locked(local, &locked, key);
        let live = found.filter(|found| self.is_live(&found.header, now));
        let old = found.as_ref().map(|found| &found.header);
        let old_live = live.as_ref().map(|found| &found.header);
        let fields = match self.admit(local, now, store, old, old_live) {
            Ok(fields) => fields,
            Err(refusal) => {
                locked.release_unmodified();
                self.store.discard(fresh);
                return Ok(refusal);
            }
        };
        if let Some(found) = &live {
            D::Placement::note_replaced(&self.store, found.address, &mut fresh);
        }
        self.store.start(&fresh);
        let full = found.is_none() && locked.free_slot().is_none();
        let header = match over && full {
            true => self.link_over(local, now, locked, fresh, &fields)?,
            false => {
                let replaced = found.map(|found| Replaced::by_another(found, now));
                self.link(local, locked, replaced, fresh, &fields)?
            }
        };
        local.counters.one(Count::Stored);
        Ok(Reply::Stored(plain_item(&header)))
    }

    /// Refuses a store because there is no slot.
    fn no_slot(&self, local: &Local, fresh: Fresh) -> Reply {
        self.store.discard(fresh);
        local.counters.one(Count::OutOfMemory);
        Reply::OutOfMemory
    }

    /// Takes the key's item out and answers with its value, in one step.
    pub(super) fn take(
        self: &Arc<Self>,
        local: &mut Local,
        lookup: &Lookup<'_>,
        replies: &mut dyn Replies<CuckooValue<D>>,
    ) {
        let index = lookup.index;
        let locked = self.index.lock(&self.index.place(lookup.key.hash()));
        let Some(found) = self.find_locked(local, &locked, &lookup.key) else {
            locked.release_unmodified();
            return replies.done(index, Reply::Miss);
        };
        let item = plain_item(&found.header);
        if !self.is_live(&found.header, lookup.now) {
            self.unlink(local, lookup.now, locked, found, false);
            replies.done(index, Reply::Miss);
        } else if item.value_len > COPY_MAX {
            // A pinned item keeps its memory, wherever it is.
            // SAFETY: the item is locked. Only values of up to half of `COPY_MAX` bytes are changed in place.
            let value = unsafe { CuckooValue::new(Arc::clone(self), found.address, &found.header) };
            self.unlink(local, lookup.now, locked, found, true);
            replies.large(index, &item, value);
        } else {
            let shape = found.header.shape(self.store.cut());
            let into = replies.begin(index, &item);
            self.store.read_value(found.address, &shape, 0, into);
            self.unlink(local, lookup.now, locked, found, true);
            replies.commit(index);
        }
    }

    /// Takes an item out that is removed on request, or that the removal finds dead.
    fn unlink(
        &self,
        local: &Local,
        now: Time,
        locked: LockedBuckets<'_, D>,
        found: Found,
        live: bool,
    ) -> Reply {
        let gone = locked.take_out(found.at, found.header);
        self.taken_out(local, now, gone, live)
    }

    /// Finishes the header and stores the slot. From that moment on readers find the item.
    fn link_at(
        &self,
        at: Position,
        local: &mut Local,
        locked: LockedBuckets<'_, D>,
        replaced: Option<Replaced>,
        fresh: Fresh,
        fields: &Fields,
    ) -> Header {
        let header = Header::new(&fresh.shape, fields);
        header.store(&self.store.arena, fresh.address);
        let words = record_words(fresh.shape.head_bytes());
        let slot = SlotWord::of_record::<D>(locked.place.tag, fresh.address, words);
        locked.store(at, slot);
        drop(locked);
        self.store.note_linked(&fresh, fields.expiry);
        match replaced {
            Some(Replaced {
                found,
                now,
                same_value,
            }) => {
                local
                    .counters
                    .item_swapped(&self.store, &found.header, &header);
                // The slot refers to another item now.
                let gone = Unlinked::new(found.address, found.header);
                if !same_value {
                    self.note_left(local, now, RemovalCause::Replaced, &gone);
                }
                self.store.retire(gone);
            }
            None => local.counters.item_in(&self.store, &header),
        }
        header
    }
}

/// A live item under its key's two locks.
pub struct LockedItem<'t, D: Variant> {
    locked: LockedBuckets<'t, D>,
    found: Found,
}

impl<D: Variant> table::LockedItem for LockedItem<'_, D> {
    #[inline]
    fn address(&self) -> Address {
        self.found.address
    }

    #[inline]
    fn header(&self) -> &Header {
        &self.found.header
    }

    #[inline]
    fn release(self) {
        self.locked.release_unmodified();
    }
}

impl<D: Variant> Table for Cuckoo<D> {
    type LockedItem<'t> = LockedItem<'t, D>;

    fn shape(&self, key_len: usize, value_len: usize, wide: bool) -> Shape {
        Shape::new(key_len, value_len, wide, self.store.cut())
    }

    #[inline(always)]
    fn hold(&self, local: &Local, lookup: &Lookup<'_>) -> Option<LockedItem<'_, D>> {
        let locked = self.index.lock(&self.index.place(lookup.key.hash()));
        let found = self.find_locked(local, &locked, &lookup.key);
        match found.filter(|found| self.is_live(&found.header, lookup.now)) {
            Some(found) => Some(LockedItem { locked, found }),
            None => {
                locked.release_unmodified();
                None
            }
        }
    }

    #[inline]
    fn may_hold(&self, lookup: &Lookup<'_>) -> bool {
        let place = self.index.place(lookup.key.hash());
        let (_, buckets) = self.index.begin(&place);
        self.index.first_match(buckets, place.tag).is_some()
    }

    #[inline]
    fn used(&self, held: &LockedItem<'_, D>) {
        self.store.hit(held.found.address, &held.found.header);
    }

    #[inline]
    fn replace(
        &self,
        local: &mut Local,
        now: Time,
        held: LockedItem<'_, D>,
        fresh: Fresh,
        fields: &Fields,
        same_value: bool,
    ) -> Header {
        let LockedItem { locked, found } = held;
        let at = found.at;
        let replaced = Replaced {
            found,
            now,
            same_value,
        };
        self.link_at(at, local, locked, Some(replaced), fresh, fields)
    }

    fn publish(
        &self,
        local: &mut Local,
        lookup: &Lookup<'_>,
        mut fresh: Fresh,
        store: &Store<'_>,
    ) -> Reply {
        let place = &self.index.place(lookup.key.hash());
        self.timestamps.note_expiry(store.expiry);
        for _ in 0..ROOMS_MAX {
            match self.enter(local, lookup, fresh, store, false) {
                Ok(reply) => return reply,
                Err(unlinked) => fresh = unlinked,
            }
            if !self.make_room(local, lookup.now, place) {
                return self.no_slot(local, fresh);
            }
        }
        match self.enter(local, lookup, fresh, store, true) {
            Ok(reply) => reply,
            Err(unlinked) => self.no_slot(local, unlinked),
        }
    }

    fn delete(&self, local: &mut Local, lookup: &Lookup<'_>, condition: Condition) -> Reply {
        let Lookup { now, ref key, .. } = *lookup;
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
        self.unlink(local, now, locked, found, live)
    }
}
