//! GDSF: greedy dual with sizes and frequencies (Cherkasova, HPL-98-69), for equal costs.

use super::heap::Heap;
use super::{Policy, Room};

/// Evicts the item with the least `clock + requests / size`. The clock is the priority of the last evicted item, so
/// that items without further requests age. With all sizes 1 it is LFU with aging.
pub struct Gdsf {
    capacity: u64,
    used: u64,
    clock: f64,
    items: Vec<Item>,
    requests: u64,
    /// Priorities, and of equal ones the least recently used first.
    heap: Heap<(f64, u64)>,
}

#[derive(Clone, Copy)]
struct Item {
    charge: u32,
    requests: u32,
}

impl Gdsf {
    /// An empty cache.
    pub fn new(room: &Room<'_>) -> Self {
        let item = Item {
            charge: 0,
            requests: 0,
        };
        Self {
            capacity: room.capacity,
            used: 0,
            clock: 0.0,
            requests: 0,
            items: vec![item; room.keys],
            heap: Heap::new(room.keys),
        }
    }

    fn put(&mut self, key: u32) {
        let Item { charge, requests } = self.items[key as usize];
        let value = f64::from(requests) / f64::from(charge);
        self.heap.put(key, (self.clock + value, self.requests));
    }
}

impl Policy for Gdsf {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        self.requests += 1;
        if self.holds(key) {
            self.items[key as usize].requests += 1;
            self.put(key);
            return true;
        }
        if let Some(limit) = self.capacity.checked_sub(u64::from(charge)) {
            while self.used > limit
                && let Some(((priority, _), victim)) = self.heap.pop()
            {
                self.clock = priority;
                self.used -= u64::from(self.items[victim as usize].charge);
            }
            let requests = 1;
            self.items[key as usize] = Item { charge, requests };
            self.used += u64::from(charge);
            self.put(key);
        }
        false
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn holds(&self, key: u32) -> bool {
        self.heap.has(key)
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::{hits, hits_of_sizes};

    #[test]
    fn worked_by_hand() {
        // a has three requests: c evicts b, and the clock is 1; d evicts c, which has 2, and is worth 3, as a is.
        assert_eq!(hits("gdsf", 2, "aaabcda"), ".HH...H");
        // b is worth as much as a, and newer.
        assert_eq!(hits("gdsf", 2, "abcba"), "...H.");
        // b is large: worth less than a.
        let requests = [('a', 2), ('b', 4), ('c', 4), ('a', 2), ('b', 4)];
        assert_eq!(hits_of_sizes("gdsf", 8, &requests), "...H.");
    }
}
