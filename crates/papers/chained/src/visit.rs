//! Visiting all items: the walk goes over the arena (see [`walk`](nuthatch_store::slab::walk)) and locks one
//! bucket at a time.

use std::mem::MaybeUninit;

use nuthatch_base::sync::clock::Time;

use super::Chained;
use super::find::Found;
use super::handle::COPY_MAX;
use nuthatch_engine::{Cursor, Visit};
use nuthatch_store::memory::arena::Address;
use nuthatch_store::reclaim::Reclaim;
use nuthatch_store::table::Table;

impl Chained {
    /// See [`Handle::visit`](nuthatch_engine::Handle::visit).
    pub(super) fn visit_from(
        &self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        self.timestamps.apply_flush(now);
        let mut value = Vec::new();
        self.store.walk(from, budget, |address| {
            self.show(now, address, &mut value, visit);
        })
    }

    /// Copies the live item in a chunk, if there is one, and shows the copy without a lock.
    fn show(
        &self,
        now: Time,
        address: Address,
        value: &mut Vec<MaybeUninit<u8>>,
        visit: &mut dyn FnMut(Visit<'_>),
    ) {
        let Some(key) = self.store.copy_key(address) else {
            return;
        };
        let locked = self.index.lock(self.hasher.hash(key.bytes()));
        let found = self.find_at(&locked, address);
        let live = |found: &Found| self.is_live(&found.header, now);
        let Some(found) = found.filter(live) else {
            return;
        };
        // Once more under the lock: the hash may be that of another item's key.
        let Some(key) = self.store.copy_key(address) else {
            return;
        };
        let shape = self.shape_of(&found.header);
        let copied = if shape.value_len > COPY_MAX {
            0
        } else {
            shape.value_len
        };
        value.resize(copied, MaybeUninit::new(0));
        self.store.read_value(address, &shape, 0, value);
        let item = self.item(address, &found.header, Some(now));
        drop(locked);
        visit(Visit {
            key: key.bytes(),
            item,
            // SAFETY: `resize` initialised every byte, and `read_value` only writes.
            value: unsafe { value.assume_init_ref() },
            footprint: self.footprint_of(&shape),
        });
    }
}
