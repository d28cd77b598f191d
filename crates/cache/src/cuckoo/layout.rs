//! The bits of a slot and of the index's state, and what a design decides. No algorithm here.
//!
//! ```text
//!  a bucket of the default design, one cache line:
//!  | slot 0 | slot 1 | slot 2 | slot 3 | slot 4 | slot 5 | slot 6 | slot 7 |
//!
//!  a slot:   63           48 47                                   0
//!           |    tag 16     |        chunk + 1, in words           |      0 = empty
//! ```

use nuthatch_hash::split;

use crate::slab::arena::Chunk;

/// What distinguishes the default table from the paper's.
pub trait Design: Send + Sync + Default + 'static {
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
    /// Breadth first over this many slots at most: the shortest path there is.
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

/// Eight slots of a 16-bit tag in one cache line, many writers, breadth-first search.
#[derive(Default)]
pub struct EightWay;

impl Design for EightWay {
    const NAME: &'static str = "cuckoo";
    const SLOTS: usize = 8;
    const TAG_BITS: u32 = 16;
    const ONE_WRITER: bool = false;
    const SEARCH: Search = Search::BreadthFirst { slots: 2000 };
}

/// MemC3 as printed: 4 slots, one-byte tags, one writer, 500 kicks on two paths.
#[derive(Default)]
pub struct Paper;

impl Design for Paper {
    const NAME: &'static str = "cuckoo-paper";
    const SLOTS: usize = 4;
    const TAG_BITS: u32 = 8;
    const ONE_WRITER: bool = true;
    const SEARCH: Search = Search::RandomWalks {
        width: 2,
        kicks: 500,
    };
}

/// A slot's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u64);

impl Slot {
    /// Nothing.
    pub const EMPTY: Slot = Slot(0);

    /// A tag and where the item lies.
    #[inline(always)]
    pub fn new<D: Design>(tag: u64, chunk: Chunk) -> Self {
        debug_assert!(tag != 0 && chunk.0 + 1 < 1 << (64 - D::TAG_BITS));
        Slot(tag << (64 - D::TAG_BITS) | (chunk.0 + 1))
    }

    /// True if nothing is there.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The tag.
    #[inline(always)]
    pub fn tag<D: Design>(self) -> u64 {
        self.0 >> (64 - D::TAG_BITS)
    }

    /// Where the item lies. Only for slots that are not empty.
    #[inline(always)]
    pub fn chunk<D: Design>(self) -> Chunk {
        Chunk((self.0 & ((1 << (64 - D::TAG_BITS)) - 1)).wrapping_sub(1))
    }
}

/// How many buckets there are, and how far a doubling has come. Packed into one word, so that it
/// changes atomically.
///
/// While the table doubles from `n` to `2n` buckets, buckets below `split` have given half of
/// their items to the bucket `n` above them; the others have not. `split == 0` is a table at rest,
/// and so is, for every question but "is it growing", `split == n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The buckets less one, before the doubling if one is under way.
    pub mask: u64,
    /// A doubling is under way.
    pub growing: bool,
    /// Buckets already split.
    pub split: u64,
}

impl Geometry {
    const BITS_SHIFT: u32 = 57;
    const GROWING: u64 = 1 << 63;

    /// From its word: `buckets - 1` for a table at rest, so that a reader needs nothing but a mask;
    /// with the highest bit set, log2 of the buckets and how far the doubling has come.
    #[inline(always)]
    pub fn unpack(word: u64) -> Self {
        if word & Self::GROWING == 0 {
            return Self {
                mask: word,
                growing: false,
                split: 0,
            };
        }
        let bits = word >> Self::BITS_SHIFT & 63;
        Self {
            mask: (1 << bits) - 1,
            growing: true,
            split: word & ((1 << Self::BITS_SHIFT) - 1),
        }
    }

    /// Into its word.
    pub fn pack(self) -> u64 {
        if !self.growing {
            return self.mask;
        }
        Self::GROWING | u64::from(self.mask.count_ones()) << Self::BITS_SHIFT | self.split
    }

    /// Buckets, before the doubling.
    #[inline(always)]
    pub fn buckets(self) -> u64 {
        self.mask + 1
    }

    /// Buckets that may hold items now.
    pub fn live_buckets(self) -> u64 {
        self.buckets() + self.split
    }

    /// The bucket that `full`, all bits of a position, falls into.
    #[inline(always)]
    pub fn locate(self, full: u64) -> u64 {
        if self.growing {
            return self.locate_growing(full);
        }
        split::bucket(full, self.mask)
    }

    /// Out of line: nearly always a table is at rest, and a lookup is a mask.
    #[cold]
    #[inline(never)]
    fn locate_growing(self, full: u64) -> u64 {
        let low = split::bucket(full, self.mask);
        if low < self.split {
            split::bucket(full, 2 * self.mask + 1)
        } else {
            low
        }
    }

    /// The other candidate bucket of an item with this tag in `bucket`, from the table alone.
    /// `None` if that takes a bit of the hash which only the key can tell: the item's bucket is
    /// not split yet, but the other one is.
    #[inline]
    pub fn partner(self, bucket: u64, tag: u64) -> Option<u64> {
        let full = bucket ^ split::partner_offset(tag);
        let low = split::bucket(full, self.mask);
        if low >= self.split {
            return Some(low);
        }
        let known = split::bucket(bucket, self.mask) < self.split;
        known.then(|| split::bucket(full, 2 * self.mask + 1))
    }
}

const _: () = {
    assert!(EightWay::SLOTS * size_of::<u64>() == 64);
    assert!(split::BUCKET_BITS_MAX <= Geometry::BITS_SHIFT);
};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_their_parts() {
        let slot = Slot::new::<EightWay>(0xffff, Chunk((1 << 47) + 5));
        assert_eq!(
            (slot.tag::<EightWay>(), slot.chunk::<EightWay>()),
            (0xffff, Chunk((1 << 47) + 5))
        );
        let slot = Slot::new::<Paper>(0x01, Chunk(0));
        assert_eq!((slot.tag::<Paper>(), slot.chunk::<Paper>()), (1, Chunk(0)));
        assert!(!slot.is_empty());
    }

    #[test]
    fn geometry_packs() {
        let geometry = Geometry {
            mask: (1 << 40) - 1,
            growing: true,
            split: (1 << 40) - 1,
        };
        assert_eq!(Geometry::unpack(geometry.pack()), geometry);
    }

    #[test]
    fn a_finished_doubling_is_a_table_at_rest() {
        let before = Geometry {
            mask: 15,
            growing: true,
            split: 16,
        };
        let after = Geometry {
            mask: 31,
            growing: false,
            split: 0,
        };
        for full in 0..1000 {
            assert_eq!(before.locate(full), after.locate(full));
        }
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
                assert!(
                    geometry
                        .partner(one, tag)
                        .is_none_or(|partner| partner == two)
                );
                assert!(
                    geometry
                        .partner(two, tag)
                        .is_none_or(|partner| partner == one)
                );
                if split == 0 || split == 16 {
                    assert_eq!(geometry.partner(one, tag), Some(two));
                }
            }
        }
    }
}
