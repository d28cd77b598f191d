//! SIEVE (Zhang et al., NSDI'24).

use super::one_queue::Order;
use super::queue::{Nodes, Queue};

/// One queue in which no item moves, and a hand that goes from the oldest to the newest. The hand removes the mark of a
/// hit from each item that it passes, and evicts an item without a mark. So new items are sieved soon, while old items
/// that are used stay.
#[derive(Default)]
pub struct Sieve {
    hand: Option<u32>,
}

impl Order for Sieve {
    fn hit(&mut self, nodes: &mut Nodes, _: &mut Queue, key: u32) {
        nodes[key].mark = 1;
    }

    fn evict(&mut self, nodes: &mut Nodes, queue: &mut Queue) {
        while let Some(key) = self.hand.or_else(|| queue.oldest()) {
            self.hand = queue.newer(nodes, key);
            let mark = &mut nodes[key].mark;
            if *mark == 0 {
                queue.remove(nodes, key);
                return;
            }
            *mark = 0;
        }
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
