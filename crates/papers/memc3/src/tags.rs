//! What a slot of a cuckoo index knows of its item's key: nothing, or a byte.
//!
//! ```text
//!  with a tag:    63       56 55                     0
//!                |  tag 8    |  reference             |     0 = empty, as no tag and no reference is 0
//!
//!  without:      |  reference                         |
//! ```
//!
//! (The paper's bucket has the four tags beside the four pointers: 36 bytes. Here a slot is one word, as the paper's
//! readers need it, and the tag lies in bits that no pointer uses: 32 bytes.)

use nuthatch_base::hash::split;

use crate::index::{Items, Reference};

/// An empty slot.
pub const EMPTY: u64 = 0;

const TAG_SHIFT: u32 = 56;

/// The contents of slots.
pub trait Tags {
    /// A slot's word for an item with this hash.
    fn word(hash: u64, item: Reference) -> u64;

    /// True if the word's item may have a key with this hash.
    fn may_be(word: u64, hash: u64) -> bool;

    /// The word's item; nothing if it is empty.
    fn item(word: u64) -> Option<Reference>;

    /// What leads from one bucket of a key with this hash to the other: their exclusive or.
    fn offset(hash: u64) -> u64;

    /// The same of a word that is not empty.
    fn offset_of(word: u64, items: &impl Items) -> u64;
}

/// A reference alone. Each look-up follows all of its buckets' references, and each move reads a key.
pub struct NoTags;

impl Tags for NoTags {
    #[inline(always)]
    fn word(_: u64, item: Reference) -> u64 {
        item.word()
    }

    #[inline(always)]
    fn may_be(word: u64, _: u64) -> bool {
        word != EMPTY
    }

    #[inline(always)]
    fn item(word: u64) -> Option<Reference> {
        Reference::of_word(word)
    }

    #[inline(always)]
    fn offset(hash: u64) -> u64 {
        split::partner_offset(split::tag32(hash))
    }

    #[inline]
    fn offset_of(word: u64, items: &impl Items) -> u64 {
        Self::item(word).map_or(0, |item| Self::offset(items.hash(item)))
    }
}

/// A byte of the hash beside the reference.
pub struct OneByte;

impl Tags for OneByte {
    #[inline(always)]
    fn word(hash: u64, item: Reference) -> u64 {
        split::tag8(hash) << TAG_SHIFT | item.word()
    }

    #[inline(always)]
    fn may_be(word: u64, hash: u64) -> bool {
        word >> TAG_SHIFT == split::tag8(hash)
    }

    #[inline(always)]
    fn item(word: u64) -> Option<Reference> {
        Reference::of_word(word & ((1 << TAG_SHIFT) - 1))
    }

    #[inline(always)]
    fn offset(hash: u64) -> u64 {
        split::partner_offset(split::tag8(hash))
    }

    #[inline(always)]
    fn offset_of(word: u64, _: &impl Items) -> u64 {
        split::partner_offset(word >> TAG_SHIFT)
    }
}
