//! The page cache's functions (section 3.1): a shift and an addition.

use super::word::{masked, shift_right, word};
use crate::key::Page;
use crate::table::Table;

/// Bytes of an in-core inode. The paper does not say; this is a multiple of its machines' cache line
/// (32 bytes), and of nothing greater.
pub const INODE_BYTES: u64 = 352;
/// What an inode's address is divided by: the greatest power of two that divides its size, since the
/// bits below are the same in every address.
const INODE_ALIGN: u64 = INODE_BYTES & INODE_BYTES.wrapping_neg();
/// log2 of a page's bytes.
const PAGE_SHIFT: u32 = 12;

/// `_page_hashfn` of Linux 2.2.5: `s(i + o)`. Needs a power of two.
#[inline(always)]
pub fn shift_add(key: Page, table: Table) -> u64 {
    mixed(index(key), table)
}

/// The same with the unshifted offset added, `s(i + o + offset)`: Stephen Tweedie's suggestion, for offsets whose low
/// bits carry information. Needs a power of two.
#[inline(always)]
pub fn shift_add_offset(key: Page, table: Table) -> u64 {
    mixed(index(key).wrapping_add(word(key.offset)), table)
}

/// `i + o`: the number of the inode's place in memory and the number of the page.
#[inline(always)]
fn index(key: Page) -> u32 {
    word(key.inode / INODE_ALIGN).wrapping_add(word(key.offset >> PAGE_SHIFT))
}

/// `s(x)`.
#[inline(always)]
fn mixed(x: u32, table: Table) -> u64 {
    masked(x.wrapping_add(shift_right(x, table.bits())), table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let table = Table::of_bits(11);
        // 0xc0001000 / 32 = 0x06000080; + page 3 = 0x06000083; >> 11 = 0xc000; sum 0x0600c083.
        let key = Page {
            inode: 0xc000_1000,
            offset: 3 << 12,
        };
        assert_eq!(shift_add(key, table), 0x083);
        // + 0x3000 = 0x06003083; >> 11 = 0xc006; sum 0x0600f089.
        assert_eq!(shift_add_offset(key, table), 0x089);
        assert_eq!(INODE_ALIGN, 32);
    }

    #[test]
    fn an_unshifted_offset_matters_only_below_the_page() {
        let table = Table::of_bits(14);
        let swap = |low| Page {
            inode: 0,
            offset: low,
        };
        assert_eq!(shift_add(swap(0), table), shift_add(swap(7), table));
        assert_ne!(
            shift_add_offset(swap(0), table),
            shift_add_offset(swap(7), table)
        );
    }
}
