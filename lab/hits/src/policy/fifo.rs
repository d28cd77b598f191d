//! First in, first out.

use super::queue::{Nodes, Queue};
use super::{Policy, Room};

/// Evicts what has been there longest; a hit changes nothing.
pub struct Fifo {
    capacity: u64,
    nodes: Nodes,
    queue: Queue,
}

impl Fifo {
    /// An empty cache.
    pub fn new(room: &Room<'_>) -> Self {
        Self {
            capacity: room.capacity,
            nodes: Nodes::new(room.keys),
            queue: Queue::new(1),
        }
    }
}

impl Policy for Fifo {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.holds(key) {
            return true;
        }
        if let Some(limit) = self.capacity.checked_sub(u64::from(charge)) {
            self.queue.shrink(&mut self.nodes, limit);
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
        // a's hit does not save it from d.
        assert_eq!(hits("fifo", 3, "abcadab"), "...H...");
    }
}
