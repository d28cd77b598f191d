//! The search for a free slot, on several paths at once (section 3.2.2).
//!
//! A path is a walk: it pushes aside a random item of its bucket, goes on in that item's other bucket, and ends where a
//! slot is free. Nothing is moved before a path has ended. Then its items move from its end backwards.

use nuthatch_base::hash::random::Xorshift;

use crate::cuckoo::{Cuckoo, Place, SLOTS};
use crate::index::Items;
use crate::locks::Writers;
use crate::tags::Tags;

/// Items that all paths of an insert push aside together before the index counts as full.
pub const KICKS: usize = 500;

/// The paths of a writer.
pub struct Paths {
    /// Where each path stands. There is at least one.
    heads: Vec<u64>,
    /// What the paths push aside, in turn: step `n` of path `p` is at `n * paths + p`.
    steps: Vec<(Place, u64)>,
    random: Xorshift,
}

/// Room for an item.
pub struct Room {
    /// The free slot.
    pub at: Place,
    /// Items that were moved for it.
    pub displaced: usize,
    /// Items that all paths pushed aside.
    pub kicked: usize,
}

/// A path's end.
struct End {
    path: usize,
    steps: usize,
    free: Place,
}

impl Paths {
    /// So many paths at once (1 at least), whose walks start from `seed`.
    pub fn new(paths: usize, seed: u64) -> Self {
        Self {
            heads: vec![0; paths.max(1)],
            steps: Vec::with_capacity(KICKS),
            random: Xorshift::new(seed),
        }
    }

    /// Frees a slot in one of two buckets. The caller is the only writer.
    #[inline]
    pub(crate) fn make_room<T: Tags, L: Writers>(
        &mut self,
        index: &Cuckoo<T, L>,
        [one, other]: [u64; 2],
        items: &impl Items,
    ) -> Option<Room> {
        let free = index.free(one).or_else(|| index.free(other));
        if let Some(at) = free {
            return Some(Room {
                at,
                displaced: 0,
                kicked: 0,
            });
        }
        let (mut kicked, mut displaced) = (0, 0);
        // Each search after the first kicks at least once: both buckets were full.
        while let Some(end) = self.search(index, [one, other], items, &mut kicked) {
            if let Some(at) = self.follow(index, &end, &mut displaced) {
                return Some(Room {
                    at,
                    displaced,
                    kicked,
                });
            }
        }
        None
    }

    /// Walks all paths in turn until one ends.
    fn search<T: Tags, L: Writers>(
        &mut self,
        index: &Cuckoo<T, L>,
        [one, other]: [u64; 2],
        items: &impl Items,
        kicked: &mut usize,
    ) -> Option<End> {
        self.steps.clear();
        let first = self.heads.len().div_ceil(2);
        self.heads[..first].fill(one);
        self.heads[first..].fill(other);
        for steps in 0.. {
            for path in 0..self.heads.len() {
                let bucket = self.heads[path];
                if let Some(free) = index.free(bucket) {
                    return Some(End { path, steps, free });
                }
                if *kicked == KICKS {
                    return None;
                }
                *kicked += 1;
                let slot = self.random.next() as usize % SLOTS;
                let at = Place { bucket, slot };
                let word = index.load(at);
                self.steps.push((at, word));
                self.heads[path] = index.partner(bucket, word, items);
            }
        }
        None
    }

    /// Moves the items of a path, the last one first. Nothing if the path crosses itself, and so has changed what it
    /// found: what was moved until then stays.
    fn follow<T: Tags, L: Writers>(
        &self,
        index: &Cuckoo<T, L>,
        end: &End,
        displaced: &mut usize,
    ) -> Option<Place> {
        let mut free = end.free;
        for step in (0..end.steps).rev() {
            let (from, word) = self.steps[step * self.heads.len() + end.path];
            if index.load(from) != word {
                return None;
            }
            index.displace(from, free, word);
            *displaced += 1;
            free = from;
        }
        Some(free)
    }
}
