//! How much of a working set a set-associative table keeps under a function. An item has one set, and items for which
//! the set has no way are not kept.

use nuthatch_base::hash::split;
use nuthatch_base::spread::Histogram;

/// A set-associative table after every item was stored once.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// Sets.
    pub sets: u64,
    /// Ways of a set.
    pub ways: u64,
    /// Items stored.
    pub items: u64,
    /// Items kept: in each set as many as it has ways.
    pub kept: u64,
    /// What a perfect hash would keep, after Poisson.
    pub kept_perfect: f64,
    /// Other items of the same set with the same 16-bit tag, for each search that hits.
    pub false_tags: f64,
}

impl Filled {
    /// Share of the ways that are taken.
    pub fn load(&self) -> f64 {
        self.kept as f64 / (self.sets * self.ways) as f64
    }

    /// Share of the items that are kept: the hit rate of a working set whose items are requested equally.
    pub fn kept_share(&self) -> f64 {
        self.kept as f64 / self.items.max(1) as f64
    }
}

/// Stores each hash once in the table of `ways` ways whose sets are the least power of two with room for
/// all. `None` without hashes or ways.
pub fn fill(hashes: &[u64], ways: u64) -> Option<Filled> {
    let items = hashes.len() as u64;
    if items == 0 || ways == 0 {
        return None;
    }
    let sets = items.div_ceil(ways).next_power_of_two();
    let mut stored: Vec<(u32, u16)> = hashes
        .iter()
        .map(|&hash| {
            (
                split::bucket(hash, sets - 1) as u32,
                split::tag16(hash) as u16,
            )
        })
        .collect();
    stored.sort_unstable();
    let (mut kept, mut kept_searches) = (0, 0);
    let mut sizes = Vec::new();
    for set in stored.chunk_by(|one, other| one.0 == other.0) {
        let (size, held) = (set.len() as u64, ways.min(set.len() as u64));
        sizes.push(size);
        kept += held;
        let pairs: u64 = set
            .chunk_by(|one, other| one.1 == other.1)
            .map(|same| same.len() as u64 * (same.len() as u64 - 1))
            .sum();
        // In a set that overflows, a pair is kept if both of its items are.
        kept_searches += pairs * held * held / (size * size);
    }
    let empty = sets - sizes.len() as u64;
    let histogram = Histogram::of_counts(sizes.into_iter().chain((0..empty).map(|_| 0)));
    Some(Filled {
        sets,
        ways,
        items,
        kept,
        kept_perfect: perfect(&histogram, ways),
        false_tags: kept_searches as f64 / kept.max(1) as f64,
    })
}

/// Items that a perfect hash would keep: of a set of `t` items, the lesser of `t` and the ways.
fn perfect(histogram: &Histogram, ways: u64) -> f64 {
    let perfect = nuthatch_base::spread::Perfect::of(histogram.items(), histogram.buckets());
    let missing: f64 = (0..ways)
        .map(|size| perfect.buckets_of(size) * (ways - size) as f64)
        .sum();
    (histogram.buckets() * ways) as f64 - missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_base::hash::KeyHasher;

    #[test]
    fn by_hand() {
        // Sets 0 and 1 of 2 ways: set 0 gets three items, of which it keeps two.
        let hash = |set: u64, tag: u64| tag << 48 | set;
        let filled = fill(&[hash(0, 1), hash(0, 2), hash(0, 3), hash(1, 1)], 2).unwrap();
        assert_eq!((filled.sets, filled.kept), (2, 3));
        assert_eq!(filled.load(), 0.75);
        assert_eq!(filled.false_tags, 0.0);
        let same = fill(&[hash(0, 1), hash(0, 1), hash(1, 1), hash(1, 2)], 2).unwrap();
        assert_eq!((same.kept, same.false_tags), (4, 0.5));
    }

    #[test]
    fn a_good_function_keeps_what_theory_says() {
        // Eight ways, as many items as ways: 0.8604 (the bound of the 8-way table at load 1).
        let hasher = KeyHasher::seeded(2);
        let hashes: Vec<u64> = (0..65_536_u64)
            .map(|number| hasher.hash(&number.to_le_bytes()))
            .collect();
        let filled = fill(&hashes, 8).unwrap();
        assert!((filled.kept_perfect / 65_536.0 - 0.8604).abs() < 0.0001);
        assert!(
            (filled.kept_share() - 0.8604).abs() < 0.005,
            "{}",
            filled.kept_share()
        );
    }

    #[test]
    fn nothing_to_store() {
        assert_eq!(fill(&[], 8), None);
        assert_eq!(fill(&[1], 0), None);
    }
}
