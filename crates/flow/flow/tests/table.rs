//! Tests of what every table must do, for each layout, eviction and entry.

mod invariants;

use nuthatch_flow::{
    Config, ConfigError, Entry, Eviction, FlowCache, InsertAt, Inserted, Layout, Probability,
};
use proptest::collection::vec;
use proptest::prelude::any;

/// Every combination that works.
fn configs(entries: u64) -> impl Iterator<Item = Config> {
    let pblru = Eviction::Pblru {
        insert: InsertAt::Last,
        swap: Probability::HALF,
    };
    Layout::ALL.into_iter().flat_map(move |layout| {
        let evictions = Eviction::ALL.into_iter().chain([pblru]);
        let suited = evictions.filter(move |eviction| eviction.suits(layout));
        suited.flat_map(move |eviction| {
            Entry::ALL.into_iter().map(move |entry| {
                let config = Config::new(entries).layout(layout).eviction(eviction);
                config.entry(entry).seed(1)
            })
        })
    })
}

/// A hash for each number, with all bits used.
fn hash(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ mixed >> 32
}

fn build(config: &Config) -> FlowCache {
    config
        .build()
        .unwrap_or_else(|error| panic!("{config:?}: {error}"))
}

#[test]
fn an_inserted_key_is_found_until_removed() {
    for config in configs(1 << 10) {
        let mut cache = build(&config);
        assert_eq!(cache.lookup(7), None);
        assert_eq!(cache.insert(7, 1), Ok(Inserted::Filled), "{config:?}");
        assert_eq!(cache.lookup(7), Some(1));
        assert_eq!(cache.insert(7, 2), Ok(Inserted::Updated { old: 1 }));
        assert_eq!(cache.peek(7), Some(2));
        assert_eq!(cache.remove(7), Some(2));
        assert_eq!((cache.lookup(7), cache.remove(7)), (None, None));
        let stats = cache.stats();
        assert_eq!((stats.lookups, stats.hits), (3, 1));
        assert_eq!((stats.filled, stats.updated, stats.removed), (1, 1, 1));
        assert_eq!((stats.occupied(), cache.count()), (0, 0));
    }
}

#[test]
fn values_and_hashes_of_zero_are_like_any_other() {
    for config in configs(64) {
        let mut cache = build(&config);
        for hash in [0, 1 << 16, u64::MAX] {
            cache.insert(hash, 0).unwrap();
            assert_eq!(cache.lookup(hash), Some(0), "{config:?}");
        }
    }
}

#[test]
fn inserts_never_fail_and_the_newest_is_there() {
    for config in configs(64) {
        let mut cache = build(&config);
        for number in 0..2000 {
            let value = number & 0xffff;
            cache.insert(hash(number), value).unwrap();
            assert_eq!(cache.lookup(hash(number)), Some(value), "{config:?}");
            assert_eq!(cache.stats().occupied(), cache.count());
        }
        let spare = config.layout.spare_buckets() * config.layout.slots();
        assert!(cache.count() <= cache.entries() + spare as u64);
        assert!(cache.stats().evicted > 1000, "{config:?}");
    }
}

#[test]
fn an_evicted_key_is_reported_and_gone() {
    for config in configs(64) {
        if config.entry == Entry::Tag16 {
            // Of 2000 keys some have the same tag, so the evicted number may still be found.
            continue;
        }
        let mut cache = build(&config);
        for number in 0..2000 {
            if let Inserted::Evicted { value } = cache.insert(hash(number), number).unwrap() {
                assert_ne!(value, number);
                assert_eq!(cache.peek(hash(value)), None, "{config:?}");
            }
        }
    }
}

#[test]
fn values_that_do_not_fit_are_refused_and_change_nothing() {
    for config in configs(64) {
        let max = config.entry.value_max();
        let mut cache = build(&config);
        cache.insert(1, max).unwrap();
        assert_eq!(cache.lookup(1), Some(max));
        let Some(wider) = max.checked_add(1) else {
            continue;
        };
        let error = cache.insert(1, wider).unwrap_err();
        assert_eq!((error.value, error.max), (wider, max));
        assert_eq!(cache.peek(1), Some(max));
    }
}

#[test]
fn batches_of_any_length_find_what_single_lookups_find() {
    for config in configs(256) {
        let mut cache = build(&config);
        let mut other = build(&config);
        for number in 0..300 {
            cache.insert(hash(number), number).unwrap();
            other.insert(hash(number), number).unwrap();
        }
        for keys in [0, 1, 15, 16, 17, 63, 64, 65, 128, 600] {
            let hashes: Vec<u64> = (0..keys).map(|n| hash(n * 7 % 600)).collect();
            let mut values = vec![u64::MAX; hashes.len()];
            let mut hits = vec![u64::MAX; hashes.len().div_ceil(64)];
            let found = cache.lookup_many(&hashes, &mut values, &mut hits);
            let mut expected = 0;
            for (index, &hash) in hashes.iter().enumerate() {
                let single = other.lookup(hash);
                let hit = hits[index / 64] >> (index % 64) & 1 == 1;
                assert_eq!(hit.then_some(values[index]), single, "{config:?}");
                assert_eq!(single.unwrap_or(0), values[index]);
                expected += usize::from(single.is_some());
            }
            assert_eq!(found, expected);
            if keys % 64 != 0 {
                assert_eq!(
                    hits[hits.len() - 1] >> (keys % 64),
                    0,
                    "bits after the last key"
                );
            }
        }
        assert_eq!(cache.stats(), other.stats());
    }
}

#[test]
fn prefetching_changes_no_answer_and_counts_nothing() {
    for config in configs(256) {
        let (mut cache, mut other) = (build(&config), build(&config));
        let hashes: Vec<u64> = (0..300).map(hash).collect();
        for &hash in &hashes {
            cache.prefetch(hash);
            assert_eq!(cache.insert(hash, 1), other.insert(hash, 1));
        }
        cache.prefetch_many(&hashes);
        cache.prefetch_many(&[]);
        for &hash in &hashes {
            cache.prefetch(!hash);
            assert_eq!(cache.lookup(hash), other.lookup(hash), "{config:?}");
        }
        assert_eq!(cache.stats(), other.stats());
    }
}

#[test]
#[should_panic(expected = "one bit for each key")]
fn too_few_bits_for_a_batch_panic() {
    let mut cache = build(&Config::new(64));
    cache.lookup_many(&[0; 65], &mut [0; 65], &mut [0; 1]);
}

#[test]
fn all_keys_of_a_deleted_rule_are_removed_at_once() {
    for config in configs(256) {
        let mut cache = build(&config);
        for number in 0..200 {
            cache.insert(hash(number), number % 3).unwrap();
        }
        let before = cache.count();
        let condemned = (0..200).filter(|n| cache.peek(hash(*n)) == Some(1)).count() as u64;
        let forgotten = cache.forget_value(1);
        assert!(forgotten <= condemned && forgotten > 0, "{config:?}");
        assert_eq!(cache.count(), before - forgotten);
        assert_eq!(cache.stats().occupied(), cache.count());
        assert!((0..200).all(|n| cache.peek(hash(n)) != Some(1)));
        assert_eq!(cache.clear(), before - forgotten);
        assert_eq!(cache.count(), 0);
    }
}

#[test]
fn sizes_are_rounded_up() {
    for layout in Layout::ALL {
        let entries = |asked| build(&Config::new(asked).layout(layout)).entries();
        let least = 8 * layout.slots() as u64;
        assert_eq!(entries(0), least);
        assert_eq!(entries(1), least);
        assert_eq!(entries(1000), 1024);
        assert_eq!(entries(1024), 1024);
    }
}

#[test]
fn combinations_that_do_not_work_are_clear_errors() {
    for layout in Layout::ALL {
        for eviction in Eviction::ALL {
            let built = Config::new(64).layout(layout).eviction(eviction).build();
            match built {
                Ok(_) => assert!(eviction.suits(layout)),
                Err(error @ ConfigError::Unsuited { .. }) => {
                    assert!(!eviction.suits(layout));
                    assert!(error.to_string().contains(layout.name()), "{error}");
                }
                Err(error) => panic!("{layout} {eviction}: {error}"),
            }
        }
    }
    let error = Config::new(u64::MAX).build().err().unwrap().to_string();
    assert!(error.contains("too many"), "{error}");
}

proptest::proptest! {
    #[test]
    fn any_bytes_make_a_sequence(bytes in vec(any::<u8>(), 0..4000)) {
        invariants::check(&bytes);
    }
}
