//! Writing: stores and removals.
//!
//! A store fills its chunk first, while nobody else knows of it, and locks only to look at what is
//! there and to change the chain. What the chunk's size depends on (append) is looked at under the
//! lock, memory is fetched without it, and then it is looked at again.

use nuthatch_sync::clock::Time;

use super::Chained;
use super::find::{Asked, Found};
use super::index::Locked;
use super::local::Local;
use crate::count::{ClassCount, Count};
use crate::item::{Fields, Header, plain_item};
use crate::reply::{Item, Reply};
use crate::request::{Condition, Key, Leave, Removal, Store, StoreMode};
use crate::semantics::{Concatenated, Rewrite, allows, concatenated, left, permit};
use crate::slab::fresh::Fresh;

impl Chained {
    /// A store of any mode.
    pub(super) fn store(&self, local: &mut Local, asked: &Asked<'_>, store: &Store<'_>) -> Reply {
        match store.mode {
            StoreMode::Append => self.concatenate(local, asked, store, b"", store.value),
            StoreMode::Prepend => self.concatenate(local, asked, store, store.value, b""),
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => self.put(local, asked, store),
        }
    }

    pub(super) fn put(&self, local: &mut Local, asked: &Asked<'_>, store: &Store<'_>) -> Reply {
        match self.allocate(local, asked.now, asked.key, store.value.len()) {
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
        fresh: Fresh,
        store: &Store<'_>,
    ) -> Reply {
        self.lifetimes.note_expiry(store.expiry);
        let locked = self.index.lock(asked.key.hash());
        let found = self.find(local, &locked, asked.key);
        let live = found.filter(|found| self.is_live(&found.header, asked.now));
        let stale = match allows(store, live.as_ref().map(|found| &found.header)) {
            Ok(stale) => stale,
            Err(refusal) => {
                drop(locked);
                self.store.discard(fresh);
                return refusal;
            }
        };
        // An older cas stores, but the item stays as mortal, and as won, as it was.
        let kept = live.filter(|_| stale).map(|found| found.header);
        let fields = Fields {
            flags: store.flags,
            expiry: kept.map_or(store.expiry, |kept| kept.expiry()),
            sequence: self.sequence_after(local, asked.now, found.as_ref()),
            cas: store.new_cas,
            stale,
            won: kept.is_some_and(|kept| kept.is_won()),
        };
        self.store.recency.start(fresh.chunk);
        let header = self.link(local, asked.now, locked, found, fresh, &fields);
        local.counters.one(Count::Stored);
        Reply::Stored(plain_item(&header))
    }

    /// The sequence of an item that takes the place of another.
    pub(super) fn sequence_after(
        &self,
        local: &mut Local,
        now: Time,
        found: Option<&Found>,
    ) -> u64 {
        let above = found.map_or(0, |found| found.header.sequence());
        self.lifetimes
            .next_sequence(&mut local.sequences, now, above)
    }

    /// Finishes the header of a filled item and puts it into the table, in the place of `found`.
    pub(super) fn link(
        &self,
        local: &mut Local,
        now: Time,
        locked: Locked<'_>,
        found: Option<Found>,
        fresh: Fresh,
        fields: &Fields,
    ) -> Header {
        let header = Header::new(&fresh.shape, fields);
        header.store(&self.store.arena, fresh.chunk);
        if let Some(old) = &found {
            self.leave(&locked, old);
        }
        self.enter(&locked, fresh.chunk, &header);
        drop(locked);
        match found {
            Some(old) => {
                local
                    .counters
                    .item_swapped(&self.store, &old.header, &header);
                self.store.retire(old.chunk, &old.header);
            }
            None => {
                local.counters.item_in(&self.store, &header);
                if local.came(&self.population) {
                    self.grow_if_crowded(local, now);
                }
            }
        }
        self.help_growth();
        header
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
        let alone = self.shape(asked.key.bytes().len(), store.value.len());
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
        let mut spare: Option<Fresh> = None;
        let outcome = loop {
            let locked = self.index.lock(asked.key.hash());
            let Some(found) = self.find_live(local, &locked, asked) else {
                break Err(Reply::NotFound);
            };
            let rewrite = match plan(&found.header) {
                Ok(rewrite) => rewrite,
                Err(refusal) => break Err(refusal),
            };
            let value_len = rewrite.value_len(&found.header);
            let shape = self.shape(asked.key.bytes().len(), value_len);
            if let Some(fresh) = spare.take_if(|fresh| fresh.shape == shape) {
                break Ok(self.finish_rewrite(local, asked.now, locked, found, fresh, &rewrite));
            }
            drop(locked);
            if let Some(unfit) = spare.take() {
                self.store.discard(unfit);
            }
            match self.allocate(local, asked.now, asked.key, value_len) {
                Ok(fresh) => spare = Some(fresh),
                Err(refusal) => break Err(refusal),
            }
        };
        if let Some(unused) = spare {
            self.store.discard(unused);
        }
        outcome
    }

    fn finish_rewrite(
        &self,
        local: &mut Local,
        now: Time,
        locked: Locked<'_>,
        found: Found,
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
            let old = self.shape_of(&found.header);
            self.store.each_piece(found.chunk, &old, &mut put);
        }
        put(rewrite.after);
        let fields = Fields {
            flags: rewrite.flags,
            expiry: rewrite.expiry,
            sequence: self.sequence_after(local, now, Some(&found)),
            cas: rewrite.new_cas,
            stale: rewrite.stale,
            won: rewrite.won,
        };
        self.lifetimes.note_expiry(rewrite.expiry);
        self.store.recency.carry(found.chunk, fresh.chunk);
        plain_item(&self.link(local, now, locked, Some(found), fresh, &fields))
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
        let locked = self.index.lock(asked.key.hash());
        let Some(found) = self.find(local, &locked, asked.key) else {
            return Reply::NotFound;
        };
        let live = self.is_live(&found.header, asked.now);
        if live && permit(condition, &found.header).is_err() {
            return Reply::Exists;
        }
        // A dead item is taken out as well: its memory comes back at once.
        self.leave(&locked, &found);
        drop(locked);
        local.went(&self.population);
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
    ) -> Result<Fresh, Reply> {
        let shape = self.shape(key.bytes().len(), value_len);
        if shape.total_bytes() > self.item_size_max {
            return Err(Reply::TooLarge);
        }
        let chunk_of = |class| self.allocate_chunk(local, now, class);
        let chunk = self
            .store
            .allocate_item(&shape, chunk_of)
            .map_err(|class| {
                local.counters.one(Count::OutOfMemory);
                local.counters.one_in(class, ClassCount::OutOfMemory);
                Reply::OutOfMemory
            })?;
        self.store.begin_fill();
        self.store
            .arena
            .write(chunk, shape.key_start(), key.bytes());
        Ok(Fresh { chunk, shape })
    }
}
