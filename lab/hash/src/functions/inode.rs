//! The inode cache's function (section 3.4): a shift-add.

use super::word::{masked, shift_right, word};
use crate::key::Inode;
use crate::table::Table;

/// `hash` of Linux 2.2.5: number or superblock, and two terms of higher bits. Needs a power of two.
#[inline(always)]
pub fn shift_add(key: Inode, table: Table) -> u64 {
    let (either, bits) = (word(key.number) | word(key.superblock), table.bits());
    let high = shift_right(either, bits).wrapping_add(shift_right(either, 2 * bits));
    masked(either.wrapping_add(high), table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // 0xc0202000 | 0x1234 = 0xc0203234; >> 8 = 0xc02032; >> 16 = 0xc020.
        let key = Inode {
            superblock: 0xc020_2000,
            number: 0x1234,
        };
        assert_eq!(
            shift_add(key, Table::of_bits(8)),
            (0x34 + 0x32 + 0x20) & 0xff
        );
    }
}
