//! The pointer directory: where pairs were when they were last read or written (the slides' pointer directory).
//!
//! ```text
//!  a set: four lines
//!   hashes       8 x 64 bits
//!   pointers     8 x 64 bits   63..48 generation of the page, upper bits  47..0 pointer; 0: free
//!   tails        8 x 64 bits
//!   recencies    8 x 32 bits   31..8 low bits of the epoch  7..0 count
//!   generations  8 x 32 bits   generation of the page, lower bits
//! ```
//!
//! 32 bytes an entry. A lookup reads the first line, and one word of each of the others. (A flow cache's layout would
//! do for tag and pointer, but its value is one word, and a writer needs the tail, too: two tables, which take twice as
//! long, see docs/cluster.md.)
//!
//! Hashes are whole, not tags, so that a hint for one key is hardly ever found for another. Readers and writers compare
//! the key in the block all the same.
//!
//! A generation has 48 bits: if a page changes every ten microseconds, which is less than one change takes, the
//! generation comes round after 89 years.
//!
//! A pointer is a hint: the block that it leads to tells whether it is right. An entry whose recency lies below the
//! expiration bar of its pointer's class has probably lost its pair (only another session's use may have kept it): it
//! is dropped when it is met, and replaced first. Otherwise the entry that was used least is replaced, and
//! among equals the one used longest ago. Counts are halved every few epochs, so that an entry that is no longer used
//! often makes way.

use crate::bars::Bars;
use crate::bucket::Pointer;

const WAYS: usize = 8;

const EPOCH_BITS: u32 = 24;
const EPOCH_MASK: u32 = (1 << EPOCH_BITS) - 1;
const COUNT_MAX: u32 = 255;

/// A count is halved each time this many epochs have gone by since the last use.
const HALVED_AFTER: u32 = 2;

/// A hint: what the directory has for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The block.
    pub pointer: Pointer,
    /// How often its page had changed its class.
    pub generation: u64,
    /// Its tail.
    pub tail: u64,
}

#[repr(align(64))]
#[derive(Clone)]
struct Set {
    hashes: [u64; WAYS],
    pointers: [u64; WAYS],
    tails: [u64; WAYS],
    recencies: [u32; WAYS],
    generations: [u32; WAYS],
}

const _: () = assert!(size_of::<Set>() == 256);

/// A session's directory.
pub struct Directory {
    sets: Vec<Set>,
    mask: usize,
}

/// Where a hint is.
#[derive(Clone, Copy, Debug)]
pub struct At {
    set: usize,
    way: usize,
}

impl Directory {
    /// For about `entries` entries; none at all for 0.
    pub fn new(entries: usize) -> Self {
        let sets = match entries {
            0 => 0,
            entries => entries.div_ceil(WAYS).next_power_of_two(),
        };
        let free = Set {
            hashes: [0; WAYS],
            pointers: [0; WAYS],
            tails: [0; WAYS],
            recencies: [0; WAYS],
            generations: [0; WAYS],
        };
        Self {
            sets: vec![free; sets],
            mask: sets.wrapping_sub(1),
        }
    }

    #[inline(always)]
    fn set_of(&self, hash: u64) -> usize {
        hash as usize & self.mask
    }

    /// The hint for a key with this hash, and its place.
    #[inline]
    pub fn find(&self, hash: u64) -> Option<(At, Hint)> {
        let number = self.set_of(hash);
        let set = self.sets.get(number)?;
        let way = (0..WAYS).find(|&way| set.hashes[way] == hash && set.pointers[way] != 0)?;
        let hint = Hint {
            pointer: Pointer::of_word(set.pointers[way]),
            generation: set.pointers[way] >> 48 << 32 | u64::from(set.generations[way]),
            tail: set.tails[way],
        };
        Some((At { set: number, way }, hint))
    }

    /// Notes a use of the key in this epoch. True if it is the first one.
    #[inline]
    pub fn touch(&mut self, at: At, epoch: u32) -> bool {
        let recency = &mut self.sets[at.set].recencies[at.way];
        let count = (aged_count(*recency, epoch) + 1).min(COUNT_MAX);
        let before = std::mem::replace(recency, (epoch & EPOCH_MASK) << 8 | count);
        before >> 8 != *recency >> 8
    }

    /// Sets the block's new tail.
    #[inline]
    pub fn set_tail(&mut self, at: At, tail: u64) {
        self.sets[at.set].tails[at.way] = tail;
    }

    /// Removes a hint that was wrong.
    pub fn forget(&mut self, at: At) {
        self.sets[at.set].pointers[at.way] = 0;
    }

    /// Removes the hint for a key with this hash, if there is one.
    pub fn forget_key(&mut self, hash: u64) {
        if let Some((at, _)) = self.find(hash) {
            self.forget(at);
        }
    }

    /// True if an entry was last used before a bar.
    #[inline]
    pub fn is_below(&self, at: At, epoch: u32, bar: u32) -> bool {
        is_below(self.sets[at.set].recencies[at.way], epoch, bar)
    }

    /// Learns where a key's pair is. `used`: it was used in this epoch, and its block says so, too. `bars`: pairs last
    /// used before their class's are gone.
    pub fn learn(&mut self, hash: u64, hint: Hint, epoch: u32, bars: Bars<'_>, used: bool) {
        let number = self.set_of(hash);
        if self.sets.is_empty() {
            return;
        }
        let known = self.find(hash).map(|(at, _)| at.way);
        let set = &mut self.sets[number];
        let way = known.unwrap_or_else(|| Self::victim(set, hash, epoch, bars));
        if known.is_none() {
            set.hashes[way] = hash;
            set.recencies[way] = (epoch.wrapping_sub(1) & EPOCH_MASK) << 8;
        }
        // The upper 16 bits of 48.
        set.pointers[way] = hint.generation >> 32 << 48 | hint.pointer.word();
        set.generations[way] = hint.generation as u32;
        set.tails[way] = hint.tail;
        if used {
            self.touch(At { set: number, way }, epoch);
        }
    }

    /// The entry of a set that is replaced. Among equals the newcomer's hash picks one: if it were always the first,
    /// newcomers would push each other out, and an entry used once in this epoch would stay.
    fn victim(set: &Set, hash: u64, epoch: u32, bars: Bars<'_>) -> usize {
        let any = (hash >> 40) as usize % WAYS;
        let rank = |&way: &usize| (Self::rank(set, way, epoch, bars), way ^ any);
        (0..WAYS).min_by_key(rank).unwrap_or(0)
    }

    /// The rank of a way: the way with the least rank is replaced first.
    fn rank(set: &Set, way: usize, epoch: u32, bars: Bars<'_>) -> (u32, u32) {
        if set.pointers[way] == 0 {
            return (0, 0);
        }
        let recency = set.recencies[way];
        let bar = bars.of(Pointer::of_word(set.pointers[way]).class());
        match is_below(recency, epoch, bar) {
            true => (1, 0),
            false => (
                2 + aged_count(recency, epoch),
                EPOCH_MASK - age(recency, epoch),
            ),
        }
    }
}

/// True if an entry was last used before a bar. An entry that was learnt without a use has the epoch before.
fn is_below(recency: u32, epoch: u32, bar: u32) -> bool {
    age(recency, epoch) > epoch.saturating_sub(bar) + 1
}

/// Epochs since the last use, so that low bits suffice.
fn age(recency: u32, epoch: u32) -> u32 {
    epoch.wrapping_sub(recency >> 8) & EPOCH_MASK
}

/// The count of uses, halved with age.
fn aged_count(recency: u32, epoch: u32) -> u32 {
    let halvings = age(recency, epoch) / HALVED_AFTER;
    (recency & COUNT_MAX).checked_shr(halvings).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use nuthatch_fabric::Word;

    use super::*;
    use crate::bars;

    const NO_BARS: Bars<'_> = Bars::NONE;

    /// The class of all hints.
    const CLASS: usize = 3;

    fn hint(place: u64) -> Hint {
        Hint {
            pointer: Pointer::new(CLASS, place),
            generation: 9,
            tail: place << 16,
        }
    }

    /// Hashes of one set.
    fn hash(number: u64) -> u64 {
        (number + 1) << 32
    }

    #[test]
    fn what_was_learnt_is_found_until_it_is_forgotten() {
        let mut directory = Directory::new(100);
        assert_eq!(directory.sets.len(), 16);
        assert!(directory.find(hash(1)).is_none());
        directory.learn(hash(1), hint(7), 1, NO_BARS, true);
        let (at, found) = directory.find(hash(1)).unwrap();
        assert_eq!(found, hint(7));
        directory.set_tail(at, 99);
        assert_eq!(directory.find(hash(1)).unwrap().1.tail, 99);
        directory.learn(hash(1), hint(8), 1, NO_BARS, true);
        assert_eq!(directory.find(hash(1)).unwrap().1, hint(8));
        directory.forget_key(hash(1));
        assert!(directory.find(hash(1)).is_none());
    }

    #[test]
    fn below_the_bar_goes_first_then_the_least_used_then_the_oldest() {
        let mut directory = Directory::new(8);
        for number in 0..8 {
            // Epochs 13 to 20.
            directory.learn(
                hash(number),
                hint(number),
                13 + number as u32,
                NO_BARS,
                true,
            );
        }
        directory.learn(hash(8), hint(8), 20, NO_BARS, true);
        assert!(directory.find(hash(0)).is_none());
        // Number 1 is oldest, but an entry below the bar is as good.
        let of_class = |class| {
            let words = [const { Word::new(0) }; bars::WORDS];
            Bars::new(&words).lay((0..8).map(|other| if other == class { 17 } else { 1 }));
            words
        };
        let [elsewhere, here] = [2, CLASS].map(of_class);
        let (at, _) = directory.find(hash(1)).unwrap();
        assert!(directory.is_below(at, 20, Bars::new(&here).of(CLASS)));
        assert!(!directory.is_below(at, 20, Bars::new(&elsewhere).of(CLASS)));
        // The first epoch in which a pair was learnt, and not used, may be the bar.
        let mut unused = Directory::new(8);
        unused.learn(hash(0), hint(0), 17, Bars::new(&here), false);
        assert!(!unused.is_below(unused.find(hash(0)).unwrap().0, 17, 17));
        directory.learn(hash(9), hint(9), 20, Bars::new(&here), true);
        assert!(directory.find(hash(1)).is_none());
        // Of two of one epoch the one that was used less.
        for number in (2..8).chain(2..8) {
            let (at, _) = directory.find(hash(number)).unwrap();
            directory.touch(at, 20);
        }
        directory.learn(hash(10), hint(10), 20, NO_BARS, true);
        let left = [8, 9].map(|number| directory.find(hash(number)).is_some());
        assert_eq!(left.iter().filter(|&&is| is).count(), 1);
        assert!((2..8).all(|number| directory.find(hash(number)).is_some()));
    }

    #[test]
    fn what_was_used_often_stays_for_some_epochs() {
        // This many uses count as two after four epochs, and after six no more than a newcomer's.
        const USES: usize = 8;
        for (later, stays) in [(1, true), (4, true), (6, false)] {
            let mut directory = Directory::new(8);
            directory.learn(hash(0), hint(0), 5, NO_BARS, true);
            for _ in 1..USES {
                let (at, _) = directory.find(hash(0)).unwrap();
                directory.touch(at, 5);
            }
            // Newcomers of a later epoch, each of which is used once.
            for number in 1..100 {
                directory.learn(hash(number), hint(number), 5 + later, NO_BARS, true);
            }
            assert_eq!(directory.find(hash(0)).is_some(), stays, "{later}");
        }
    }

    #[test]
    fn of_equals_newcomers_do_not_push_each_other_out() {
        let mut directory = Directory::new(8);
        // By upper bits alone: the set is the only one.
        let hash = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..8).for_each(|number| directory.learn(hash(number), hint(number), 5, NO_BARS, true));
        (8..24).for_each(|number| directory.learn(hash(number), hint(number), 5, NO_BARS, true));
        let stay = (8..24).filter(|&number| directory.find(hash(number)).is_some());
        assert!(stay.count() > 3);
    }

    #[test]
    fn generations_do_not_come_round() {
        let mut directory = Directory::new(8);
        for generation in (0..48).map(|bit| 1 << bit) {
            let hint = Hint {
                generation,
                ..hint(7)
            };
            directory.learn(hash(1), hint, 1, NO_BARS, true);
            let (_, found) = directory.find(hash(1)).unwrap();
            assert_eq!(found, hint);
        }
    }

    #[test]
    fn a_directory_of_nothing_knows_nothing() {
        let mut directory = Directory::new(0);
        directory.learn(hash(1), hint(7), 1, NO_BARS, true);
        assert!(directory.find(hash(1)).is_none());
    }

    #[test]
    fn hashes_that_differ_in_any_bit_are_of_two_keys() {
        let mut directory = Directory::new(8);
        directory.learn(hash(1), hint(7), 1, NO_BARS, true);
        for bit in 0..64 {
            assert!(directory.find(hash(1) ^ 1 << bit).is_none(), "{bit}");
        }
    }
}
