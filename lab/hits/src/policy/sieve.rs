//! SIEVE (Zhang et al., NSDI'24).

use super::queue::{Nodes, Queue};
use super::{Policy, Room};

/// One queue that nothing moves in, and a hand that goes from the oldest to the newest: it takes the mark of a hit from
/// what it passes, and evicts what has none. So new items are sieved soon, while the old ones that are used stay.
pub struct Sieve {
    capacity: u64,
    nodes: Nodes,
    queue: Queue,
    hand: Option<u32>,
}

impl Sieve {
    /// An empty cache.
    pub fn new(room: &Room<'_>) -> Self {
        Self {
            capacity: room.capacity,
            nodes: Nodes::new(room.keys),
            queue: Queue::new(1),
            hand: None,
        }
    }

    fn evict(&mut self) {
        while let Some(key) = self.hand.or_else(|| self.queue.oldest()) {
            self.hand = self.queue.newer(&self.nodes, key);
            let mark = &mut self.nodes[key].mark;
            if *mark == 0 {
                self.queue.remove(&mut self.nodes, key);
                return;
            }
            *mark = 0;
        }
    }
}

impl Policy for Sieve {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.holds(key) {
            self.nodes[key].mark = 1;
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
        // d: the hand passes a (its mark goes), evicts b and stands at c. e evicts c, f evicts d: a was passed, and
        // is met again only when the hand has been at the newest.
        assert_eq!(hits("sieve", 3, "abcadefa"), "...H...H");
    }
}
