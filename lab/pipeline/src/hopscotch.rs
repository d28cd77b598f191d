//! Hopscotch hashing as a cache: the paper's baseline with the most occupied slots but for cuckoo hashing, and the most
//! expensive inserts (section 3; Herlihy, Shavit and Tzafrir, DISC 2008).
//!
//! A key is in one of the eight slots from its first one on, as in the layout `window`. An insert that finds these
//! taken searches for an empty slot further on, and *displaces* keys: it moves a key that may be there into the empty
//! slot, which comes nearer by that, until it is near enough. A word of eight bits for each slot says where the keys are
//! that have it as their first. So a moved key's other slots are known although only its tag is stored.
//!
//! ```text
//! hops of slot 2: 0b0010_0101        slots 2, 4 and 7 hold its keys
//! insert at 2, slots 2 to 10 taken:  the key in slot 5, which is its first, moves to 11; the new one takes 5
//! ```
//!
//! Invariants:
//! 1. Bit d of `hops[s]` is set if and only if slot s + d holds a key whose first slot is s.
//! 2. Each taken slot has one such bit, an empty one has none.

use nuthatch_base::hash::split;
use nuthatch_workload::Seed;
use rand::Rng;
use rand::rngs::SmallRng;

use crate::microflow::{FlowCache, OutOfMemory};

/// Slots that may hold a key: as many as the paper's other designs have.
const HOP: usize = 8;
/// How far an insert searches for an empty slot. After a warm-up there is hardly one, and each insert that evicts has
/// searched all of them in vain.
const REACH: usize = 256;
/// An empty slot: tags are not 0.
const EMPTY: u32 = 0;

/// A table of tags and values of 16 bits each, for one thread.
#[derive(Clone, Debug)]
pub struct Hopscotch {
    /// Tag and value of each slot. Behind the last first slot there are as many more as its keys may use.
    slots: Vec<u32>,
    hops: Vec<u8>,
    mask: u64,
    random: SmallRng,
    occupied: u64,
    moves: u64,
}

impl Hopscotch {
    /// With `entries` first slots, a power of two.
    pub fn new(entries: usize, seed: u64) -> Result<Self, OutOfMemory> {
        assert!(entries.is_power_of_two(), "a mask chooses the first slot");
        let len = entries + HOP - 1;
        let (mut slots, mut hops) = (Vec::new(), Vec::new());
        slots.try_reserve_exact(len).map_err(|_| OutOfMemory)?;
        hops.try_reserve_exact(len).map_err(|_| OutOfMemory)?;
        slots.resize(len, EMPTY);
        hops.resize(len, 0);
        Ok(Self {
            slots,
            hops,
            mask: entries as u64 - 1,
            random: Seed(seed).thread(0),
            occupied: 0,
            moves: 0,
        })
    }

    /// A key's first slot, and its tag.
    #[inline(always)]
    fn split(&self, hash: u64) -> (usize, u32) {
        let home = split::bucket(hash, self.mask) as usize;
        (home, split::tag16(hash) as u32)
    }

    /// The slot of the key with this first slot and tag.
    #[inline(always)]
    fn find(&self, home: usize, hops: u8, tag: u32) -> Option<usize> {
        let slots = &self.slots[home..home + HOP];
        let mut left = hops;
        while left != 0 {
            let distance = left.trailing_zeros() as usize;
            if slots[distance] >> 16 == tag {
                return Some(home + distance);
            }
            left &= left - 1;
        }
        None
    }

    /// The first empty slot from here on.
    fn empty_from(&self, home: usize) -> Option<usize> {
        let end = self.slots.len().min(home + REACH);
        let found = self.slots[home..end]
            .iter()
            .position(|&slot| slot == EMPTY)?;
        Some(home + found)
    }

    /// Moves a key into the empty slot, from as far before it as possible; the slot that it leaves.
    fn bring_nearer(&mut self, empty: usize) -> Option<usize> {
        for home in empty - (HOP - 1)..empty {
            let hops = self.hops[home];
            let slot = home + hops.trailing_zeros() as usize;
            if hops != 0 && slot < empty {
                self.slots[empty] = std::mem::replace(&mut self.slots[slot], EMPTY);
                self.hops[home] = hops & (hops - 1) | 1 << (empty - home);
                self.moves += 1;
                return Some(slot);
            }
        }
        None
    }

    /// An empty slot that a key with this first slot may take, made by displacement if need be.
    fn make_room(&mut self, home: usize) -> Option<usize> {
        let mut empty = self.empty_from(home)?;
        while empty - home >= HOP {
            empty = self.bring_nearer(empty)?;
        }
        Some(empty)
    }

    /// Empties a random one of the key's slots, all of which are taken.
    fn evict(&mut self, home: usize) -> usize {
        let slot = home + self.random.random_range(0..HOP);
        let first = slot.saturating_sub(HOP - 1);
        for owner in first..=slot {
            self.hops[owner] &= !(1 << (slot - owner));
        }
        self.slots[slot] = EMPTY;
        self.occupied -= 1;
        slot
    }
}

impl FlowCache for Hopscotch {
    fn lookup_many(&mut self, hashes: &[u64], values: &mut [u64], hits: &mut [u64]) {
        let chunks = hashes.chunks(64).zip(values.chunks_mut(64));
        for (hits, (hashes, values)) in hits.iter_mut().zip(chunks) {
            // The first pass loads the words that say where to look, so that their cache misses overlap.
            let mut hops = [0; 64];
            for (hops, &hash) in hops.iter_mut().zip(hashes) {
                *hops = self.hops[self.split(hash).0];
            }
            *hits = 0;
            for (index, (&hash, value)) in hashes.iter().zip(values).enumerate() {
                let (home, tag) = self.split(hash);
                if let Some(slot) = self.find(home, hops[index], tag) {
                    *value = u64::from(self.slots[slot] & 0xffff);
                    *hits |= 1 << index;
                }
            }
        }
    }

    fn insert(&mut self, hash: u64, value: u64) {
        debug_assert!(value <= self.value_max());
        let (home, tag) = self.split(hash);
        let content = tag << 16 | value as u32;
        if let Some(slot) = self.find(home, self.hops[home], tag) {
            self.slots[slot] = content;
            return;
        }
        let slot = match self.make_room(home) {
            Some(slot) => slot,
            None => self.evict(home),
        };
        self.slots[slot] = content;
        self.hops[home] |= 1 << (slot - home);
        self.occupied += 1;
    }

    fn value_max(&self) -> u64 {
        u64::from(u16::MAX)
    }

    fn occupied(&self) -> Option<u64> {
        Some(self.occupied)
    }

    fn moves(&self) -> u64 {
        self.moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of a key with this first slot.
    fn hash(home: u64, tag: u64) -> u64 {
        tag << 48 | home
    }

    fn found(cache: &mut Hopscotch, hash: u64) -> Option<u64> {
        let (mut values, mut hits) = ([0], [0]);
        cache.lookup_many(&[hash], &mut values, &mut hits);
        (hits[0] == 1).then_some(values[0])
    }

    /// Both invariants.
    fn check(cache: &Hopscotch) {
        let mut owners = vec![0; cache.slots.len()];
        for (home, &hops) in cache.hops.iter().enumerate() {
            assert!(hops == 0 || home as u64 <= cache.mask);
            for distance in (0..HOP).filter(|distance| hops >> distance & 1 == 1) {
                owners[home + distance] += 1;
            }
        }
        for (&slot, owners) in cache.slots.iter().zip(owners) {
            assert_eq!(owners, usize::from(slot != EMPTY));
        }
        let taken = cache.slots.iter().filter(|&&slot| slot != EMPTY).count();
        assert_eq!(cache.occupied, taken as u64);
    }

    #[test]
    fn a_key_that_is_in_the_way_is_displaced() {
        let mut cache = Hopscotch::new(64, 1).unwrap();
        // One key at each of nine slots, the first two with the same first slot.
        cache.insert(hash(2, 1), 1);
        cache.insert(hash(2, 2), 2);
        for home in 3..=9 {
            cache.insert(hash(home, 100 + home), home);
            check(&cache);
        }
        assert_eq!(cache.moves, 0);
        // Slots 2 to 10 are taken and 11 is beyond 2's: a key in between makes room.
        cache.insert(hash(2, 3), 3);
        check(&cache);
        assert_eq!((cache.moves, cache.occupied), (1, 10));
        for tag in 1..=3 {
            assert_eq!(found(&mut cache, hash(2, tag)), Some(tag));
        }
        for home in 3..=9 {
            assert_eq!(found(&mut cache, hash(home, 100 + home)), Some(home));
        }
    }

    #[test]
    fn a_full_neighbourhood_of_one_slots_keys_evicts() {
        let mut cache = Hopscotch::new(64, 1).unwrap();
        for tag in 1..=9 {
            cache.insert(hash(5, tag), tag);
            check(&cache);
        }
        let kept = (1..=9).filter(|&tag| found(&mut cache, hash(5, tag)).is_some());
        assert_eq!(kept.count(), HOP);
        assert_eq!(found(&mut cache, hash(5, 9)), Some(9));
    }

    #[test]
    fn random_inserts_keep_the_invariants_to_the_table_end() {
        let mut cache = Hopscotch::new(32, 1).unwrap();
        let mut random = Seed(2).thread(0);
        for value in 0..3000 {
            let key = hash(random.random_range(0..32), random.random_range(1..40));
            cache.insert(key, value);
            assert_eq!(found(&mut cache, key), Some(value));
            check(&cache);
        }
        assert!(cache.occupied >= 32, "{}", cache.occupied);
        assert!(cache.moves > 0);
    }

    /// Displacement fills more of the table at the first insert of each key than the same slots without it.
    #[test]
    fn a_key_an_entry_finds_more_room_than_without_displacement() {
        let entries = 1 << 14;
        let mut cache = Hopscotch::new(entries, 1).unwrap();
        let hasher = nuthatch_base::hash::KeyHasher::seeded(7);
        let config =
            nuthatch_flow::Config::new(entries as u64).layout(nuthatch_flow::Layout::Window);
        let mut window = config.seed(1).build().unwrap();
        for key in 0..entries as u64 {
            let hash = hasher.hash(&key.to_le_bytes());
            cache.insert(hash, key & 0xffff);
            window.insert(hash, key & 0xffff).unwrap();
        }
        check(&cache);
        assert!(cache.occupied > window.count(), "{}", cache.occupied);
    }
}
