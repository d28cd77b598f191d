//! Ghosts: fingerprints of items that left before they were used (S3-FIFO, SOSP 2023, section 4).
//!
//! ```text
//!  a bucket, 16 bytes:   | newest | .. | .. | .. |   | .. | .. | .. | oldest |     16 bits each, 0: none
//! ```
//!
//! A new ghost pushes the oldest of its bucket out, so a ghost's place is its age. Nothing is locked: two threads that
//! write to one bucket at a time may lose a ghost. At about one part in 8,000 an item is taken for a ghost that it
//! is not.

use std::io;

use nuthatch_sync::shim::{AtomicU64, AtomicUsize, Ordering};

use crate::slab::words::Words;

/// Words of a bucket.
const WORDS: usize = 2;

/// Ghosts of a word.
const LANES: u32 = 4;

/// Bits of a ghost.
const BITS: u32 = u64::BITS / LANES;

/// A table of ghosts, which has no room before it is told how much.
pub struct Ghosts {
    words: Words,
    buckets: AtomicUsize,
}

impl Ghosts {
    /// Address space for a table of up to so many bytes.
    pub fn reserve(bytes_max: usize) -> io::Result<Self> {
        let buckets = (bytes_max / size_of::<[u64; WORDS]>()).max(1);
        Ok(Self {
            words: Words::reserve_to_grow(buckets * WORDS)?,
            buckets: AtomicUsize::new(0),
        })
    }

    /// Bytes for about so many ghosts: `bytes_max` at most, and as far as there is address space.
    pub fn bytes_for(&self, ghosts: usize, bytes_max: usize) -> usize {
        let bucket = size_of::<[u64; WORDS]>();
        let wanted = ghosts.div_ceil(WORDS * LANES as usize);
        let most = (bytes_max / bucket).min(self.words.len() / WORDS);
        wanted.clamp(1, most.max(1)) * bucket
    }

    /// Makes room for ghosts in so many bytes, as [`Ghosts::bytes_for`] says. Those that there are may be lost.
    pub fn begin(&self, bytes: usize) {
        let buckets = bytes / size_of::<[u64; WORDS]>();
        self.words.expect(buckets * WORDS);
        // Relaxed: a ghost that is looked for in another bucket than it lies in is a ghost less.
        self.buckets.store(buckets, Ordering::Relaxed);
    }

    /// An item with this hash has left.
    pub fn insert(&self, hash: u64) {
        let Some(bucket) = self.bucket(hash) else {
            return;
        };
        let mut carried = fingerprint(hash);
        for word in bucket {
            let old = word.load(Ordering::Relaxed);
            word.store(old << BITS | carried, Ordering::Relaxed);
            carried = old >> (u64::BITS - BITS);
        }
    }

    /// True if an item with this hash has left not too long ago. It is no ghost from then on.
    pub fn take(&self, hash: u64) -> bool {
        let Some(bucket) = self.bucket(hash) else {
            return false;
        };
        let wanted = fingerprint(hash);
        for word in bucket {
            let ghosts = word.load(Ordering::Relaxed);
            for lane in 0..LANES {
                if ghosts >> (lane * BITS) & (u64::MAX >> (u64::BITS - BITS)) == wanted {
                    let rest = ghosts & !(wanted << (lane * BITS));
                    word.store(rest, Ordering::Relaxed);
                    return true;
                }
            }
        }
        false
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.buckets.load(Ordering::Relaxed) * size_of::<[u64; WORDS]>()
    }

    fn bucket(&self, hash: u64) -> Option<&[AtomicU64]> {
        let buckets = self.buckets.load(Ordering::Relaxed);
        // The upper bits choose the bucket, as evenly as they are spread.
        let bucket = ((u128::from(hash) * buckets as u128) >> u64::BITS) as usize;
        self.words
            .get(bucket * WORDS..(bucket + 1) * WORDS)
            .filter(|_| buckets > 0)
    }
}

/// Never 0. From other bits than those that choose the bucket.
fn fingerprint(hash: u64) -> u64 {
    let bits = hash & (u64::MAX >> (u64::BITS - BITS));
    bits.max(1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn hash(number: u64) -> u64 {
        number
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(32)
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    #[test]
    fn there_are_none_before_there_is_room() {
        let ghosts = Ghosts::reserve(1 << 12).unwrap();
        ghosts.insert(7);
        assert!(!ghosts.take(7));
        assert_eq!(ghosts.bytes(), 0);
    }

    #[test]
    fn a_ghost_is_met_once_and_the_oldest_go_first() {
        let ghosts = Ghosts::reserve(1 << 16).unwrap();
        ghosts.begin(ghosts.bytes_for(8000, usize::MAX));
        assert_eq!(ghosts.bytes(), 16_000);
        for number in 0..40_000 {
            ghosts.insert(hash(number));
        }
        let met = |range: std::ops::Range<u64>| {
            let (of, mut met) = (range.end - range.start, 0);
            for number in range {
                met += u64::from(ghosts.take(hash(number)));
            }
            100 * met / of
        };
        let newest = met(38_000..40_000);
        assert!(newest >= 95, "{newest}");
        assert!(met(38_000..40_000) < 2, "they were taken");
        let middle = met(30_000..34_000);
        assert!((20..80).contains(&middle), "{middle}");
        assert!(met(0..20_000) < 2);
    }

    #[test]
    fn there_is_no_more_than_was_reserved() {
        let ghosts = Ghosts::reserve(1000).unwrap();
        assert_eq!(ghosts.bytes_for(usize::MAX / 2, 100), 96);
        ghosts.begin(ghosts.bytes_for(usize::MAX / 2, usize::MAX));
        assert_eq!(ghosts.bytes(), 992);
        ghosts.insert(u64::MAX);
        assert!(ghosts.take(u64::MAX) && !ghosts.take(u64::MAX));
    }
}
