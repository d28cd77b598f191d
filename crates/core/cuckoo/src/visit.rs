//! Visits to all items, without blocking any thread.
//!
//! Cuckoo moves and doublings change the place of an item's slot, but not the place of the item. The walk goes over the
//! places of items (see [`walk`](nuthatch_store::slab::walk)).

use std::mem::MaybeUninit;

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::shim::Ordering;

use super::Cuckoo;
use super::get::ATTEMPTS;
use super::handle::COPY_MAX;
use super::index::Candidates;
use super::layout::{SlotWord, Variant};
use nuthatch_engine::request::LONG_KEY_LEN_MAX;
use nuthatch_engine::{Cursor, Visit};
use nuthatch_store::item::Header;
use nuthatch_store::memory::arena::Address;
use nuthatch_store::memory::bytes;
use nuthatch_store::reclaim::Reclaim;
use nuthatch_store::table::Table;

/// An item copied out while it was in the table.
#[derive(Default)]
pub(super) struct Copy {
    key: Vec<MaybeUninit<u8>>,
    value: Vec<MaybeUninit<u8>>,
    header: Option<Header>,
}

impl<D: Variant> Cuckoo<D> {
    /// See [`Handle::visit`](nuthatch_engine::Handle::visit).
    pub(super) fn visit_from(
        &self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        self.timestamps.apply_flush(now);
        let mut copy = Copy::default();
        self.store.walk(from, budget, |address| {
            if self.copy_linked(now, address, &mut copy) {
                self.show(now, address, &copy, visit);
            }
        })
    }

    fn show(&self, now: Time, address: Address, copy: &Copy, visit: &mut dyn FnMut(Visit<'_>)) {
        let Some(header) = copy.header else { return };
        // SAFETY: the bytes of both vectors were initialised when these grew, and are only ever written over.
        let (key, value) = unsafe {
            (
                bytes::assume_init(&copy.key),
                bytes::assume_init(&copy.value),
            )
        };
        visit(Visit {
            key,
            item: self.item(address, &header, Some(now)),
            value,
            footprint: self.footprint_of(&header.shape(self.store.cut())),
        });
    }

    /// Copies the live item at an address. False if there is none that the index refers to.
    fn copy_linked(&self, now: Time, address: Address, copy: &mut Copy) -> bool {
        for _ in 0..ATTEMPTS {
            let Some(place) = self.copy_key_of(address, copy) else {
                return false;
            };
            let (snapshot, buckets) = self.index.begin(&place);
            let live = self.copy_if_live(now, address, &place, buckets, copy);
            if self.index.unchanged(&snapshot) {
                return live;
            }
        }
        let Some(place) = self.copy_key_of(address, copy) else {
            return false;
        };
        let locked = self.index.lock(&place);
        // If the key was torn, or has left its place since, the item has changed since the walk began.
        let live = self.copy_if_live(now, address, &place, [locked.first, locked.second], copy);
        locked.release_unmodified();
        live
    }

    /// Copies the key at an address, and returns its candidates. The key may be torn. `None` if there is none.
    fn copy_key_of(&self, address: Address, copy: &mut Copy) -> Option<Candidates> {
        let header = Header::load(&self.store.arena, address);
        let key_len = header.key_len();
        // A torn length is bounded before memory is taken for it.
        if key_len == 0 || key_len > LONG_KEY_LEN_MAX {
            return None;
        }
        copy.key.resize(key_len, MaybeUninit::new(0));
        self.store
            .arena
            .read(address, header.key_start(), &mut copy.key);
        // SAFETY: initialised when it grew, written over since.
        let key = unsafe { bytes::assume_init(&copy.key) };
        Some(self.index.place(self.hasher.hash(key)))
    }

    /// Copies the rest of the item at an address, if the slots of its key's buckets refer to it, and it is alive and
    /// still has the copied key. The copy is valid only under a lock or after a version check.
    fn copy_if_live(
        &self,
        now: Time,
        address: Address,
        place: &Candidates,
        buckets: [u64; 2],
        copy: &mut Copy,
    ) -> bool {
        let slot = SlotWord::new::<D>(place.tag, address);
        let linked = buckets
            .iter()
            .flat_map(|&bucket| self.index.bucket(bucket))
            .any(|word| SlotWord(word.load(Ordering::Relaxed)).refers_like::<D>(slot));
        // Once more: the key hashed above may have been torn.
        let header = Header::load(&self.store.arena, address);
        let same = header.key_len() == copy.key.len() && self.same_key(address, &header, copy);
        copy.header = Some(header);
        if !linked || !same || !self.is_live(&header, now) {
            return false;
        }
        let shape = header.shape(self.store.cut());
        let value_len = if shape.value_len > COPY_MAX {
            0
        } else {
            shape.value_len
        };
        copy.value.resize(value_len, MaybeUninit::new(0));
        self.store.read_value(address, &shape, 0, &mut copy.value)
    }

    fn same_key(&self, address: Address, header: &Header, copy: &Copy) -> bool {
        // SAFETY: initialised when it grew, written over since.
        let key = unsafe { bytes::assume_init(&copy.key) };
        self.store.arena.equals(
            address,
            header.key_start() / nuthatch_store::memory::arena::WORD,
            key,
        )
    }
}
