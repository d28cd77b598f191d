//! Ghosts: fingerprints of items that left a queue (S3-FIFO, SOSP 2023, section 4).
//!
//! ```text
//!  a bucket, 16 bytes:   | newest | .. | .. | .. |   | .. | .. | .. | oldest |
//!  a ghost, 16 bits:     | epoch, 5 bits | fingerprint, 11 bits |                  0: none
//! ```
//!
//! A new ghost pushes out the oldest of its bucket. An epoch lasts for half as many new ghosts as there are buckets. So
//! a ghost is pushed out after sixteen epochs on average, and its epoch's number, modulo 32, gives its age. There is no
//! lock: two threads that write to one bucket at the same time may lose a ghost. About one item in 250 is taken for a
//! ghost although it is none.

mod audit;

use std::io;

use nuthatch_base::sync::shim::{AtomicU64, AtomicUsize, Ordering};

use crate::memory::arena::WORD;
use crate::memory::words::Words;
use crate::prefetch;

/// Words in a bucket.
const WORDS: usize = 2;

/// Ghosts in a word.
const LANES: u32 = 4;

/// Bits of a ghost.
const BITS: u32 = u64::BITS / LANES;

/// Bits of a ghost's fingerprint: the lower ones.
const FINGERPRINT_BITS: u32 = 11;

/// Epoch numbers that a ghost can have.
const EPOCHS: u64 = 1 << (BITS - FINGERPRINT_BITS);

/// A table of ghosts. It has no room before [`Ghosts::begin`].
pub struct Ghosts {
    words: Words,
    buckets: AtomicUsize,
    /// Ghosts that were inserted.
    inserted: AtomicU64,
}

impl Ghosts {
    /// Reserves address space for a table of up to so many bytes.
    pub fn reserve(bytes_max: usize) -> io::Result<Self> {
        let buckets = (bytes_max / size_of::<[u64; WORDS]>()).max(1);
        Ok(Self {
            words: Words::reserve_to_grow(buckets * WORDS)?,
            buckets: AtomicUsize::new(0),
            inserted: AtomicU64::new(0),
        })
    }

    /// Bytes for about `ghosts` ghosts: no more than `bytes_max`, and no more than the reserved address space.
    pub fn bytes_for(&self, ghosts: usize, bytes_max: usize) -> usize {
        let bucket = size_of::<[u64; WORDS]>();
        let wanted = ghosts.div_ceil(WORDS * LANES as usize);
        let most = (bytes_max / bucket).min(self.words.len() / WORDS);
        wanted.clamp(1, most.max(1)) * bucket
    }

    /// Makes room for ghosts in `bytes` bytes, as [`Ghosts::bytes_for`] says. Present ghosts may be lost.
    pub fn begin(&self, bytes: usize) {
        let buckets = bytes / size_of::<[u64; WORDS]>();
        self.words.expect(buckets * WORDS);
        // Relaxed: a search in the bucket of the old size only misses a ghost.
        self.buckets.store(buckets, Ordering::Relaxed);
    }

    /// Gives the memory beyond `bytes` bytes back to the system. Returns how many bytes that were. Present ghosts may
    /// be lost.
    pub fn shrink(&self, bytes: usize) -> usize {
        let (old, new) = (self.bytes(), bytes.min(self.bytes()));
        self.begin(new);
        let [start, end] = [new, old].map(|bytes| bytes / WORD);
        // Cleared, so that they are no ghosts when the table grows again. A thread that writes one at this moment
        // leaves it behind.
        for word in &self.words[start..end] {
            word.store(0, Ordering::Relaxed);
        }
        self.words.release(start, end - start);
        old - new
    }

    /// Starts loading the bucket of this hash.
    pub fn prefetch(&self, hash: u64) {
        if let Some(bucket) = self.bucket(hash) {
            prefetch::soon(bucket.as_ptr());
        }
    }

    /// Adds a ghost for an item with this hash, which has left.
    pub fn insert(&self, hash: u64) {
        let Some(bucket) = self.bucket(hash) else {
            return;
        };
        // A load and a store: two threads may count two ghosts as one.
        let inserted = self.inserted();
        self.inserted.store(inserted + 1, Ordering::Relaxed);
        let mut carried = self.epoch(inserted) << FINGERPRINT_BITS | fingerprint(hash);
        for word in bucket {
            let old = word.load(Ordering::Relaxed);
            word.store(old << BITS | carried, Ordering::Relaxed);
            carried = old >> (u64::BITS - BITS);
        }
    }

    /// Takes the ghost of this hash out of the table, if an item with it has left not too long ago. Returns about how
    /// many ghosts were inserted since.
    pub fn take(&self, hash: u64) -> Option<u64> {
        let bucket = self.bucket(hash)?;
        let wanted = fingerprint(hash);
        for word in bucket {
            let ghosts = word.load(Ordering::Relaxed);
            for lane in 0..LANES {
                let ghost = ghosts >> (lane * BITS) & low_bits(BITS);
                if ghost & low_bits(FINGERPRINT_BITS) == wanted {
                    word.store(ghosts & !(ghost << (lane * BITS)), Ordering::Relaxed);
                    return Some(self.age(ghost >> FINGERPRINT_BITS));
                }
            }
        }
        None
    }

    /// How many ghosts were inserted.
    pub fn inserted(&self) -> u64 {
        // Relaxed, as all here: a statistic.
        self.inserted.load(Ordering::Relaxed)
    }

    /// Ghosts in an epoch: ages are exact to half of it.
    pub fn epoch_len(&self) -> u64 {
        (self.buckets.load(Ordering::Relaxed) / 2).max(1) as u64
    }

    /// The epoch, modulo [`EPOCHS`], in which so many ghosts have been inserted.
    fn epoch(&self, inserted: u64) -> u64 {
        inserted / self.epoch_len() % EPOCHS
    }

    /// Ghosts inserted since the middle of the last epoch that has this number.
    fn age(&self, epoch: u64) -> u64 {
        let (inserted, len) = (self.inserted(), self.epoch_len());
        let epochs = self.epoch(inserted).wrapping_sub(epoch) % EPOCHS;
        (epochs * len + inserted % len).saturating_sub(len / 2)
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

/// The fingerprint of a hash, from other bits than those that choose the bucket. Never 0.
fn fingerprint(hash: u64) -> u64 {
    (hash & low_bits(FINGERPRINT_BITS)).max(1)
}

fn low_bits(bits: u32) -> u64 {
    u64::MAX >> (u64::BITS - bits)
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
        assert_eq!(ghosts.take(7), None);
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
                met += u64::from(ghosts.take(hash(number)).is_some());
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
        assert_eq!([u64::MAX; 2].map(|hash| ghosts.take(hash)), [Some(0), None]);
    }

    #[test]
    fn a_smaller_table_keeps_what_it_has_room_for() {
        let ghosts = Ghosts::reserve(1 << 16).unwrap();
        ghosts.begin(1 << 16);
        (0..10_000).for_each(|number| ghosts.insert(hash(number)));
        assert_eq!(ghosts.shrink(1 << 20), 0);
        assert_eq!((ghosts.shrink(1 << 14), ghosts.bytes()), (3 << 14, 1 << 14));
        (10_000..11_000).for_each(|number| ghosts.insert(hash(number)));
        let met = |range: std::ops::Range<u64>| {
            range
                .filter(|&number| ghosts.take(hash(number)).is_some())
                .count()
        };
        assert!(met(10_900..11_000) > 90);
        ghosts.begin(1 << 16);
        let left = met(0..10_000);
        assert!((1..3000).contains(&left), "{left}: what was beyond is gone");
    }

    #[test]
    fn a_ghost_is_as_old_as_those_after_it_are_many() {
        let ghosts = Ghosts::reserve(1 << 16).unwrap();
        ghosts.begin(ghosts.bytes_for(8000, usize::MAX));
        (0..20_000).for_each(|number| ghosts.insert(hash(number)));
        let mut met = 0;
        for number in 16_000..20_000 {
            // An epoch is a thousand ghosts.
            if let Some(age) = ghosts.take(hash(number)) {
                let wanted = 20_000 - number;
                assert!(age.abs_diff(wanted) <= 1000, "{age} instead of {wanted}");
                met += 1;
            }
        }
        assert!(met > 3000, "{met} of 4000");
    }
}
