//! Where the lines of an engine lie. A recording of an engine's accesses knows addresses only, and asks what they are.

use std::ops::Range;

use super::Partition;
use super::memory::{BLOCK, BLOCK_LINES, BlockMemory};
use nuthatch_store::memory::arena::Address;

/// The addresses of an engine's parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// All partitions, with their locks or leases.
    pub partitions: Range<usize>,
    /// Bytes from one partition to the next.
    pub partition_size: usize,
    /// The blocks: buckets and elements.
    pub blocks: Range<usize>,
    /// The words that say of each block which lines are free, and its links.
    pub bookkeeping: [Range<usize>; 2],
    /// Of the blocks, those that hold buckets.
    pub buckets: Vec<Range<usize>>,
}

/// The word of an element's header that holds its neighbours in the order of use.
pub const ORDER_WORD: usize = super::element::LRU;

/// The addresses of a slice.
pub fn addresses<T>(slice: &[T]) -> Range<usize> {
    let range = slice.as_ptr_range();
    range.start.addr()..range.end.addr()
}

impl Layout {
    /// The layout of an engine with these partitions over this memory.
    pub fn new<T>(partitions: &[T], memory: &BlockMemory) -> Self {
        Self {
            partitions: addresses(partitions),
            partition_size: size_of::<T>(),
            ..memory.layout()
        }
    }

    /// Adds a partition's blocks of buckets.
    pub fn add_buckets(&mut self, partition: &Partition) {
        let block = |&block: &u32| {
            let start = partition.memory().address_of(block * BLOCK_LINES);
            start..start + BLOCK
        };
        self.buckets
            .extend(partition.index.blocks().iter().map(block));
    }
}

impl BlockMemory {
    fn layout(&self) -> Layout {
        let start = self.address_of(0);
        Layout {
            blocks: start..start + self.free.len() * BLOCK,
            bookkeeping: [addresses(&self.free), addresses(&self.links)],
            ..Layout::default()
        }
    }

    fn address_of(&self, line: u32) -> usize {
        let Address(word) = super::memory::address(line);
        self.arena.pointer(Address(word)).addr()
    }
}
