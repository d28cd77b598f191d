//! memcached's segmented LRU (its items.c, since 1.5), without its size classes.

use super::queue::{NOWHERE, Nodes, Queue};
use super::{Policy, Room};

/// The parameters of the segmented LRU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlruShape {
    /// The share of new items.
    pub hot: f64,
    /// The share of items that were used more than once.
    pub warm: f64,
}

impl Default for SlruShape {
    /// memcached's `hot_lru_pct` and `warm_lru_pct`.
    fn default() -> Self {
        Self {
            hot: 0.2,
            warm: 0.4,
        }
    }
}

/// A mark: it was hit since it was stored (`ITEM_FETCHED`).
const FETCHED: u8 = 1;
/// A mark: it was hit again, and its queue has not checked it since (`ITEM_ACTIVE`).
const ACTIVE: u8 = 2;

/// Three queues. New items are HOT. From the ends of HOT and of WARM active items go to WARM, and others to COLD if the
/// queue is over its share. An item in COLD that becomes active goes to WARM. The end of COLD is evicted. Hits within
/// HOT and WARM move nothing. memcached's thread that moves items runs beside; here items move before the next request.
/// Its rules of age, in seconds, are left out: a replay lasts seconds.
pub struct Slru {
    capacity: u64,
    hot_max: u64,
    warm_max: u64,
    nodes: Nodes,
    hot: Queue,
    warm: Queue,
    cold: Queue,
}

impl Slru {
    /// An empty cache.
    pub fn new(room: &Room<'_>, shape: SlruShape) -> Self {
        Self {
            capacity: room.capacity,
            hot_max: room.share(shape.hot),
            warm_max: room.share(shape.warm),
            nodes: Nodes::new(room.keys),
            hot: Queue::new(1),
            warm: Queue::new(2),
            cold: Queue::new(3),
        }
    }

    fn hit(&mut self, key: u32) {
        let mark = &mut self.nodes[key].mark;
        if *mark & ACTIVE != 0 {
            return;
        }
        if *mark & FETCHED == 0 {
            *mark |= FETCHED;
            return;
        }
        *mark |= ACTIVE;
        if self.cold.has(&self.nodes, key) {
            self.nodes[key].mark &= !ACTIVE;
            let charge = self.cold.remove(&mut self.nodes, key);
            self.warm.push(&mut self.nodes, key, charge);
            self.shrink_warm();
        }
    }

    fn shrink_hot(&mut self) {
        while let Some(key) = self.hot.oldest() {
            if self.nodes[key].mark & ACTIVE != 0 {
                self.nodes[key].mark &= !ACTIVE;
                self.hot.pass_on(&mut self.nodes, &mut self.warm);
            } else if self.hot.charge() > self.hot_max {
                self.hot.pass_on(&mut self.nodes, &mut self.cold);
            } else {
                break;
            }
        }
        self.shrink_warm();
    }

    fn shrink_warm(&mut self) {
        // Each item that goes round loses its mark, so this ends.
        while let Some(key) = self.warm.oldest() {
            if self.nodes[key].mark & ACTIVE != 0 {
                self.nodes[key].mark &= !ACTIVE;
                self.warm.renew(&mut self.nodes, key);
            } else if self.warm.charge() > self.warm_max {
                self.warm.pass_on(&mut self.nodes, &mut self.cold);
            } else {
                break;
            }
        }
    }

    fn evict(&mut self) {
        for queue in [&mut self.cold, &mut self.hot, &mut self.warm] {
            if queue.pop(&mut self.nodes).is_some() {
                return;
            }
        }
    }
}

impl Policy for Slru {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.holds(key) {
            self.hit(key);
            return true;
        }
        if let Some(limit) = self.capacity.checked_sub(u64::from(charge)) {
            while self.used() > limit {
                self.evict();
            }
            self.nodes[key].mark = 0;
            self.hot.push(&mut self.nodes, key, charge);
            self.shrink_hot();
        }
        false
    }

    fn used(&self) -> u64 {
        self.hot.charge() + self.warm.charge() + self.cold.charge()
    }

    fn holds(&self, key: u32) -> bool {
        self.nodes[key].queue != NOWHERE
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::hits;

    #[test]
    fn worked_by_hand() {
        // Five items, one hot, two warm. Hits in COLD move nothing the first time: f evicts a.
        assert_eq!(hits("slru", 5, "abcdeafa"), ".....H..");
        // A second hit moves a to WARM: f evicts b, and a outlives c, d, e.
        assert_eq!(hits("slru", 5, "abcdeaafghija"), ".....HH.....H");
        // Active in HOT: to WARM when the next one comes.
        assert_eq!(hits("slru", 5, "aaabcdefgha"), ".HH.......H");
    }
}
