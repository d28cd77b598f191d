//! Red-black trees, one for each owner: the page cache of the "rbtree" kernel, which has a tree for each inode instead of
//! a table (section 3.1).
//!
//! The trees are left-leaning (Sedgewick, 2008): a red node is always the left child of its parent, which takes fewer
//! cases. As in a chained table each node is alone on its cache line, in the order of the insertions, and searches count
//! the nodes that they examine.
//!
//! Invariants, of each tree: keys to the left of a node are less than its own, those to the right greater; a red node is a
//! left child, and has no red child; each way from the root down passes as many black nodes.

use super::chained::Search;

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node {
    key: u64,
    left: u32,
    right: u32,
    is_red: bool,
}

/// What owns a tree, as an inode does: alone on its cache line, too.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Owner {
    root: u32,
}

/// Trees, which share the memory of their nodes.
#[derive(Clone, Debug, Default)]
pub struct Forest {
    nodes: Vec<Node>,
    owners: Vec<Owner>,
}

impl Forest {
    /// Of this many owners, without nodes.
    pub fn new(owners: usize) -> Self {
        Self {
            nodes: Vec::new(),
            owners: vec![Owner { root: NONE }; owners],
        }
    }

    /// Adds a key to an owner's tree; nothing changes if it has it. Panics at 2^32 - 1 nodes, and for an owner that is
    /// none.
    pub fn insert(&mut self, owner: usize, key: u64) {
        let root = self.insert_below(self.owners[owner].root, key);
        self.nodes[root as usize].is_red = false;
        self.owners[owner].root = root;
    }

    /// Looks for a key in an owner's tree.
    #[inline(always)]
    pub fn find(&self, owner: usize, key: u64) -> Search {
        let mut next = self.owners[owner].root;
        let mut nodes = 0;
        while next != NONE {
            let node = &self.nodes[next as usize];
            nodes += 1;
            if node.key == key {
                return Search::Hit(nodes);
            }
            next = if key < node.key {
                node.left
            } else {
                node.right
            };
        }
        Search::Miss(nodes)
    }

    /// Inserts into the tree below a node; its root afterwards.
    fn insert_below(&mut self, top: u32, key: u64) -> u32 {
        if top == NONE {
            let number = self.nodes.len() as u32;
            assert!(number < NONE, "at most 2^32 - 1 nodes");
            self.nodes.push(Node {
                key,
                left: NONE,
                right: NONE,
                is_red: true,
            });
            return number;
        }
        let node = self.nodes[top as usize];
        if key < node.key {
            let left = self.insert_below(node.left, key);
            self.nodes[top as usize].left = left;
        } else if key > node.key {
            let right = self.insert_below(node.right, key);
            self.nodes[top as usize].right = right;
        }
        self.balance(top)
    }

    /// Puts right what an insertion below a node has put wrong; the root afterwards.
    fn balance(&mut self, mut top: u32) -> u32 {
        let node = self.nodes[top as usize];
        if self.is_red(node.right) && !self.is_red(node.left) {
            top = self.turn_left(top);
        }
        let left = self.nodes[top as usize].left;
        if self.is_red(left) && self.is_red(self.nodes[left as usize].left) {
            top = self.turn_right(top);
        }
        let Node { left, right, .. } = self.nodes[top as usize];
        if self.is_red(left) && self.is_red(right) {
            for (node, is_red) in [(top, true), (left, false), (right, false)] {
                self.nodes[node as usize].is_red = is_red;
            }
        }
        top
    }

    fn is_red(&self, node: u32) -> bool {
        node != NONE && self.nodes[node as usize].is_red
    }

    /// The right child comes up, and takes the colour of its parent, which becomes red.
    fn turn_left(&mut self, top: u32) -> u32 {
        let up = self.nodes[top as usize].right;
        self.nodes[top as usize].right = self.nodes[up as usize].left;
        self.nodes[up as usize].left = top;
        self.swap_colours(top, up)
    }

    /// The left child comes up, likewise.
    fn turn_right(&mut self, top: u32) -> u32 {
        let up = self.nodes[top as usize].left;
        self.nodes[top as usize].left = self.nodes[up as usize].right;
        self.nodes[up as usize].right = top;
        self.swap_colours(top, up)
    }

    fn swap_colours(&mut self, top: u32, up: u32) -> u32 {
        self.nodes[up as usize].is_red = self.nodes[top as usize].is_red;
        self.nodes[top as usize].is_red = true;
        up
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// Checks the invariants below a node between two bounds; the black nodes of each way down.
    fn check(forest: &Forest, top: u32, (low, high): (Option<u64>, Option<u64>)) -> u32 {
        if top == NONE {
            return 0;
        }
        let node = forest.nodes[top as usize];
        assert!(low.is_none_or(|low| low < node.key) && high.is_none_or(|high| node.key < high));
        assert!(!forest.is_red(node.right));
        assert!(!(node.is_red && forest.is_red(node.left)));
        let left = check(forest, node.left, (low, Some(node.key)));
        let right = check(forest, node.right, (Some(node.key), high));
        assert_eq!(left, right);
        left + u32::from(!node.is_red)
    }

    #[test]
    fn trees_stay_balanced_in_any_order() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut keys: Vec<Vec<u64>> = vec![(0..1000).collect(), (0..1000).rev().collect()];
        keys.push((0..1000).map(|_| random.random_range(0..500)).collect());
        let mut forest = Forest::new(4);
        for number in 0..1000 {
            for (owner, keys) in keys.iter().enumerate() {
                forest.insert(owner, keys[number]);
            }
            for owner in &forest.owners {
                assert!(!forest.is_red(owner.root));
                check(&forest, owner.root, (None, None));
            }
        }
        // 2 log2 (n + 1) nodes on the longest way.
        for owner in 0..2 {
            for key in 0..1000 {
                assert!(matches!(forest.find(owner, key), Search::Hit(1..=20)));
            }
            assert!(matches!(forest.find(owner, 1000), Search::Miss(1..=20)));
        }
        assert_eq!(forest.find(3, 7), Search::Miss(0));
    }

    #[test]
    fn what_was_inserted_is_found_and_once() {
        let mut forest = Forest::new(1);
        for key in [5, 3, 5, 8, 3] {
            forest.insert(0, key);
        }
        assert_eq!(forest.nodes.len(), 3);
        assert_eq!(forest.find(0, 5), Search::Hit(1));
        assert_eq!(forest.find(0, 3), Search::Hit(2));
        assert_eq!(forest.find(0, 4), Search::Miss(2));
    }
}
