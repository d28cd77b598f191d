//! The successors of the paper's multiplicative function: `hash_32` and `hash_64` of today's Linux
//! (include/linux/hash.h). The multiplier is the negative golden section of the word, and the top bits of the product
//! are taken, whatever the table's size.

use crate::table::Table;

/// 2^32 times (3 - sqrt 5) / 2.
pub const GOLDEN_RATIO_32: u32 = 0x61C8_8647;
/// 2^64 times (3 - sqrt 5) / 2.
pub const GOLDEN_RATIO_64: u64 = 0x61C8_8646_80B5_83EB;

/// `hash_32`: the low 32 bits of the number, multiplied. Takes tables of any size.
#[inline(always)]
pub fn hash_32(number: u64, table: Table) -> u64 {
    let product = (number as u32).wrapping_mul(GOLDEN_RATIO_32);
    table.scale(u64::from(product) << 32)
}

/// `hash_64`: all of the number, multiplied. Takes tables of any size.
#[inline(always)]
pub fn hash_64(number: u64, table: Table) -> u64 {
    table.scale(number.wrapping_mul(GOLDEN_RATIO_64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_bits_as_linux_shifts_them() {
        for bits in [1, 8, 14, 20] {
            let table = Table::of_bits(bits);
            for number in [0_u64, 1, 2, 0xdead_beef, 0x1234_5678_9abc] {
                let product = (number as u32).wrapping_mul(0x61C8_8647);
                assert_eq!(hash_32(number, table), u64::from(product >> (32 - bits)));
                let product = number.wrapping_mul(0x61C8_8646_80B5_83EB);
                assert_eq!(hash_64(number, table), product >> (64 - bits));
            }
        }
    }

    #[test]
    fn the_multipliers_are_golden() {
        let section = (3.0 - 5_f64.sqrt()) / 2.0;
        assert!((f64::from(GOLDEN_RATIO_32) / 2_f64.powi(32) - section).abs() < 1e-9);
        assert!((GOLDEN_RATIO_64 as f64 / 2_f64.powi(64) - section).abs() < 1e-12);
    }
}
