//! The paper's arithmetic: an `unsigned long` of its machines (Pentium Pro, Pentium II) has 32 bits.

use crate::table::Table;

/// The part of a number that fits an `unsigned long`.
#[inline(always)]
pub const fn word(number: u64) -> u32 {
    number as u32
}

/// A shift that may be as wide as the word: the result is 0 then.
#[inline(always)]
pub const fn shift_right(number: u32, bits: u32) -> u32 {
    match number.checked_shr(bits) {
        Some(shifted) => shifted,
        None => 0,
    }
}

/// The bits that the mask of a table leaves.
#[inline(always)]
pub const fn masked(number: u32, table: Table) -> u64 {
    number as u64 & table.mask()
}
