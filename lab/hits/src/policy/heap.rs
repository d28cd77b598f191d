//! A heap of keys in which a key's priority can be changed.

use crate::trace::NO_KEY;

/// Children of a node.
const WIDTH: usize = 4;

/// Keys with priorities, the least first.
#[derive(Clone, Debug)]
pub struct Heap<P> {
    /// The key at each place.
    keys: Vec<(P, u32)>,
    /// Where each key is.
    places: Vec<u32>,
}

impl<P: PartialOrd + Copy> Heap<P> {
    /// An empty heap for `keys` keys.
    pub fn new(keys: usize) -> Self {
        Self {
            keys: Vec::new(),
            places: vec![NO_KEY; keys],
        }
    }

    /// True if the heap has the key.
    pub fn has(&self, key: u32) -> bool {
        self.places[key as usize] != NO_KEY
    }

    /// Adds a key with a priority, or changes its priority.
    pub fn put(&mut self, key: u32, priority: P) {
        let place = match self.places[key as usize] {
            NO_KEY => {
                self.keys.push((priority, key));
                self.keys.len() - 1
            }
            place => {
                self.keys[place as usize].0 = priority;
                place as usize
            }
        };
        let place = self.rise(place);
        self.sink(place);
    }

    /// Takes the key with the least priority out.
    pub fn pop(&mut self) -> Option<(P, u32)> {
        if self.keys.is_empty() {
            return None;
        }
        let (priority, key) = self.keys.swap_remove(0);
        self.places[key as usize] = NO_KEY;
        if !self.keys.is_empty() {
            self.sink(0);
        }
        Some((priority, key))
    }

    /// Moves the key at a place up to its position.
    fn rise(&mut self, mut place: usize) -> usize {
        let moving = self.keys[place];
        while place > 0 {
            let parent = (place - 1) / WIDTH;
            if self.keys[parent].0 <= moving.0 {
                break;
            }
            self.set(place, self.keys[parent]);
            place = parent;
        }
        self.set(place, moving);
        place
    }

    /// Moves the key at a place down to its position.
    fn sink(&mut self, mut place: usize) {
        let moving = self.keys[place];
        loop {
            let first = place * WIDTH + 1;
            let children = first..(first + WIDTH).min(self.keys.len());
            let mut least = None;
            let mut least_priority = moving.0;
            for child in children {
                if self.keys[child].0 < least_priority {
                    (least, least_priority) = (Some(child), self.keys[child].0);
                }
            }
            let Some(child) = least else { break };
            self.set(place, self.keys[child]);
            place = child;
        }
        self.set(place, moving);
    }

    fn set(&mut self, place: usize, entry: (P, u32)) {
        self.keys[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn the_least_comes_first_whatever_was_changed() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut heap = Heap::new(50);
        let mut naive: Vec<Option<u32>> = vec![None; 50];
        for _ in 0..20_000 {
            if random.random_bool(0.7) {
                let (key, priority) = (random.random_range(0..50), random.random_range(0..1000));
                heap.put(key, priority);
                naive[key as usize] = Some(priority);
            } else {
                let popped = heap.pop();
                let least = naive.iter().flatten().min().copied();
                assert_eq!(popped.map(|(priority, _)| priority), least);
                if let Some((priority, key)) = popped {
                    assert_eq!(naive[key as usize].take(), Some(priority));
                }
            }
            let key = random.random_range(0..50);
            assert_eq!(heap.has(key), naive[key as usize].is_some());
        }
    }
}
