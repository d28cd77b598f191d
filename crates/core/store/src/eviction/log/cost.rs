//! What an item pays for staying, by its size, as with GDSF (greedy dual by size and frequency): in the place of a
//! large item several others could stay.
//!
//! An item of more than twice the mean size pays two uses, one of the mean size pays one, and a smaller one pays one at
//! random, with the probability of its size divided by the mean: at an eighth of the mean, once in eight rounds.

use super::Candidate;

/// An item of more than this many times the mean must have been used twice.
const HEAVY: usize = 2;

/// The uses that a heavy item pays.
const HEAVY_PAYS: u8 = 2;

/// The uses that an item pays for staying, where items take `mean` bytes on average.
pub fn cost(item: &Candidate, mean: usize) -> u8 {
    if item.bytes > HEAVY * mean {
        HEAVY_PAYS
    } else {
        let paid_by = (u64::from(item.random) * mean as u64) >> u32::BITS;
        u8::from(item.bytes as u64 > paid_by)
    }
}
