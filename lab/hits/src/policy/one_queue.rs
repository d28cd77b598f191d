//! The common part of policies with one queue.

use super::queue::{Nodes, Queue};
use super::{Policy, Room};

/// What such policies do differently.
pub trait Order: Send {
    /// A request hit an item.
    fn hit(&mut self, nodes: &mut Nodes, queue: &mut Queue, key: u32);

    /// Takes an item out of the queue.
    fn evict(&mut self, nodes: &mut Nodes, queue: &mut Queue) {
        if let Some(oldest) = queue.oldest() {
            queue.remove(nodes, oldest);
        }
    }
}

/// A cache whose items are all in one queue: new ones enter as the newest, without a mark.
pub struct OneQueue<O> {
    capacity: u64,
    nodes: Nodes,
    queue: Queue,
    order: O,
}

impl<O: Order> OneQueue<O> {
    /// An empty cache.
    pub fn new(room: &Room<'_>, order: O) -> Self {
        Self {
            capacity: room.capacity,
            nodes: Nodes::new(room.keys),
            queue: Queue::new(1),
            order,
        }
    }
}

impl<O: Order> Policy for OneQueue<O> {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.holds(key) {
            self.order.hit(&mut self.nodes, &mut self.queue, key);
            return true;
        }
        if let Some(limit) = self.capacity.checked_sub(u64::from(charge)) {
            while self.used() > limit {
                self.order.evict(&mut self.nodes, &mut self.queue);
            }
            self.nodes[key].mark = 0;
            self.queue.push(&mut self.nodes, key, charge);
        }
        false
    }

    fn used(&self) -> u64 {
        self.queue.charge()
    }

    fn holds(&self, key: u32) -> bool {
        self.queue.has(&self.nodes, key)
    }
}
