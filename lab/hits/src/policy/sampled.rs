//! LRU by samples: Redis' `allkeys-lru`, and with two samples and no pool Pogocache's eviction.

use super::{Policy, Room};
use crate::trace::NO_KEY;

/// The parameters of sampled LRU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledShape {
    /// Items that each eviction samples.
    pub samples: u32,
    /// The oldest items of earlier samples that are remembered; 0: none.
    pub pool: u32,
}

impl Default for SampledShape {
    /// Redis' `maxmemory-samples` and its pool.
    fn default() -> Self {
        Self {
            samples: 5,
            pool: 16,
        }
    }
}

/// Each eviction looks at random items and evicts the one that was used least recently, of these and of a pool of the
/// oldest that it saw before. An item in the pool keeps the age that it had when it was sampled.
pub struct SampledLru {
    capacity: u64,
    used: u64,
    shape: SampledShape,
    items: Vec<Item>,
    /// The keys held.
    held: Vec<u32>,
    /// Times of last use with keys, the least recently used last.
    pool: Vec<(u64, u32)>,
    now: u64,
    random: u64,
}

#[derive(Clone, Copy)]
struct Item {
    charge: u32,
    /// The place among the keys held.
    place: u32,
    last_used: u64,
}

impl SampledLru {
    /// An empty cache.
    pub fn new(room: &Room<'_>, shape: SampledShape) -> Self {
        let item = Item {
            charge: 0,
            place: NO_KEY,
            last_used: 0,
        };
        Self {
            capacity: room.capacity,
            used: 0,
            shape,
            items: vec![item; room.keys],
            held: Vec::new(),
            pool: Vec::new(),
            now: 0,
            // Any number but 0: the same in each run.
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// A random key of those held.
    fn sample(&mut self) -> u32 {
        // Marsaglia's xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let place = (u128::from(self.random) * self.held.len() as u128) >> 64;
        self.held[place as usize]
    }

    fn last_used(&self, key: u32) -> u64 {
        self.items[key as usize].last_used
    }

    fn evict(&mut self) {
        let mut oldest = self.sample();
        self.remember(oldest);
        for _ in 1..self.shape.samples {
            let key = self.sample();
            self.remember(key);
            if self.last_used(key) < self.last_used(oldest) {
                oldest = key;
            }
        }
        // An item in the pool may be evicted already.
        while let Some((_, key)) = self.pool.pop() {
            if self.holds(key) {
                oldest = key;
                break;
            }
        }
        self.remove(oldest);
    }

    /// Puts a key into the pool, if it is old enough.
    fn remember(&mut self, key: u32) {
        if self.pool.iter().any(|&(_, known)| known == key) {
            return;
        }
        let last_used = self.last_used(key);
        let place = self.pool.partition_point(|&(other, _)| other > last_used);
        self.pool.insert(place, (last_used, key));
        if self.pool.len() > self.shape.pool as usize {
            self.pool.remove(0);
        }
    }

    fn remove(&mut self, key: u32) {
        let Item { place, charge, .. } = self.items[key as usize];
        self.items[key as usize].place = NO_KEY;
        self.held.swap_remove(place as usize);
        if let Some(&moved) = self.held.get(place as usize) {
            self.items[moved as usize].place = place;
        }
        self.used -= u64::from(charge);
    }
}

impl Policy for SampledLru {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        self.now += 1;
        if self.holds(key) {
            self.items[key as usize].last_used = self.now;
            return true;
        }
        if let Some(limit) = self.capacity.checked_sub(u64::from(charge)) {
            while self.used > limit {
                self.evict();
            }
            self.items[key as usize] = Item {
                charge,
                place: self.held.len() as u32,
                last_used: self.now,
            };
            self.held.push(key);
            self.used += u64::from(charge);
        }
        false
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn holds(&self, key: u32) -> bool {
        self.items[key as usize].place != NO_KEY
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::hits;

    #[test]
    fn many_samples_are_lru() {
        let keys = "abcadabeeacbdacbbeadcbaed";
        assert_eq!(hits("sampled-lru:200:0", 3, keys), hits("lru", 3, keys));
    }

    #[test]
    fn the_pool_keeps_ages_as_they_were() {
        // c evicts a, and b stays in the pool as it is now. b is used, and yet d evicts it and not c.
        assert_eq!(hits("sampled-lru:200", 2, "abcbdb"), "...H..");
        assert_eq!(hits("sampled-lru:200:0", 2, "abcbdb"), "...H.H");
    }
}
