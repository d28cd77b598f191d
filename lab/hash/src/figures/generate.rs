//! Block numbers with the regularity of a file system of 1999.
//!
//! The paper's buffer cache held blocks of an ext2 file system: 1 KiB each, in groups of 8192. Every
//! group has its bitmaps, its inode table and its directories at the same distance from its start, so
//! the cached blocks of all even groups agree in their low 14 bits, and those of all odd ones too. How
//! densely a group is cached falls with the distance; the two rates of that fall are ours, chosen so
//! that the counts of Histograms 1 and 2 (items, empty buckets, the largest) come out in kind.

use crate::key::Block;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// Blocks of a group: as many as a bitmap of one block has bits.
const GROUP: u64 = 8192;
/// Groups of the disk: 3.6 GB.
const GROUPS: u64 = 464;
/// The first disk's first partition: `/dev/sda1`.
const DEVICE: u64 = 0x0801;
/// Bitmaps and the like: cached in half of the groups.
const BITMAPS: u64 = 4;
const BITMAPS_CACHED: f64 = 0.5;
/// Blocks of a group that may be cached: blocks further on are file data, not cached.
const REACH: u64 = 2600;
/// Blocks of a group that stay cached when the load is over: bitmaps and the inode table's beginning.
const STAYING: u64 = 20;

/// Items of Histograms 1 and 3, and of Histograms 2 and 4.
pub const FULL: usize = 37_256;
/// Those that are left when the benchmark is over.
pub const AFTER: usize = 2_644;

/// The cached blocks under load: [`FULL`] of them, in the order of the disk.
pub fn full(seed: u64) -> Vec<Block> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut blocks = Vec::new();
    for group in 0..GROUPS {
        for distance in 0..REACH {
            if random.random_bool(density(distance)) {
                blocks.push(block(group, distance));
            }
        }
    }
    choose(blocks, FULL, &mut random)
}

/// The blocks that stay cached afterwards: [`AFTER`].
pub fn after(full: &[Block], seed: u64) -> Vec<Block> {
    let mut random = SmallRng::seed_from_u64(seed);
    let (staying, others): (Vec<Block>, Vec<Block>) =
        full.iter().partition(|block| block.block % GROUP < STAYING);
    let few = AFTER / 20;
    let mut left = choose(staying, AFTER - few, &mut random);
    left.extend(choose(others, AFTER - left.len(), &mut random));
    left
}

/// Absent blocks to search for, of the same disk.
pub fn absent(full: &[Block], count: usize, seed: u64) -> Vec<Block> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut absent = Vec::with_capacity(count);
    while absent.len() < count {
        let (group, distance) = (
            random.random_range(0..GROUPS),
            random.random_range(0..REACH),
        );
        let candidate = block(group, distance);
        if random.random_bool(density(distance)) && full.binary_search(&candidate).is_err() {
            absent.push(candidate);
        }
    }
    absent
}

/// The share of the groups in which the block at this distance from the group's start is cached.
fn density(distance: u64) -> f64 {
    if distance < BITMAPS {
        return BITMAPS_CACHED;
    }
    let distance = distance as f64;
    0.25 * (-distance / 280.0).exp() + 0.02 * (-distance / 1200.0).exp()
}

fn block(group: u64, distance: u64) -> Block {
    Block {
        device: DEVICE,
        // Block 0 of the disk is the boot block.
        block: 1 + group * GROUP + distance,
    }
}

/// `count` of them at random, sorted.
fn choose(mut blocks: Vec<Block>, count: usize, random: &mut SmallRng) -> Vec<Block> {
    blocks.shuffle(random);
    blocks.truncate(count);
    blocks.sort_unstable();
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::histogram;
    use crate::functions::Registry;
    use crate::table::Table;

    /// Histograms 1 and 3 in kind: the figures that the paper draws its conclusion from.
    #[test]
    fn the_old_function_crowds_and_the_new_ones_do_not() {
        let registry = Registry::new(1);
        let full = full(1);
        assert_eq!(full.len(), FULL);
        let table = Table::of_bits(14);
        let of = |name| histogram(registry.find(name).unwrap(), &full, table);
        let (old, mult, steiner) = (of("buffer-xor"), of("mult-11"), of("steiner"));
        assert!(old.used_buckets() * 3 < old.buckets(), "{old}");
        assert!(old.largest() > 80, "{old}");
        for new in [&mult, &steiner] {
            assert!(new.largest() <= 15, "{new}");
            assert!(old.searched_miss() > 7.0 * new.searched_miss(), "{new}");
        }
    }

    #[test]
    fn afterwards_most_are_in_large_buckets_still() {
        let registry = Registry::new(1);
        let after = after(&full(1), 2);
        assert_eq!(after.len(), AFTER);
        let table = Table::of_bits(14);
        let old = histogram(registry.find("buffer-xor").unwrap(), &after, table);
        let small: u64 = (0..=15).map(|size| size * old.buckets_of(size)).sum();
        assert!(small * 2 < old.items(), "{old}");
        let mult = histogram(registry.find("mult-11").unwrap(), &after, table);
        assert!(mult.largest() <= 6, "{mult}");
    }

    #[test]
    fn the_absent_are_absent() {
        let full = full(1);
        let absent = absent(&full, 1000, 3);
        assert!(
            absent
                .iter()
                .all(|block| full.binary_search(block).is_err())
        );
        assert_eq!(absent.len(), 1000);
    }
}
