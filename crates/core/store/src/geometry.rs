//! The geometry of an index: how many buckets it has while it doubles in place, a bucket at a time.

use nuthatch_base::hash::split;

/// How many buckets there are, and how far a doubling has come. Packed into one word, so that it
/// changes atomically.
/// While the table doubles from `n` to `2n` buckets, buckets below `split` have given half of their items to the bucket
/// `n` above them; the others have not. `split == 0` is a table at rest, and so is `split == n`, except that it still
/// counts as growing.
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

    /// Unpacks it from its word: `buckets - 1` for a table at rest, so that a reader needs nothing but a mask; with the
    /// highest bit set, log2 of the buckets and how far the doubling has come.
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

    /// Packs it into its word.
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

    /// Buckets that take memory.
    pub fn allocated_buckets(self) -> u64 {
        if self.growing {
            2 * self.buckets()
        } else {
            self.buckets()
        }
    }

    /// The bucket of `full`, all bits of a position.
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
}

const _: () = assert!(split::BUCKET_BITS_MAX <= Geometry::BITS_SHIFT);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

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
}
