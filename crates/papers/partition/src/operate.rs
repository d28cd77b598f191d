//! The operations of the Engine interface, as a partition's owner carries them out for a client.
//!
//! Each is one call that begins and ends with a consistent partition, so it is atomic for its key. The element of a
//! store is filled before the old one leaves the table. An element that has readers is never changed in the parts that
//! they read: an operation that would change those makes another element in its place.
//!
//! Meanwhile readers by the partition's [descriptor](super::descriptor) may mark or touch an element. So an operation
//! makes its decision on the element while it holds the key's bucket.

use nuthatch_base::sync::clock::Time;

use super::draft::{COPY_OWNED_MAX, DRAFTS_MAX, Draft, fill};
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

/// The result of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// A read that returns this element's value. It is not pinned: the owner copies it before anything
    /// else happens in the partition, or pins it.
    Value(Element, Item),
    /// The operation keeps a long value: the caller [fills](Draft::fill) the draft, without the owner, and then has the
    /// owner [finish](Partition::finish) it. Until then the caller starts no later operation on the key.
    Draft(Draft),
    /// Any other answer.
    Done(Reply),
}

/// The result of a rewrite.
pub(super) enum Rewritten {
    /// Done; the new item.
    Item(Item),
    /// A draft that is still to be filled.
    Draft(Draft),
}

impl Partition {
    /// Carries out one operation.
    #[inline]
    pub fn execute(&mut self, now: Time, key: &Key<'_>, op: &Op<'_>) -> Outcome {
        self.enter(now);
        match op {
            Op::Get => self.get(now, key),
            Op::Read(read) => self.read(now, key, read),
            Op::Store(store) => self.store(now, key, store, None),
            Op::Remove(removal) => self.remove(now, key, removal, None),
            Op::Delta(delta) => Outcome::Done(self.delta(now, key, delta)),
        }
    }

    /// Carries out the operation that made a draft, which has been filled, and takes the draft's references. If the key
    /// has another item by now, the result is another draft to fill.
    pub fn finish(&mut self, now: Time, key: &Key<'_>, op: &Op<'_>, draft: Draft) -> Outcome {
        self.enter(now);
        match op {
            Op::Store(store) => self.store(now, key, store, Some(draft)),
            Op::Remove(removal) => self.remove(now, key, removal, Some(draft)),
            Op::Get | Op::Read(_) | Op::Delta(_) => unreachable!("only these keep a long value"),
        }
    }

    /// Pins the element of an outcome that is a value, so that it can be read when the partition is no longer held. The
    /// reader gives the reference back with [`Partition::decref`].
    pub fn pin_value(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            // There are sixteen million readers of one value already.
            Outcome::Value(element, _) if !self.pin(element) => Outcome::Done(Reply::OutOfMemory),
            outcome => outcome,
        }
    }

    /// Calls `act` with the key's live element, while no reader has access to it.
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
        // Like `with_live`, but inline: the compiler does not inline closures of this size.
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
            let item = match partition.memory().mark_read(element, now, read) {
                Ok(item) => item,
                Err(refusal) => return Outcome::Done(refusal),
            };
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
    fn store(
        &mut self,
        now: Time,
        key: &Key<'_>,
        store: &Store<'_>,
        draft: Option<Draft>,
    ) -> Outcome {
        if HEADER + key.bytes().len() + store.value.len() > self.config.item_size_max {
            return Outcome::Done(Reply::TooLarge);
        }
        let reply = match store.mode {
            StoreMode::Append => {
                return self.concatenate(now, key, store, (b"", store.value), draft);
            }
            StoreMode::Prepend => {
                return self.concatenate(now, key, store, (store.value, b""), draft);
            }
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => {
                let live = self.find_live(now, key);
                match self.fields_of_store(now, live, store) {
                    Ok(fields) => self.keeping(live, store, |partition| {
                        partition.put_value(now, key, store.value, |partition, old| {
                            partition.fields_by_now(now, old, store, fields)
                        })
                    }),
                    Err(refusal) => refusal,
                }
            }
        };
        Outcome::Done(self.count_stored(reply))
    }

    /// Calls `put`, which makes room for a store and carries it out. If the store depends on the live element, and
    /// others may read meanwhile, the element is pinned, so that it is not evicted to make room for its successor.
    /// Otherwise a reader could miss the item on which the store depends, and later find what was stored in its place.
    fn keeping(
        &mut self,
        live: Option<Element>,
        store: &Store<'_>,
        put: impl FnOnce(&mut Self) -> Reply,
    ) -> Reply {
        let depends = store.mode != StoreMode::Set || store.condition != Condition::None;
        let shared = self.index.is_shared();
        // One with too many readers to be pinned is not evicted either: they leave under the partition's lock.
        let pinned = live.filter(|&live| depends && shared && self.pin(live));
        let reply = put(self);
        if let Some(pinned) = pinned {
            self.decref(pinned);
        }
        reply
    }

    /// The fields that a set, add or replace gives the new element in the place of the live one, or the refusal.
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

    /// The same once there is room and the key's element, if it still has one, is held: a reader may have marked it
    /// meanwhile.
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

    /// Makes an element with this key and the pieces of its value written; NOT READY.
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

    /// Makes a filled element the one of its key, READY, in place of the present one, and drops the reference of the
    /// thread that filled it. `fields` gets the present element, while no reader has access to it. It returns all
    /// fields but the sequence, or refuses.
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
        // Only now: making room may have evicted the old one.
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

    /// *Ready* of the paper: carries out the store of an element that [`Partition::insert`] gave and whose key and
    /// value are written; `store.value` is ignored. Takes the caller's reference in any case. The reply is that of the
    /// same store in one step. (An append or prepend makes its element from the present one, and cannot be published in
    /// this way.)
    pub fn publish(&mut self, now: Time, element: Element, store: &Store<'_>) -> Reply {
        debug_assert!(!matches!(
            store.mode,
            StoreMode::Append | StoreMode::Prepend
        ));
        self.enter(now);
        let hash = self.memory().hash(element);
        let same = |memory: &BlockMemory, other| memory.same_key(element, other);
        let old = self.find_counted(hash, same);
        let live = old.filter(|&old| self.is_live(old, now));
        let reply = match self.fields_of_store(now, live, store) {
            Ok(fields) => self.keeping(live, store, |partition| {
                let by_now =
                    |partition: &Self, old| partition.fields_by_now(now, old, store, fields);
                match partition.put_in_place(now, element, by_now) {
                    Ok((_, item)) => Reply::Stored(item),
                    Err(refusal) => refusal,
                }
            }),
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
        (before, after): (&[u8], &[u8]),
        draft: Option<Draft>,
    ) -> Outcome {
        let rewritten = self.rewrite(now, key, draft, |item| {
            permit(store.condition, item)?;
            Ok(Rewrite {
                new_cas: store.new_cas,
                ..Rewrite::of(item, before, true, after)
            })
        });
        let item = match rewritten {
            Ok(Rewritten::Draft(draft)) => return Outcome::Draft(draft),
            Ok(Rewritten::Item(item)) => Ok(item),
            Err(refusal) => Err(refusal),
        };
        let reply = match concatenated(item, store) {
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
        };
        Outcome::Done(self.count_stored(reply))
    }

    /// Replaces the key's element by one made from it. `plan` may refuse; how many bytes it keeps and puts around them
    /// does not depend on the element. The answer for a missing item is [`Reply::NotFound`].
    ///
    /// If the value that is kept is long, the caller gets a [`Draft`] to fill, and passes it as `draft` in the next
    /// call. It is used if the element that it was made from is still the key's.
    pub(super) fn rewrite<'v>(
        &mut self,
        now: Time,
        key: &Key<'_>,
        draft: Option<Draft>,
        plan: impl Fn(&Item) -> Result<Rewrite<'v>, Reply>,
    ) -> Result<Rewritten, Reply> {
        let filled = draft.filter(|draft| self.is_item_of(now, key, draft.source));
        let ready = match filled {
            Some(draft) => draft,
            None => {
                if let Some(stale) = draft {
                    self.decref(stale.made);
                    self.decref(stale.source);
                }
                let number = draft.map_or(1, |draft| draft.number + 1);
                let (draft, rewrite) = self.draft(now, key, number, &plan)?;
                let kept = rewrite.keep.then_some(draft.source);
                let memory = self.memory();
                if kept.is_some_and(|kept| memory.value_len(kept) > COPY_OWNED_MAX)
                    && number <= DRAFTS_MAX
                {
                    return Ok(Rewritten::Draft(draft));
                }
                fill(memory, draft.made, key, rewrite.before, kept, rewrite.after);
                draft
            }
        };
        // Planned again, from the present state of the element: a reader may have marked it meanwhile.
        let put = self.put_in_place(now, ready.made, |partition, _| {
            let item = partition.live_item(now, ready.source)?;
            Ok(partition.fields_of_rewrite(ready.source, &plan(&item)?))
        });
        self.decref(ready.source);
        put.map(|(_, item)| Rewritten::Item(item))
    }

    /// Allocates the element that a plan makes from the key's element.
    fn draft<'v>(
        &mut self,
        now: Time,
        key: &Key<'_>,
        number: u32,
        plan: &impl Fn(&Item) -> Result<Rewrite<'v>, Reply>,
    ) -> Result<(Draft, Rewrite<'v>), Reply> {
        let source = self.find_live(now, key).ok_or(Reply::NotFound)?;
        let item = self.memory().item(source, now);
        let rewrite = plan(&item)?;
        // Pinned, so that it is not evicted to make room for its successor.
        if !self.pin(source) {
            return Err(Reply::OutOfMemory);
        }
        let value_len = rewrite.value_len(&item);
        match self.insert(now, key.hash(), key.bytes().len(), value_len) {
            Ok(made) => {
                let draft = Draft {
                    source,
                    made,
                    number,
                };
                Ok((draft, rewrite))
            }
            Err(refusal) => {
                self.decref(source);
                Err(refusal)
            }
        }
    }

    /// True if this element, to which the caller has a reference, is live and is the key's.
    fn is_item_of(&self, now: Time, key: &Key<'_>, element: Element) -> bool {
        let same = |_: &BlockMemory, other| other == element;
        self.find_where(key.hash(), same).is_some() && self.is_live(element, now)
    }

    /// The metadata of an element, if it is still live.
    fn live_item(&self, now: Time, element: Element) -> Result<Item, Reply> {
        let live = self.is_live(element, now).then_some(element);
        live.map(|element| self.memory().item(element, now))
            .ok_or(Reply::NotFound)
    }

    /// The fields that a rewrite makes from an element.
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
    fn remove(
        &mut self,
        now: Time,
        key: &Key<'_>,
        removal: &Removal,
        draft: Option<Draft>,
    ) -> Outcome {
        if removal.leave == Leave::Nothing {
            return Outcome::Done(self.delete(now, key, removal.condition));
        }
        match self.rewrite(now, key, draft, |item| left(removal, item)) {
            Ok(Rewritten::Draft(draft)) => Outcome::Draft(draft),
            Ok(Rewritten::Item(_)) => Outcome::Done(Reply::Removed),
            Err(refusal) => Outcome::Done(refusal),
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
            // A dead item is taken out as well: its memory is freed at once.
            partition.unlink(element);
            item.map_or(Reply::NotFound, |_| Reply::Removed)
        })
    }
}
