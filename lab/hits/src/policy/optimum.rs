//! The offline optimum: a policy that knows the future, whose hits no policy can exceed.

use super::heap::Heap;
use super::{Policy, Room};

/// The position of a request that never comes.
const NEVER: u32 = u32::MAX;

/// For each request, the position of the next one for the same key.
pub struct Future(Vec<u32>);

impl Future {
    /// The future of a trace, whose keys are given in order. None if there are more than 2^32 - 1.
    pub fn of(requests: impl ExactSizeIterator<Item = u32>, keys: usize) -> Option<Self> {
        u32::try_from(requests.len()).ok()?;
        let mut next = vec![NEVER; requests.len()];
        let mut last = vec![NEVER; keys];
        for (position, key) in requests.enumerate() {
            let before = std::mem::replace(&mut last[key as usize], position as u32);
            if before != NEVER {
                next[before as usize] = position as u32;
            }
        }
        Some(Self(next))
    }
}

/// Evicts the item whose next request is latest, which may be the new item itself (Belady, 1966). Where all charges are
/// 1 no policy has more hits. With sizes it is a greedy approximation: keeping several small items instead of a large
/// one may be better, and it is hard to compute by how much.
pub struct Optimum<'a> {
    capacity: u64,
    used: u64,
    future: &'a [u32],
    charges: Vec<u32>,
    /// The latest first.
    heap: Heap<u32>,
}

impl<'a> Optimum<'a> {
    /// An empty cache.
    pub fn new(room: &Room<'_>, future: &'a Future) -> Self {
        Self {
            capacity: room.capacity,
            used: 0,
            future: &future.0,
            charges: vec![0; room.keys],
            heap: Heap::new(room.keys),
        }
    }
}

impl Policy for Optimum<'_> {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        let [next, rest @ ..] = self.future else {
            unreachable!("the future was computed from the same requests");
        };
        self.future = rest;
        let hit = self.holds(key);
        if !hit && u64::from(charge) <= self.capacity {
            self.charges[key as usize] = charge;
            self.used += u64::from(charge);
        } else if !hit {
            return false;
        }
        self.heap.put(key, NEVER - next);
        while self.used > self.capacity
            && let Some((_, victim)) = self.heap.pop()
        {
            self.used -= u64::from(self.charges[victim as usize]);
        }
        hit
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
        // c evicts b, which is asked for after a; then each time what is asked for latest goes, d itself at once.
        assert_eq!(hits("optimum", 2, "abcabdab"), "...HH.HH");
        let requests = [('a', 3), ('b', 2), ('c', 2), ('b', 2), ('c', 2), ('a', 3)];
        assert_eq!(hits_of_sizes("optimum", 4, &requests), "...HH.");
    }
}
