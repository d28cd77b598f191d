//! Index statistics: how full the buckets of a running engine's index are.

/// The kind of an index's buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketKind {
    /// The head of a chain of any length. Every search of a key looks at the items of one.
    #[default]
    Chain,
    /// A bucket of slots, with a tag in each. A key's item is in one of two buckets, and a search only looks at items
    /// whose tags match.
    Slots {
        /// Slots of a bucket.
        slots: u64,
        /// Bits of a tag.
        tag_bits: u32,
    },
}

/// Sizes of buckets: of all, or, in a large index, of a sample that is evenly spread. They are taken while the engine
/// runs, bucket by bucket, so not at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexHistogram {
    /// The kind of its buckets.
    pub bucket: BucketKind,
    /// Buckets that the index has.
    pub buckets: u64,
    /// Buckets that were looked at: fewer means that this is a sample.
    pub looked_at: u64,
    /// At `n`, how many of those hold `n` items.
    pub sizes: Vec<u64>,
}

impl IndexHistogram {
    /// Looks at about `sample` of `buckets` buckets, evenly spread; `size_of` returns the number of items in one.
    /// `phase`, any number, shifts the first one: parts of an index that each give a few buckets should not all give
    /// their first, which in a growing part is smaller than the last.
    pub fn take(
        buckets: u64,
        sample: u64,
        phase: u64,
        mut size_of: impl FnMut(u64) -> usize,
    ) -> Self {
        let step = (buckets / sample.max(1)).max(1);
        let mut sizes = Vec::new();
        let mut looked_at = 0;
        for bucket in (phase % step..buckets).step_by(step as usize) {
            let size = size_of(bucket);
            if sizes.len() <= size {
                sizes.resize(size + 1, 0);
            }
            sizes[size] += 1;
            looked_at += 1;
        }
        Self {
            bucket: BucketKind::Chain,
            buckets,
            looked_at,
            sizes,
        }
    }

    /// Adds the buckets of another part of the index.
    pub fn add(&mut self, other: &Self) {
        self.buckets += other.buckets;
        self.looked_at += other.looked_at;
        let len = self.sizes.len().max(other.sizes.len());
        self.sizes.resize(len, 0);
        for (sum, more) in self.sizes.iter_mut().zip(&other.sizes) {
            *sum += more;
        }
    }

    /// True if not every bucket was looked at.
    pub fn is_sample(&self) -> bool {
        self.looked_at < self.buckets
    }

    /// Items in the buckets that were looked at.
    pub fn items(&self) -> u64 {
        let sizes = self.sizes.iter().zip(0..);
        sizes.map(|(&buckets, size)| buckets * size).sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn all_buckets_or_an_even_sample() {
        let all = IndexHistogram::take(8, u64::MAX, 5, |bucket| bucket as usize % 3);
        assert_eq!(all.sizes, [3, 3, 2]);
        assert_eq!((all.items(), all.is_sample()), (7, false));
        let some = IndexHistogram::take(1 << 20, 1000, 77, |bucket| (bucket >> 19) as usize);
        assert!(some.is_sample() && some.looked_at.abs_diff(1000) < 100);
        assert!(some.sizes[0].abs_diff(some.sizes[1]) < 2);
        assert_eq!(IndexHistogram::take(4, 0, 9, |_| 1).looked_at, 1);
    }
}
