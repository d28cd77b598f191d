//! The search for a cuckoo path: a chain of items, each of which could move to its other bucket, that ends at a free
//! slot. The search moves and locks nothing: its path is a proposal, and each move checks its part again (MemC3 section
//! 3.2.1; Li et al., EuroSys 2014, section 4.3).

use super::index::{Candidates, Index, Position};
use super::layout::{Geometry, Search, SlotWord, Variant};
use nuthatch_base::hash::random::Xorshift;
use nuthatch_store::prefetch;

/// A path from one of a key's buckets to a free slot.
#[derive(Debug, Default)]
pub struct Path {
    /// Items to move, first the one in the key's own bucket.
    pub steps: Vec<(Position, SlotWord)>,
    /// Where the last of them goes.
    pub free: Option<Position>,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// A path.
    Near,
    /// A path, after looking at so many slots that the table is about to be full.
    Far,
    /// No path.
    Full,
}

/// Slots after which a search counts as long. In tables of 2^11 to 2^21 slots that are filled one by one the first such
/// search comes when 96.5 to 99 % of the slots are taken; a limit of 400 slots, when 92 to 98 % are.
const LONG: usize = 1000;

/// One bucket that the breadth-first search reached.
#[derive(Clone, Copy)]
struct Node {
    bucket: u64,
    /// The node whose item would come here, and that item's slot.
    parent: usize,
    slot: usize,
    item: SlotWord,
}

const ROOT: usize = usize::MAX;

/// Buffers of a thread, so that a search allocates nothing.
pub struct Searcher {
    nodes: Vec<Node>,
    /// Buckets that the last search looked at.
    visited: usize,
    random: Xorshift,
    /// The path that was found.
    pub path: Path,
}

impl Searcher {
    /// A searcher whose random walks start from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            nodes: Vec::new(),
            visited: 0,
            random: Xorshift::new(seed),
            path: Path::default(),
        }
    }

    /// Looks for a path. `candidates_of` returns the candidates of an item's key, as far as a thread can read them
    /// without a lock.
    pub fn search<D: Variant>(
        &mut self,
        index: &Index<D>,
        place: &Candidates,
        candidates_of: impl Fn(SlotWord) -> Option<Candidates>,
    ) -> Searched {
        let geometry = index.geometry();
        let roots = [geometry.locate(place.first), geometry.locate(place.second)];
        self.path.steps.clear();
        self.path.free = None;
        match D::SEARCH {
            Search::BreadthFirst { slots } => {
                self.breadth_first(index, geometry, roots, slots, candidates_of)
            }
            Search::RandomWalks { width, kicks } => {
                self.random_walks(index, geometry, roots, width, kicks, candidates_of)
            }
        }
        match self.path.free {
            None => Searched::Full,
            Some(_) if self.visited * D::SLOTS > LONG => Searched::Far,
            Some(_) => Searched::Near,
        }
    }

    fn breadth_first<D: Variant>(
        &mut self,
        index: &Index<D>,
        geometry: Geometry,
        roots: [u64; 2],
        slots: usize,
        candidates_of: impl Fn(SlotWord) -> Option<Candidates>,
    ) {
        let root = |bucket| Node {
            bucket,
            parent: ROOT,
            slot: 0,
            item: SlotWord::EMPTY,
        };
        self.nodes.clear();
        self.nodes.extend(roots.map(root));
        // Bounded by the number of nodes, which is bounded by `slots`.
        self.visited = 0;
        while let Some(&node) = self.nodes.get(self.visited) {
            if self.expand(index, geometry, node, slots / D::SLOTS, &candidates_of) {
                return;
            }
            self.visited += 1;
        }
    }

    /// Looks at a bucket: its free slot ends the search, its items lead further.
    fn expand<D: Variant>(
        &mut self,
        index: &Index<D>,
        geometry: Geometry,
        node: Node,
        nodes_max: usize,
        candidates_of: &impl Fn(SlotWord) -> Option<Candidates>,
    ) -> bool {
        for slot in 0..D::SLOTS {
            let at = Position {
                bucket: node.bucket,
                slot,
            };
            let item = index.load(at);
            if item.is_empty() {
                self.trace(self.visited, at);
                return true;
            }
            if self.nodes.len() < nodes_max
                && let Some(bucket) = index.partner(geometry, node.bucket, item, candidates_of)
            {
                prefetch::soon(index.address(bucket));
                self.nodes.push(Node {
                    bucket,
                    parent: self.visited,
                    slot,
                    item,
                });
            }
        }
        false
    }

    fn trace(&mut self, mut number: usize, free: Position) {
        self.path.free = Some(free);
        while let Some(node) = self.nodes.get(number)
            && let Some(parent) = self.nodes.get(node.parent)
        {
            self.path.steps.push((
                Position {
                    bucket: parent.bucket,
                    slot: node.slot,
                },
                node.item,
            ));
            number = node.parent;
        }
        self.path.steps.reverse();
    }

    /// The paper's search: `width` walks, each kicking a random item of its bucket, until one of
    /// them stands before a free slot or all have kicked `kicks` times together.
    fn random_walks<D: Variant>(
        &mut self,
        index: &Index<D>,
        geometry: Geometry,
        roots: [u64; 2],
        width: usize,
        kicks: usize,
        candidates_of: impl Fn(SlotWord) -> Option<Candidates>,
    ) {
        // Each walk is a chain of nodes; the newest node of walk i is `heads[i]`.
        self.nodes.clear();
        let mut heads: Vec<usize> = (0..width).collect();
        for walk in 0..width {
            let bucket = roots[usize::from(walk >= width.div_ceil(2))];
            self.nodes.push(Node {
                bucket,
                parent: ROOT,
                slot: 0,
                item: SlotWord::EMPTY,
            });
        }
        let mut kicked = 0;
        self.visited = 0;
        while kicked <= kicks {
            for head in &mut heads {
                let node = self.nodes[*head];
                let free = (0..D::SLOTS)
                    .map(|slot| Position {
                        bucket: node.bucket,
                        slot,
                    })
                    .find(|&at| index.load(at).is_empty());
                if let Some(free) = free {
                    let found = *head;
                    self.trace(found, free);
                    return;
                }
                kicked += 1;
                self.visited += 1;
                let slot = self.random.next() as usize % D::SLOTS;
                let item = index.load(Position {
                    bucket: node.bucket,
                    slot,
                });
                if let Some(bucket) = index.partner(geometry, node.bucket, item, &candidates_of) {
                    self.nodes.push(Node {
                        bucket,
                        parent: *head,
                        slot,
                        item,
                    });
                    *head = self.nodes.len() - 1;
                }
            }
        }
    }
}
