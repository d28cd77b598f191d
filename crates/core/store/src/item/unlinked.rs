//! Items that have left the index, and the freeing of their memory.

use super::Header;
use crate::memory::arena::Address;
use crate::memory::pins::UNPINNED_MAX;
use crate::slab::Slab;
use crate::store::{Placement, Store};

/// An item that has just left the index: the right to free its memory.
///
/// It cannot be copied, and the functions that free memory consume it. So however an item leaves (removed, replaced,
/// evicted, drained, expired), the [`Pins`](crate::memory::pins::Pins) are checked once and its memory is freed once.
#[derive(Debug)]
#[must_use = "the memory is lost unless it is retired or reused"]
pub struct Unlinked {
    address: Address,
    header: Header,
}

impl Unlinked {
    /// To be called once, by the thread that emptied the only slot that referred to the item, under the slot's lock
    /// (store 2). `header` is the item's header at that moment.
    pub fn new(address: Address, header: Header) -> Self {
        Self { address, header }
    }

    /// Where the item lies.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }
}

impl<P: Placement> Store<P> {
    /// Frees an item's memory, or leaves that to its last reader.
    #[inline]
    pub fn retire(&self, item: Unlinked) {
        if let Some(item) = self.release_pins(item) {
            self.free_item(item);
        }
    }

    /// Returns the item if its memory may be freed at once; otherwise its last reader gets it.
    #[inline]
    fn release_pins(&self, item: Unlinked) -> Option<Unlinked> {
        match item.header.value_len() > UNPINNED_MAX {
            true => self.pins.release(item.address, item),
            false => Some(item),
        }
    }

    /// Frees all memory of an item that has no reader.
    #[inline]
    pub(crate) fn free_item(&self, item: Unlinked) {
        if item.header.is_large() {
            self.free_pieces(item.address, &item.header.shape(self.cut()));
        }
        self.free_linked(item.address);
    }
}

impl Store<Slab> {
    /// Frees an item's memory, or leaves that to its last reader; but if the item is a single chunk of `class` and has
    /// no reader, the chunk goes to the caller.
    pub fn reuse(&self, item: Unlinked, class: usize) -> Option<Address> {
        let item = self.release_pins(item)?;
        let shape = item.header.shape(self.cut());
        if shape.piece.is_none() && self.class_of(shape.head_bytes()) == class {
            return Some(item.address);
        }
        self.free_item(item);
        None
    }
}
