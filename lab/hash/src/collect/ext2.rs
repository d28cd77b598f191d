//! Inodes and blocks as an ext2 of 1999 would number them, if it held the files of this tree.
//!
//! File systems of today number otherwise: their groups are larger, their inode tables lie together, their files are in
//! long runs. So here the allocator of Linux 2.2 is repeated, from memory of its sources, over the tree's real names and
//! sizes:
//!
//! * The disk is cut into groups of 8192 blocks of 1 KiB. Each begins with copies of the superblock and of the group
//!   descriptors, two bitmaps, and an inode table of 2048 inodes of 128 bytes.
//! * A directory's inode is put into the group with the most free blocks, among those with at least as many free inodes
//!   as an average group. A file's inode is put into its directory's group, else into those 1, 2, 4, ... groups behind.
//! * A file's blocks are taken from its inode's group, one after the other, else from the next groups with free ones. Of
//!   a file of more than 12 blocks, each 256 further have a block with their numbers.
//!
//! Nothing is ever deleted, so each group's inodes and blocks are taken in order. The buffer cache of that kernel holds
//! bitmaps, inode tables, directories and blocks of numbers; what is in the files is in the page cache. So these are the
//! keys of [`blocks`].

use crate::address;
use crate::key::{Block, Inode};

use super::{Failure, Sink, Walk};

/// Blocks of a group, as many as a bitmap of one block has bits.
const GROUP_BLOCKS: u64 = 8192;
/// Inodes of a group: one in 4 KiB, as mke2fs chooses.
const GROUP_INODES: u64 = 2048;
/// Inodes in a block of an inode table.
const BLOCK_INODES: u64 = 8;
/// Bytes of a block.
const BLOCK: u64 = 1024;
/// Groups of the disk: 16 GiB, which the tree must fit into.
const GROUPS: usize = 2048;
/// Blocks of a group before its bitmaps: the superblock, and 32 bytes for each group.
const DESCRIPTORS: u64 = 1 + GROUPS as u64 * 32 / BLOCK;
/// Blocks of a group before its first free one: those, two bitmaps, and the inode table.
const OVERHEAD: u64 = DESCRIPTORS + 2 + GROUP_INODES / BLOCK_INODES;
/// Blocks that an inode has the numbers of, and those that a block of numbers has.
const DIRECT: u64 = 12;
const INDIRECT: u64 = 256;
/// Bytes of an entry of a directory, for a name of middling length.
const ENTRY: u64 = 20;
/// Inodes of the first group that are no files.
const RESERVED: u64 = 10;
/// The first disk's first partition.
const DEVICE: u64 = 0x0801;

/// One key for each name's inode.
pub fn inodes(walk: &mut Walk, sink: Sink<'_, Inode>) -> Result<(), Failure> {
    let superblock = address::superblock();
    place_all(walk, &mut |placed| match placed {
        // Inodes are counted from 1 on.
        Placed::Inode { group, index } => {
            let number = group as u64 * GROUP_INODES + index + 1;
            sink(Inode { superblock, number })
        }
        Placed::Block(_) => Ok(std::ops::ControlFlow::Continue(())),
    })
}

/// One key for each block of the kinds that the buffer cache holds.
pub fn blocks(walk: &mut Walk, sink: Sink<'_, Block>) -> Result<(), Failure> {
    let device = DEVICE;
    place_all(walk, &mut |placed| {
        let (group, distance) = match placed {
            Placed::Block((group, distance)) => (group, distance),
            // The first inode of a block of the table brings the block in.
            Placed::Inode { group, index } if index % BLOCK_INODES == 0 => {
                (group, DESCRIPTORS + 2 + index / BLOCK_INODES)
            }
            Placed::Inode { .. } => return Ok(std::ops::ControlFlow::Continue(())),
        };
        // Block 0 of the disk is the boot block.
        let block = 1 + group as u64 * GROUP_BLOCKS + distance;
        sink(Block { device, block })
    })
}

/// A group, and the distance of a block from its start.
type At = (usize, u64);

/// What was placed on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placed {
    /// An inode: the group, and its number there.
    Inode { group: usize, index: u64 },
    /// A block that the buffer cache holds.
    Block(At),
}

/// Places all names of the tree.
fn place_all(walk: &mut Walk, sink: Sink<'_, Placed>) -> Result<(), Failure> {
    let mut disk = Disk::new();
    // The groups of the directories above, the root's first.
    let mut parents: Vec<usize> = Vec::new();
    while let Some(visited) = walk.next() {
        parents.truncate(visited.depth());
        let is_directory = visited.is_directory();
        let parent = parents.last().copied().unwrap_or(0);
        let bytes = match is_directory {
            // A block, at least; its entries are not counted before they are met.
            true => ENTRY,
            false => walk.stored_bytes(&visited).unwrap_or(0),
        };
        let mut placed = Vec::new();
        let group = disk
            .place(parent, is_directory, bytes, &mut placed)
            .ok_or_else(|| {
                Failure::run(format!("the tree does not fit an ext2 of {GROUPS} groups"))
            })?;
        for one in placed {
            if sink(one)?.is_break() {
                return Ok(());
            }
        }
        parents.push(group);
    }
    Ok(())
}

/// A group's inodes and blocks that are in use: the first so many.
#[derive(Clone, Copy, Debug)]
struct Group {
    inodes: u64,
    blocks: u64,
}

/// The disk.
struct Disk {
    groups: Vec<Group>,
    /// Inodes in use, of all groups.
    inodes: u64,
}

impl Disk {
    fn new() -> Self {
        let empty = Group {
            inodes: 0,
            blocks: OVERHEAD,
        };
        let mut groups = vec![empty; GROUPS];
        groups[0].inodes = RESERVED;
        Self {
            groups,
            inodes: RESERVED,
        }
    }

    /// Places a file or directory of so many bytes, and adds what the buffer cache holds of it. Its group; nothing if the
    /// disk is full.
    fn place(
        &mut self,
        parent: usize,
        is_directory: bool,
        bytes: u64,
        placed: &mut Vec<Placed>,
    ) -> Option<usize> {
        let group = match is_directory {
            true => self.for_directory()?,
            false => self.for_file(parent)?,
        };
        let used = &mut self.groups[group].inodes;
        let index = *used;
        *used += 1;
        self.inodes += 1;
        if index == 0 {
            placed.extend([0, 1].map(|bitmap| Placed::Block((group, DESCRIPTORS + bitmap))));
        }
        placed.push(Placed::Inode { group, index });
        for number in 0..bytes.div_ceil(BLOCK) {
            if number >= DIRECT && (number - DIRECT).is_multiple_of(INDIRECT) {
                placed.push(Placed::Block(self.take(group)?));
            }
            let block = self.take(group)?;
            if is_directory {
                placed.push(Placed::Block(block));
            }
        }
        Some(group)
    }

    /// The group for a directory's inode.
    fn for_directory(&self) -> Option<usize> {
        let count = self.groups.len() as u64;
        let average = (count * GROUP_INODES - self.inodes) / count;
        let suits = |group: &usize| {
            let free = GROUP_INODES - self.groups[*group].inodes;
            free > 0 && free >= average
        };
        // Of several with as many free blocks the first.
        (0..self.groups.len())
            .filter(suits)
            .min_by_key(|&group| self.groups[group].blocks)
    }

    /// The group for a file's inode.
    fn for_file(&self, parent: usize) -> Option<usize> {
        let count = self.groups.len();
        let has_room = |group: &usize| self.groups[*group].inodes < GROUP_INODES;
        let doubling = std::iter::successors(Some(1), |step| Some(step * 2));
        let behind = doubling
            .take_while(|step| *step < count)
            .scan(parent, move |group, step| {
                *group = (*group + step) % count;
                Some(*group)
            });
        let in_turn = (0..count).map(|step| (parent + 2 + step) % count);
        std::iter::once(parent)
            .chain(behind)
            .chain(in_turn)
            .find(has_room)
    }

    /// The next free block of a group, or of those behind it.
    fn take(&mut self, group: usize) -> Option<At> {
        let count = self.groups.len();
        let mut in_turn = (0..count).map(|step| (group + step) % count);
        let group = in_turn.find(|&group| self.groups[group].blocks < GROUP_BLOCKS)?;
        let distance = self.groups[group].blocks;
        self.groups[group].blocks += 1;
        Some((group, distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(
        disk: &mut Disk,
        parent: usize,
        is_directory: bool,
        bytes: u64,
    ) -> (usize, Vec<Placed>) {
        let mut placed = Vec::new();
        let group = disk
            .place(parent, is_directory, bytes, &mut placed)
            .unwrap();
        (group, placed)
    }

    #[test]
    fn a_directory_goes_to_an_empty_group_and_its_files_with_it() {
        let mut disk = Disk::new();
        // The first group has inodes that are no files, so fewer free ones than the average.
        let (first, placed) = place(&mut disk, 0, true, ENTRY);
        assert_eq!(first, 1);
        assert_eq!(
            placed,
            [
                Placed::Block((1, DESCRIPTORS)),
                Placed::Block((1, DESCRIPTORS + 1)),
                Placed::Inode { group: 1, index: 0 },
                Placed::Block((1, OVERHEAD)),
            ]
        );
        let (second, _) = place(&mut disk, first, true, ENTRY);
        assert_eq!(second, 2);
        let (group, placed) = place(&mut disk, first, false, 5 * BLOCK);
        assert_eq!(
            (group, placed),
            (1, vec![Placed::Inode { group: 1, index: 1 }])
        );
        assert_eq!(disk.groups[1].blocks, OVERHEAD + 6);
    }

    #[test]
    fn a_long_file_has_blocks_of_numbers() {
        let mut disk = Disk::new();
        let (_, placed) = place(&mut disk, 3, false, (DIRECT + INDIRECT + 1) * BLOCK);
        let numbers: Vec<&Placed> = placed[3..].iter().collect();
        let at = |distance| Placed::Block((3, OVERHEAD + distance));
        assert_eq!(numbers, [&at(DIRECT), &at(DIRECT + 1 + INDIRECT)]);
    }

    #[test]
    fn a_full_group_goes_on_in_others() {
        let mut disk = Disk::new();
        disk.groups[5].inodes = GROUP_INODES;
        disk.groups[6].blocks = GROUP_BLOCKS;
        let (group, _) = place(&mut disk, 5, false, BLOCK);
        assert_eq!((group, disk.groups[7].blocks), (6, OVERHEAD + 1));
        disk.groups
            .iter_mut()
            .for_each(|group| group.inodes = GROUP_INODES);
        assert_eq!(disk.place(0, false, 0, &mut Vec::new()), None);
    }
}
