//! The dentry cache's functions (section 3.3), and the name hash that they begin with.

use super::word::{masked, shift_right, word};
use crate::key::Dentry;
use crate::table::Table;

/// The hash of a name, "a simplified CRC": each byte is xored into a word that turns by four bits. The paper gives only
/// a description; the four bits are those of Linux 2.2, from memory of its sources.
#[inline(always)]
pub fn name_hash(name: &[u8]) -> u32 {
    name.iter()
        .fold(0_u32, |hash, &byte| hash.rotate_left(4) ^ u32::from(byte))
}

/// `d_hash` of Linux 2.2.5: shifts and xors. Needs a power of two.
#[inline(always)]
pub fn shift_xor(key: Dentry, table: Table) -> u64 {
    let (hash, bits) = (sum(key), table.bits());
    masked(
        hash ^ shift_right(hash, bits) ^ shift_right(hash, 2 * bits),
        table,
    )
}

/// The same with additions for the xors: the paper's "14 bit" kernel. Needs a power of two.
#[inline(always)]
pub fn shift_add(key: Dentry, table: Table) -> u64 {
    let (hash, bits) = (sum(key), table.bits());
    let high = shift_right(hash, bits).wrapping_add(shift_right(hash, 2 * bits));
    masked(hash.wrapping_add(high), table)
}

#[inline(always)]
fn sum(key: Dentry) -> u32 {
    word(key.parent).wrapping_add(word(key.name_hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let table = Table::of_bits(10);
        // The sum is 0xc0100080 + 0x6c73 = 0xc0106cf3; >> 10 = 0x0030041b; >> 20 = 0x00000c01.
        let key = Dentry {
            parent: 0xc010_0080,
            name_hash: 0x6c73,
        };
        assert_eq!(shift_xor(key, table), 0x0f3 ^ 0x01b ^ 0x001);
        assert_eq!(
            shift_add(key, table),
            (0xc010_6cf3_u64 + 0x0030_041b + 0xc01) & 0x3ff
        );
    }

    #[test]
    fn a_name_is_a_turning_word() {
        assert_eq!(name_hash(b""), 0);
        assert_eq!(name_hash(b"a"), 0x61);
        // 0x61 turned by four is 0x610; ^ 0x62 = 0x672.
        assert_eq!(name_hash(b"ab"), 0x672);
        // Nine letters: the first comes round to the low bits.
        let mut by_hand = 0_u32;
        for _ in 0..9 {
            by_hand = by_hand.wrapping_mul(16) + (by_hand >> 28);
            by_hand ^= 0x7a;
        }
        assert_eq!(name_hash(b"zzzzzzzzz"), by_hand);
    }
}
