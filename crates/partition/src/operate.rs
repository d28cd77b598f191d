//! The operations of the Engine seam, carried out by a partition's owner on behalf of a client.
//!
//! Each is one call that begins and ends with the partition whole, so it is atomic for its key. The
//! element of a store is filled before the old one leaves the table. An element that has readers is
//! never changed where they look: whatever would change it makes another in its place.
//!
//! Readers by the partition's [descriptor](super::descriptor) may be about, and may mark an element or touch it; so
//! what the operation takes effect by is looked at while the key's bucket is held.

use nuthatch_sync::clock::Time;

use super::element::{Element, Fields, HEADER, mark};
use super::memory::BlockMemory;
use super::table::Partition;
use nuthatch_engine::reply::{Item, Reply};
use nuthatch_engine::request::{
    Condition, Expiry, Key, Leave, Op, Read, Removal, Store, StoreMode,
};
use nuthatch_engine::semantics::{
    Concatenated, Rewrite, allows, concatenated, left, permit, wants_value,
};

/// What an operation answers.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// A read that returns this element's value. It is not pinned: the owner copies it before anything
    /// else happens in the partition, or pins it.
    Value(Element, Item),
    /// Any other answer.
    Done(Reply),
}

impl Partition {
    /// Carries out one operation.
    #[inline]
    pub fn execute(&mut self, now: Time, key: &Key<'_>, op: &Op<'_>) -> Outcome {
        self.enter(now);
        match op {
            Op::Get => self.get(now, key),
            Op::Read(read) => self.read(now, key, read),
            Op::Store(store) => Outcome::Done(self.store(now, key, store)),
            Op::Remove(removal) => Outcome::Done(self.remove(now, key, removal)),
            Op::Delta(delta) => Outcome::Done(self.delta(now, key, delta)),
        }
    }

    /// Calls `act` with the key's live element, while no reader is at it.
    #[inline(always)]
    pub(super) fn with_live<T>(
        &mut self,
        now: Time,
        key: &Key<'_>,
        act: impl FnOnce(&mut Self, Element) -> T,
    ) -> Option<T> {
        let found = self.find(key)?;
        self.holding(key.hash(), |partition| {
            let live = partition.is_live(found, now);
            live.then(|| act(partition, found))
        })
    }

    /// A plain get.
    #[inline]
    fn get(&mut self, now: Time, key: &Key<'_>) -> Outcome {
        let Some(element) = self.find(key) else {
            return Outcome::Done(Reply::Miss);
        };
        // As `with_live`, but in one piece: the compiler calls closures of this size.
        let held = self.hold(key.hash());
        let live = self.is_live(element, now);
        let item = self.memory().item(element, now);
        if live {
            self.hit(now, element);
        }
        self.release(held);
        match live {
            true => Outcome::Value(element, item),
            false => Outcome::Done(Reply::Miss),
        }
    }

    /// A read with options.
    fn read(&mut self, now: Time, key: &Key<'_>, read: &Read) -> Outcome {
        let found = self.with_live(now, key, |partition, element| {
            let item = partition.memory().mark_read(element, now, read);
            if let Some(expiry) = read.touch {
                partition.note_expiry(expiry);
            }
            if read.bump {
                partition.renew(element);
            }
            if wants_value(read, &item) {
                Outcome::Value(element, item)
            } else {
                Outcome::Done(Reply::Found(item))
            }
        });
        match (found, read.vivify) {
            (Some(outcome), _) => outcome,
            (None, Some(expiry)) => self.vivify(now, key, read, expiry),
            (None, None) => Outcome::Done(Reply::Miss),
        }
    }

    /// An empty item that its creator has won.
    fn vivify(&mut self, now: Time, key: &Key<'_>, read: &Read, expiry: Expiry) -> Outcome {
        let fields = Fields {
            flags: 0,
            expiry,
            sequence: 0,
            cas: read.new_cas,
            state_bits: mark::WON,
        };
        let made = self.make(now, key, &[b""]);
        match made.and_then(|element| self.put_in_place(now, element, |_, _| Ok(fields))) {
            Ok((element, item)) => {
                let item = Item {
                    won: true,
                    won_before: false,
                    ..item
                };
                if read.value {
                    Outcome::Value(element, item)
                } else {
                    Outcome::Done(Reply::Found(item))
                }
            }
            Err(refusal) => Outcome::Done(refusal),
        }
    }

    /// A store of any mode.
    fn store(&mut self, now: Time, key: &Key<'_>, store: &Store<'_>) -> Reply {
        if HEADER + key.bytes().len() + store.value.len() > self.config.item_size_max {
            return Reply::TooLarge;
        }
        let reply = match store.mode {
            StoreMode::Append => self.concatenate(now, key, store, b"", store.value),
            StoreMode::Prepend => self.concatenate(now, key, store, store.value, b""),
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => {
                let live = self.find_live(now, key);
                match self.fields_of_store(now, live, store) {
                    Ok(fields) => self.put_value(now, key, store.value, |partition, old| {
                        partition.fields_by_now(now, old, store, fields)
                    }),
                    Err(refusal) => refusal,
                }
            }
        };
        self.count_stored(reply)
    }

    /// What a set, add or replace makes of the live element that is there, or why not.
    fn fields_of_store(
        &self,
        now: Time,
        live: Option<Element>,
        store: &Store<'_>,
    ) -> Result<Fields, Reply> {
        let old = live.map(|element| self.memory().item(element, now));
        let stale = allows(store, old.as_ref())?;
        let kept = old.filter(|_| stale);
        let won = kept.is_some_and(|old| old.won_before);
        let state_bits = if stale { mark::STALE } else { 0 } | if won { mark::WON } else { 0 };
        Ok(Fields {
            flags: store.flags,
            expiry: kept.map_or(store.expiry, |old| old.expiry),
            sequence: 0,
            cas: store.new_cas,
            state_bits,
        })
    }

    /// The same once there is room and the key's element, if it still has one, is held: a reader may have
    /// marked it since.
    fn fields_by_now(
        &self,
        now: Time,
        old: Option<Element>,
        store: &Store<'_>,
        before: Fields,
    ) -> Result<Fields, Reply> {
        match old {
            Some(old) if self.index.is_shared() => {
                let live = Some(old).filter(|&old| self.is_live(old, now));
                self.fields_of_store(now, live, store)
            }
            _ => Ok(before),
        }
    }

    pub(super) fn put_value(
        &mut self,
        now: Time,
        key: &Key<'_>,
        value: &[u8],
        fields: impl FnOnce(&Self, Option<Element>) -> Result<Fields, Reply>,
    ) -> Reply {
        let made = self.make(now, key, &[value]);
        match made.and_then(|element| self.put_in_place(now, element, fields)) {
            Ok((_, item)) => Reply::Stored(item),
            Err(refusal) => refusal,
        }
    }

    pub(super) fn count_stored(&mut self, reply: Reply) -> Reply {
        if let Reply::Stored(_) = reply {
            self.counts.stored += 1;
        }
        reply
    }

    /// An element with this key and the pieces of its value written; NOT READY.
    fn make(&mut self, now: Time, key: &Key<'_>, value: &[&[u8]]) -> Result<Element, Reply> {
        let value_len = value.iter().map(|piece| piece.len()).sum();
        let element = self.insert(now, key.hash(), key.bytes().len(), value_len)?;
        self.memory().write(element, 0, key.bytes());
        let mut offset = key.bytes().len();
        for piece in value {
            self.memory().write(element, offset, piece);
            offset += piece.len();
        }
        Ok(element)
    }

    /// Makes a filled element the one of its key, READY, in place of the one that is there, and drops the
    /// reference of the thread that filled it. `fields`, all but the sequence, is told which one that is, while
    /// no reader is at it, and may refuse.
    fn put_in_place(
        &mut self,
        now: Time,
        element: Element,
        fields: impl FnOnce(&Self, Option<Element>) -> Result<Fields, Reply>,
    ) -> Result<(Element, Item), Reply> {
        if !self.make_bucket(now) {
            self.decref(element);
            return Err(Reply::OutOfMemory);
        }
        // Only now: making room may have thrown the old one out.
        let hash = self.memory().hash(element);
        let same = |memory: &BlockMemory, other| memory.same_key(element, other);
        let old = self.find_where(hash, same);
        let put = self.holding(hash, |partition| {
            let mut fields = fields(partition, old)?;
            if let Some(old) = old {
                partition.unlink(old);
            }
            fields.sequence = partition.next_sequence();
            partition.link(now, element, &fields);
            partition.memory().drop_reader(element);
            Ok((element, partition.memory().item(element, now)))
        });
        if put.is_err() {
            self.decref(element);
        }
        put
    }

    /// *Ready* of the paper: carries out the store of an element that [`Partition::insert`] gave and whose
    /// key and value are written; `store.value` is ignored. Takes the caller's reference in any
    /// case. The reply is that of the same store in one go.
    pub fn publish(&mut self, now: Time, element: Element, store: &Store<'_>) -> Reply {
        self.enter(now);
        if matches!(store.mode, StoreMode::Append | StoreMode::Prepend) {
            // What is there must be copied in any case, so the bytes come out of their place once.
            let memory = self.memory();
            let (hash, key_len) = (memory.hash(element), memory.key_len(element));
            let data = memory.to_vec(element, 0, key_len + memory.value_len(element));
            self.decref(element);
            let (key, value) = data.split_at(key_len);
            return self.store(now, &Key::hashed(key, hash), &Store { value, ..*store });
        }
        let hash = self.memory().hash(element);
        let same = |memory: &BlockMemory, other| memory.same_key(element, other);
        let old = self.find_counted(hash, same);
        let live = old.filter(|&old| self.is_live(old, now));
        let reply = match self.fields_of_store(now, live, store) {
            Ok(fields) => {
                let by_now =
                    |partition: &Self, old| partition.fields_by_now(now, old, store, fields);
                match self.put_in_place(now, element, by_now) {
                    Ok((_, item)) => Reply::Stored(item),
                    Err(refusal) => refusal,
                }
            }
            Err(refusal) => {
                self.decref(element);
                refusal
            }
        };
        self.count_stored(reply)
    }

    /// Append and prepend.
    fn concatenate(
        &mut self,
        now: Time,
        key: &Key<'_>,
        store: &Store<'_>,
        before: &[u8],
        after: &[u8],
    ) -> Reply {
        let reply = self.rewrite(now, key, |item| {
            permit(store.condition, item)?;
            Ok(Rewrite {
                new_cas: store.new_cas,
                ..Rewrite::of(item, before, true, after)
            })
        });
        match concatenated(reply, store) {
            Concatenated::Stored(item) => Reply::Stored(item),
            Concatenated::AddInstead(add) => {
                let fields = Fields {
                    flags: add.flags,
                    expiry: add.expiry,
                    sequence: 0,
                    cas: add.new_cas,
                    state_bits: 0,
                };
                self.put_value(now, key, add.value, |_, _| Ok(fields))
            }
            Concatenated::Refused(refusal) => refusal,
        }
    }

    /// Replaces the key's element by one made from it. `plan` may refuse. Missing items are answered with
    /// [`Reply::NotFound`].
    pub(super) fn rewrite<'v>(
        &mut self,
        now: Time,
        key: &Key<'_>,
        plan: impl Fn(&Item) -> Result<Rewrite<'v>, Reply>,
    ) -> Result<Item, Reply> {
        let Some(old) = self.find_live(now, key) else {
            return Err(Reply::NotFound);
        };
        let item = self.memory().item(old, now);
        let rewrite = plan(&item)?;
        // Held, so that it is not thrown out to make room for what it becomes.
        if !self.pin(old) {
            return Err(Reply::OutOfMemory);
        }
        let (key_len, value_len) = (key.bytes().len(), rewrite.value_len(&item));
        let made = self.insert(now, key.hash(), key_len, value_len);
        let made = made.and_then(|element| {
            let memory = self.memory();
            let kept = if rewrite.keep { item.value_len } else { 0 };
            let start = key_len + rewrite.before.len();
            memory.write(element, 0, key.bytes());
            memory.write(element, key_len, rewrite.before);
            memory.copy((old, key_len), (element, start), kept);
            memory.write(element, start + kept, rewrite.after);
            // Once more, of what it is by now: a reader may have marked it since.
            self.put_in_place(now, element, |partition, _| {
                let item = partition.live_item(now, old)?;
                Ok(partition.fields_of_rewrite(old, &plan(&item)?))
            })
        });
        self.decref(old);
        made.map(|(_, item)| item)
    }

    /// What clients see of an element, if it is still live.
    fn live_item(&self, now: Time, element: Element) -> Result<Item, Reply> {
        let live = self.is_live(element, now).then_some(element);
        live.map(|element| self.memory().item(element, now))
            .ok_or(Reply::NotFound)
    }

    /// What a rewrite makes of an element.
    fn fields_of_rewrite(&self, old: Element, rewrite: &Rewrite<'_>) -> Fields {
        let state_bits = self.memory().state_bits(old) & mark::FETCHED
            | if rewrite.stale { mark::STALE } else { 0 }
            | if rewrite.won { mark::WON } else { 0 };
        Fields {
            flags: rewrite.flags,
            expiry: rewrite.expiry,
            sequence: 0,
            cas: rewrite.new_cas,
            state_bits,
        }
    }

    /// A removal of any kind.
    fn remove(&mut self, now: Time, key: &Key<'_>, removal: &Removal) -> Reply {
        if removal.leave == Leave::Nothing {
            return self.delete(now, key, removal.condition);
        }
        match self.rewrite(now, key, |item| left(removal, item)) {
            Ok(_) => Reply::Removed,
            Err(refusal) => refusal,
        }
    }

    fn delete(&mut self, now: Time, key: &Key<'_>, condition: Condition) -> Reply {
        let Some(element) = self.find(key) else {
            return Reply::NotFound;
        };
        self.holding(key.hash(), |partition| {
            let item = partition.live_item(now, element);
            if let Ok(item) = &item
                && let Err(refusal) = permit(condition, item)
            {
                return refusal;
            }
            // A dead item is taken out as well: its memory comes back at once.
            partition.unlink(element);
            item.map_or(Reply::NotFound, |_| Reply::Removed)
        })
    }
}
