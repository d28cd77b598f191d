//! Visiting all items, blocking nobody.
//!
//! Cuckoo moves and doublings change where an item's slot is, but not where the item lies, and that is
//! where the walk goes (see [`walk`](crate::slab::walk)).

use std::mem::MaybeUninit;

use nuthatch_sync::clock::Time;

use super::Cuckoo;
use super::handle::COPY_MAX;
use super::layout::{Design, Slot};
use crate::engine::{Cursor, Visit};
use crate::item::Header;
use crate::slab::arena::Chunk;
use crate::table::Table;

/// An item copied out while it was in the table.
pub(super) struct Copy {
    key: [MaybeUninit<u8>; 256],
    key_len: usize,
    value: Vec<MaybeUninit<u8>>,
    header: Option<Header>,
}

impl Default for Copy {
    fn default() -> Self {
        Self {
            key: [MaybeUninit::new(0); 256],
            key_len: 0,
            value: Vec::new(),
            header: None,
        }
    }
}

impl<D: Design> Cuckoo<D> {
    /// See [`Handle::visit`](crate::Handle::visit).
    pub(super) fn visit_from(
        &self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        self.lifetimes.apply_flush(now);
        let mut copy = Copy::default();
        self.store.walk(from, budget, |chunk| {
            if self.copy_linked(now, chunk, &mut copy) {
                self.show(now, chunk, &copy, visit);
            }
        })
    }

    fn show(&self, now: Time, chunk: Chunk, copy: &Copy, visit: &mut dyn FnMut(Visit<'_>)) {
        let Some(header) = copy.header else { return };
        // SAFETY: the key's array and the value's vector were initialised when they were made, and
        // are only ever written over.
        let (key, value) = unsafe {
            (
                copy.key[..copy.key_len].assume_init_ref(),
                copy.value.assume_init_ref(),
            )
        };
        visit(Visit {
            key,
            item: self.item(chunk, &header, now),
            value,
            footprint: self.footprint_of(&header.shape(self.store.chunk_max())),
        });
    }

    /// Copies the live item in a chunk. False if there is none that the index refers to.
    fn copy_linked(&self, now: Time, chunk: Chunk, copy: &mut Copy) -> bool {
        // Each further turn means that a writer finished something meanwhile.
        loop {
            let header = Header::load(&self.store.arena, chunk);
            copy.key_len = header.key_len();
            if copy.key_len == 0 {
                return false;
            }
            let key = &mut copy.key[..copy.key_len];
            self.store.arena.read(chunk, header.key_start(), key);
            // SAFETY: initialised when made, written over since.
            let hash = self.hasher.hash(unsafe { key.assume_init_ref() });
            let place = self.index.place(hash);
            let (snapshot, buckets) = self.index.begin(&place);
            let slot = Slot::new::<D>(place.tag, chunk);
            let linked = buckets
                .iter()
                .flat_map(|&bucket| self.index.bucket(bucket))
                .any(|word| word.load(nuthatch_sync::shim::Ordering::Relaxed) == slot.0);
            // Once more under the snapshot: the key hashed above may have been torn.
            let again = Header::load(&self.store.arena, chunk);
            let same = again.key_len() == copy.key_len && self.same_key(chunk, &again, copy);
            let live = self.is_live(&again, now);
            if live && linked && same {
                let shape = again.shape(self.store.chunk_max());
                let value_len = if shape.value_len > COPY_MAX {
                    0
                } else {
                    shape.value_len
                };
                copy.value.resize(value_len, MaybeUninit::new(0));
                self.store.read_value(chunk, &shape, 0, &mut copy.value);
            }
            copy.header = Some(again);
            if self.index.unchanged(&snapshot) {
                return live && linked && same;
            }
        }
    }

    fn same_key(&self, chunk: Chunk, header: &Header, copy: &Copy) -> bool {
        // SAFETY: initialised when made, written over since.
        let key = unsafe { copy.key[..copy.key_len].assume_init_ref() };
        self.store
            .arena
            .equals(chunk, header.key_start() / crate::slab::arena::WORD, key)
    }
}
