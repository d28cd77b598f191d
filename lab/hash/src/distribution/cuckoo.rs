//! How full a cuckoo table becomes under a function, and how often its tags mislead.
//!
//! The table is the engines': a bucket of slots, a tag from the hash's top bits, and a second bucket that bucket and
//! tag alone decide ([`split`]). A function with correlated bits shows here as a lower load or as more tags that match
//! where the key does not.

use nuthatch_base::hash::split;
use nuthatch_base::spread::Histogram;

/// The shape of a cuckoo table.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Slots of a bucket.
    pub slots: usize,
    /// The tag of a hash.
    pub tag: fn(u64) -> u64,
    /// Items displaced at most before a store fails.
    pub displaced_max: usize,
}

impl Shape {
    /// Our own: 8 slots, 16-bit tags.
    pub const EIGHT_WAY: Self = Self {
        slots: 8,
        tag: split::tag16,
        displaced_max: 500,
    };
    /// MemC3's: 4 slots, 1-byte tags, up to 500 displacements (its section 3.1).
    pub const MEMC3: Self = Self {
        slots: 4,
        tag: split::tag8,
        displaced_max: 500,
    };
}

/// A table that was filled until an item found no place, or until there were no more items.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// Slots of the table.
    pub slots: u64,
    /// Items it holds.
    pub items: u64,
    /// True if the table was full before the items ended.
    pub full: bool,
    /// Slots whose tag matches though they hold another item, for each search that hits.
    pub false_tags: f64,
    /// Items of each bucket.
    pub occupancy: Histogram,
}

impl Filled {
    /// Share of the slots that are taken.
    pub fn load(&self) -> f64 {
        self.items as f64 / self.slots as f64
    }
}

/// Fills the largest table that these hashes can fill. `None` for fewer hashes than two buckets have slots.
pub fn fill(hashes: &[u64], shape: Shape) -> Option<Filled> {
    let buckets = 1_u64 << (hashes.len() / shape.slots).checked_ilog2()?;
    if buckets < 2 {
        return None;
    }
    let mut table = Cuckoo {
        mask: buckets - 1,
        shape,
        buckets: vec![Vec::with_capacity(shape.slots); buckets as usize],
        random: 0x9e37_79b9_7f4a_7c15,
    };
    let stored = hashes.iter().take_while(|&&hash| table.store(hash)).count();
    let occupancy = table.buckets.iter().map(|bucket| bucket.len() as u64);
    Some(Filled {
        slots: buckets * shape.slots as u64,
        items: table.items(),
        full: stored < hashes.len(),
        false_tags: table.false_tags(),
        occupancy: Histogram::of_counts(occupancy),
    })
}

struct Cuckoo {
    mask: u64,
    shape: Shape,
    /// The hashes that each holds.
    buckets: Vec<Vec<u64>>,
    /// State of a generator that chooses victims; the same for every function.
    random: u64,
}

impl Cuckoo {
    fn places(&self, hash: u64) -> [usize; 2] {
        let other = hash ^ split::partner_offset((self.shape.tag)(hash));
        [hash, other].map(|bits| (bits & self.mask) as usize)
    }

    /// Stores an item, displacing others. False if one, not always this one, is left without a place;
    /// that one is dropped.
    fn store(&mut self, hash: u64) -> bool {
        let mut displaced = hash;
        let mut places = self.places(displaced);
        for _ in 0..=self.shape.displaced_max {
            let room = |&&at: &&usize| self.buckets[at].len() < self.shape.slots;
            if let Some(&at) = places.iter().find(room) {
                self.buckets[at].push(displaced);
                return true;
            }
            let random = self.next_random();
            let from = places[(random & 1) as usize];
            let slot = (random >> 1) as usize % self.shape.slots;
            displaced = std::mem::replace(&mut self.buckets[from][slot], displaced);
            // It must go to its other bucket.
            let other = self.places(displaced).into_iter().find(|&at| at != from);
            places = [other.unwrap_or(from); 2];
        }
        false
    }

    /// Marsaglia's xorshift64.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn items(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.len() as u64).sum()
    }

    fn false_tags(&self) -> f64 {
        let matches = |hash: u64| {
            let tag = (self.shape.tag)(hash);
            let slots = self
                .places(hash)
                .into_iter()
                .flat_map(|at| &self.buckets[at]);
            // The item itself is one of them.
            slots
                .filter(|&&other| (self.shape.tag)(other) == tag)
                .count()
                - 1
        };
        let all = self.buckets.iter().flatten();
        let sum: usize = all.map(|&hash| matches(hash)).sum();
        sum as f64 / self.items().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_base::hash::KeyHasher;

    fn hashes(count: u64) -> Vec<u64> {
        let hasher = KeyHasher::seeded(11);
        (0..count)
            .map(|number| hasher.hash(&number.to_le_bytes()))
            .collect()
    }

    #[test]
    fn a_good_function_fills_what_theory_allows() {
        // The thresholds for two choices are 0.98 (4 slots) and 0.998 (8 slots); a bounded walk stops
        // a little below.
        let hashes = hashes(70_000);
        let eight = fill(&hashes, Shape::EIGHT_WAY).unwrap();
        assert_eq!(eight.slots, 65_536);
        assert!(eight.full && eight.load() > 0.96, "{}", eight.load());
        assert_eq!(eight.occupancy.items(), eight.items);
        assert!(eight.occupancy.largest() <= 8);
        let four = fill(&hashes, Shape::MEMC3).unwrap();
        assert!(four.full && four.load() > 0.93, "{}", four.load());
        // 7 other slots, 255 tags; 15 others, 65535 tags.
        assert!(
            (four.false_tags - 7.0 * four.load() / 255.0).abs() < 0.005,
            "{}",
            four.false_tags
        );
        assert!(eight.false_tags < 0.001, "{}", eight.false_tags);
    }

    #[test]
    fn bits_that_hang_together_show() {
        // The tag repeats: every partner is the same distance away.
        let poor: Vec<u64> = (0..70_000_u64).map(|number| number * 64).collect();
        let filled = fill(&poor, Shape::EIGHT_WAY).unwrap();
        assert!(filled.load() < 0.5, "{}", filled.load());
        assert!(filled.false_tags > 1.0, "{}", filled.false_tags);
    }

    #[test]
    fn too_few_to_fill_anything() {
        assert_eq!(fill(&hashes(15), Shape::EIGHT_WAY), None);
        assert!(fill(&hashes(16), Shape::EIGHT_WAY).is_some());
        assert_eq!(fill(&[], Shape::MEMC3), None);
    }
}
