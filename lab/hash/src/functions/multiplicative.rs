//! Multiplicative hashing (sections 3.2 and 5): times a prime near the golden section of the word.

use super::word::{masked, shift_right, word};
use crate::table::Table;

/// The paper's multiplier: prime, and nearly 2^32 divided by the golden ratio.
pub const GOLDEN_PRIME: u32 = 2_654_435_761;

/// The product shifted by a fixed count, as the paper's mult-11, -16, -17 and -18: bits from `SHIFT`
/// on. Reaches 2^(32 - SHIFT) buckets at most. Needs a power of two.
#[inline(always)]
pub fn shifted<const SHIFT: u32>(number: u64, table: Table) -> u64 {
    masked(word(number).wrapping_mul(GOLDEN_PRIME) >> SHIFT, table)
}

/// The product shifted by the word size minus the table's bits (section 5): its top bits. Needs a
/// power of two.
#[inline(always)]
pub fn top(number: u64, table: Table) -> u64 {
    let product = word(number).wrapping_mul(GOLDEN_PRIME);
    masked(shift_right(product, 32 - table.bits()), table)
}

/// The same where an `unsigned long` has 64 bits: the experiment that the paper proposes in its last section. The
/// constant has 32 bits, so the top of the product of a small number is 0, and a larger constant is needed; see
/// [`super::golden::hash_64`].
#[inline(always)]
pub fn top_64(number: u64, table: Table) -> u64 {
    let product = number.wrapping_mul(GOLDEN_PRIME as u64);
    product.checked_shr(64 - table.bits()).unwrap_or(0) & table.mask()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // 2654435761 = 0x9e3779b1; times 3, less 2^32: 0xdaa66d13.
        let table = Table::of_bits(14);
        assert_eq!(GOLDEN_PRIME, 0x9e37_79b1);
        assert_eq!(shifted::<11>(3, table), (0xdaa6_6d13 >> 11) & 0x3fff);
        assert_eq!(shifted::<16>(3, table), 0xdaa6 & 0x3fff);
        assert_eq!(shifted::<17>(3, table), (0xdaa6 >> 1) & 0x3fff);
        assert_eq!(shifted::<18>(3, table), 0xdaa6 >> 2);
        assert_eq!(top(3, table), shifted::<18>(3, table));
        assert_eq!(top_64(3, table), 0);
    }

    #[test]
    fn a_table_of_one_bucket_has_one() {
        assert_eq!(top(12345, Table::of_bits(0)), 0);
        assert_eq!(top_64(u64::MAX, Table::of_bits(0)), 0);
    }

    #[test]
    fn the_multiplier_is_prime_and_golden() {
        let prime = (3..=51_521_u32)
            .step_by(2)
            .all(|divisor| !GOLDEN_PRIME.is_multiple_of(divisor));
        assert!(prime);
        let golden = (5_f64.sqrt() - 1.0) / 2.0;
        assert!((f64::from(GOLDEN_PRIME) / 2_f64.powi(32) - golden).abs() < 1e-7);
    }
}
