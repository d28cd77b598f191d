//! The buffer cache's functions (section 3.2): the old one, and Peter Steiner's shift-add.

use super::word::{masked, word};
use crate::key::{Block, Numeric};
use crate::table::Table;

/// `_hashfn` of Linux 2.2.5: device and block, xored and cut. It "adds no randomness to either
/// argument". Needs a power of two.
#[inline(always)]
pub fn xor(key: Block, table: Table) -> u64 {
    masked(word(key.device) ^ word(key.block), table)
}

/// Steiner's shift-add: times 127, a Mersenne prime, by a shift and a subtraction, and two terms of
/// higher bits. Needs a power of two.
#[inline(always)]
pub fn steiner<K: Numeric>(key: K, table: Table) -> u64 {
    let block = word(key.number());
    let times_127 = (block << 7).wrapping_sub(block);
    masked(
        times_127
            .wrapping_add(block >> 10)
            .wrapping_add(block >> 18),
        table,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let table = Table::of_bits(14);
        // 0x0805 ^ 0x12345 = 0x12b40; the low 14 bits are 0x2b40.
        let key = Block {
            device: 0x0805,
            block: 0x1_2345,
        };
        assert_eq!(xor(key, table), 0x2b40);
        // 74565 * 127 = 9469755; 74565 / 2^10 = 72; 74565 / 2^18 = 0.
        assert_eq!(steiner(key, table), 9_469_827 % 16_384);
        // With a bit over 18: 2^20 * 127 + 2^10 + 2^2.
        assert_eq!(
            steiner(1_u64 << 20, table),
            ((127 << 20) + 1024 + 4) % 16_384
        );
    }
}
