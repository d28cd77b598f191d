//! The paper's histogram (section 2): how many buckets hold how many items.

use std::collections::BTreeMap;
use std::fmt;

use super::Perfect;

/// The greatest size that has its own line in a printed histogram; larger ones share a line.
const PRINTED_MAX: u64 = 15;

/// How many buckets hold how many items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Sizes that occur, ascending, and how many buckets have each.
    sizes: Vec<(u64, u64)>,
    buckets: u64,
    items: u64,
}

/// One line of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Items in a bucket.
    pub size: u64,
    /// Buckets that hold so many.
    pub buckets: u64,
    /// Items in those buckets together.
    pub items: u64,
    /// Percentage of all items that lie in buckets of this size and smaller.
    pub sum_pct: f64,
}

impl Histogram {
    /// Makes a histogram from the number of items in each bucket.
    pub fn of_counts(counts: impl IntoIterator<Item = u64>) -> Self {
        // Most sizes are small; a map entry for each bucket would cost more than the hashing.
        let mut small = [0_u64; 256];
        let mut large: BTreeMap<u64, u64> = BTreeMap::new();
        for count in counts {
            match small.get_mut(count as usize) {
                Some(buckets) => *buckets += 1,
                None => *large.entry(count).or_default() += 1,
            }
        }
        let small = small.iter().enumerate();
        let small = small.map(|(size, &buckets)| (size as u64, buckets));
        Self::of_sizes(small.chain(large))
    }

    /// Makes a histogram from pairs of a size and the number of buckets with it, ascending.
    pub fn of_sizes(sizes: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let sizes: Vec<(u64, u64)> = sizes
            .into_iter()
            .filter(|&(_, buckets)| buckets > 0)
            .collect();
        debug_assert!(sizes.is_sorted_by(|one, other| one.0 < other.0));
        Self {
            buckets: sizes.iter().map(|&(_, buckets)| buckets).sum(),
            items: sizes.iter().map(|&(size, buckets)| size * buckets).sum(),
            sizes,
        }
    }

    /// Sizes that occur, ascending, and how many buckets have each.
    pub fn sizes(&self) -> &[(u64, u64)] {
        &self.sizes
    }

    /// Buckets in all.
    pub fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Items in all.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Buckets that hold an item.
    pub fn used_buckets(&self) -> u64 {
        self.buckets - self.empty_buckets()
    }

    fn empty_buckets(&self) -> u64 {
        match self.sizes.first() {
            Some(&(0, buckets)) => buckets,
            _ => 0,
        }
    }

    /// Items of the largest bucket.
    pub fn largest(&self) -> u64 {
        self.sizes.last().map_or(0, |&(size, _)| size)
    }

    /// Items a bucket, on average.
    pub fn mean(&self) -> f64 {
        self.items as f64 / self.buckets.max(1) as f64
    }

    /// Share of the items that lie in buckets of the mean size, rounded up, or smaller.
    pub fn share_up_to_mean(&self) -> f64 {
        let mean = self.items.div_ceil(self.buckets.max(1));
        let held: u64 = self
            .sizes
            .iter()
            .filter(|&&(size, _)| size <= mean)
            .map(|&(size, buckets)| size * buckets)
            .sum();
        share(held, self.items)
    }

    /// Objects searched in a chain for an item that is present, itself included, averaged over all items: a bucket of
    /// `s` costs 1 + 2 + … + s for its `s` items.
    pub fn searched_hit(&self) -> f64 {
        self.mean_over_items(|size| (size as f64 + 1.0) / 2.0)
    }

    /// Objects searched for an absent key of the same kind, which falls where such keys fall: each item is looked up as
    /// if it alone were missing, and meets the others of its bucket. Under a good function this is the mean size. Under
    /// a bad one it is greater, because the keys that are looked up fall into large buckets too.
    pub fn searched_miss(&self) -> f64 {
        self.mean_over_items(|size| size as f64 - 1.0)
    }

    fn mean_over_items(&self, cost: impl Fn(u64) -> f64) -> f64 {
        let all = self.sizes.iter().filter(|&&(size, _)| size > 0);
        let sum: f64 = all
            .map(|&(size, buckets)| cost(size) * (size * buckets) as f64)
            .sum();
        sum / self.items.max(1) as f64
    }

    /// A line for each size from 0 to the largest that occurs, at most `most`; then, if there are
    /// larger ones, the sizes that occur.
    pub fn rows(&self, most: u64) -> Vec<Row> {
        let dense = 0..=self.largest().min(most);
        let mut below = 0;
        let mut rows = Vec::new();
        for size in dense.chain(
            self.sizes
                .iter()
                .map(|&(size, _)| size)
                .filter(|&s| s > most),
        ) {
            let buckets = self.buckets_of(size);
            below += size * buckets;
            rows.push(Row {
                size,
                buckets,
                items: size * buckets,
                sum_pct: 100.0 * share(below, self.items),
            });
        }
        rows
    }

    /// Buckets of this size.
    pub fn buckets_of(&self, size: u64) -> u64 {
        match self.sizes.binary_search_by_key(&size, |&(size, _)| size) {
            Ok(at) => self.sizes[at].1,
            Err(_) => 0,
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The histogram of a table of chains in which all items are looked up equally often.
impl fmt::Display for Histogram {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = Report {
            seen: self,
            perfect: Perfect::of(self.items, self.buckets),
            searched_hit: Some(self.searched_hit()),
            searched_miss: Some(self.searched_miss()),
        };
        report.fmt(out)
    }
}

/// The paper's report, with the numbers of a perfect hash beside each.
#[derive(Clone, Copy, Debug)]
pub struct Report<'h> {
    /// Buckets and their sizes.
    pub seen: &'h Histogram,
    /// The expected values of a perfect hash for such a table.
    pub perfect: Perfect,
    /// Objects searched for a hit, on average; `None` if there was none.
    pub searched_hit: Option<f64>,
    /// Objects searched for a miss, likewise.
    pub searched_miss: Option<f64>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seen, perfect, .. } = self;
        writeln!(out, "hash table size is {} buckets", seen.buckets)?;
        writeln!(out, "hash table contains {} objects", seen.items)?;
        let (largest, expected) = (seen.largest(), perfect.largest());
        writeln!(
            out,
            "largest bucket contains {largest} objects (perfect {expected})"
        )?;
        writeln!(
            out,
            "{:.1} % of the buckets are used (perfect {:.1} %)",
            100.0 * share(seen.used_buckets(), seen.buckets),
            100.0 * perfect.used_share()
        )?;
        writeln!(
            out,
            "{:.1} % of the objects are in buckets up to the mean size (perfect {:.1} %)",
            100.0 * seen.share_up_to_mean(),
            100.0 * perfect.share_up_to_mean()
        )?;
        writeln!(
            out,
            "objects searched: {} for a hit (perfect {:.3}), {} for a miss (perfect {:.3})",
            or_none(self.searched_hit),
            perfect.searched_hit(),
            or_none(self.searched_miss),
            perfect.searched_miss()
        )?;
        writeln!(out, "hash table histogram:")?;
        write_rows(out, seen, perfect)
    }
}

/// The value to three places, or a dash.
fn or_none(searched: Option<f64>) -> String {
    searched.map_or_else(|| "-".to_owned(), |searched| format!("{searched:.3}"))
}

/// The lines of the histogram: up to 15 one for each size, and one for the rest.
fn write_rows(out: &mut fmt::Formatter<'_>, seen: &Histogram, perfect: &Perfect) -> fmt::Result {
    writeln!(
        out,
        "{:>5} {:>10} {:>11} {:>7}   {:>10} {:>7}  (perfect)",
        "size", "buckets", "items", "sum-pct", "buckets", "sum-pct"
    )?;
    let (mut buckets_left, mut items_left) = (seen.buckets, seen.items);
    let (mut perfect_left, mut perfect_below) = (seen.buckets as f64, 0.0);
    for size in 0..=PRINTED_MAX {
        let (buckets, expected) = (seen.buckets_of(size), perfect.buckets_of(size));
        buckets_left -= buckets;
        items_left -= size * buckets;
        perfect_left -= expected;
        perfect_below += size as f64 * expected;
        let below = share(seen.items - items_left, seen.items);
        writeln!(
            out,
            "{size:>5} {buckets:>10} {:>11} {:>7.0}   {expected:>10.0} {:>7.0}",
            size * buckets,
            100.0 * below,
            100.0 * perfect_below / seen.items.max(1) as f64
        )?;
    }
    writeln!(
        out,
        "{:>5} {buckets_left:>10} {items_left:>11} {:>7}   {:>10.0} {:>7}",
        format!(">{PRINTED_MAX}"),
        100,
        perfect_left.max(0.0),
        100
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's histogram 4: the buffer cache under mult-11, after the benchmark. (Its line for size 5 and its total
    /// of 2717 agree.)
    fn histogram_4() -> Histogram {
        let buckets = [14_302, 1555, 442, 73, 5, 3, 4];
        Histogram::of_sizes((0..).zip(buckets))
    }

    #[test]
    fn the_papers_histogram_4() {
        let seen = histogram_4();
        assert_eq!((seen.buckets(), seen.items()), (16_384, 2717));
        assert_eq!((seen.largest(), seen.used_buckets()), (6, 2082));
        let percentages: Vec<u64> = seen.rows(6).iter().map(|row| row.sum_pct as u64).collect();
        assert_eq!(percentages, [0, 57, 89, 97, 98, 99, 100]);
    }

    #[test]
    fn searches_by_hand() {
        // Buckets of 3, 1 and 0: hits cost 1 + 2 + 3 and 1; misses 2, 2, 2 and 0.
        let seen = Histogram::of_counts([3, 0, 1]);
        assert_eq!(seen.searched_hit(), 7.0 / 4.0);
        assert_eq!(seen.searched_miss(), 6.0 / 4.0);
        assert_eq!(seen.share_up_to_mean(), 1.0 / 4.0);
        assert_eq!(seen.used_buckets(), 2);
    }

    #[test]
    fn counts_above_and_below_the_printed_sizes() {
        let seen = Histogram::of_counts([0, 5, 300, 300, 70_000, 1]);
        assert_eq!(
            seen.sizes(),
            [(0, 1), (1, 1), (5, 1), (300, 2), (70_000, 1)]
        );
        assert_eq!(seen.rows(5).len(), 6 + 2);
        let text = seen.to_string();
        let last = text.lines().last().unwrap();
        let words: Vec<&str> = last.split_whitespace().collect();
        assert_eq!(words[..4], [">15", "3", "70600", "100"]);
        assert!(text.contains("largest bucket contains 70000 objects"));
    }

    #[test]
    fn an_empty_table_has_a_histogram() {
        let seen = Histogram::of_counts([0, 0]);
        assert_eq!((seen.items(), seen.largest()), (0, 0));
        assert_eq!((seen.searched_hit(), seen.searched_miss()), (0.0, 0.0));
        assert!(seen.to_string().contains("contains 0 objects"));
    }
}
