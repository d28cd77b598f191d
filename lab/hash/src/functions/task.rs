//! The function of the process and user tables of Linux 2.2, which the paper names and does not visit (section 6).

use super::word::{masked, word};
use crate::table::Table;

/// `pid_hashfn` and `uidhashfn`: the number, xored with itself shifted by a byte. From memory of the kernel's sources: the
/// paper does not give it. Needs a power of two.
#[inline(always)]
pub fn shift_xor(number: u64, table: Table) -> u64 {
    masked(word(number) ^ word(number) >> 8, table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // 0x1234 ^ 0x12 = 0x1226.
        assert_eq!(shift_xor(0x1234, Table::of_bits(10)), 0x226);
        assert_eq!(shift_xor(77, Table::of_bits(10)), 77);
    }
}
