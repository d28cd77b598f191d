//! Properties of every function, key and table size.

use nuthatch_base::spread::{Histogram, Perfect};
use nuthatch_hash_lab::distribution::ChiSquared;
use nuthatch_hash_lab::functions::{HashedKey, Registry, Sizes};
use nuthatch_hash_lab::key::{Block, Dentry, Inode, Numeric, Page};
use nuthatch_hash_lab::table::Table;
use proptest::prelude::*;

fn stays_inside<K: HashedKey + std::fmt::Debug>(key: K, buckets: u64, registry: &Registry) {
    for entry in registry.taking(K::KIND) {
        let buckets = match entry.sizes {
            Sizes::Any => buckets,
            Sizes::PowersOfTwo => buckets.next_power_of_two(),
        };
        let table = Table::new(buckets).unwrap();
        assert_eq!(entry.check(table), Ok(()));
        let function = K::function(entry).unwrap();
        let bucket = function.bucket(key, table);
        assert!(
            bucket < buckets,
            "{} of {key:?} in {buckets}: {bucket}",
            entry.name
        );
        assert_eq!(bucket, function.bucket(key, table), "{}", entry.name);
        if let Some(hash) = function.hash(key) {
            assert_eq!(bucket, table.cut(hash), "{}", entry.name);
        }
    }
}

proptest! {
    #[test]
    fn a_bucket_is_of_its_table(
        first in any::<u64>(),
        second in any::<u64>(),
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        buckets in prop_oneof![1..100_u64, 1..=1_u64 << 32, Just(1 << 32)],
    ) {
        let registry = Registry::new(first);
        let parts = [first, second];
        stays_inside(Page::from_parts(parts), buckets, &registry);
        stays_inside(Block::from_parts(parts), buckets, &registry);
        stays_inside(Dentry::from_parts(parts), buckets, &registry);
        stays_inside(Inode::from_parts(parts), buckets, &registry);
        stays_inside(first, buckets, &registry);
        stays_inside(&bytes[..], buckets, &registry);
    }

    #[test]
    fn a_histogram_adds_up(counts in prop::collection::vec(0..2000_u64, 1..300)) {
        let histogram = Histogram::of_counts(counts.iter().copied());
        prop_assert_eq!(histogram.buckets(), counts.len() as u64);
        prop_assert_eq!(histogram.items(), counts.iter().sum::<u64>());
        prop_assert_eq!(histogram.largest(), *counts.iter().max().unwrap());
        let rows = histogram.rows(15);
        prop_assert_eq!(rows.iter().map(|row| row.items).sum::<u64>(), histogram.items());
        prop_assert_eq!(rows.iter().map(|row| row.buckets).sum::<u64>(), histogram.buckets());
        prop_assert!(rows.is_sorted_by(|one, other| one.size < other.size && one.sum_pct <= other.sum_pct));
        // A hit looks at one object at least, and at no more than the largest bucket has.
        if histogram.items() > 0 {
            prop_assert!(histogram.searched_hit() >= 1.0);
            prop_assert!(histogram.searched_hit() <= histogram.largest() as f64);
            // A hit searches half of its bucket on average, so the two averages are related.
            let from_miss = 1.0 + histogram.searched_miss() / 2.0;
            prop_assert!((histogram.searched_hit() - from_miss).abs() < 1e-9 * from_miss);
        }
        let chi = ChiSquared::of(&histogram);
        prop_assert!(chi.value >= 0.0 && (0.0..=1.0).contains(&chi.p));
    }

    #[test]
    fn a_perfect_hash_adds_up(items in 0..100_000_u64, buckets in 1..10_000_u64) {
        let perfect = Perfect::of(items, buckets);
        let mean = items as f64 / buckets as f64;
        let sizes = 0..(mean + 20.0 * mean.sqrt() + 50.0) as u64;
        let all: f64 = sizes.clone().map(|size| perfect.buckets_of(size)).sum();
        let held: f64 = sizes.map(|size| size as f64 * perfect.buckets_of(size)).sum();
        prop_assert!((all - buckets as f64).abs() < 1e-6 * buckets as f64, "{all} buckets");
        prop_assert!((held - items as f64).abs() <= 1e-6 * items as f64, "{held} items");
    }
}
