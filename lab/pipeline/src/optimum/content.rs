//! The best content of a table: keys that have places in it at the same time, and of these the most popular.
//!
//! Sets of keys that have places at the same time are the independent sets of a matroid (a transversal one), so the
//! greedy way is the best: from the most popular on, each key is taken that has a place beside all those taken before,
//! which may move to other places of theirs. Whether it has is a search for a path of moves to an empty slot. A search
//! that finds none has seen buckets that are full of keys which have no other places: no later search needs to go
//! there, so all failed searches together look at each bucket once.

use std::collections::VecDeque;

use super::places::Places;

/// No bucket or key.
const NONE: u32 = u32::MAX;

/// Which of the keys are held, of these hashes, the most popular first.
///
/// Panics if there are 2^32 - 1 keys or buckets.
pub fn best(places: &Places, hashes: &[u64]) -> Vec<bool> {
    if places.is_anywhere() {
        let entries = places.entries() as usize;
        return (0..hashes.len()).map(|rank| rank < entries).collect();
    }
    let mut filling = Filling::new(places, hashes);
    (0..hashes.len() as u32)
        .map(|rank| filling.add(rank))
        .collect()
}

/// Where a search came to a bucket from.
#[derive(Clone, Copy, Debug)]
struct From {
    bucket: u32,
    /// The slot of that bucket whose key would move here.
    slot: u32,
}

/// A table as it fills.
struct Filling<'a> {
    places: &'a Places,
    hashes: &'a [u64],
    /// The rank of each slot's key; the slots of a bucket are taken from its first on.
    slots: Vec<u32>,
    taken: Vec<u32>,
    /// Buckets from which no empty slot can be reached, now and for ever.
    closed: Vec<bool>,
    /// The search that saw each bucket last, and how it came there.
    seen: Vec<u32>,
    from: Vec<From>,
    search: u32,
    queue: VecDeque<u32>,
}

impl<'a> Filling<'a> {
    fn new(places: &'a Places, hashes: &'a [u64]) -> Self {
        let buckets = places.buckets();
        assert!(buckets < NONE as usize && hashes.len() < NONE as usize);
        let none = From {
            bucket: NONE,
            slot: 0,
        };
        Self {
            places,
            hashes,
            slots: vec![NONE; buckets * places.slots()],
            taken: vec![0; buckets],
            closed: vec![false; buckets],
            seen: vec![0; buckets],
            from: vec![none; buckets],
            search: 0,
            queue: VecDeque::new(),
        }
    }

    /// Adds the key of a rank, if it has a place.
    fn add(&mut self, rank: u32) -> bool {
        self.search += 1;
        self.queue.clear();
        self.reach(
            rank,
            From {
                bucket: NONE,
                slot: 0,
            },
        );
        let mut full = 0;
        while let Some(&bucket) = self.queue.get(full) {
            full += 1;
            if (self.taken[bucket as usize] as usize) < self.places.slots() {
                self.place(rank, bucket);
                return true;
            }
            for slot in 0..self.places.slots() as u32 {
                let key = self.slots[bucket as usize * self.places.slots() + slot as usize];
                self.reach(key, From { bucket, slot });
            }
        }
        for &bucket in &self.queue {
            self.closed[bucket as usize] = true;
        }
        false
    }

    /// Puts the open buckets of a key into the queue, unless this search has seen them.
    fn reach(&mut self, rank: u32, from: From) {
        for bucket in self.places.of_key(self.hashes[rank as usize]) {
            if !self.closed[bucket] && self.seen[bucket] != self.search {
                self.seen[bucket] = self.search;
                self.from[bucket] = from;
                self.queue.push_back(bucket as u32);
            }
        }
    }

    /// Moves keys along the path that led to a bucket with an empty slot, so that the first bucket has one for the new
    /// key.
    fn place(&mut self, rank: u32, bucket: u32) {
        let slots = self.places.slots();
        let mut empty = bucket as usize * slots + self.taken[bucket as usize] as usize;
        self.taken[bucket as usize] += 1;
        let mut bucket = bucket;
        loop {
            let from = self.from[bucket as usize];
            if from.bucket == NONE {
                self.slots[empty] = rank;
                return;
            }
            let moved = from.bucket as usize * slots + from.slot as usize;
            self.slots[empty] = self.slots[moved];
            empty = moved;
            bucket = from.bucket;
        }
    }
}

#[cfg(test)]
mod tests {
    use nuthatch_base::hash::KeyHasher;
    use nuthatch_flow::Layout;

    use super::*;

    /// A greedy choice of pairs, slow and plain: keys one after the other, each by an augmenting path.
    fn plain(places: &Places, hashes: &[u64]) -> Vec<bool> {
        fn augment(
            rank: usize,
            of: &dyn Fn(usize) -> Vec<usize>,
            owner: &mut Vec<Option<usize>>,
            seen: &mut Vec<bool>,
        ) -> bool {
            for slot in of(rank) {
                if std::mem::replace(&mut seen[slot], true) {
                    continue;
                }
                let free = match owner[slot] {
                    None => true,
                    Some(other) => augment(other, of, owner, seen),
                };
                if free {
                    owner[slot] = Some(rank);
                    return true;
                }
            }
            false
        }
        let slots = places.slots();
        let of = |rank: usize| -> Vec<usize> {
            let buckets = places.of_key(hashes[rank]);
            buckets
                .flat_map(|bucket| bucket * slots..(bucket + 1) * slots)
                .collect()
        };
        let mut owner = vec![None; places.buckets() * slots];
        (0..hashes.len())
            .map(|rank| {
                let mut seen = vec![false; owner.len()];
                augment(rank, &of, &mut owner, &mut seen)
            })
            .collect()
    }

    #[test]
    fn the_held_keys_are_those_of_a_plain_matching() {
        for layout in Layout::ALL {
            for seed in 0..5 {
                let places = Places::of(layout, 128);
                let hasher = KeyHasher::seeded(seed);
                let hashes: Vec<u64> = (0..300_u64)
                    .map(|key| hasher.hash(&key.to_le_bytes()))
                    .collect();
                assert_eq!(best(&places, &hashes), plain(&places, &hashes), "{layout}");
            }
        }
    }

    #[test]
    fn each_key_is_in_a_place_of_its_own() {
        let places = Places::of(Layout::Blp2x4, 256);
        let hasher = KeyHasher::seeded(9);
        let hashes: Vec<u64> = (0..400_u64)
            .map(|key| hasher.hash(&key.to_le_bytes()))
            .collect();
        let mut filling = Filling::new(&places, &hashes);
        let held = (0..400).filter(|&rank| filling.add(rank)).count();
        let mut ranks = Vec::new();
        for (slot, &rank) in filling.slots.iter().enumerate() {
            if rank != NONE {
                let mut own = places.of_key(hashes[rank as usize]);
                assert!(own.any(|bucket| bucket == slot / 4));
                ranks.push(rank);
            }
        }
        ranks.sort_unstable();
        ranks.dedup();
        assert_eq!(ranks.len(), held);
    }

    #[test]
    fn without_a_layout_the_first_are_held() {
        let held = best(&Places::anywhere(3), &[7, 7, 7, 7, 7]);
        assert_eq!(held, [true, true, true, false, false]);
    }
}
