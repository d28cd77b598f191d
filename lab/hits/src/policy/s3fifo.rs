//! S3-FIFO (Yang et al., SOSP'23).

use super::queue::{Nodes, Queue};
use super::{Policy, Room};

/// The greatest count of hits that is kept.
const HITS_MAX: u8 = 3;

/// What S3-FIFO can be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct S3FifoShape {
    /// The share of the small queue.
    pub small: f64,
    /// Capacities that the ghosts would take.
    pub ghosts: f64,
    /// Hits in the small queue that bring an item into the main one.
    pub promotion: u8,
}

impl Default for S3FifoShape {
    /// The paper's.
    fn default() -> Self {
        Self {
            small: 0.1,
            ghosts: 0.9,
            promotion: 2,
        }
    }
}

/// A small queue for what is new, a main queue for what was asked for again, and ghosts: keys that left the small queue
/// unused. A key that comes back as a ghost goes into the main queue at once. The main queue is CLOCK with counts up to
/// 3. The ghosts' queue is as long as the main one: in bytes, where bytes are counted.
pub struct S3Fifo {
    capacity: u64,
    small_share: u64,
    ghosts_max: u64,
    promotion: u8,
    nodes: Nodes,
    small: Queue,
    main: Queue,
    ghosts: Queue,
}

impl S3Fifo {
    /// An empty cache.
    pub fn new(room: &Room<'_>, shape: S3FifoShape) -> Self {
        Self {
            capacity: room.capacity,
            small_share: room.share(shape.small),
            ghosts_max: room.share(shape.ghosts),
            promotion: shape.promotion,
            nodes: Nodes::new(room.keys),
            small: Queue::new(1),
            main: Queue::new(2),
            ghosts: Queue::new(3),
        }
    }

    fn evict(&mut self) {
        if self.small.charge() >= self.small_share || self.main.charge() == 0 {
            self.evict_small();
        } else {
            self.evict_main();
        }
    }

    fn evict_small(&mut self) {
        while let Some((key, charge)) = self.small.pop(&mut self.nodes) {
            if self.nodes[key].mark < self.promotion {
                self.ghosts.push(&mut self.nodes, key, charge);
                self.ghosts.shrink(&mut self.nodes, self.ghosts_max);
                return;
            }
            self.nodes[key].mark = 0;
            self.main.push(&mut self.nodes, key, charge);
            // The main queue has its own share: what is promoted over it takes the place of what is there.
            if self.main.charge() > self.capacity - self.small_share {
                self.evict_main();
            }
        }
    }

    fn evict_main(&mut self) {
        while let Some(key) = self.main.oldest() {
            let mark = &mut self.nodes[key].mark;
            if *mark == 0 {
                self.main.remove(&mut self.nodes, key);
                return;
            }
            *mark -= 1;
            self.main.renew(&mut self.nodes, key);
        }
    }
}

impl Policy for S3Fifo {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.holds(key) {
            let mark = &mut self.nodes[key].mark;
            *mark = (*mark + 1).min(HITS_MAX);
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
        self.nodes[key].mark = 0;
        let queue = if returns {
            &mut self.main
        } else {
            &mut self.small
        };
        queue.push(&mut self.nodes, key, charge);
        false
    }

    fn used(&self) -> u64 {
        self.small.charge() + self.main.charge()
    }

    fn holds(&self, key: u32) -> bool {
        self.small.has(&self.nodes, key) || self.main.has(&self.nodes, key)
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::hits;

    #[test]
    fn worked_by_hand() {
        // Ten items, one of them small. The eleventh key, k, evicts a, which was not used: a ghost. a then goes into
        // the main queue and evicts b. From here on each new key evicts the oldest small one: l c, m d; a stays.
        assert_eq!(hits("s3-fifo", 10, "abcdefghijkalmab"), "..............H.");
        // a has two hits: k moves it to the main queue and evicts b.
        assert_eq!(hits("s3-fifo", 10, "aaabcdefghijkab"), ".HH..........H.");
        // With one hit it is a ghost, unless one is enough.
        assert_eq!(hits("s3-fifo", 10, "aabcdefghijka"), ".H...........");
        assert_eq!(
            hits("s3-fifo:0.1:0.9:1", 10, "aabcdefghijka"),
            ".H..........H"
        );
        // Without ghosts a comes back into the small queue.
        assert_eq!(hits("s3-fifo:0.5:0", 2, "abcacb"), "....H.");
    }
}
