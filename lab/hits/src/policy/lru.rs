//! Least recently used.

use super::one_queue::Order;
use super::queue::{Nodes, Queue};

/// Evicts the item whose last request is oldest.
pub struct Lru;

impl Order for Lru {
    fn hit(&mut self, nodes: &mut Nodes, queue: &mut Queue, key: u32) {
        queue.renew(nodes, key);
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::hits;

    #[test]
    fn worked_by_hand() {
        // a's hit makes b the oldest.
        assert_eq!(hits("lru", 3, "abcadab"), "...H.H.");
    }
}
