//! ARC (Megiddo and Modha, FAST'03).

use super::queue::{Nodes, Queue};
use super::{Policy, Room};

/// Two LRU queues, of keys that were requested once (T1) and more often (T2), and the ghosts of each (B1, B2). A ghost
/// that comes back moves the share of the queue that it left: p, T1's. As in the paper where all charges are 1;
/// otherwise its counts of pages are sums of charges.
pub struct Arc {
    capacity: u64,
    /// What T1 should take.
    target: f64,
    nodes: Nodes,
    once: Queue,
    often: Queue,
    once_ghosts: Queue,
    often_ghosts: Queue,
}

/// Which ghosts had the key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ghost {
    None,
    Once,
    Often,
}

impl Arc {
    /// An empty cache.
    pub fn new(room: &Room<'_>) -> Self {
        Self {
            capacity: room.capacity,
            target: 0.0,
            nodes: Nodes::new(room.keys),
            once: Queue::new(1),
            often: Queue::new(2),
            once_ghosts: Queue::new(3),
            often_ghosts: Queue::new(4),
        }
    }

    /// The paper's cases II and III: learns from a ghost and forgets it.
    fn learn(&mut self, key: u32, charge: u32) -> Ghost {
        let (once, often) = (self.once_ghosts.charge(), self.often_ghosts.charge());
        let step = |other: u64, own: u64| f64::from(charge) * (other as f64 / own as f64).max(1.0);
        if self.once_ghosts.has(&self.nodes, key) {
            self.target = (self.target + step(often, once)).min(self.capacity as f64);
            self.once_ghosts.remove(&mut self.nodes, key);
            Ghost::Once
        } else if self.often_ghosts.has(&self.nodes, key) {
            self.target = (self.target - step(once, often)).max(0.0);
            self.often_ghosts.remove(&mut self.nodes, key);
            Ghost::Often
        } else {
            Ghost::None
        }
    }

    /// The paper's REPLACE: the oldest of one of the queues becomes a ghost.
    fn replace(&mut self, ghost: Ghost) {
        let once = self.once.charge() as f64;
        let over = once > self.target || (ghost == Ghost::Often && once == self.target);
        if self.once.charge() > 0 && (over || self.often.charge() == 0) {
            self.once.pass_on(&mut self.nodes, &mut self.once_ghosts);
        } else {
            self.often.pass_on(&mut self.nodes, &mut self.often_ghosts);
        }
    }

    /// The paper's case IV: T1 and B1 take no more than the capacity, all four no more than twice that.
    fn bound(&mut self, charge: u64) {
        let limit = self.capacity - charge;
        let ghosts = limit.saturating_sub(self.once.charge());
        self.once_ghosts.shrink(&mut self.nodes, ghosts);
        self.once.shrink(&mut self.nodes, limit);
    }

    fn bound_all(&mut self, charge: u64) {
        let others = self.used() + self.once_ghosts.charge() + charge;
        let limit = (2 * self.capacity).saturating_sub(others);
        self.often_ghosts.shrink(&mut self.nodes, limit);
    }
}

impl Policy for Arc {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.often.has(&self.nodes, key) {
            self.often.renew(&mut self.nodes, key);
            return true;
        }
        if self.once.has(&self.nodes, key) {
            let charge = self.once.remove(&mut self.nodes, key);
            self.often.push(&mut self.nodes, key, charge);
            return true;
        }
        let Some(limit) = self.capacity.checked_sub(u64::from(charge)) else {
            return false;
        };
        let ghost = self.learn(key, charge);
        if ghost == Ghost::None {
            self.bound(u64::from(charge));
        }
        self.bound_all(u64::from(charge));
        while self.used() > limit {
            self.replace(ghost);
        }
        let queue = match ghost {
            Ghost::None => &mut self.once,
            Ghost::Once | Ghost::Often => &mut self.often,
        };
        queue.push(&mut self.nodes, key, charge);
        false
    }

    fn used(&self) -> u64 {
        self.once.charge() + self.often.charge()
    }

    fn holds(&self, key: u32) -> bool {
        self.once.has(&self.nodes, key) || self.often.has(&self.nodes, key)
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::hits;

    #[test]
    fn worked_by_hand() {
        // Two items. a is asked for twice and goes to T2; b, c, d pass through T1.
        assert_eq!(hits("arc", 2, "aabcda"), ".H...H");
        // T1 is full of a, b: c drops a without a ghost, so that a is new again.
        assert_eq!(hits("arc", 2, "abcab"), ".....");
        // c makes a ghost of b. b comes back: p is 1, b in T2, and a, the oldest of T2, a ghost. c is hit. a comes
        // back: p is 0 again, and b, the oldest of T2, a ghost.
        assert_eq!(hits("arc", 2, "aabcbcacab"), ".H...H.HH.");
    }
}
