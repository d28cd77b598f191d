//! A large value that is read in place while it is pinned.

use std::sync::Arc;

#[cfg(not(loom))]
use super::PIECE_HEADER;
use super::{Header, Shape};
use crate::memory::arena::Address;
use crate::memory::pins::UNPINNED_MAX;
use crate::store::{HasStore, Placement, Store};
use nuthatch_engine::Value;

/// A pinned value. Its bytes neither move nor change until it is dropped.
pub struct Pinned<E: HasStore> {
    engine: Arc<E>,
    address: Address,
    shape: Shape,
}

impl<E: HasStore> Pinned<E> {
    /// Pins an item, and lends the bytes of its value.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the item's bucket, and found the item's address and its header there under this
    /// lock. A value of this length is never changed in place.
    pub unsafe fn new(engine: Arc<E>, address: Address, header: &Header) -> Self {
        let store = engine.store();
        store.pin(address, header);
        let shape = header.shape(store.cut());
        Self {
            engine,
            address,
            shape,
        }
    }
}

impl<E: HasStore> Value for Pinned<E> {
    fn len(&self) -> usize {
        self.shape.value_len
    }

    #[cfg(not(loom))]
    fn chunk(&self, offset: usize) -> &[u8] {
        let rest = self.shape.value_len.saturating_sub(offset);
        let store = self.engine.store();
        let (address, start, len) = match self.shape.piece {
            None => (self.address, self.shape.value_start() + offset, rest),
            Some(_) if rest == 0 => (self.address, 0, 0),
            Some(piece) => {
                let within = offset % piece;
                let address = store.piece(self.address, &self.shape, offset / piece);
                (address, PIECE_HEADER + within, rest.min(piece - within))
            }
        };
        // SAFETY: the item was pinned under its lock, so its memory is not freed before self is dropped, and nobody
        // changes its value in place (both by the contract of `new`); the header, which may change, is not part of the
        // slice.
        unsafe { store.arena.bytes(address, start, len) }
    }

    /// Loom's atomics are not the bytes they stand for: a copy, leaked, since a model is short.
    #[cfg(loom)]
    fn chunk(&self, offset: usize) -> &[u8] {
        let mut bytes = vec![std::mem::MaybeUninit::new(0); self.len() - offset];
        let store = self.engine.store();
        store.read_value(self.address, &self.shape, offset, &mut bytes);
        // SAFETY: initialised when made, and `read_value` only writes.
        unsafe { crate::memory::bytes::assume_init(Box::leak(bytes.into_boxed_slice())) }
    }
}

impl<E: HasStore> Drop for Pinned<E> {
    fn drop(&mut self) {
        self.engine.store().unpin(self.address, &self.shape);
    }
}

/// An item that the store itself reads on without the item's lock: like [`Pinned`], for as long as an operation lasts.
pub struct PinnedItem<'s, P: Placement> {
    store: &'s Store<P>,
    address: Address,
    header: Header,
}

impl<'s, P: Placement> PinnedItem<'s, P> {
    /// Pins an item whose bucket's lock the caller holds.
    pub fn new(store: &'s Store<P>, address: Address, header: &Header) -> Self {
        store.pin(address, header);
        Self {
            store,
            address,
            header: *header,
        }
    }

    /// Its head. No other item begins there before the pin is dropped.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Its header at the moment of pinning: it gives the place of the value.
    pub fn header(&self) -> &Header {
        &self.header
    }
}

impl<P: Placement> Drop for PinnedItem<'_, P> {
    fn drop(&mut self) {
        let shape = self.header.shape(self.store.cut());
        self.store.unpin(self.address, &shape);
    }
}

impl<P: Placement> Store<P> {
    /// Pins an item whose bucket's lock the caller holds.
    fn pin(&self, address: Address, header: &Header) {
        debug_assert!(header.value_len() > UNPINNED_MAX);
        self.pins.pin(address);
    }

    /// True if a reader has the item pinned that lies there with this header. The answer is reliable if the caller
    /// holds the lock of the item's buckets, and read the header under it.
    #[inline]
    pub fn is_pinned(&self, address: Address, header: &Header) -> bool {
        header.value_len() > UNPINNED_MAX && self.pins.is_pinned(address)
    }

    /// Gives a pin of an item back. The last reader of an item that has left the index frees it.
    fn unpin(&self, address: Address, shape: &Shape) {
        let last = || P::note_unpinned(self, address, shape);
        if let Some(item) = self.pins.unpin(address, last) {
            self.free_item(item);
        }
    }
}
