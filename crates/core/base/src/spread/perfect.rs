//! The perfect hash: every key is in every bucket with the same probability. Then the size of a bucket follows
//! Poisson's distribution, with the mean size as its parameter (the limit of many buckets; from a hundred on the error
//! is below 1 %).
//!
//! In a table whose buckets have a fixed number of slots, a key that finds its bucket full goes to another one. With
//! cuckoo hashing that is the key's second bucket, or one at the end of a path of displaced items; under a perfect hash
//! it is any bucket with room, each with the same probability. So buckets fill as if keys came to each of them after
//! Poisson, with a parameter somewhat above the mean, and keys that come to a full bucket were not counted. The size is
//! the smaller of Poisson's number and the slots, and the parameter is the one that gives the right mean. That holds
//! for a table that was filled and never thinned; deletions, evictions and doublings leave a slightly different one.

/// The expected values of a perfect hash with so many items and buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perfect {
    items: u64,
    buckets: u64,
    /// The parameter of Poisson's distribution.
    parameter: f64,
    slots: Option<Slots>,
}

/// Buckets with slots.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slots {
    /// Slots in a bucket.
    count: u64,
    /// The number of different tags.
    tags: f64,
}

impl Perfect {
    /// The perfect hash of `items` items in `buckets` buckets.
    pub fn of(items: u64, buckets: u64) -> Self {
        Self {
            items,
            buckets,
            parameter: items as f64 / buckets.max(1) as f64,
            slots: None,
        }
    }

    /// The perfect hash of `items` items in `buckets` buckets of `slots` slots, each with a tag of `tag_bits` bits (1
    /// to 64). One value of the tag marks an empty slot. This is cuckoo hashing with two buckets a key.
    pub fn in_slots(items: u64, buckets: u64, slots: u64, tag_bits: u32) -> Self {
        let slots = Slots {
            count: slots,
            tags: f64::from(tag_bits.clamp(1, 64)).exp2() - 1.0,
        };
        let mut perfect = Self {
            slots: Some(slots),
            ..Self::of(items, buckets)
        };
        // The mean size rises with the parameter, up to the slots: it is found by bisection.
        let mean = perfect.mean();
        let (mut low, mut high) = (mean, 2.0 * mean + 64.0 * slots.count as f64);
        for _ in 0..64 {
            perfect.parameter = (low + high) / 2.0;
            match perfect.mean_in_slots(slots.count) < mean {
                true => low = perfect.parameter,
                false => high = perfect.parameter,
            }
        }
        perfect
    }

    /// The mean number of items in a bucket of `slots` slots: all slots minus the empty ones.
    fn mean_in_slots(&self, slots: u64) -> f64 {
        let empty: f64 = (0..slots)
            .map(|size| (slots - size) as f64 * self.poisson(size))
            .sum();
        slots as f64 - empty
    }

    /// Items a bucket.
    fn mean(&self) -> f64 {
        self.items as f64 / self.buckets.max(1) as f64
    }

    /// Probability that a bucket has this size.
    fn chance(&self, size: u64) -> f64 {
        match self.slots {
            Some(slots) if size > slots.count => 0.0,
            Some(slots) if size == slots.count => {
                let below: f64 = (0..size).map(|size| self.poisson(size)).sum();
                (1.0 - below).max(0.0)
            }
            _ => self.poisson(size),
        }
    }

    /// Poisson's probability of a number: e^-mean mean^size / size!.
    fn poisson(&self, size: u64) -> f64 {
        let mean = self.parameter;
        if mean == 0.0 {
            return if size == 0 { 1.0 } else { 0.0 };
        }
        // By logarithms: the power and the factorial of a large size are too large for a number.
        (size as f64 * mean.ln() - mean - libm::lgamma(size as f64 + 1.0)).exp()
    }

    /// Sizes outside of which not one of 2^32 buckets is expected: twelve standard deviations from the mean, and sixty
    /// for means so small that the deviations say little.
    fn sizes_around_mean(&self) -> (u64, u64) {
        if let Some(slots) = self.slots {
            return (0, slots.count);
        }
        let (mean, slack) = (self.mean(), 12.0 * self.mean().sqrt() + 60.0);
        ((mean - slack).max(0.0) as u64, (mean + slack) as u64)
    }

    /// Expected number of buckets of this size.
    pub fn buckets_of(&self, size: u64) -> f64 {
        self.chance(size) * self.buckets as f64
    }

    /// Share of the buckets that hold an item.
    pub fn used_share(&self) -> f64 {
        1.0 - self.chance(0)
    }

    /// The most probable size of the largest bucket: the greatest size for which at least half a bucket of this size or
    /// a greater one is expected.
    pub fn largest(&self) -> u64 {
        if self.items == 0 {
            return 0;
        }
        // Summed from above, where the terms are small, so that no precision is lost.
        let mut size = self.sizes_around_mean().1;
        let mut expected = 0.0;
        while size > 0 {
            expected += self.buckets_of(size);
            if expected >= 0.5 {
                break;
            }
            size -= 1;
        }
        size.min(self.items)
    }

    /// Share of the items that lie in buckets of the mean size, rounded up, or smaller.
    pub fn share_up_to_mean(&self) -> f64 {
        if self.items == 0 {
            return 0.0;
        }
        let most = self.items.div_ceil(self.buckets.max(1));
        let least = self.sizes_around_mean().0;
        let held: f64 = (least..=most)
            .map(|size| size as f64 * self.chance(size))
            .sum();
        (held / self.mean()).min(1.0)
    }

    /// Objects searched for a present item: itself, and half of the others of its bucket. With slots itself, and half
    /// of those that a miss would meet.
    pub fn searched_hit(&self) -> f64 {
        match self.items {
            0 => 0.0,
            _ if self.slots.is_some() => 1.0 + self.searched_miss() / 2.0,
            items => 1.0 + (items - 1) as f64 / (2.0 * self.buckets.max(1) as f64),
        }
    }

    /// Objects searched for an absent key: see [`Histogram::searched_miss`]. With slots, those in two buckets whose tag
    /// is the same by chance.
    ///
    /// [`Histogram::searched_miss`]: super::Histogram::searched_miss
    pub fn searched_miss(&self) -> f64 {
        if let Some(slots) = self.slots {
            return 2.0 * self.mean() / slots.tags;
        }
        self.items.saturating_sub(1) as f64 / self.buckets.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::Histogram;

    #[test]
    fn by_hand() {
        // One item a bucket: a share of e^-1 of the buckets is empty, as many hold one, half as many two.
        let perfect = Perfect::of(1000, 1000);
        let once = (-1.0_f64).exp();
        assert!((perfect.buckets_of(0) - 1000.0 * once).abs() < 1e-6);
        assert!((perfect.buckets_of(1) - 1000.0 * once).abs() < 1e-6);
        assert!((perfect.buckets_of(2) - 500.0 * once).abs() < 1e-6);
        assert!((perfect.used_share() - (1.0 - once)).abs() < 1e-9);
        assert!((perfect.share_up_to_mean() - once).abs() < 1e-9);
        assert_eq!(perfect.searched_hit(), 1.4995);
        assert_eq!(perfect.searched_miss(), 0.999);
    }

    #[test]
    fn the_papers_table() {
        // Histogram 3: 37,261 buffers in 16,384 buckets; the largest held 11, 2,034 were empty. A
        // perfect hash: 10, and 1,685.
        let perfect = Perfect::of(37_261, 16_384);
        assert!(
            (10..=11).contains(&perfect.largest()),
            "{}",
            perfect.largest()
        );
        assert!(
            (perfect.buckets_of(0) - 1685.0).abs() < 1.0,
            "{}",
            perfect.buckets_of(0)
        );
    }

    #[test]
    fn a_good_function_comes_near() {
        let hasher = crate::hash::KeyHasher::seeded(3);
        let mut counts = vec![0_u64; 4096];
        for number in 0..20_000_u64 {
            counts[(hasher.hash(&number.to_le_bytes()) & 4095) as usize] += 1;
        }
        let seen = Histogram::of_counts(counts);
        let perfect = Perfect::of(20_000, 4096);
        assert!((seen.searched_hit() / perfect.searched_hit() - 1.0).abs() < 0.02);
        assert!((seen.searched_miss() / perfect.searched_miss() - 1.0).abs() < 0.03);
        assert!((seen.share_up_to_mean() - perfect.share_up_to_mean()).abs() < 0.03);
        assert!(seen.largest().abs_diff(perfect.largest()) <= 4);
    }

    #[test]
    fn extremes_are_finite() {
        for (items, buckets) in [
            (0, 1),
            (0, 1 << 32),
            (1, 1),
            (1, 1 << 32),
            (1 << 30, 1),
            (1 << 30, 7),
        ] {
            let perfect = Perfect::of(items, buckets);
            assert!(perfect.largest() <= items);
            for share in [perfect.used_share(), perfect.share_up_to_mean()] {
                assert!(
                    (0.0..=1.0).contains(&share),
                    "{share} of {items} in {buckets}"
                );
            }
            assert!(perfect.searched_hit().is_finite() && perfect.searched_miss().is_finite());
        }
    }

    #[test]
    fn slots_hold_what_fits() {
        for (items, buckets) in [(10, 1000), (4000, 1000), (7600, 1000), (7999, 1000)] {
            let perfect = Perfect::in_slots(items, buckets, 8, 16);
            let all: f64 = (0..=8).map(|size| perfect.buckets_of(size)).sum();
            let held: f64 = (0..=8)
                .map(|size| size as f64 * perfect.buckets_of(size))
                .sum();
            assert!((all - buckets as f64).abs() < 1e-6, "{all}");
            assert!(
                (held / items as f64 - 1.0).abs() < 1e-6,
                "{held} of {items}"
            );
            assert_eq!(perfect.buckets_of(9), 0.0);
            assert!(perfect.largest() <= 8 && perfect.share_up_to_mean() <= 1.0);
        }
        let full = Perfect::in_slots(8000, 1000, 8, 16);
        assert!((full.buckets_of(8) - 1000.0).abs() < 1e-3);
        assert!((full.searched_miss() - 16.0 / 65_535.0).abs() < 1e-9);
        // An empty index, and no index.
        assert_eq!(Perfect::in_slots(0, 16, 8, 16).buckets_of(0), 16.0);
        assert_eq!(Perfect::in_slots(0, 0, 8, 16).largest(), 0);
    }
}
