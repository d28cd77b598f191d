//! Addresses that a kernel of the paper's time would give its structures.
//!
//! The paper's keys hold addresses of in-core inodes, dentries and superblocks. The addresses of a running kernel are
//! not accessible, and would not be those of 1999. But the allocator of that time is known to put structures of one
//! kind side by side in pages, in the order in which they are needed. So the n-th structure of a walk gets the n-th
//! place. Sizes other than a page's are ours.

use crate::functions::page_cache::INODE_BYTES;

/// Where the memory of a 32-bit kernel begins.
const KERNEL: u64 = 0xc000_0000;
/// Inodes begin here.
const INODES: u64 = KERNEL + 0x0040_0000;
/// Dentries begin here.
const DENTRIES: u64 = KERNEL + 0x0080_0000;
/// Superblocks begin here.
const SUPERBLOCKS: u64 = KERNEL + 0x0010_0000;
/// The inode that the pages of the swap cache have: one for all of them.
const SWAPPER: u64 = KERNEL + 0x0020_0000;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes of a dentry.
const DENTRY_BYTES: u64 = 128;

/// The n-th inode: as many to a page as fit, from the start of each page.
pub fn inode(number: u64) -> u64 {
    let in_page = PAGE / INODE_BYTES;
    INODES + number / in_page * PAGE + number % in_page * INODE_BYTES
}

/// The n-th dentry.
pub fn dentry(number: u64) -> u64 {
    DENTRIES + number * DENTRY_BYTES
}

/// The inode of the swap cache's pages.
pub fn swapper() -> u64 {
    SWAPPER
}

/// The superblock of the file system that is collected.
pub fn superblock() -> u64 {
    SUPERBLOCKS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_lie_side_by_side_and_not_across_pages() {
        assert_eq!(inode(1) - inode(0), INODE_BYTES);
        for number in 0..100 {
            assert_eq!(
                inode(number) / PAGE,
                (inode(number) + INODE_BYTES - 1) / PAGE
            );
            assert!(inode(number + 1) >= inode(number) + INODE_BYTES);
        }
        assert_eq!(dentry(32) - dentry(0), PAGE);
    }
}
