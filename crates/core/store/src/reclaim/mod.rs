//! Making room: evicting, moving pages between classes, taking expired items back.
//!
//! A policy's lock is not a bucket's lock, so a thread chooses a victim without its bucket's lock and checks it again
//! under that lock. The victim is evicted only if it is still in the index and still the policy's choice. Then it is
//! taken out of the index like any removed item. No thread waits for an eviction.

pub mod removals;

use std::cell::RefCell;
use std::time::Duration;

use nuthatch_base::sync::clock::Time;
use nuthatch_engine::reply::Item;
use nuthatch_engine::request::Expiry;
use nuthatch_engine::{Engine, Evicted};

use crate::count::{Count, Figures, ThreadCounters};
use crate::item::unlinked::Unlinked;
use crate::item::{Header, Shape, plain_item};
use crate::log::runs::RunNumber;
use crate::memory::arena::Address;
use crate::store::HasStore;
#[cfg(doc)]
use crate::store::Store;
use crate::timestamps::{SequenceBlock, Timestamps};
use removals::{COPY_MAX, Queue, RemovalCause, Removals, Removed};

/// If pages must be taken from items for the index, the index may take one part in `INDEX_SHARE` of the memory.
const INDEX_SHARE: usize = 8;

/// Pages whose memory one call gives back to the system, at most.
const RELEASED_A_CALL: usize = 8;

/// Chunks that a store empties for an index that waits for memory.
const DRAINED_A_STORE: usize = 32;

/// The state of an item that left without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemState {
    /// Alive: it made room.
    Live,
    /// Expired.
    Expired,
    /// Flushed, and not expired.
    Flushed,
}

/// The state of one thread in every engine.
pub trait PerThread {
    /// Its counters.
    fn counters(&self) -> &ThreadCounters;

    /// Its number among the engine's threads: one that few others have, or none.
    fn number(&self) -> usize {
        0
    }

    /// Its unused sequences.
    fn sequences(&mut self) -> &mut SequenceBlock;

    /// The items that its operation has removed and not told yet, in an engine that may have a listener. Never borrowed
    /// while the listener is called.
    fn removed(&self) -> Option<&RefCell<Queue>> {
        None
    }
}

/// How an engine finds memory for items that are placed in one way.
pub trait MakeRoom<E: Reclaim + HasStore<Placement = Self>>: Figures {
    /// Where a new item goes whose key has this hash, and the uses that count for it from the start. `arriving`: its
    /// value comes later.
    fn admit(engine: &E, local: &E::Local, hash: u64, arriving: bool) -> (Self::Destination, u8);

    /// Memory for a whole item, in a run of a log. `None`: it is to be obtained part by part.
    #[inline]
    fn cut(
        engine: &E,
        local: &mut E::Local,
        now: Time,
        to: Self::Destination,
        shape: &Shape,
    ) -> Option<(Address, RunNumber)> {
        let _ = (engine, local, now, to, shape);
        None
    }

    /// Memory for `bytes` bytes of an item: for its header, if `whole` is its shape, or for a piece of its value.
    /// Evicts if it must.
    fn obtain(
        engine: &E,
        local: &mut E::Local,
        now: Time,
        to: Self::Destination,
        bytes: usize,
        whole: Option<&Shape>,
    ) -> Option<Address>;

    /// Gives pages back while the limit is exceeded. True if there is more to do.
    fn shrink(engine: &E, local: &mut E::Local, now: Time, budget: usize) -> bool;

    /// Takes items out that have expired or were flushed: looks at about `budget` places. True if it is known that
    /// there are more of them.
    fn sweep_dead(engine: &E, local: &mut E::Local, now: Time, budget: usize) -> bool;

    /// Where nothing may leave, makes `bytes` bytes free for users other than pages, if it can.
    fn reclaim_unused(engine: &E, local: &mut E::Local, now: Time, bytes: usize);
}

/// An engine that can take items out by the place in which they lie.
pub trait Reclaim: Engine + HasStore<Placement: MakeRoom<Self>> {
    /// The state of a thread.
    type Local: PerThread;

    /// The sequences and expiries of the engine's items.
    fn timestamps(&self) -> &Timestamps;

    /// Takes the item at an address out of the index, if there is one and `doomed` returns true under the lock of its
    /// key.
    fn remove_from_index(
        &self,
        local: &mut Self::Local,
        address: Address,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<Unlinked>;

    /// The listener, if there is one, and the removals that it is to be told of.
    fn removals(&self) -> Option<&Removals> {
        None
    }

    /// True if the listener may be called while an operation makes room: no lock is held then.
    fn may_notify_between(&self) -> bool {
        true
    }

    /// True if an item may still be returned.
    #[inline(always)]
    fn is_live(&self, header: &Header, now: Time) -> bool {
        self.timestamps().is_live(header, now)
    }

    /// The metadata that clients see; of the age, only the age at the moment `age_at`, if there is one.
    #[inline]
    fn item(&self, address: Address, header: &Header, age_at: Option<Time>) -> Item {
        let age = |now| self.timestamps().age(header, now);
        Item {
            fetched: self.store().recency.was_fetched(address),
            idle: age_at.map_or(Duration::ZERO, age),
            ..plain_item(header)
        }
    }

    /// Takes an item out of the index, if `doomed`, and counts it among the items that left without a request.
    fn take_out(
        &self,
        local: &mut Self::Local,
        now: Time,
        address: Address,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<Unlinked> {
        let item = self.remove_from_index(local, address, doomed)?;
        self.note_removal(local, now, &item);
        Some(item)
    }

    /// The same, and frees its memory.
    fn remove_item(
        &self,
        local: &mut Self::Local,
        now: Time,
        address: Address,
        doomed: impl Fn(&Header) -> bool,
    ) {
        if let Some(item) = self.take_out(local, now, address, doomed) {
            self.store().retire(item);
        }
    }

    /// Removes the item at an address if it has expired or was flushed. True if it seemed to be.
    fn remove_expired(&self, local: &mut Self::Local, now: Time, address: Address) -> bool {
        let header = Header::load(&self.store().arena, address);
        let expired = header.is_item() && !self.is_live(&header, now);
        if expired {
            self.remove_item(local, now, address, |header| !self.is_live(header, now));
        }
        expired
    }

    /// Gives pages back while the limit is exceeded, and their memory to the system. True if there is more to do.
    fn shrink(&self, local: &mut Self::Local, now: Time, budget: usize) -> bool {
        let releasing = self.store().release(RELEASED_A_CALL);
        let shrinking = Self::Placement::shrink(self, local, now, budget);
        releasing || shrinking
    }

    /// Looks at about `budget` places for expired and flushed items. True if it is known that there are more of them.
    fn sweep(&self, local: &mut Self::Local, now: Time, budget: usize) -> bool {
        self.timestamps().may_have_dead() && Self::Placement::sweep_dead(self, local, now, budget)
    }

    /// Looks at about `budget` places from where the last call stopped, whatever lies in them.
    fn sweep_in_turn(&self, local: &mut Self::Local, now: Time, budget: usize) {
        let looked = self.store().sweep(budget, |address| {
            if self.remove_expired(local, now, address) {
                self.notify_if_many(local);
            }
        });
        local.counters().add(Count::Swept as usize, looked as u64);
    }

    /// Empties pages step by step for an index that waits for `bytes` bytes, while the index is small beside the items.
    /// Where nothing may leave, makes room for it without that.
    fn reclaim_for_index(&self, local: &mut Self::Local, now: Time, bytes: usize) {
        if !self.evicts() {
            Self::Placement::reclaim_unused(self, local, now, bytes);
        } else if 2 * bytes <= self.store().pool().limit() / INDEX_SHARE {
            self.store().pool().earmark(bytes);
            self.shrink(local, now, DRAINED_A_STORE);
        }
    }

    /// Counts an item that left without a request, and keeps a copy for the listener. Returns the state in which it
    /// left.
    fn note_removal(&self, local: &Self::Local, now: Time, item: &Unlinked) -> ItemState {
        let (store, header, counters) = (self.store(), item.header(), local.counters());
        counters.item_out(store, header);
        let left = self.left(header, now);
        if left == ItemState::Live {
            let age = self.timestamps().age(header, now);
            counters.evicted_at(store, header, age);
            self.report_eviction(item, now, age);
        }
        counters.removed(store, item.address(), header, left);
        self.note_left(local, now, RemovalCause::Size, item);
        left
    }

    /// The state of an item that leaves now.
    fn left(&self, header: &Header, now: Time) -> ItemState {
        if self.is_live(header, now) {
            ItemState::Live
        } else if header.is_expired(now) {
            ItemState::Expired
        } else {
            ItemState::Flushed
        }
    }

    /// Keeps a copy for the listener of an item that has left the index, and reports one that had expired. `live` is the cause
    /// if it was alive. The caller holds no lock and still owns the item's memory.
    #[inline]
    fn note_left(&self, local: &Self::Local, now: Time, live: RemovalCause, gone: &Unlinked) {
        if self.removals().is_some() {
            self.note_left_to_listener(local, now, live, gone);
        }
        if gone.header().is_expired(now) {
            self.report_expiry(gone);
        }
    }

    /// Reports an item that had expired to the sink of evictions, if one is set and wants that.
    #[cold]
    fn report_expiry(&self, gone: &Unlinked) {
        let store = self.store();
        let Some(evictions) = store.evictions.get().filter(|to| to.are_expiries_wanted()) else {
            return;
        };
        if let Some(key) = store.copy_key(gone.address()) {
            evictions.expired(key.bytes());
        }
    }

    /// [`Reclaim::note_left`] where there is a listener.
    #[cold]
    fn note_left_to_listener(
        &self,
        local: &Self::Local,
        now: Time,
        live: RemovalCause,
        gone: &Unlinked,
    ) {
        let cause = match self.left(gone.header(), now) {
            ItemState::Live => live,
            ItemState::Expired => RemovalCause::Expired,
            ItemState::Flushed => RemovalCause::Explicit,
        };
        let removals = self.removals();
        if removals.is_none_or(|removals| !removals.wants(cause)) {
            return;
        }
        let (address, header) = (gone.address(), gone.header());
        if let Some(removed) = self.copy_removed(cause, address, header, now, Vec::new()) {
            self.keep_removed(local, removed);
        }
    }

    /// True if there is a listener, and it is told of values that were replaced.
    #[inline]
    fn wants_replaced(&self) -> bool {
        let removals = self.removals();
        removals.is_some_and(|removals| removals.wants(RemovalCause::Replaced))
    }

    /// Keeps a copy for the listener. No lock is held.
    fn keep_removed(&self, local: &Self::Local, removed: Removed) {
        if let (Some(removals), Some(queue)) = (self.removals(), local.removed())
            && !queue.borrow_mut().push(removed)
        {
            removals.count_untold(1);
        }
    }

    /// Reports a live item that was evicted to the sink of evictions, if one is set and wants them.
    fn report_eviction(&self, gone: &Unlinked, now: Time, age: Duration) {
        let (store, header) = (self.store(), gone.header());
        let Some(evictions) = store.evictions.get().filter(|to| to.are_wanted()) else {
            return;
        };
        if let Some(key) = store.copy_key(gone.address()) {
            evictions.evicted(&Evicted {
                key: key.bytes(),
                value_len: header.value_len(),
                fetched: store.recency.was_fetched(gone.address()),
                left: match header.expiry() {
                    Expiry::Never => None,
                    Expiry::At(moment) => Some(moment.since(now)),
                },
                age,
                class: store.class_of(header.shape(store.cut()).head_bytes()) + 1,
            });
        }
    }

    /// Copies an item into `data`, which is empty. Either the item has left the index and the caller still owns its
    /// memory, or the item is locked.
    #[cold]
    fn copy_removed(
        &self,
        cause: RemovalCause,
        address: Address,
        header: &Header,
        now: Time,
        mut data: Vec<u8>,
    ) -> Option<Removed> {
        let key = self.store().copy_key(address)?;
        let key = key.bytes();
        let item = self.item(address, header, Some(now));
        let shape = header.shape(self.store().cut());
        let value_len = match item.value_len {
            long if long > COPY_MAX => 0,
            len => len,
        };
        data.reserve_exact(key.len() + value_len);
        data.extend_from_slice(key);
        if value_len > 0 {
            self.store()
                .read_in_runs(address, &shape, &mut |piece| data.extend_from_slice(piece));
        }
        Some(Removed::new(cause, item, key.len(), data))
    }

    /// Notifies the listener of what this thread's operation has removed, if that is much, before the operation goes
    /// on. The caller holds no lock. A panic of the listener waits for the operation's end.
    #[inline]
    fn notify_if_many(&self, local: &Self::Local) {
        if self.removals().is_some() {
            self.notify_if_queue_is_long(local);
        }
    }

    /// [`Reclaim::notify_if_many`] where there is a listener.
    #[cold]
    fn notify_if_queue_is_long(&self, local: &Self::Local) {
        if let (Some(removals), Some(queue)) = (self.removals(), local.removed())
            && self.may_notify_between()
            && queue.borrow().is_long()
        {
            removals.notify_between(queue);
        }
    }

    /// Notifies the listener of what this thread's operation has removed, and of up to `follow_up` removals that were
    /// left to later operations.
    fn notify(&self, local: &Self::Local, follow_up: usize) {
        if let (Some(removals), Some(queue)) = (self.removals(), local.removed()) {
            removals.notify(queue.take(), follow_up);
        }
    }
}
