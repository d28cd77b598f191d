//! S3-FIFO (Yang et al., SOSP'23).

use super::queue::{Nodes, Queue};
use super::{Policy, Room, share_of};

/// The greatest count of hits that is kept.
pub(super) const HITS_MAX: u8 = 3;

/// The parameters of S3-FIFO.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct S3FifoShape {
    /// The share of the small queue.
    pub small: f64,
    /// Capacities that the ghosts would take.
    pub ghosts: f64,
    /// Hits in the small queue that bring an item into the main one.
    pub promotion: u8,
    /// The newest part of the small queue, in which hits do not count (Clock2Q+, VLDB'26).
    pub uncounted: f64,
}

impl Default for S3FifoShape {
    /// The paper's.
    fn default() -> Self {
        Self {
            small: 0.1,
            ghosts: 0.9,
            promotion: 2,
            uncounted: 0.0,
        }
    }
}

/// The queues' state of keys. The queues of several caches may share it, if no key is in two of them.
pub struct S3Keys {
    pub nodes: Nodes,
    /// The total that had entered the small queue before the key did.
    entered: Vec<u64>,
}

impl S3Keys {
    /// The state of `keys` keys, none in a queue.
    pub fn new(keys: usize) -> Self {
        Self {
            nodes: Nodes::new(keys),
            entered: vec![0; keys],
        }
    }
}

/// A small queue for new items, a main queue for items that were requested again, and ghosts: keys that left the small
/// queue unused. A key that comes back as a ghost goes into the main queue at once. The main queue is CLOCK with counts
/// up to
/// 3. The ghosts' queue is as long as the main one: in bytes, where bytes are counted.
pub struct S3Queues {
    shape: S3FifoShape,
    capacity: u64,
    small_share: u64,
    ghosts_max: u64,
    small: Queue,
    main: Queue,
    ghosts: Queue,
    /// The total that ever entered the small queue.
    entered: u64,
}

impl S3Queues {
    /// Queues by number: no two caches that share keys have the same.
    pub fn new(capacity: u64, shape: S3FifoShape, number: u16) -> Self {
        let mut queues = Self {
            shape,
            capacity: 0,
            small_share: 0,
            ghosts_max: 0,
            small: Queue::new(3 * number + 1),
            main: Queue::new(3 * number + 2),
            ghosts: Queue::new(3 * number + 3),
            entered: 0,
        };
        queues.resize(capacity);
        queues
    }

    /// Sets another capacity. Items over it stay until the next store.
    pub fn resize(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.small_share = share_of(capacity, self.shape.small);
        self.ghosts_max = share_of(capacity, self.shape.ghosts);
    }

    /// The number of the queues that the key is in.
    pub fn number_of(keys: &S3Keys, key: u32) -> Option<u16> {
        Some(keys.nodes[key].queue.checked_sub(1)? / 3)
    }

    /// What all items take.
    pub fn used(&self) -> u64 {
        self.small.charge() + self.main.charge()
    }

    /// True if the cache holds the key's item.
    pub fn holds(&self, keys: &S3Keys, key: u32) -> bool {
        self.small.has(&keys.nodes, key) || self.main.has(&keys.nodes, key)
    }

    /// A request hit an item.
    pub fn hit(&self, keys: &mut S3Keys, key: u32) {
        if self.small.has(&keys.nodes, key) {
            let since = self.entered - keys.entered[key as usize];
            if (since as f64) < self.shape.uncounted * self.small.charge() as f64 {
                return;
            }
        }
        let mark = &mut keys.nodes[key].mark;
        *mark = (*mark + 1).min(HITS_MAX);
    }

    /// Evicts until an item of this charge has room, and adds each evicted key to `gone`. True if the new item's key
    /// was a ghost: it is none from then on.
    pub fn make_room(
        &mut self,
        keys: &mut S3Keys,
        key: u32,
        charge: u32,
        gone: &mut Vec<u32>,
    ) -> bool {
        let returns = self.take_ghost(keys, key);
        let limit = self.capacity.saturating_sub(u64::from(charge));
        while self.used() > limit {
            self.evict(keys, gone);
        }
        returns
    }

    /// True if the key was a ghost. It is none from then on.
    pub fn take_ghost(&mut self, keys: &mut S3Keys, key: u32) -> bool {
        let returns = self.ghosts.has(&keys.nodes, key);
        if returns {
            self.ghosts.remove(&mut keys.nodes, key);
        }
        returns
    }

    /// Stores a new item, for which there is room.
    pub fn push(&mut self, keys: &mut S3Keys, key: u32, charge: u32, returns: bool) {
        keys.nodes[key].mark = 0;
        if returns {
            self.main.push(&mut keys.nodes, key, charge);
        } else {
            self.entered += u64::from(charge);
            keys.entered[key as usize] = self.entered;
            self.small.push(&mut keys.nodes, key, charge);
        }
    }

    /// Evicts at least one item, if there is one.
    pub fn evict(&mut self, keys: &mut S3Keys, gone: &mut Vec<u32>) {
        if self.small.charge() >= self.small_share || self.main.charge() == 0 {
            self.evict_small(keys, gone);
        } else {
            self.evict_main(keys, gone);
        }
    }

    fn evict_small(&mut self, keys: &mut S3Keys, gone: &mut Vec<u32>) {
        while let Some((key, charge)) = self.small.pop(&mut keys.nodes) {
            if keys.nodes[key].mark < self.shape.promotion {
                self.ghosts.push(&mut keys.nodes, key, charge);
                self.ghosts.shrink(&mut keys.nodes, self.ghosts_max);
                gone.push(key);
                return;
            }
            keys.nodes[key].mark = 0;
            self.main.push(&mut keys.nodes, key, charge);
            // The main queue has its own share: an item promoted beyond it replaces one of the main queue.
            if self.main.charge() > self.capacity - self.small_share.min(self.capacity) {
                self.evict_main(keys, gone);
            }
        }
    }

    fn evict_main(&mut self, keys: &mut S3Keys, gone: &mut Vec<u32>) {
        while let Some(key) = self.main.oldest() {
            let mark = &mut keys.nodes[key].mark;
            if *mark == 0 {
                self.main.remove(&mut keys.nodes, key);
                gone.push(key);
                return;
            }
            *mark -= 1;
            self.main.renew(&mut keys.nodes, key);
        }
    }
}

/// One cache of such queues.
pub struct S3Fifo {
    capacity: u64,
    keys: S3Keys,
    queues: S3Queues,
    gone: Vec<u32>,
}

impl S3Fifo {
    /// An empty cache.
    pub fn new(room: &Room<'_>, shape: S3FifoShape) -> Self {
        Self {
            capacity: room.capacity,
            keys: S3Keys::new(room.keys),
            queues: S3Queues::new(room.capacity, shape, 0),
            gone: Vec::new(),
        }
    }
}

impl Policy for S3Fifo {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.holds(key) {
            self.queues.hit(&mut self.keys, key);
            return true;
        }
        if u64::from(charge) > self.capacity {
            return false;
        }
        self.gone.clear();
        let (keys, gone) = (&mut self.keys, &mut self.gone);
        let returns = self.queues.make_room(keys, key, charge, gone);
        self.queues.push(keys, key, charge, returns);
        false
    }

    fn used(&self) -> u64 {
        self.queues.used()
    }

    fn holds(&self, key: u32) -> bool {
        self.queues.holds(&self.keys, key)
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
        // That hit came among the newest half, where it may not count; one behind it counts.
        assert_eq!(
            hits("s3-fifo:0.1:0.9:1:0.5", 10, "aabcdefghijka"),
            ".H..........."
        );
        assert_eq!(
            hits("s3-fifo:0.1:0.9:1:0.5", 10, "abcdefaghijka"),
            "......H.....H"
        );
        // Without ghosts a comes back into the small queue.
        assert_eq!(hits("s3-fifo:0.5:0", 2, "abcacb"), "....H.");
    }
}
