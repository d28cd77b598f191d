//! The layout: the bits of a slot and of the index's state, and the constants of each design. No algorithm here.
//!
//! ```text
//!  a bucket of the default design, one cache line:
//!  | slot 0 | slot 1 | slot 2 | slot 3 | slot 4 | slot 5 | slot 6 | slot 7 |
//!
//!  a slot:   63           48 47       44 43                        0
//!           |    tag 16     | more lines |   address, in words      |      0 = empty, as no tag is 0
//! ```
//!
//! *More lines* says how many cache lines the item's record touches behind its first one, so that a batch prefetches
//! them without having seen the item. It is a hint, written with the address by whoever stores the slot; nothing else
//! depends on it, and slots of one item are compared without it ([`SlotWord::refers_like`]).

use std::io;
use std::sync::Arc;

use nuthatch_base::hash::split;
use nuthatch_base::memory::Source;
use nuthatch_engine::AnyEngine;

pub use nuthatch_store::geometry::Geometry;
use nuthatch_store::log::Log;
use nuthatch_store::memory::arena::Address;
use nuthatch_store::reclaim::MakeRoom;
use nuthatch_store::slab::Slab;
use nuthatch_store::store::Store;

use crate::{Cuckoo, CuckooConfig};

/// What distinguishes the default table from the paper's, and where items lie.
pub trait Variant: Sized + Send + Sync + Default + 'static {
    /// The name that `--engine` takes.
    const NAME: &'static str;
    /// Slots of a bucket.
    const SLOTS: usize;
    /// Bits of a tag.
    const TAG_BITS: u32;
    /// One writer at a time, as in the paper.
    const ONE_WRITER: bool;
    /// How an insert looks for a free slot.
    const SEARCH: Search;
    /// Where items lie.
    type Placement: MakeRoom<Cuckoo<Self>>;

    /// True if other processes can read such a table.
    const CAN_BE_SHARED: bool = false;

    /// An empty store for a configuration, with memory from `source` if the table can be shared.
    fn store(config: &CuckooConfig, source: Source) -> io::Result<Store<Self::Placement>>;

    /// [`nuthatch_engine::Engine::any`] of this table. The tables of this crate repeat the body, to be compiled here.
    fn any(engine: Arc<Cuckoo<Self>>) -> Arc<AnyEngine> {
        AnyEngine::new(engine)
    }

    /// The tag of a hash, never 0.
    #[inline(always)]
    fn tag(hash: u64) -> u64 {
        if Self::TAG_BITS == 8 {
            split::tag8(hash)
        } else {
            split::tag16(hash)
        }
    }
}

/// How an insert looks for a free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Breadth first, over at most this many slots: it finds the shortest path.
    BreadthFirst {
        /// Slots examined at most.
        slots: usize,
    },
    /// Random walks side by side (the paper's several search paths).
    RandomWalks {
        /// Walks side by side.
        width: usize,
        /// Kicks of all walks together.
        kicks: usize,
    },
}

/// Eight slots of a 16-bit tag in one cache line, many writers, breadth-first search; items in a log.
#[derive(Default)]
pub struct EightWay;

impl Variant for EightWay {
    const NAME: &'static str = "cuckoo";
    const SLOTS: usize = 8;
    const TAG_BITS: u32 = 16;
    const ONE_WRITER: bool = false;
    const SEARCH: Search = Search::BreadthFirst { slots: 2000 };

    type Placement = Log;

    const CAN_BE_SHARED: bool = true;

    fn store(config: &CuckooConfig, source: Source) -> io::Result<Store<Log>> {
        config.log(source)
    }

    fn any(engine: Arc<Cuckoo<Self>>) -> Arc<AnyEngine> {
        AnyEngine::new(engine)
    }
}

/// The same index, with items in size classes that leave by CLOCK, as in MemC3.
#[derive(Default)]
pub struct EightWayClock;

impl Variant for EightWayClock {
    const NAME: &'static str = EightWay::NAME;
    const SLOTS: usize = EightWay::SLOTS;
    const TAG_BITS: u32 = EightWay::TAG_BITS;
    const ONE_WRITER: bool = EightWay::ONE_WRITER;
    const SEARCH: Search = EightWay::SEARCH;

    type Placement = Slab;

    fn store(config: &CuckooConfig, _source: Source) -> io::Result<Store<Slab>> {
        config.size_classes()
    }

    fn any(engine: Arc<Cuckoo<Self>>) -> Arc<AnyEngine> {
        AnyEngine::new(engine)
    }
}

/// MemC3 as printed: 4 slots, one-byte tags, one writer, 500 kicks on two paths.
#[derive(Default)]
pub struct Paper;

impl Variant for Paper {
    const NAME: &'static str = "cuckoo-paper";
    const SLOTS: usize = 4;
    const TAG_BITS: u32 = 8;
    const ONE_WRITER: bool = true;
    const SEARCH: Search = Search::RandomWalks {
        width: 2,
        kicks: 500,
    };

    type Placement = Slab;

    fn store(config: &CuckooConfig, _source: Source) -> io::Result<Store<Slab>> {
        config.size_classes()
    }

    fn any(engine: Arc<Cuckoo<Self>>) -> Arc<AnyEngine> {
        AnyEngine::new(engine)
    }
}

/// A slot's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotWord(pub u64);

/// Bits of the number of further lines.
const LINES_BITS: u32 = 4;

/// The most further lines that a slot tells of. Of longer records the processor's own prefetching meets the rest.
const MORE_LINES_MAX: u64 = (1 << LINES_BITS) - 1;

/// Words of a cache line.
const LINE_WORDS: u64 = 8;

/// Bits of an address. With tags of 16 bits they are enough for 128 TiB, all that a process of x86-64 can map.
pub const fn address_bits<D: Variant>() -> u32 {
    64 - D::TAG_BITS - LINES_BITS
}

impl SlotWord {
    /// An empty slot.
    pub const EMPTY: SlotWord = SlotWord(0);

    /// A tag, which is never 0, and where the item lies; nothing is known of its size.
    #[inline(always)]
    pub fn new<D: Variant>(tag: u64, address: Address) -> Self {
        debug_assert!(tag != 0 && address.0 < 1 << address_bits::<D>());
        SlotWord(tag << (64 - D::TAG_BITS) | address.0)
    }

    /// The same, of an item whose record has this many words, at least 1.
    #[inline]
    pub fn of_record<D: Variant>(tag: u64, address: Address, words: usize) -> Self {
        // The arena begins with a line.
        let last = address.0 % LINE_WORDS + words as u64 - 1;
        let more = (last / LINE_WORDS).min(MORE_LINES_MAX);
        SlotWord(Self::new::<D>(tag, address).0 | more << address_bits::<D>())
    }

    /// True if the slot is empty.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The tag.
    #[inline(always)]
    pub fn tag<D: Variant>(self) -> u64 {
        self.0 >> (64 - D::TAG_BITS)
    }

    /// Where the item lies. Only for slots that are not empty.
    #[inline(always)]
    pub fn address<D: Variant>(self) -> Address {
        Address(self.0 & ((1 << address_bits::<D>()) - 1))
    }

    /// How many lines the item's record touches behind its first one, as far as the slot can tell.
    #[inline(always)]
    pub fn more_lines<D: Variant>(self) -> u64 {
        self.0 >> address_bits::<D>() & MORE_LINES_MAX
    }

    /// True if both refer to one item, whatever they say of its size.
    #[inline(always)]
    pub fn refers_like<D: Variant>(self, other: SlotWord) -> bool {
        (self.0 ^ other.0) & !(MORE_LINES_MAX << address_bits::<D>()) == 0
    }
}

/// The other candidate bucket of an item with this tag in `bucket`, from the table alone. `None` if that takes a bit of
/// the hash that only the key gives: the item's bucket is not split yet, but the other one is.
#[inline]
pub fn partner(geometry: Geometry, bucket: u64, tag: u64) -> Option<u64> {
    let full = bucket ^ split::partner_offset(tag);
    let low = split::bucket(full, geometry.mask);
    if low >= geometry.split {
        return Some(low);
    }
    let known = split::bucket(bucket, geometry.mask) < geometry.split;
    known.then(|| split::bucket(full, 2 * geometry.mask + 1))
}

const _: () = {
    assert!(EightWay::SLOTS * size_of::<u64>() == 64);
};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_their_parts() {
        let address = Address((1 << 43) + 5);
        let slot = SlotWord::new::<EightWay>(0xffff, address);
        for (words, more) in [
            (1, 0),
            (3, 0),
            (4, 1),
            (11, 1),
            (12, 2),
            (123, 15),
            (9999, 15),
        ] {
            let of_record = SlotWord::of_record::<EightWay>(0xffff, address, words);
            assert_eq!(
                (of_record.tag::<EightWay>(), of_record.address::<EightWay>()),
                (0xffff, address)
            );
            assert_eq!(of_record.more_lines::<EightWay>(), more);
            assert!(of_record.refers_like::<EightWay>(slot));
        }
        let other = SlotWord::of_record::<EightWay>(0xffff, Address(5), 4);
        assert!(!other.refers_like::<EightWay>(slot));
        let slot = SlotWord::new::<Paper>(0x01, Address(0));
        assert_eq!(
            (slot.tag::<Paper>(), slot.address::<Paper>()),
            (1, Address(0))
        );
        assert!(!slot.is_empty());
    }

    #[test]
    fn partners_agree_with_the_hash_in_every_state() {
        for split in 0..=16 {
            let geometry = Geometry {
                mask: 15,
                growing: true,
                split,
            };
            for hash in 0..4096_u64 {
                let tag = EightWay::tag(hash << 40);
                let other = hash ^ split::partner_offset(tag);
                let (one, two) = (geometry.locate(hash), geometry.locate(other));
                assert!(partner(geometry, one, tag).is_none_or(|partner| partner == two));
                assert!(partner(geometry, two, tag).is_none_or(|partner| partner == one));
                if split == 0 || split == 16 {
                    assert_eq!(partner(geometry, one, tag), Some(two));
                }
            }
        }
    }
}
