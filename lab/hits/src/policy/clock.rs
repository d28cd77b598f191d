//! CLOCK, as a queue: what was used since the hand came by gets another round.

use super::queue::{Nodes, Queue};
use super::{Policy, Room};

/// Evicts the oldest whose counter is 0; others it passes give up a count and go round again. A hit adds a count. A new
/// item has none. With one bit a count says whether there was a hit, which is CLOCK (second chance, FIFO with
/// reinsertion).
pub struct Clock {
    capacity: u64,
    most: u8,
    nodes: Nodes,
    queue: Queue,
}

impl Clock {
    /// An empty cache whose counters have so many bits, up to 8.
    pub fn new(room: &Room<'_>, bits: u32) -> Self {
        Self {
            capacity: room.capacity,
            most: u8::MAX >> (u8::BITS - bits),
            nodes: Nodes::new(room.keys),
            queue: Queue::new(1),
        }
    }

    fn evict(&mut self) {
        while let Some(key) = self.queue.oldest() {
            let mark = &mut self.nodes[key].mark;
            if *mark == 0 {
                self.queue.remove(&mut self.nodes, key);
                return;
            }
            *mark -= 1;
            self.queue.renew(&mut self.nodes, key);
        }
    }
}

impl Policy for Clock {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.holds(key) {
            let mark = &mut self.nodes[key].mark;
            *mark = (*mark + 1).min(self.most);
            return true;
        }
        if let Some(limit) = self.capacity.checked_sub(u64::from(charge)) {
            while self.used() > limit {
                self.evict();
            }
            self.nodes[key].mark = 0;
            self.queue.push(&mut self.nodes, key, charge);
        }
        false
    }

    fn used(&self) -> u64 {
        self.queue.charge()
    }

    fn holds(&self, key: u32) -> bool {
        self.queue.has(&self.nodes, key)
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::hits;

    #[test]
    fn worked_by_hand() {
        // d passes a and evicts b; e evicts c, and a is still there.
        assert_eq!(hits("clock", 3, "abcadeaf"), "...H..H.");
        // Two hits are worth two rounds with two bits, and one round with one bit.
        assert_eq!(hits("clock", 2, "aaabcda"), ".HH....");
        assert_eq!(hits("clock2", 2, "aaabcda"), ".HH...H");
    }
}
