//! The words in front of an item, and the word of a bucket. No algorithm here.
//!
//! ```text
//!  a bucket, one word:   chunk + 1 of the first item of its chain, 0 = none
//!
//!  an item (all links are chunk + 1, 0 = none):
//!   word -3   the next older item of the class   \  only with
//!   word -2   the next newer item of the class   /  strict LRU
//!   word -1   the next item of the chain
//!   word  0   the wide header of crate::item, four words  <- where a Chunk points
//!   ...       key, value
//! ```
//!
//! That is 56 bytes in front of the key, as many as in memcached on a machine of 64 bits (three
//! pointers, times, lengths, a reference count, the cas); and 40 with CLOCK, which saves the two
//! pointers of the list (MemC3 section 5.3). The header is always the wide one: memcached's
//! items have all their fields, too.

use crate::item::HEADER_WIDE;
use crate::slab::arena::{Arena, Chunk, WORD};

/// Words in front of a header without a list.
pub const FRONT_CLOCK: usize = 1;
/// Words in front of a header in a strict LRU list.
pub const FRONT_LRU: usize = 3;

const _: () = {
    assert!(FRONT_LRU * WORD + HEADER_WIDE == 56);
    assert!(FRONT_CLOCK * WORD + HEADER_WIDE == 40);
};

/// One of an item's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Link {
    /// To the next item of the chain.
    Next = 1,
    /// To the item of the class used next after this one.
    Newer = 2,
    /// To the item of the class used last before this one.
    Older = 3,
}

impl Link {
    /// Where it leads. The caller holds the lock that guards it, or takes it for a hint.
    #[inline(always)]
    pub fn load(self, arena: &Arena, chunk: Chunk) -> Option<Chunk> {
        unpack(arena.load(Chunk(chunk.0 - self as u64), 0))
    }

    /// Lets it lead elsewhere. The caller holds the lock that guards it.
    #[inline(always)]
    pub fn store(self, arena: &Arena, chunk: Chunk, to: Option<Chunk>) {
        arena.store(Chunk(chunk.0 - self as u64), 0, pack(to));
    }
}

/// A reference as a word.
#[inline(always)]
pub fn pack(to: Option<Chunk>) -> u64 {
    to.map_or(0, |chunk| chunk.0 + 1)
}

/// A word as a reference.
#[inline(always)]
pub fn unpack(word: u64) -> Option<Chunk> {
    word.checked_sub(1).map(Chunk)
}
