//! What an eviction does to the slots: on a hit, and when somebody must leave.
//!
//! Whoever calls these alone may change the key's candidates: by `&mut`, or by their locks.

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use crate::buckets::Buckets;
use crate::entry::{Content, Slot};
use crate::eviction::{Eviction, InsertAt, Probability};
use crate::layout::{Candidates, Shape};
use crate::lookup::Seen;

/// An eviction, its random numbers, and what it keeps beside the slots.
pub(crate) struct Policy {
    eviction: Eviction,
    random: SmallRng,
    /// Whether the next hits move up, and how many of its bits are not used yet.
    drawn: u64,
    unused: usize,
    beside: Beside,
}

/// What an eviction keeps beside the slots.
enum Beside {
    Nothing,
    /// When each slot's key was last used.
    Stamps {
        now: u64,
        last: Box<[u64]>,
    },
    /// Whether each bucket had a hit since its bottom was last evicted.
    SetHit(Box<[bool]>),
}

impl Policy {
    /// For a table of `slots` slots in buckets of `L::SLOTS`.
    pub fn new<L: Shape>(eviction: Eviction, seed: u64, slots: usize) -> Self {
        let beside = match eviction {
            Eviction::Lru => Beside::Stamps {
                now: 0,
                last: vec![0; slots].into_boxed_slice(),
            },
            Eviction::DcBubble => Beside::SetHit(vec![false; slots / L::SLOTS].into_boxed_slice()),
            _ => Beside::Nothing,
        };
        Self {
            eviction,
            random: SmallRng::seed_from_u64(seed),
            drawn: 0,
            unused: 0,
            beside,
        }
    }

    /// What this policy evicts by.
    pub fn eviction(&self) -> Eviction {
        self.eviction
    }

    /// Learns from the hits among up to 64 lookups.
    #[inline(always)]
    pub fn learn<L: Shape, T: Slot>(&mut self, buckets: &Buckets<L, T>, seen: &Seen<'_>) {
        match &mut self.beside {
            Beside::Nothing => {}
            Beside::Stamps { now, last } => {
                for index in ones(seen.hits) {
                    *now += 1;
                    last[seen.slots[index]] = *now;
                }
            }
            Beside::SetHit(flags) => {
                for index in ones(seen.hits) {
                    flags[seen.slots[index] / L::SLOTS] = true;
                }
            }
        }
        for index in ones(self.moves_up(seen)) {
            let slot = seen.slots[index];
            // Not there any more if a hit before it moved it, or one below it: the packets of a
            // train that come in one batch move their flow up once.
            if buckets.slots()[slot].load().tag == T::tag(seen.hashes[index]) {
                exchange(buckets, slot);
            }
        }
    }

    /// Which keys shall change places with those above them: draws.
    #[inline(always)]
    pub fn moves_up(&mut self, seen: &Seen<'_>) -> u64 {
        match self.eviction.swap() {
            Some(swap) => seen.below & self.chances(swap, seen.slots.len()),
            None => 0,
        }
    }

    /// A word whose lowest `count` bits, 64 at most, are each set with this probability, which is
    /// the same in every call: only as many random numbers are drawn as it takes.
    #[inline(always)]
    fn chances(&mut self, probability: Probability, count: usize) -> u64 {
        if self.unused < count {
            let random = &mut self.random;
            self.drawn = probability.bits(|| random.next_u64());
            self.unused = 64;
        }
        let chances = self.drawn;
        self.drawn = chances.checked_shr(count as u32).unwrap_or(0);
        self.unused -= count;
        chances
    }

    /// Puts a key into the empty candidate `number`.
    pub fn fill<L: Shape, T: Slot>(
        &mut self,
        buckets: &Buckets<L, T>,
        at: Candidates,
        number: usize,
        content: Content,
    ) {
        buckets.store(at, number, content);
        self.stamp(at.slot::<L>(number));
    }

    /// Puts a key among candidates that are all taken, and returns what left.
    pub fn evict<L: Shape, T: Slot>(
        &mut self,
        buckets: &Buckets<L, T>,
        at: Candidates,
        content: Content,
    ) -> Content {
        match self.eviction {
            Eviction::Random => {
                let victim = self.below(L::CANDIDATES);
                replace(buckets, at, victim, content)
            }
            Eviction::RandomSecond => {
                let victim = L::SLOTS + self.below(L::SLOTS);
                replace(buckets, at, victim, content)
            }
            Eviction::Lru => {
                let victim = self.oldest::<L>(at);
                self.stamp(at.slot::<L>(victim));
                replace(buckets, at, victim, content)
            }
            Eviction::Bubble => self.evict_last(buckets, at, content, InsertAt::Last),
            Eviction::Pblru { insert, .. } => self.evict_last(buckets, at, content, insert),
            Eviction::DcBubble => self.evict_last_or_top(buckets, at, content),
        }
    }

    /// The last of a random bucket leaves.
    fn evict_last<L: Shape, T: Slot>(
        &mut self,
        buckets: &Buckets<L, T>,
        at: Candidates,
        content: Content,
        insert: InsertAt,
    ) -> Content {
        let last = self.below(L::LAYOUT.buckets()) * L::SLOTS + L::SLOTS - 1;
        let victim = replace(buckets, at, last, content);
        if insert == InsertAt::SecondToLast {
            exchange(buckets, at.slot::<L>(last));
        }
        victim
    }

    /// DC-Bubble: the last of a random bucket leaves if the bucket had a hit, else its top.
    fn evict_last_or_top<L: Shape, T: Slot>(
        &mut self,
        buckets: &Buckets<L, T>,
        at: Candidates,
        content: Content,
    ) -> Content {
        let top = self.below(L::LAYOUT.buckets()) * L::SLOTS;
        let last = top + L::SLOTS - 1;
        let had_hit = match &mut self.beside {
            Beside::SetHit(flags) => std::mem::take(&mut flags[at.slot::<L>(top) / L::SLOTS]),
            _ => true,
        };
        if !had_hit {
            // The top sinks to the bottom, where it is replaced.
            for number in top + 1..=last {
                exchange(buckets, at.slot::<L>(number));
            }
        }
        replace(buckets, at, last, content)
    }

    /// A random number below `count`, a power of two.
    fn below(&mut self, count: usize) -> usize {
        debug_assert!(count.is_power_of_two());
        self.random.next_u32() as usize & (count - 1)
    }

    fn stamp(&mut self, slot: usize) {
        if let Beside::Stamps { now, last } = &mut self.beside {
            *now += 1;
            last[slot] = *now;
        }
    }

    fn oldest<L: Shape>(&self, at: Candidates) -> usize {
        match &self.beside {
            Beside::Stamps { last, .. } => (0..L::CANDIDATES)
                .min_by_key(|&number| last[at.slot::<L>(number)])
                .unwrap_or(0),
            _ => 0,
        }
    }
}

/// Exchanges the key of a slot with the one above it, which is in the same bucket.
#[inline(always)]
pub(crate) fn exchange<L: Shape, T: Slot>(buckets: &Buckets<L, T>, slot: usize) {
    let pair = &buckets.slots()[slot - 1..=slot];
    let (upper, lower) = (pair[0].load(), pair[1].load());
    pair[0].store(lower);
    pair[1].store(upper);
}

/// The numbers of the bits that are set, in order.
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
