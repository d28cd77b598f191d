//! Writing: stores and removals.
//!
//! A store fills its chunk first, while only its thread has access to it, and locks only to check the present item and
//! to change the chain. Stores that depend on the present item: see [`table`].

use nuthatch_base::sync::clock::Time;

use super::Chained;
use super::find::Found;
use super::index::LockedBucket;
use super::local::Local;
use nuthatch_engine::reply::Reply;
use nuthatch_engine::request::{Condition, Store};
use nuthatch_engine::semantics::permit;
use nuthatch_store::count::Count;
use nuthatch_store::item::fresh::Fresh;
use nuthatch_store::item::{Fields, Header, Shape, plain_item};
use nuthatch_store::memory::arena::Address;
use nuthatch_store::reclaim::Reclaim;
use nuthatch_store::table::{self, Lookup, Table};

impl Chained {
    /// Finishes the header of a filled item and puts it into the table, in the place of `found`.
    pub(super) fn link(
        &self,
        local: &mut Local,
        now: Time,
        locked: LockedBucket<'_>,
        found: Option<Found>,
        fresh: Fresh,
        fields: &Fields,
    ) -> Header {
        let header = Header::new(&fresh.shape, fields);
        header.store(&self.store.arena, fresh.address);
        let replaced = found.map(|old| self.leave(&locked, &old));
        self.enter(&locked, fresh.address, &header);
        drop(locked);
        match replaced {
            Some(old) => {
                local
                    .counters
                    .item_swapped(&self.store, old.header(), &header);
                self.store.retire(old);
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
}

/// A live item under its bucket's lock.
pub struct LockedItem<'t> {
    locked: LockedBucket<'t>,
    found: Found,
}

impl table::LockedItem for LockedItem<'_> {
    #[inline]
    fn address(&self) -> Address {
        self.found.address
    }

    #[inline]
    fn header(&self) -> &Header {
        &self.found.header
    }

    // No thread reads without the lock, so no version has to change.
    #[inline]
    fn release(self) {}
}

impl Table for Chained {
    type LockedItem<'t> = LockedItem<'t>;

    /// Always with the wide header.
    fn shape(&self, key_len: usize, value_len: usize, _wide: bool) -> Shape {
        Shape::new(key_len, value_len, true, self.store.cut())
    }

    #[inline(always)]
    fn hold(&self, local: &Local, lookup: &Lookup<'_>) -> Option<LockedItem<'_>> {
        let locked = self.index.lock(lookup.key.hash());
        let found = self.find_live(local, &locked, lookup)?;
        Some(LockedItem { locked, found })
    }

    #[inline]
    fn used(&self, held: &LockedItem<'_>) {
        self.hit(held.found.address, &held.found.header);
    }

    // There is no listener here, so no value that leaves is reported.
    #[inline]
    fn replace(
        &self,
        local: &mut Local,
        now: Time,
        held: LockedItem<'_>,
        fresh: Fresh,
        fields: &Fields,
        _same_value: bool,
    ) -> Header {
        let LockedItem { locked, found } = held;
        self.link(local, now, locked, Some(found), fresh, fields)
    }

    fn publish(
        &self,
        local: &mut Local,
        lookup: &Lookup<'_>,
        fresh: Fresh,
        store: &Store<'_>,
    ) -> Reply {
        self.timestamps.note_expiry(store.expiry);
        let now = lookup.now;
        let locked = self.index.lock(lookup.key.hash());
        let found = self.find(local, &locked, &lookup.key);
        let old = found.as_ref().map(|found| &found.header);
        let live = old.filter(|old| self.is_live(old, now));
        let fields = match self.admit(local, now, store, old, live) {
            Ok(fields) => fields,
            Err(refusal) => {
                drop(locked);
                self.store.discard(fresh);
                return refusal;
            }
        };
        self.store.start(&fresh);
        let header = self.link(local, now, locked, found, fresh, &fields);
        local.counters.one(Count::Stored);
        Reply::Stored(plain_item(&header))
    }

    fn delete(&self, local: &mut Local, lookup: &Lookup<'_>, condition: Condition) -> Reply {
        let locked = self.index.lock(lookup.key.hash());
        let Some(found) = self.find(local, &locked, &lookup.key) else {
            return Reply::NotFound;
        };
        let live = self.is_live(&found.header, lookup.now);
        if live && permit(condition, &found.header).is_err() {
            return Reply::Exists;
        }
        let gone = self.leave(&locked, &found);
        drop(locked);
        local.went(&self.population);
        self.taken_out(local, lookup.now, gone, live)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::mem::MaybeUninit;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::config::ChainedConfig;
    use super::*;
    use nuthatch_engine::reply::{Item, Replies};
    use nuthatch_engine::request::{Key, Op, Request, StoreMode};
    use nuthatch_engine::{Audit, Engine, Handle};
    use nuthatch_store::item::read_hook::on_read;

    /// Asserts that each reply is `Stored`.
    struct AllStored;

    impl<V> Replies<V> for AllStored {
        fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
            panic!("nothing is read");
        }
        fn commit(&mut self, _: usize) {}
        fn retract(&mut self, _: usize) {}
        fn large(&mut self, _: usize, _: &Item, _: V) {}
        fn done(&mut self, _: usize, reply: Reply) {
            assert!(matches!(reply, Reply::Stored(_)));
        }
    }

    #[test]
    fn a_long_value_is_not_copied_under_the_lock() {
        for len in [100_000, 900_000] {
            let engine = Arc::new(Chained::new(ChainedConfig::default()).unwrap());
            let mut handle = engine.handle();
            let hasher = engine.hasher().clone();
            let key = Key::new(b"long", &hasher);
            let mut store = |mode, value: &[u8]| {
                let store = Store {
                    mode,
                    ..Store::set(value)
                };
                let op = Op::Store(store);
                handle.execute(Time(16), &[Request { key, op }], &mut AllStored);
            };
            store(StoreMode::Set, &vec![1; len]);
            let (seen, reads) = (Arc::clone(&engine), Arc::new(AtomicUsize::new(0)));
            let (count, hash) = (Arc::clone(&reads), key.hash());
            let hooked = on_read(move || {
                assert!(!seen.index.is_locked(hash), "copied under the lock");
                count.fetch_add(1, Ordering::Relaxed);
            });
            store(StoreMode::Append, b"more");
            drop(hooked);
            assert!(reads.load(Ordering::Relaxed) > 0);
            drop(handle);
            engine.audit().unwrap();
        }
    }
}
