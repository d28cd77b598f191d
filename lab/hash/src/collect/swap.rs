//! Pages of the swap cache, where the page cache's second argument is no offset in a file but a place in swap.

use crate::address;
use crate::key::Page;

use super::{Failure, Sink, Walk, each_page};

/// Swap devices of the same priority, as the paper's machine has: pages go to each in turn.
const DEVICES: u64 = 2;
/// The first slot of a device holds its header.
const FIRST_SLOT: u64 = 1;

/// The pages of the files, as if they were a program's memory that is swapped out in this order. The kernel of the paper
/// keeps a place in swap as one word: the device from bit 1 on, the slot from bit 8 on (from memory of its sources). The
/// hash function shifts it by twelve bits, as if it were an offset in a file.
pub fn swap_cache(walk: &mut Walk, sink: Sink<'_, Page>) -> Result<(), Failure> {
    let mut count = 0;
    each_page(walk, &mut |_| {
        let offset = place(count);
        count += 1;
        let inode = address::swapper();
        sink(Page { inode, offset })
    })
}

/// The place in swap of the n-th page that is swapped out.
fn place(number: u64) -> u64 {
    let (device, slot) = (number % DEVICES, FIRST_SLOT + number / DEVICES);
    device << 1 | slot << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_alternate_and_slots_follow_each_other() {
        let places: Vec<u64> = (0..4).map(place).collect();
        assert_eq!(places, [0x100, 0x102, 0x200, 0x202]);
    }
}
