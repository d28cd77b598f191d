//! The size of a table, and how a hash is cut to it.

use std::fmt;
use std::num::NonZeroU64;

/// A number of buckets: 1 to [`Table::BUCKETS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table(NonZeroU64);

/// Why a table is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// No buckets.
    Empty,
    /// More than [`Table::BUCKETS_MAX`].
    TooLarge,
    /// The function at hand needs a power of two.
    NotPowerOfTwo(u64),
}

impl fmt::Display for TableError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => out.write_str("a table of 0 buckets holds nothing"),
            Self::TooLarge => write!(out, "at most {} buckets", Table::BUCKETS_MAX),
            Self::NotPowerOfTwo(buckets) => {
                let below = 1_u64 << buckets.ilog2();
                write!(
                    out,
                    "{buckets} buckets: not a power of two (the next are {below} and {})",
                    below * 2
                )
            }
        }
    }
}

impl std::error::Error for TableError {}

impl Table {
    /// Buckets at most (2^32): bucket numbers have 32 bits.
    pub const BUCKETS_MAX: u64 = 1 << 32;

    /// A table of `buckets` buckets. Errors: no buckets, or too many.
    pub const fn new(buckets: u64) -> Result<Self, TableError> {
        match NonZeroU64::new(buckets) {
            None => Err(TableError::Empty),
            Some(_) if buckets > Self::BUCKETS_MAX => Err(TableError::TooLarge),
            Some(buckets) => Ok(Self(buckets)),
        }
    }

    /// A table of 2^bits buckets. Panics if `bits` is over 32.
    pub const fn of_bits(bits: u32) -> Self {
        match Self::new(1 << bits) {
            Ok(table) => table,
            Err(_) => panic!("at most 32 bits"),
        }
    }

    /// Buckets.
    #[inline(always)]
    pub const fn buckets(self) -> u64 {
        self.0.get()
    }

    /// True if a mask cuts a hash to it.
    #[inline(always)]
    pub const fn is_power_of_two(self) -> bool {
        self.0.is_power_of_two()
    }

    /// The paper's HASH_BITS: bits of a bucket number, rounded up.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        u64::BITS - (self.0.get() - 1).leading_zeros()
    }

    /// The paper's HASH_MASK. Meant for powers of two.
    #[inline(always)]
    pub const fn mask(self) -> u64 {
        self.0.get() - 1
    }

    /// Cuts 64 good bits: a power of two takes the low ones, as [`split`](nuthatch_base::hash::split) does; another
    /// size takes the high half of a product, which needs no division.
    #[inline(always)]
    pub const fn cut(self, hash: u64) -> u64 {
        match self.is_power_of_two() {
            true => hash & self.mask(),
            false => self.scale(hash),
        }
    }

    /// The same for 32 good bits.
    #[inline(always)]
    pub const fn cut32(self, hash: u32) -> u64 {
        match self.is_power_of_two() {
            true => hash as u64 & self.mask(),
            false => (hash as u64 * self.0.get()) >> 32,
        }
    }

    /// Scales 64 bits of which the high ones are good: for a power of two, its top bits.
    #[inline(always)]
    pub const fn scale(self, hash: u64) -> u64 {
        ((hash as u128 * self.0.get() as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked() {
        assert_eq!(Table::new(0), Err(TableError::Empty));
        assert_eq!(Table::new((1 << 32) + 1), Err(TableError::TooLarge));
        assert_eq!(Table::new(1 << 32).unwrap().bits(), 32);
        let words = TableError::NotPowerOfTwo(1000).to_string();
        assert!(words.contains("512 and 1024"), "{words}");
    }

    #[test]
    fn bits_and_cuts() {
        for (buckets, bits) in [(1, 0), (2, 1), (3, 2), (1000, 10), (1024, 10), (1025, 11)] {
            let table = Table::new(buckets).unwrap();
            assert_eq!(table.bits(), bits);
            for hash in [0, 1, 0x1234_5678_9abc_def0, u64::MAX] {
                assert!(table.cut(hash) < buckets);
                assert!(table.cut32(hash as u32) < buckets);
                assert!(table.scale(hash) < buckets);
            }
        }
        assert_eq!(Table::of_bits(8).cut(0xabcd), 0xcd);
        assert_eq!(Table::of_bits(8).scale(0xab << 56), 0xab);
        assert_eq!(Table::new(3).unwrap().cut(u64::MAX), 2);
    }
}
