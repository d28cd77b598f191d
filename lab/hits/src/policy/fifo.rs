//! First in, first out.

use super::one_queue::Order;
use super::queue::{Nodes, Queue};

/// Evicts the item that was stored first; a hit changes nothing.
pub struct Fifo;

impl Order for Fifo {
    fn hit(&mut self, _: &mut Nodes, _: &mut Queue, _: u32) {}
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
