//! Words in front of an item that refer to other items: of its chain, of its class's list.

use crate::memory::arena::{Address, Arena};

/// One of an item's links: how many words in front of its header it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link(pub u64);

impl Link {
    /// The item that it refers to. The caller holds the lock that guards the link, or uses the result as a hint.
    #[inline(always)]
    pub fn load(self, arena: &Arena, address: Address) -> Option<Address> {
        unpack(arena.load(Address(address.0 - self.0), 0))
    }

    /// Makes it refer to another item. The caller holds the lock that guards the link.
    #[inline(always)]
    pub fn store(self, arena: &Arena, address: Address, to: Option<Address>) {
        arena.store(Address(address.0 - self.0), 0, pack(to));
    }
}

/// A reference as a word: 0 is none.
#[inline(always)]
pub fn pack(to: Option<Address>) -> u64 {
    to.map_or(0, |address| address.0 + 1)
}

/// A word as a reference.
#[inline(always)]
pub fn unpack(word: u64) -> Option<Address> {
    word.checked_sub(1).map(Address)
}
