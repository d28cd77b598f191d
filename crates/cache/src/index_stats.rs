//! How full the buckets of a running engine's index are.

/// Sizes of buckets: of all, or, when the index is large, of some that lie evenly over it. Taken
/// while the engine runs, bucket by bucket, so not of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexHistogram {
    /// Buckets that the index has.
    pub buckets: u64,
    /// Buckets that were looked at: fewer means that this is a sample.
    pub looked_at: u64,
    /// At `n`, how many of those hold `n` items.
    pub sizes: Vec<u64>,
}

impl IndexHistogram {
    /// Looks at about `sample` of `buckets` buckets, evenly spread; `size_of` tells how many items
    /// one holds.
    pub fn take(buckets: u64, sample: u64, mut size_of: impl FnMut(u64) -> usize) -> Self {
        let step = (buckets / sample.max(1)).max(1);
        let mut sizes = Vec::new();
        let mut looked_at = 0;
        for bucket in (0..buckets).step_by(step as usize) {
            let size = size_of(bucket);
            if sizes.len() <= size {
                sizes.resize(size + 1, 0);
            }
            sizes[size] += 1;
            looked_at += 1;
        }
        Self {
            buckets,
            looked_at,
            sizes,
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
        let all = IndexHistogram::take(8, u64::MAX, |bucket| bucket as usize % 3);
        assert_eq!(all.sizes, [3, 3, 2]);
        assert_eq!((all.items(), all.is_sample()), (7, false));
        let some = IndexHistogram::take(1 << 20, 1000, |bucket| (bucket >> 19) as usize);
        assert!(some.is_sample() && some.looked_at.abs_diff(1000) < 100);
        assert!(some.sizes[0].abs_diff(some.sizes[1]) < 2);
        assert_eq!(IndexHistogram::take(4, 0, |_| 1).looked_at, 1);
    }
}
