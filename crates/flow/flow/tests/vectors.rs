//! Tables that differ only in their comparison return the same results for any operations.
#![cfg(not(loom))]

use nuthatch_flow::{Config, Entry, Eviction, FlowCache, Inserted, Layout, Vector};
use proptest::prelude::*;

/// An operation on a table.
#[derive(Clone, Debug)]
enum Step {
    Lookup(Vec<u64>),
    Insert(u64, u64),
    Remove(u64),
    Forget(u64),
}

/// Hashes of few buckets and few tags, so that many are equal; 0, the tag of empty slots, is one.
fn hash() -> impl Strategy<Value = u64> {
    let tag = prop::sample::select(vec![0, 1, 2, 0x7fff, 0x8000, 0xffff_u64]);
    (tag, 0..16_u64).prop_map(|(tag, bucket)| tag << 48 | tag << 32 | bucket)
}

fn step() -> impl Strategy<Value = Step> {
    let value = || prop::sample::select(vec![0, 1, 2, 0x8000, 0xffff_u64]);
    prop_oneof![
        3 => prop::collection::vec(hash(), 0..200).prop_map(Step::Lookup),
        20 => (hash(), value()).prop_map(|(hash, value)| Step::Insert(hash, value)),
        3 => hash().prop_map(Step::Remove),
        1 => value().prop_map(Step::Forget),
    ]
}

fn apply(cache: &mut FlowCache, step: &Step) -> Vec<Option<u64>> {
    match step {
        Step::Lookup(hashes) => {
            let mut values = vec![0; hashes.len()];
            let mut hits = vec![0; hashes.len().div_ceil(64)];
            cache.lookup_many(hashes, &mut values, &mut hits);
            let hit = |index: usize| hits[index / 64] >> (index % 64) & 1 == 1;
            let answers = values.iter().enumerate();
            answers
                .map(|(index, &value)| hit(index).then_some(value))
                .collect()
        }
        Step::Insert(hash, value) => {
            let inserted = cache.insert(*hash, *value).unwrap();
            let left = match inserted {
                Inserted::Filled => None,
                Inserted::Updated { old } => Some(old),
                Inserted::Evicted { value } => Some(value << 32),
            };
            vec![cache.lookup(*hash), left]
        }
        Step::Remove(hash) => vec![cache.remove(*hash)],
        Step::Forget(value) => vec![Some(cache.forget_value(*value))],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_comparisons_make_the_same_table(
        layout in prop::sample::select(Layout::ALL.to_vec()),
        eviction in prop::sample::select(Eviction::ALL.to_vec()),
        entry in prop::sample::select(Entry::ALL.to_vec()),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        prop_assume!(eviction.suits(layout));
        let config = Config::new(0).layout(layout).eviction(eviction).entry(entry).seed(1);
        let mut caches: Vec<_> = Vector::available()
            .map(|vector| config.clone().vector(vector).build().unwrap())
            .collect();
        for step in &steps {
            let (scalar, others) = caches.split_first_mut().unwrap();
            let expected = apply(scalar, step);
            for other in others {
                prop_assert_eq!(apply(other, step), &expected[..], "{}", other.config().vector);
            }
        }
        let expected = caches[0].stats();
        prop_assert!(caches.iter().all(|cache| cache.stats() == expected));
        prop_assert_eq!(caches[0].count(), expected.occupied());
    }
}
