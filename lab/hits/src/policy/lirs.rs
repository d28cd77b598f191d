//! LIRS (Jiang and Zhang, SIGMETRICS'02).

use super::queue::{NOWHERE, Nodes, Queue};
use super::{Policy, Room};

/// The parameters of LIRS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LirsShape {
    /// The share of items that are resident though their recency is high (HIR).
    pub high: f64,
    /// Capacities that the ghosts would take. The paper sets no bound.
    pub ghosts: f64,
}

impl Default for LirsShape {
    /// The paper's.
    fn default() -> Self {
        Self {
            high: 0.01,
            ghosts: f64::INFINITY,
        }
    }
}

/// A stack by recency (S) that ends with the oldest LIR item, and a queue (Q) of the resident HIR items, from which is
/// evicted. An item that is requested while it is in the stack becomes LIR, in the place of the oldest LIR item. A key
/// in the stack that is neither LIR nor resident is a ghost.
pub struct Lirs {
    capacity: u64,
    low_max: u64,
    ghosts_max: u64,
    /// What the LIR items take.
    low: u64,
    /// The LIR items have filled their share once: from then on an item becomes LIR by its recency only.
    filled: bool,
    stacked: Nodes,
    stack: Queue,
    /// Which part a key is in: it is LIR if it is in the stack and in none of these.
    parts: Nodes,
    high: Queue,
    ghosts: Queue,
}

impl Lirs {
    /// An empty cache.
    pub fn new(room: &Room<'_>, shape: LirsShape) -> Self {
        Self {
            capacity: room.capacity,
            low_max: room.capacity - room.share(shape.high),
            ghosts_max: room.share(shape.ghosts),
            low: 0,
            filled: false,
            stacked: Nodes::new(room.keys),
            stack: Queue::new(1),
            parts: Nodes::new(room.keys),
            high: Queue::new(1),
            ghosts: Queue::new(2),
        }
    }

    fn is_low(&self, key: u32) -> bool {
        self.stack.has(&self.stacked, key) && self.parts[key].queue == NOWHERE
    }

    /// Puts a key on the stack, or back on its top.
    fn stack(&mut self, key: u32, charge: u32) {
        if self.stack.has(&self.stacked, key) {
            self.stack.remove(&mut self.stacked, key);
        }
        self.stack.push(&mut self.stacked, key, charge);
    }

    /// The stack ends with a LIR item.
    fn prune(&mut self) {
        while let Some(key) = self.stack.oldest()
            && !self.is_low(key)
        {
            self.stack.pop(&mut self.stacked);
            if self.ghosts.has(&self.parts, key) {
                self.ghosts.remove(&mut self.parts, key);
            }
        }
    }

    /// The oldest LIR item becomes the newest resident HIR item.
    fn demote(&mut self) {
        self.prune();
        if let Some((key, charge)) = self.stack.pop(&mut self.stacked) {
            self.low -= u64::from(charge);
            self.high.push(&mut self.parts, key, charge);
            self.prune();
        }
    }

    /// A key that is on the stack and in no part has become LIR.
    fn promoted(&mut self, charge: u32) {
        self.low += u64::from(charge);
        while self.low > self.low_max {
            self.demote();
        }
    }

    fn hit_high(&mut self, key: u32) {
        let charge = self.high.remove(&mut self.parts, key);
        if self.stack.has(&self.stacked, key) {
            self.stack(key, charge);
            self.promoted(charge);
        } else {
            self.stack(key, charge);
            self.high.push(&mut self.parts, key, charge);
        }
    }

    fn evict(&mut self) {
        if self.high.charge() == 0 {
            self.demote();
        }
        if let Some((key, charge)) = self.high.pop(&mut self.parts)
            && self.stack.has(&self.stacked, key)
        {
            self.ghosts.push(&mut self.parts, key, charge);
            while self.ghosts.charge() > self.ghosts_max
                && let Some((ghost, _)) = self.ghosts.pop(&mut self.parts)
            {
                self.stack.remove(&mut self.stacked, ghost);
            }
        }
    }
}

impl Policy for Lirs {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.is_low(key) {
            self.stack.renew(&mut self.stacked, key);
            self.prune();
            return true;
        }
        if self.high.has(&self.parts, key) {
            self.hit_high(key);
            return true;
        }
        let Some(limit) = self.capacity.checked_sub(u64::from(charge)) else {
            return false;
        };
        let returns = self.ghosts.has(&self.parts, key);
        if returns {
            self.ghosts.remove(&mut self.parts, key);
            self.stack.remove(&mut self.stacked, key);
        }
        while self.used() > limit {
            self.evict();
        }
        self.filled |= self.low + u64::from(charge) > self.low_max;
        self.stack(key, charge);
        if returns || !self.filled {
            self.promoted(charge);
        } else {
            self.high.push(&mut self.parts, key, charge);
        }
        false
    }

    fn used(&self) -> u64 {
        self.low + self.high.charge()
    }

    fn holds(&self, key: u32) -> bool {
        self.is_low(key) || self.high.has(&self.parts, key)
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::hits;

    #[test]
    fn worked_by_hand() {
        // Three items, one HIR: a and b are LIR; c, d, e go through the queue.
        assert_eq!(hits("lirs:0.34", 3, "abcdeab"), ".....HH");
        // d is asked for again while it is in the stack: LIR, in the place of a. b is hit, and so becomes newer than c,
        // a ghost, which leaves the stack: c is new when it comes back, and evicts a.
        assert_eq!(hits("lirs:0.34", 3, "abcddbceba"), "....HH..H.");
        // A loop of four in three: two are always hit.
        assert_eq!(hits("lirs:0.34", 3, "abcdabcdabcd"), "....HH..HH..");
        // Without ghosts c does not become LIR: e evicts it.
        assert_eq!(hits("lirs:0.34:0", 3, "abcdcea"), "......H");
    }
}
