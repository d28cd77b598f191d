//! 2Q, the full version (Johnson and Shasha, VLDB'94).

use super::queue::{Nodes, Queue};
use super::{Policy, Room};

/// The parameters of 2Q.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoQShape {
    /// The share of the queue of new items (Kin).
    pub new: f64,
    /// Capacities that the ghosts would take (Kout).
    pub ghosts: f64,
}

impl Default for TwoQShape {
    /// The paper's.
    fn default() -> Self {
        Self {
            new: 0.25,
            ghosts: 0.5,
        }
    }
}

/// A queue for new items, in which hits change nothing (A1in); ghosts of the items that left it (A1out); and an LRU
/// queue (Am) for keys that come back as ghosts.
pub struct TwoQ {
    capacity: u64,
    new_max: u64,
    ghosts_max: u64,
    nodes: Nodes,
    new: Queue,
    ghosts: Queue,
    main: Queue,
}

impl TwoQ {
    /// An empty cache.
    pub fn new(room: &Room<'_>, shape: TwoQShape) -> Self {
        Self {
            capacity: room.capacity,
            new_max: room.share(shape.new),
            ghosts_max: room.share(shape.ghosts),
            nodes: Nodes::new(room.keys),
            new: Queue::new(1),
            ghosts: Queue::new(2),
            main: Queue::new(3),
        }
    }

    fn evict(&mut self) {
        if self.new.charge() > self.new_max || self.main.charge() == 0 {
            self.new.pass_on(&mut self.nodes, &mut self.ghosts);
            self.ghosts.shrink(&mut self.nodes, self.ghosts_max);
        } else {
            self.main.pop(&mut self.nodes);
        }
    }
}

impl Policy for TwoQ {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.main.has(&self.nodes, key) {
            self.main.renew(&mut self.nodes, key);
            return true;
        }
        if self.new.has(&self.nodes, key) {
            return true;
        }
        let Some(limit) = self.capacity.checked_sub(u64::from(charge)) else {
            return false;
        };
        let returns = self.ghosts.has(&self.nodes, key);
        if returns {
            self.ghosts.remove(&mut self.nodes, key);
        }
        while self.used() > limit {
            self.evict();
        }
        let queue = if returns {
            &mut self.main
        } else {
            &mut self.new
        };
        queue.push(&mut self.nodes, key, charge);
        false
    }

    fn used(&self) -> u64 {
        self.new.charge() + self.main.charge()
    }

    fn holds(&self, key: u32) -> bool {
        self.new.has(&self.nodes, key) || self.main.has(&self.nodes, key)
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::hits;

    #[test]
    fn worked_by_hand() {
        // Four items, one of them new, two ghosts. e makes a a ghost in spite of its hit; a comes back into the main
        // queue (b is a ghost now); f and g make ghosts of c and d, and a is still there.
        assert_eq!(hits("2q", 4, "abcdaeafga"), "....H....H");
        // b is a ghost no longer: c and d pushed it out.
        assert_eq!(hits("2q", 4, "abcdeafgbab"), ".........HH");
    }
}
