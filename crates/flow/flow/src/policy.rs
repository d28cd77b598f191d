//! The eviction policies: what a hit does to the slots, and which entry is replaced.
//!
//! The caller of these functions has exclusive write access to the key's candidates: by `&mut`, or by
//! holding their locks.

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use crate::buckets::Buckets;
use crate::entry::{Content, Slot};
use crate::eviction::{Eviction, InsertAt, Probability};
use crate::layout::{Candidates, Shape};
use crate::lookup::Lookups;

/// An eviction, its random numbers, and its state outside of the slots.
pub(crate) struct Policy {
    eviction: Eviction,
    random: SmallRng,
    /// Random bits that say which of the next hits move up, and how many of them are unused.
    drawn: u64,
    unused: usize,
    /// Hits that moved their key up.
    moves: u64,
    extra: Extra,
}

/// The state of an eviction outside of the slots.
enum Extra {
    None,
    /// LRU: when each slot's key was last used.
    Recency {
        now: u64,
        last: Box<[u64]>,
    },
    /// DC-Bubble: whether each bucket had a hit since its last entry was evicted.
    BucketHits(Box<[bool]>),
}

impl Policy {
    /// For a table of `slots` slots in buckets of `L::SLOTS`.
    pub fn new<L: Shape>(eviction: Eviction, seed: u64, slots: usize) -> Self {
        let extra = match eviction {
            Eviction::Lru => Extra::Recency {
                now: 0,
                last: vec![0; slots].into_boxed_slice(),
            },
            Eviction::DcBubble => {
                Extra::BucketHits(vec![false; slots / L::SLOTS].into_boxed_slice())
            }
            _ => Extra::None,
        };
        Self {
            eviction,
            random: SmallRng::seed_from_u64(seed),
            drawn: 0,
            unused: 0,
            moves: 0,
            extra,
        }
    }

    /// Which eviction this is.
    pub fn eviction(&self) -> Eviction {
        self.eviction
    }

    /// Hits that moved their key up.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Counts hits that moved their keys up.
    #[inline(always)]
    pub fn count_moves(&mut self, moves: u64) {
        self.moves += moves;
    }

    /// Applies the eviction's rule to the hits among up to 64 lookups.
    #[inline(always)]
    pub fn on_hits<L: Shape, T: Slot>(&mut self, buckets: &Buckets<L, T>, lookups: &Lookups<'_>) {
        match &mut self.extra {
            Extra::None => {}
            Extra::Recency { now, last } => {
                for index in ones(lookups.hits) {
                    *now += 1;
                    last[lookups.slots[index]] = *now;
                }
            }
            Extra::BucketHits(flags) => {
                for index in ones(lookups.hits) {
                    flags[lookups.slots[index] / L::SLOTS] = true;
                }
            }
        }
        // In a register: a counter in memory would be a chain of stores through all moves.
        let mut moves = 0;
        for index in ones(self.draw_moves(lookups)) {
            let slot = lookups.slots[index];
            // An earlier hit of the batch may have moved the entry: so the packets of one flow in a
            // batch move it up once.
            if buckets.slots()[slot].load().tag == T::tag(lookups.hashes[index]) {
                swap_with_previous(buckets, slot);
                moves += 1;
            }
        }
        self.count_moves(moves);
    }

    /// Draws which of the hits move up by one slot.
    #[inline(always)]
    pub fn draw_moves(&mut self, lookups: &Lookups<'_>) -> u64 {
        match self.eviction.swap() {
            Some(swap) => lookups.can_move_up & self.draw_bits(swap, lookups.slots.len()),
            None => 0,
        }
    }

    /// A word whose lowest `count` bits, 64 at most, are each set with this probability. It is the same
    /// in every call, so bits that one call does not use are left for the next.
    #[inline(always)]
    fn draw_bits(&mut self, probability: Probability, count: usize) -> u64 {
        if self.unused < count {
            let random = &mut self.random;
            self.drawn = probability.bits(|| random.next_u64());
            self.unused = 64;
        }
        let bits = self.drawn;
        self.drawn = bits.checked_shr(count as u32).unwrap_or(0);
        self.unused -= count;
        bits
    }

    /// Stores a key in the empty candidate `number`.
    pub fn fill<L: Shape, T: Slot>(
        &mut self,
        buckets: &Buckets<L, T>,
        at: Candidates,
        number: usize,
        content: Content,
    ) {
        buckets.store(at, number, content);
        self.touch(at.slot::<L>(number));
    }

    /// Stores a key among candidates that are all taken, and returns the entry that was evicted.
    pub fn evict<L: Shape, T: Slot>(
        &mut self,
        buckets: &Buckets<L, T>,
        at: Candidates,
        content: Content,
    ) -> Content {
        match self.eviction {
            Eviction::Random => {
                let victim = self.random_below(L::CANDIDATES);
                replace(buckets, at, victim, content)
            }
            Eviction::RandomSecond => {
                let victim = L::SLOTS + self.random_below(L::SLOTS);
                replace(buckets, at, victim, content)
            }
            Eviction::Lru => {
                let victim = self.oldest::<L>(at);
                self.touch(at.slot::<L>(victim));
                replace(buckets, at, victim, content)
            }
            Eviction::Bubble => self.evict_last(buckets, at, content, InsertAt::Last),
            Eviction::Pblru { insert, .. } => self.evict_last(buckets, at, content, insert),
            Eviction::DcBubble => self.evict_last_or_first(buckets, at, content),
        }
    }

    /// Evicts the last entry of a random bucket.
    fn evict_last<L: Shape, T: Slot>(
        &mut self,
        buckets: &Buckets<L, T>,
        at: Candidates,
        content: Content,
        insert: InsertAt,
    ) -> Content {
        let last = self.random_below(L::LAYOUT.buckets()) * L::SLOTS + L::SLOTS - 1;
        let victim = replace(buckets, at, last, content);
        if insert == InsertAt::SecondToLast {
            swap_with_previous(buckets, at.slot::<L>(last));
        }
        victim
    }

    /// DC-Bubble: evicts the last entry of a random bucket if the bucket had a hit, else the first.
    fn evict_last_or_first<L: Shape, T: Slot>(
        &mut self,
        buckets: &Buckets<L, T>,
        at: Candidates,
        content: Content,
    ) -> Content {
        let first = self.random_below(L::LAYOUT.buckets()) * L::SLOTS;
        let last = first + L::SLOTS - 1;
        let had_hit = match &mut self.extra {
            Extra::BucketHits(flags) => std::mem::take(&mut flags[at.slot::<L>(first) / L::SLOTS]),
            _ => true,
        };
        if !had_hit {
            // The first entry moves to the last slot, where it is replaced.
            for number in first + 1..=last {
                swap_with_previous(buckets, at.slot::<L>(number));
            }
        }
        replace(buckets, at, last, content)
    }

    /// A random number below `count`, a power of two.
    fn random_below(&mut self, count: usize) -> usize {
        debug_assert!(count.is_power_of_two());
        self.random.next_u32() as usize & (count - 1)
    }

    fn touch(&mut self, slot: usize) {
        if let Extra::Recency { now, last } = &mut self.extra {
            *now += 1;
            last[slot] = *now;
        }
    }

    fn oldest<L: Shape>(&self, at: Candidates) -> usize {
        match &self.extra {
            Extra::Recency { last, .. } => (0..L::CANDIDATES)
                .min_by_key(|&number| last[at.slot::<L>(number)])
                .unwrap_or(0),
            _ => 0,
        }
    }
}

/// Swaps the entries of a slot and of the one before it in the same bucket.
#[inline(always)]
pub(crate) fn swap_with_previous<L: Shape, T: Slot>(buckets: &Buckets<L, T>, slot: usize) {
    let pair = &buckets.slots()[slot - 1..=slot];
    let (previous, this) = (pair[0].load(), pair[1].load());
    pair[0].store(this);
    pair[1].store(previous);
}

/// The positions of the set bits, lowest first.
#[inline(always)]
pub(crate) fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        lowest
    })
}

fn replace<L: Shape, T: Slot>(
    buckets: &Buckets<L, T>,
    at: Candidates,
    number: usize,
    content: Content,
) -> Content {
    let old = buckets.load(at, number);
    buckets.store(at, number, content);
    old
}
