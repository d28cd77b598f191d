//! Queues of keys, linked through one array that the keys' numbers index.

use std::ops::{Index, IndexMut};

use crate::trace::NO_KEY;

/// A policy's state of a key. A key is in one queue of its array at most.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The next newer one of its queue.
    newer: u32,
    /// The next older one.
    older: u32,
    /// What it takes of the capacity, while it is in a queue.
    pub charge: u32,
    /// Which queue it is in.
    pub queue: QueueId,
    /// The policy's own: how often it was used, say.
    pub mark: u8,
}

/// The name of a queue within its array. 0 is none.
pub type QueueId = u16;

/// A key that is in no queue has this.
pub const NOWHERE: QueueId = 0;

/// A node for each key of a trace.
#[derive(Clone, Debug)]
pub struct Nodes(Vec<Node>);

impl Nodes {
    /// Nodes for `keys` keys, none in a queue.
    pub fn new(keys: usize) -> Self {
        let node = Node {
            newer: NO_KEY,
            older: NO_KEY,
            charge: 0,
            queue: NOWHERE,
            mark: 0,
        };
        Self(vec![node; keys])
    }
}

impl Index<u32> for Nodes {
    type Output = Node;

    #[inline(always)]
    fn index(&self, key: u32) -> &Node {
        &self.0[key as usize]
    }
}

impl IndexMut<u32> for Nodes {
    #[inline(always)]
    fn index_mut(&mut self, key: u32) -> &mut Node {
        &mut self.0[key as usize]
    }
}

/// Keys from the newest to the oldest, and what they take together.
#[derive(Clone, Debug)]
pub struct Queue {
    id: QueueId,
    newest: u32,
    oldest: u32,
    charge: u64,
}

impl Queue {
    /// An empty queue. Its `id` is not that of another queue in the same array, nor [`NOWHERE`].
    pub fn new(id: QueueId) -> Self {
        Self {
            id,
            newest: NO_KEY,
            oldest: NO_KEY,
            charge: 0,
        }
    }

    /// What its keys take together.
    pub fn charge(&self) -> u64 {
        self.charge
    }

    /// The oldest key.
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NO_KEY).then_some(self.oldest)
    }

    /// The next newer of a key that is in this queue.
    pub fn newer(&self, nodes: &Nodes, key: u32) -> Option<u32> {
        let newer = nodes[key].newer;
        (newer != NO_KEY).then_some(newer)
    }

    /// True if the key is in this queue.
    pub fn has(&self, nodes: &Nodes, key: u32) -> bool {
        nodes[key].queue == self.id
    }

    /// Makes a key that is in no queue the newest.
    pub fn push(&mut self, nodes: &mut Nodes, key: u32, charge: u32) {
        let node = &mut nodes[key];
        assert_eq!(node.queue, NOWHERE);
        (node.queue, node.charge) = (self.id, charge);
        (node.newer, node.older) = (NO_KEY, self.newest);
        match self.newest {
            NO_KEY => self.oldest = key,
            newest => nodes[newest].newer = key,
        }
        self.newest = key;
        self.charge += u64::from(charge);
    }

    /// Takes a key that is in this queue out of it. Returns what it took.
    pub fn remove(&mut self, nodes: &mut Nodes, key: u32) -> u32 {
        let node = &mut nodes[key];
        assert_eq!(node.queue, self.id);
        node.queue = NOWHERE;
        let Node {
            newer,
            older,
            charge,
            ..
        } = *node;
        match newer {
            NO_KEY => self.newest = older,
            newer => nodes[newer].older = older,
        }
        match older {
            NO_KEY => self.oldest = newer,
            older => nodes[older].newer = newer,
        }
        self.charge -= u64::from(charge);
        charge
    }

    /// Takes the oldest key out. Returns it and what it took.
    pub fn pop(&mut self, nodes: &mut Nodes) -> Option<(u32, u32)> {
        let key = self.oldest()?;
        Some((key, self.remove(nodes, key)))
    }

    /// Makes a key that is in this queue the newest.
    pub fn renew(&mut self, nodes: &mut Nodes, key: u32) {
        if self.newest != key {
            let charge = self.remove(nodes, key);
            self.push(nodes, key, charge);
        }
    }

    /// Makes the oldest key of this queue the newest of another one of the same array.
    pub fn pass_on(&mut self, nodes: &mut Nodes, to: &mut Queue) {
        if let Some((key, charge)) = self.pop(nodes) {
            to.push(nodes, key, charge);
        }
    }

    /// Forgets the oldest keys until no more than `limit` is taken.
    pub fn shrink(&mut self, nodes: &mut Nodes, limit: u64) {
        while self.charge > limit {
            self.pop(nodes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(queue: &Queue, nodes: &Nodes) -> Vec<u32> {
        let newer = |&key: &u32| queue.newer(nodes, key);
        std::iter::successors(queue.oldest(), newer).collect()
    }

    #[test]
    fn keys_stay_in_order() {
        let mut nodes = Nodes::new(4);
        let (mut a, mut b) = (Queue::new(1), Queue::new(2));
        for key in 0..4 {
            a.push(&mut nodes, key, 10 + key);
        }
        assert_eq!((keys(&a, &nodes), a.charge()), (vec![0, 1, 2, 3], 46));
        a.renew(&mut nodes, 3);
        a.renew(&mut nodes, 1);
        assert_eq!(keys(&a, &nodes), [0, 2, 3, 1]);
        a.pass_on(&mut nodes, &mut b);
        assert_eq!(a.remove(&mut nodes, 3), 13);
        assert_eq!((keys(&a, &nodes), keys(&b, &nodes)), (vec![2, 1], vec![0]));
        assert!(b.has(&nodes, 0) && !b.has(&nodes, 3) && !b.has(&nodes, 1));
        a.shrink(&mut nodes, 22);
        assert_eq!((keys(&a, &nodes), a.charge()), (vec![1], 11));
        a.shrink(&mut nodes, 0);
        assert_eq!((a.pop(&mut nodes), a.charge()), (None, 0));
        a.pass_on(&mut nodes, &mut b);
        assert_eq!(keys(&b, &nodes), [0]);
    }
}
