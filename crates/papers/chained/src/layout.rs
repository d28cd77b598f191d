//! The layout: the words in front of an item, and the word of a bucket. No algorithm here.
//!
//! ```text
//!  a bucket, one word:   chunk + 1 of the first item of its chain, 0 = none
//!
//!  an item (all links are chunk + 1, 0 = none):
//!   word -3   the next older item of the class   \  only with strict LRU
//!   word -2   the next newer item of the class   /  (nuthatch_store::eviction::slab::lru)
//!   word -1   the next item of the chain
//!   word  0   the wide header of nuthatch_store::item, four words  <- where a Address points
//!   ...       key, value
//! ```
//!
//! That is 56 bytes in front of the key, as many as in memcached on a machine of 64 bits (three
//! pointers, times, lengths, a reference count, the cas); and 40 with CLOCK, which saves the two
//! pointers of the list (MemC3 section 5.3). The header is always the wide one: memcached's
//! items have all their fields, too.

use nuthatch_store::eviction::slab::lru;
use nuthatch_store::item::HEADER_WIDE;
use nuthatch_store::item::links::Link;
use nuthatch_store::memory::arena::WORD;

/// To the next item of the chain.
pub const NEXT: Link = Link(1);

/// Words in front of a header for the chain. Those of the eviction policy lie in front of them.
pub const FRONT: usize = 1;

const _: () = {
    assert!((FRONT + lru::KIND.words) * WORD + HEADER_WIDE == 56);
    assert!(FRONT * WORD + HEADER_WIDE == 40);
};
