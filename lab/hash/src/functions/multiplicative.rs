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

/// 2^16 divided by the golden ratio, made odd.
const GOLDEN_16: u32 = 40_503;

/// For an MC68000, which multiplies 16 bits by 16 only (MULU, up to 70 cycles): the halves of the number are xored and
/// then multiplied, and the low half of the product has the bucket in its top bits. Reaches 2^16 buckets. Needs a power
/// of two.
#[inline(always)]
pub fn mulu(number: u64, table: Table) -> u64 {
    let folded = (word(number) ^ word(number) >> 16) & 0xffff;
    let product = (folded * GOLDEN_16) & 0xffff;
    masked(
        shift_right(product, 16_u32.saturating_sub(table.bits())),
        table,
    )
}

/// The whole product of 32 bits from three multiplications of 16 by 16, as a compiler for the MC68000 makes it: the same
/// buckets as [`top`], at another cost. Needs a power of two.
#[inline(always)]
pub fn mulu_thrice(number: u64, table: Table) -> u64 {
    let (number, low) = (word(number), word(number) & 0xffff);
    let (prime_high, prime_low) = (GOLDEN_PRIME >> 16, GOLDEN_PRIME & 0xffff);
    let cross = (number >> 16)
        .wrapping_mul(prime_low)
        .wrapping_add(low * prime_high);
    let product = (low * prime_low).wrapping_add(cross << 16);
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
    fn half_words_by_hand() {
        // 0x00010003: 0x0001 ^ 0x0003 = 2; times 40503, less 2^16: 15470 = 0x3c6e.
        assert_eq!(mulu(0x0001_0003, Table::of_bits(16)), 0x3c6e);
        assert_eq!(mulu(0x0001_0003, Table::of_bits(8)), 0x3c);
        assert_eq!(mulu(u64::MAX, Table::of_bits(0)), 0);
        for number in [0, 1, 3, 0xffff, 0x1_0000, 0xdead_beef, u64::MAX] {
            for table in [0, 8, 14, 32].map(Table::of_bits) {
                assert_eq!(
                    mulu_thrice(number, table),
                    top(number, table),
                    "{number:#x}"
                );
            }
        }
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
