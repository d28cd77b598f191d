//! The common part of all tables of items in a store, however they find a key: changes of an item that depend on
//! the present item.
//!
//! A thread reads what the new item's size depends on under the key's lock, allocates memory without the lock, and then
//! checks the item again under it: no memory is ever allocated under a lock, and so nothing is evicted under one.

mod delta;
mod overwrite;

use nuthatch_base::sync::clock::Time;

use crate::count::{ClassCount, Count};
use crate::item::fresh::{Fresh, Reserved};
use crate::item::pinned::PinnedItem;
use crate::item::unlinked::Unlinked;
use crate::item::{Fields, Header, Shape, plain_item};
use crate::memory::arena::Address;
use crate::memory::pins::UNPINNED_MAX;
use crate::reclaim::removals::{RemovalCause, Removed};
use crate::reclaim::{MakeRoom, PerThread, Reclaim};
use crate::store::Placement;
pub use delta::delta;
use nuthatch_engine::reply::{Item, Replies, Reply};
use nuthatch_engine::request::{Condition, Expiry, Key, Leave, Read, Removal, Store, StoreMode};
use nuthatch_engine::semantics::{Concatenated, Rewrite, allows, concatenated, left, permit, wins};
use nuthatch_engine::{Footprint, Value, assert_commits};

/// When an item is changed, at most so many bytes of its value are copied while its key's lock is held.
const COPY_LOCKED_MAX: usize = UNPINNED_MAX;

/// How often a longer value is copied without the lock, and then found replaced, before it is copied under the lock
/// after all.
const ATTEMPTS: usize = if cfg!(loom) { 1 } else { 16 };

/// One request of a batch.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    /// The batch's moment.
    pub now: Time,
    /// The key of the request.
    pub key: Key<'a>,
    /// Its number in the batch.
    pub index: usize,
}

/// A live item, under the lock that keeps it as it is. Dropping it unlocks it as changed.
pub trait LockedItem {
    /// Where it lies.
    fn address(&self) -> Address;
    /// Its header.
    fn header(&self) -> &Header;
    /// Unlocks it as it was.
    fn release(self);
}

/// An item to be made from another, which is copied without its lock.
struct Draft<'s, 'v, P: Placement> {
    source: PinnedItem<'s, P>,
    rewrite: Rewrite<'v>,
}

/// The result of an attempt of [`Table::with_memory`].
pub enum Step<T> {
    /// This attempt is the last.
    Done(T),
    /// The next attempt needs memory for an item of this shape: the memory at hand, or new.
    Wants(Shape),
    /// The item that it found has left meanwhile.
    Again,
}

/// A table of items in a store, with the operations that all tables have in common.
///
/// The functions that hand items and memory from one step to the next are always inlined: these are structures of a
/// dozen words, which calls would copy.
pub trait Table: Reclaim {
    /// A live item, locked.
    type LockedItem<'t>: LockedItem;

    /// The shape of an item to be made; with `wide` its header has to be the wide one.
    fn shape(&self, key_len: usize, value_len: usize, wide: bool) -> Shape;

    /// Locks the key's live item. `None` if there is none, and then nothing is locked.
    fn hold(&self, local: &Self::Local, lookup: &Lookup<'_>) -> Option<Self::LockedItem<'_>>;

    /// False if the key has no item. A look without the lock: a change meanwhile may make the answer wrong.
    fn may_hold(&self, lookup: &Lookup<'_>) -> bool {
        let _ = lookup;
        true
    }

    /// Removes the key's item, if it is there and the condition is met.
    fn delete(&self, local: &mut Self::Local, lookup: &Lookup<'_>, condition: Condition) -> Reply;

    /// Counts a use of a locked item for eviction.
    fn used(&self, held: &Self::LockedItem<'_>);

    /// Puts a filled item in the place of a locked one, and unlocks. Returns its header. `same_value`: the value is
    /// that of the old item, so that the listener need not be told of an old value.
    fn replace(
        &self,
        local: &mut Self::Local,
        now: Time,
        held: Self::LockedItem<'_>,
        fresh: Fresh,
        fields: &Fields,
        same_value: bool,
    ) -> Header;

    /// Makes a complete item the key's item, if the store's mode and condition allow it.
    fn publish(
        &self,
        local: &mut Self::Local,
        lookup: &Lookup<'_>,
        fresh: Fresh,
        store: &Store<'_>,
    ) -> Reply;

    /// The shape that an item was made with.
    fn shape_of(&self, header: &Header) -> Shape {
        header.shape(self.store().cut())
    }

    /// What an item of this shape takes.
    fn footprint_of(&self, shape: &Shape) -> Footprint {
        Footprint {
            class: self.store().class_of(shape.head_bytes()) + 1,
            size: shape.total_bytes(),
        }
    }

    /// The sequence of an item that takes the place of one with the sequence `above`; 0 if it takes the place of none.
    fn sequence_after(&self, local: &mut Self::Local, now: Time, above: u64) -> u64 {
        self.timestamps()
            .next_sequence(local.sequences(), now, above)
    }

    /// The sequence of an item made from a live one, which is locked. `None` if a flush has taken the live item
    /// meanwhile.
    #[inline(always)]
    fn sequence_from(&self, local: &mut Self::Local, now: Time, old: &Header) -> Option<u64> {
        let sequence = self.sequence_after(local, now, old.sequence());
        (!self.timestamps().was_flushed(old)).then_some(sequence)
    }

    /// True if a store depends on a live item that a flush has taken meanwhile. To be called once the store has its
    /// sequence.
    #[inline(always)]
    fn is_made_of_flushed(&self, store: &Store<'_>, live: &Header) -> bool {
        // A plain set makes nothing from the present item. Where an item must not be present (add), none is live.
        let plain = store.mode == StoreMode::Set && store.condition == Condition::None;
        !plain && self.timestamps().was_flushed(live)
    }

    /// The fields of an item that a store puts in the place of `found`, which is locked, or the refusal. `live`: the
    /// same, unless it is dead.
    #[inline(always)]
    fn admit(
        &self,
        local: &mut Self::Local,
        now: Time,
        store: &Store<'_>,
        found: Option<&Header>,
        live: Option<&Header>,
    ) -> Result<Fields, Reply> {
        let stale = allows(store, live)?;
        let fields = self.stored(local, now, store, found, stale);
        match live {
            Some(live) if self.is_made_of_flushed(store, live) => {
                self.admit_over_flushed(local, now, store, live)
            }
            _ => Ok(fields),
        }
    }

    /// The same where a flush has taken the item meanwhile.
    #[cold]
    #[inline(never)]
    fn admit_over_flushed(
        &self,
        local: &mut Self::Local,
        now: Time,
        store: &Store<'_>,
        flushed: &Header,
    ) -> Result<Fields, Reply> {
        let stale = allows(store, None::<&Header>)?;
        Ok(self.stored(local, now, store, Some(flushed), stale))
    }

    /// The same, for a store that is admitted; `stale` as its condition says.
    #[inline(always)]
    fn stored(
        &self,
        local: &mut Self::Local,
        now: Time,
        store: &Store<'_>,
        found: Option<&Header>,
        stale: bool,
    ) -> Fields {
        // An older cas stores, but the item keeps its expiry, and whether it was won.
        let kept = found.filter(|_| stale);
        let above = found.map_or(0, |found| found.sequence());
        Fields {
            flags: store.flags,
            expiry: kept.map_or(store.expiry, |kept| kept.expiry()),
            sequence: self.sequence_after(local, now, above),
            cas: store.new_cas,
            stale,
            won: kept.is_some_and(|kept| kept.is_won()),
        }
    }

    /// Memory for an item, with its key written. Evicts if it must. `arriving`: its value comes later, in pieces.
    #[inline(always)]
    fn allocate(
        &self,
        local: &mut Self::Local,
        now: Time,
        key: &Key<'_>,
        shape: Shape,
        arriving: bool,
    ) -> Result<Fresh, Reply> {
        if shape.total_bytes() > self.item_size_max() {
            return Err(Reply::TooLarge);
        }
        let (to, uses) = Self::Placement::admit(self, local, key.hash(), arriving);
        let (address, run) = match Self::Placement::cut(self, local, now, to, &shape) {
            Some((address, run)) => (address, Some(run)),
            None => (self.obtain_all(local, now, to, &shape)?, None),
        };
        self.store().begin_fill();
        let arena = &self.store().arena;
        arena.write(address, shape.key_start(), key.bytes());
        Ok(Fresh {
            address,
            shape,
            uses,
            run,
        })
    }

    /// Memory for an item of this shape, each part of it by itself.
    #[inline(always)]
    fn obtain_all(
        &self,
        local: &mut Self::Local,
        now: Time,
        to: <Self::Placement as Placement>::Destination,
        shape: &Shape,
    ) -> Result<Address, Reply> {
        let memory_of = |bytes, whole: Option<&Shape>| {
            Self::Placement::obtain(self, local, now, to, bytes, whole)
        };
        let address = self.store().allocate_item(shape, memory_of);
        address.map_err(|bytes| {
            let class = self.store().class_of(bytes);
            local.counters().one(Count::OutOfMemory);
            local.counters().one_in(class, ClassCount::OutOfMemory);
            Reply::OutOfMemory
        })
    }

    /// Memory for an item whose value is still on its way.
    fn allocate_unfilled(
        &self,
        local: &mut Self::Local,
        now: Time,
        key: &Key<'_>,
        value_len: usize,
    ) -> Result<Fresh, Reply> {
        // Checked before anything is added to the length: a client may ask for any length.
        if value_len > self.item_size_max() {
            return Err(Reply::TooLarge);
        }
        // Flags and cas are not known yet: the wide header has room for any.
        let shape = self.shape(key.bytes().len(), value_len, true);
        self.allocate(local, now, key, shape, true)
    }

    /// Makes attempts until one is the last. Each attempt is shown the memory that the one before it wanted, and may
    /// take it; memory that is left at the end is freed.
    #[inline(always)]
    fn with_memory<T>(
        &self,
        local: &mut Self::Local,
        lookup: &Lookup<'_>,
        mut attempt: impl FnMut(&mut Self::Local, &mut Option<Fresh>) -> Step<T>,
    ) -> Result<T, Reply> {
        let mut spare = None;
        let end = loop {
            let shape = match attempt(local, &mut spare) {
                Step::Done(end) => break Ok(end),
                Step::Wants(shape) => shape,
                Step::Again => continue,
            };
            if let Some(unfit) = spare.take_if(|fresh| fresh.shape != shape) {
                self.store().discard(unfit);
            }
            if spare.is_some() {
                continue;
            }
            match self.allocate(local, lookup.now, &lookup.key, shape, false) {
                Ok(fresh) => spare = Some(fresh),
                Err(refusal) => break Err(refusal),
            }
        };
        if let Some(unused) = spare {
            self.store().discard(unused);
        }
        end
    }

    /// A store of any mode.
    fn write(&self, local: &mut Self::Local, lookup: &Lookup<'_>, store: &Store<'_>) -> Reply {
        match store.mode {
            StoreMode::Append => self.concatenate(local, lookup, store, b"", store.value),
            StoreMode::Prepend => self.concatenate(local, lookup, store, store.value, b""),
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => self.put(local, lookup, store),
        }
    }

    /// A store that needs nothing from the present item.
    fn put(&self, local: &mut Self::Local, lookup: &Lookup<'_>, store: &Store<'_>) -> Reply {
        if let Some(reply) = overwrite::overwrite(self, local, lookup, store) {
            return reply;
        }
        let wide = Shape::needs_wide(store.flags, store.new_cas);
        let shape = self.shape(lookup.key.bytes().len(), store.value.len(), wide);
        match self.allocate(local, lookup.now, &lookup.key, shape, false) {
            Ok(fresh) => {
                self.store()
                    .write_value(fresh.address, &fresh.shape, 0, store.value);
                self.publish(local, lookup, fresh, store)
            }
            Err(refusal) => refusal,
        }
    }

    /// A store whose value has arrived in pieces.
    fn commit(
        &self,
        local: &mut Self::Local,
        now: Time,
        mut reservation: Reserved<Self>,
        store: &Store<'_>,
    ) -> Reply
    where
        Self: Sized,
    {
        assert_commits(&reservation, reservation.belongs_to(self));
        let key = reservation.take_key();
        let key = Key::new(&key, self.hasher());
        let lookup = &Lookup { now, key, index: 0 };
        if matches!(store.mode, StoreMode::Append | StoreMode::Prepend) {
            // The present item must be copied in any case, so the new bytes are copied out of their place once.
            let Some(value) = &reservation.to_bytes() else {
                return Reply::OutOfMemory;
            };
            return self.write(local, lookup, &Store { value, ..*store });
        }
        match reservation.take() {
            Some(fresh) => self.publish(local, lookup, fresh, store),
            None => Reply::OutOfMemory,
        }
    }

    /// Append and prepend.
    fn concatenate(
        &self,
        local: &mut Self::Local,
        lookup: &Lookup<'_>,
        store: &Store<'_>,
        before: &[u8],
        after: &[u8],
    ) -> Reply {
        let alone = self.shape(lookup.key.bytes().len(), store.value.len(), false);
        if alone.total_bytes() > self.item_size_max() {
            return Reply::TooLarge;
        }
        // Another turn takes two changes by other threads to this very key, one in each of the two steps. It waits for
        // no thread.
        loop {
            let rewritten = self.rewrite(local, lookup, |header| {
                permit(store.condition, header)?;
                Ok(Rewrite {
                    new_cas: store.new_cas,
                    ..Rewrite::of(header, before, true, after)
                })
            });
            match concatenated(rewritten, store) {
                Concatenated::Stored(item) => {
                    local.counters().one(Count::Stored);
                    return Reply::Stored(item);
                }
                Concatenated::AddInstead(add) => match self.put(local, lookup, &add) {
                    // Between the miss and the add another client has stored: append to that.
                    Reply::NotStored => {}
                    reply => return reply,
                },
                Concatenated::Refused(refusal) => return refusal,
            }
        }
    }

    /// Replaces the key's item by one made from it. `plan` is called under the lock and may refuse; how many bytes it
    /// keeps and puts around them does not depend on the item. The answer for a missing item is `Reply::NotFound`.
    ///
    /// A long value that is kept is copied without the lock, from the item, which neither moves nor changes because it
    /// is pinned. Then the item is checked again under the lock. If it has been replaced meanwhile, the same is done
    /// with the present item, and after some attempts that one is copied under the lock. From then on another turn
    /// takes a change of another length by another client. It waits for no thread.
    fn rewrite<'v>(
        &self,
        local: &mut Self::Local,
        lookup: &Lookup<'_>,
        plan: impl Fn(&Header) -> Result<Rewrite<'v>, Reply>,
    ) -> Result<Item, Reply> {
        let mut attempts = 0;
        // The item to be made in the memory, if it is to be filled before the lock is taken.
        let mut draft: Option<Draft<'_, 'v, Self::Placement>> = None;
        let attempt = |local: &mut Self::Local, spare: &mut Option<Fresh>| {
            if let (Some(draft), Some(fresh)) = (&draft, &*spare) {
                let source = &draft.source;
                self.fill(fresh, source.address(), source.header(), &draft.rewrite);
            }
            let Some(held) = self.hold(local, lookup) else {
                return Step::Done(Err(Reply::NotFound));
            };
            let rewrite = match plan(held.header()) {
                Ok(rewrite) => rewrite,
                Err(refusal) => {
                    held.release();
                    return Step::Done(Err(refusal));
                }
            };
            let wide = Shape::needs_wide(rewrite.flags, rewrite.new_cas);
            let value_len = rewrite.value_len(held.header());
            let shape = self.shape(lookup.key.bytes().len(), value_len, wide);
            // While it is pinned no other item can begin there.
            let filled = draft
                .as_ref()
                .is_some_and(|draft| draft.source.address() == held.address());
            let long = rewrite.keep && held.header().value_len() > COPY_LOCKED_MAX;
            let ahead = long && !filled && attempts < ATTEMPTS;
            match spare.take_if(|fresh| fresh.shape == shape && !ahead) {
                Some(fresh) => {
                    if !filled {
                        self.fill(&fresh, held.address(), held.header(), &rewrite);
                    }
                    let Some(sequence) = self.sequence_from(local, lookup.now, held.header())
                    else {
                        held.release();
                        *spare = Some(fresh);
                        return Step::Again;
                    };
                    let now = lookup.now;
                    Step::Done(Ok(
                        self.put_in_place(local, now, held, fresh, &rewrite, sequence)
                    ))
                }
                None if ahead => {
                    attempts += 1;
                    let source = PinnedItem::new(self.store(), held.address(), held.header());
                    held.release();
                    draft = Some(Draft { source, rewrite });
                    Step::Wants(shape)
                }
                None => {
                    held.release();
                    draft = None;
                    Step::Wants(shape)
                }
            }
        };
        self.with_memory(local, lookup, attempt)?
    }

    /// Fills an item as planned, from one that does not change meanwhile: it is locked or pinned.
    fn fill(&self, fresh: &Fresh, from: Address, header: &Header, rewrite: &Rewrite<'_>) {
        let store = self.store();
        let mut offset = 0;
        let mut put = |bytes: &[u8]| {
            store.write_value(fresh.address, &fresh.shape, offset, bytes);
            offset += bytes.len();
        };
        put(rewrite.before);
        if rewrite.keep {
            store.read_in_runs(from, &self.shape_of(header), &mut put);
        }
        put(rewrite.after);
    }

    /// Puts a filled item in the place of the one that it is made from.
    fn put_in_place(
        &self,
        local: &mut Self::Local,
        now: Time,
        held: Self::LockedItem<'_>,
        fresh: Fresh,
        rewrite: &Rewrite<'_>,
        sequence: u64,
    ) -> Item {
        let old = *held.header();
        let fields = Fields {
            flags: rewrite.flags,
            expiry: rewrite.expiry,
            sequence,
            cas: rewrite.new_cas,
            stale: rewrite.stale,
            won: rewrite.won,
        };
        self.timestamps().note_expiry(rewrite.expiry);
        self.store().carry(held.address(), &old, &fresh);
        let same_value = rewrite.keep && rewrite.before.is_empty() && rewrite.after.is_empty();
        plain_item(&self.replace(local, now, held, fresh, &fields, same_value))
    }

    /// A copy for the listener of a locked item whose value is about to be written over. `room` is the memory for the
    /// copy.
    fn copy_replaced(
        &self,
        now: Time,
        held: &Self::LockedItem<'_>,
        room: Vec<u8>,
    ) -> Option<Removed> {
        let cause = RemovalCause::Replaced;
        self.copy_removed(cause, held.address(), held.header(), now, room)
    }

    /// Frees an item that was taken out to be removed, or was found dead then: its memory is freed at once.
    fn taken_out(&self, local: &Self::Local, now: Time, gone: Unlinked, live: bool) -> Reply {
        self.note_left(local, now, RemovalCause::Explicit, &gone);
        local.counters().item_out(self.store(), gone.header());
        if live {
            local
                .counters()
                .removed_on_request(self.store(), gone.header());
        }
        self.store().retire(gone);
        match live {
            true => Reply::Removed,
            false => Reply::NotFound,
        }
    }

    /// A removal of any kind.
    fn remove(&self, local: &mut Self::Local, lookup: &Lookup<'_>, removal: &Removal) -> Reply {
        if removal.leave == Leave::Nothing {
            return self.delete(local, lookup, removal.condition);
        }
        match self.rewrite(local, lookup, |header| left(removal, header)) {
            Ok(_) => Reply::Removed,
            Err(refusal) => refusal,
        }
    }

    /// What a read with options changes of a locked item, and of the metadata in its answer. True if it changed the
    /// item. Its touch must be permitted.
    fn mark(
        &self,
        address: Address,
        header: &mut Header,
        item: &mut Item,
        now: Time,
        read: &Read,
    ) -> bool {
        let mut fields = header.fields();
        let won = wins(read, item, now);
        if won {
            item.won = true;
            fields.won = true;
        }
        if let Some(expiry) = read.touch {
            item.expiry = expiry;
            fields.expiry = expiry;
            self.timestamps().note_expiry(expiry);
        }
        let changed = won || read.touch.is_some();
        if changed {
            *header = Header::new(&self.shape_of(header), &fields);
            header.store(&self.store().arena, address);
            if let Some(expiry) = read.touch {
                Self::Placement::note_expiry(self.store(), address, expiry);
            }
        }
        changed
    }

    /// The fields of an empty item that a read makes and has won, above the sequence of a dead one.
    fn vivified(
        &self,
        local: &mut Self::Local,
        now: Time,
        above: u64,
        expiry: Expiry,
        read: &Read,
    ) -> Fields {
        self.timestamps().note_expiry(expiry);
        Fields {
            flags: 0,
            expiry,
            sequence: self.sequence_after(local, now, above),
            cas: read.new_cas,
            stale: false,
            won: true,
        }
    }
}

/// Answers a read with the empty item that it made.
pub fn answer_vivified<V: Value>(
    header: &Header,
    read: &Read,
    index: usize,
    replies: &mut dyn Replies<V>,
) {
    let item = Item {
        won: true,
        won_before: false,
        ..plain_item(header)
    };
    if read.value {
        replies.begin(index, &item);
        replies.commit(index);
    } else {
        replies.done(index, Reply::Found(item));
    }
}
