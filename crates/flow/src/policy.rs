//! What an eviction does to the slots: on a hit, and when somebody must leave.
//!
//! Whoever calls these alone may change the key's candidates: by `&mut`, or by their locks.

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use crate::buckets::Buckets;
use crate::entry::{Content, Slot};
use crate::eviction::{Eviction, InsertAt};
use crate::layout::{Candidates, Shape};

/// An eviction, its random numbers, and what it keeps beside the slots.
pub(crate) struct Policy {
    eviction: Eviction,
    random: SmallRng,
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
            beside,
        }
    }

    /// What this policy evicts by.
    pub fn eviction(&self) -> Eviction {
        self.eviction
    }

    /// Whether a hit on candidate `number` shall exchange it with the one above: draws.
    #[inline(always)]
    pub fn swaps<L: Shape>(&mut self, number: usize) -> bool {
        let random = &mut self.random;
        !number.is_multiple_of(L::SLOTS)
            && self
                .eviction
                .swap()
                .is_some_and(|swap| swap.happens(|| random.next_u32()))
    }

    /// Candidate `number` was hit.
    #[inline(always)]
    pub fn hit<L: Shape, T: Slot>(
        &mut self,
        buckets: &Buckets<L, T>,
        at: Candidates,
        number: usize,
    ) {
        match &mut self.beside {
            Beside::Nothing => {}
            Beside::Stamps { now, last } => {
                *now += 1;
                last[at.slot::<L>(number)] = *now;
            }
            Beside::SetHit(flags) => flags[at.slot::<L>(number) / L::SLOTS] = true,
        }
        if self.swaps::<L>(number) {
            exchange(buckets, at, number);
        }
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
            exchange(buckets, at, last);
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
                exchange(buckets, at, number);
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

/// Exchanges candidate `number` with the one above it, which is in the same bucket.
#[inline(always)]
pub(crate) fn exchange<L: Shape, T: Slot>(buckets: &Buckets<L, T>, at: Candidates, number: usize) {
    let (upper, lower) = (buckets.load(at, number - 1), buckets.load(at, number));
    buckets.store(at, number - 1, lower);
    buckets.store(at, number, upper);
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
