//! What readers in other processes tell of the items that they use: a few words of memory that both write.
//!
//! A word holds an address, and the address chooses the word. So an item that is used often takes one word, which is
//! written once; two items that meet there displace each other. All of it is lossy, and none of it is believed: whoever
//! writes nonsense marks items as used, and changes only which items leave.
//!
//! Invariant: what is taken was noted, and nothing is taken twice that was noted once. (`lab/models/tests/loom/hints.rs`)

#[cfg(unix)]
use std::io;
#[cfg(unix)]
use std::os::fd::{AsFd, OwnedFd};

use nuthatch_base::memory::Mapped;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};

/// How many words there are: 32 KiB.
#[cfg(unix)]
const WORDS: usize = 1 << WORDS_BITS;
const WORDS_BITS: u32 = if cfg!(loom) { 1 } else { 12 };

/// Words of an engine's memory in which no two items begin.
const GRANULE: u64 = 4;

/// The words that a reader and the engine's process share.
pub struct Hints(Mapped<AtomicU64>);

impl Hints {
    /// Empty ones, and the descriptor for the reader. Errors: the system has no such memory.
    #[cfg(unix)]
    pub fn new() -> io::Result<(Self, OwnedFd)> {
        let (words, file) = Mapped::for_both(WORDS)?;
        Ok((Self(words), file))
    }

    /// Empty ones, for the models.
    #[cfg(loom)]
    pub fn local() -> Self {
        Self(Mapped::reserve(1 << WORDS_BITS).expect("there is memory"))
    }

    /// Those of a descriptor that the engine's process has sent. Errors: it is another one.
    #[cfg(unix)]
    pub fn of(file: &impl AsFd) -> io::Result<Self> {
        Mapped::of_both(file, WORDS).map(Self)
    }

    /// Notes that the item at an address was used.
    #[inline]
    pub fn note(&self, address: u64) {
        let word = &self.0[place(address)];
        // Relaxed, here and below: hints. Nothing is written where it is written already, so that threads that use the
        // same items do not take the line from each other.
        let noted = address.wrapping_add(1);
        if word.load(Ordering::Relaxed) != noted {
            word.store(noted, Ordering::Relaxed);
        }
    }

    /// Takes out the addresses that were noted since the last call. They may be any numbers.
    pub fn take(&self) -> impl Iterator<Item = u64> {
        self.0.iter().filter_map(|word| {
            let noted = word.load(Ordering::Relaxed);
            (noted != 0).then(|| {
                word.store(0, Ordering::Relaxed);
                noted.wrapping_sub(1)
            })
        })
    }
}

/// The number of the word for an address. Items of one size lie at regular distances, which must not all meet in a few
/// words: so the golden ratio spreads them.
#[inline]
fn place(address: u64) -> usize {
    let spread = (address / GRANULE).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (spread >> (u64::BITS - WORDS_BITS)) as usize
}

#[cfg(all(
    test,
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
))]
mod tests {
    use super::*;

    /// Class of bug: items at regular distances meet in a few words.
    #[test]
    fn items_of_one_size_are_spread() {
        for distance in [4, 8, 128, 130, 1024, 16_384, 131_072] {
            let mut places: Vec<usize> = (0..1000).map(|item| place(item * distance)).collect();
            places.sort_unstable();
            places.dedup();
            assert!(places.len() > 700, "{} at {distance}", places.len());
        }
    }

    #[test]
    fn what_one_side_notes_the_other_takes_once() {
        let (ours, file) = Hints::new().unwrap();
        let theirs = Hints::of(&file).unwrap();
        // The highest number is as good as none.
        for address in [0, 4, 4, 400, u64::MAX] {
            theirs.note(address);
        }
        let mut taken: Vec<u64> = ours.take().collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 4, 400]);
        assert_eq!(ours.take().count(), 0);
        let displaces = |address: &u64| place(*address) == place(400);
        let other = (404..).step_by(4).find(displaces).unwrap();
        [400, other]
            .iter()
            .for_each(|address| theirs.note(*address));
        assert_eq!(ours.take().collect::<Vec<_>>(), [other]);
        let exe = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(Hints::of(&exe).is_err());
    }
}
