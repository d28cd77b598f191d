//! CLOCK, as a queue: an item that was used since the hand last passed it gets another round.

use super::one_queue::Order;
use super::queue::{Nodes, Queue};

/// Evicts the oldest item whose counter is 0; items that the hand passes lose a count and go round again. A hit adds a
/// count. A new item has none. With one bit a count says whether there was a hit, which is CLOCK (second chance, FIFO
/// with reinsertion).
pub struct Clock {
    most: u8,
}

impl Clock {
    /// Counters of `bits` bits, up to 8.
    pub fn new(bits: u32) -> Self {
        Self {
            most: u8::MAX >> (u8::BITS - bits),
        }
    }
}

impl Order for Clock {
    fn hit(&mut self, nodes: &mut Nodes, _: &mut Queue, key: u32) {
        let mark = &mut nodes[key].mark;
        *mark = (*mark + 1).min(self.most);
    }

    fn evict(&mut self, nodes: &mut Nodes, queue: &mut Queue) {
        while let Some(key) = queue.oldest() {
            let mark = &mut nodes[key].mark;
            if *mark == 0 {
                queue.remove(nodes, key);
                return;
            }
            *mark -= 1;
            queue.renew(nodes, key);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::hits;

    #[test]
    fn worked_by_hand() {
        // d passes a and evicts b; e evicts c, and a is still there.
        assert_eq!(hits("clock", 3, "abcadeaf"), "...H..H.");
        // Two hits are worth two rounds with two bits, and one round with one bit.
        assert_eq!(hits("clock", 2, "aaabcda"), ".HH....");
        assert_eq!(hits("clock2", 2, "aaabcda"), ".HH...H");
    }
}
