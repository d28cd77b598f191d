//! Hit rates of the evictions on skewed and on uniform flows, and their steps in one bucket.
#![cfg(not(loom))]

use nuthatch_flow::{Config, Entry, Eviction, Layout};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

/// 512 buckets of four, as in the simulation that `hit_rates_on_skewed_flows_are_those_of_another_simulation` repeats.
const ENTRIES: u64 = 2048;

/// A hash for each number, with all bits used.
fn hash(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ mixed >> 32
}

/// The hit rate of the second half of `lookups` lookups, with misses inserted.
fn hit_rate(
    (layout, eviction): (Layout, Eviction),
    lookups: u64,
    mut draw: impl FnMut(&mut SmallRng) -> u64,
) -> f64 {
    let config = Config::new(ENTRIES).layout(layout).eviction(eviction);
    let mut cache = config.entry(Entry::Hash64).seed(1).build().unwrap();
    let mut random = SmallRng::seed_from_u64(2);
    let mut hits = 0;
    for number in 0..lookups {
        let key = draw(&mut random);
        if let Some(value) = cache.lookup(hash(key)) {
            assert_eq!(value, key);
            hits += u64::from(number >= lookups / 2);
        } else {
            cache.insert(hash(key), key).unwrap();
        }
    }
    hits as f64 / (lookups / 2) as f64
}

/// Zipf: the popularity of a key is proportional to 1 / rank^theta.
fn zipf(theta: f64, keys: f64) -> impl FnMut(&mut SmallRng) -> u64 {
    let ranks = Zipf::new(keys * ENTRIES as f64, theta).unwrap();
    move |random| ranks.sample(random) as u64
}

/// Zipf .99 with four keys a slot: the hit rates of an independent simulation, within half a point.
#[test]
fn hit_rates_on_skewed_flows_are_those_of_another_simulation() {
    let known = [
        (Layout::FourWay, [0.738, 0.769, 0.804, 0.790]),
        (Layout::Blp2x4, [0.746, 0.783, 0.811, 0.798]),
        (Layout::CuckooLite, [0.748, 0.784, 0.813, 0.800]),
    ];
    let evictions = [
        Eviction::Random,
        Eviction::Lru,
        Eviction::PBLRU,
        Eviction::PBLRU_AUTHORS,
    ];
    for (layout, rates) in known {
        for (eviction, known) in evictions.into_iter().zip(rates) {
            let rate = hit_rate((layout, eviction), 600_000, zipf(0.99, 4.0));
            assert!(
                (rate - known).abs() < 0.005,
                "{layout} {eviction}: {rate}, not {known}"
            );
        }
    }
}

/// At least 4 points more than random and 1.5 more than strict LRU among the candidates, for all insert
/// positions and swap probabilities.
#[test]
fn bubbles_gain_on_skewed_flows() {
    for layout in [
        Layout::FourWay,
        Layout::EightWay,
        Layout::CuckooLite,
        Layout::Blp2x4,
    ] {
        let rate = |eviction| hit_rate((layout, eviction), 600_000, zipf(0.99, 4.0));
        let (random, lru) = (rate(Eviction::Random), rate(Eviction::Lru));
        for eviction in [
            Eviction::PBLRU,
            Eviction::PBLRU_AUTHORS,
            Eviction::PBLRU_SHARED,
            Eviction::Bubble,
        ] {
            let rate = rate(eviction);
            let (over_random, over_lru) = (rate - random, rate - lru);
            println!("{layout} {eviction}: {rate:.4}, {over_random:+.4} and {over_lru:+.4}");
            assert!(
                over_random >= 0.04 && over_lru >= 0.015,
                "{layout} {eviction}"
            );
        }
        let dc = rate(Eviction::DcBubble);
        println!("{layout} dc-bubble: {dc:.4}, random {random:.4}, lru {lru:.4}");
        assert!(
            dc > random,
            "{layout}: {dc} of dc-bubble, {random} of random"
        );
    }
}

/// On uniform flows, where recency says nothing, no hits are lost either.
#[test]
fn bubbles_cost_nothing_on_uniform_flows() {
    let keys = ENTRIES * 95 / 100;
    let uniform = |eviction| {
        let draw = |random: &mut SmallRng| random.random_range(0..keys);
        hit_rate((Layout::Blp2x4, eviction), keys * 300, draw)
    };
    let random = uniform(Eviction::Random);
    for eviction in [
        Eviction::PBLRU,
        Eviction::PBLRU_AUTHORS,
        Eviction::PBLRU_SHARED,
        Eviction::Bubble,
    ] {
        let rate = uniform(eviction);
        println!("{eviction}: {rate:.4}, random {random:.4}");
        assert!(rate > random - 0.005, "{eviction}: {rate}, random {random}");
    }
}

/// A bubble queue step by step: one bucket, nothing random.
#[test]
fn a_bucket_is_a_queue() {
    let bubble = |eviction| {
        let config = Config::new(0).layout(Layout::FourWay).entry(Entry::Hash64);
        let mut cache = config.eviction(eviction).seed(1).build().unwrap();
        // Bucket 0: hashes are multiples of 8.
        for key in 1..=4 {
            cache.insert(8 * key, key).unwrap();
        }
        cache
    };
    let left = |eviction: Eviction, hits: &[u64], keys: &[u64]| -> Vec<u64> {
        let mut cache = bubble(eviction);
        for hit in hits {
            assert_eq!(cache.lookup(8 * hit), Some(*hit));
        }
        let evicted = keys
            .iter()
            .map(|key| match cache.insert(8 * key, *key).unwrap() {
                nuthatch_flow::Inserted::Evicted { value } => value,
                other => panic!("{other:?}"),
            });
        evicted.collect()
    };
    // The last one is evicted, and the newest one is last.
    assert_eq!(left(Eviction::Bubble, &[], &[5, 6]), [4, 5]);
    assert_eq!(left(Eviction::PBLRU, &[], &[5, 6]), [4, 5]);
    // 1 2 4 3 after the hit.
    assert_eq!(left(Eviction::Bubble, &[4], &[5]), [3]);
    // 1 4 2 3 after both.
    assert_eq!(left(Eviction::Bubble, &[4, 4], &[5]), [3]);
    // The first one cannot move further up.
    assert_eq!(left(Eviction::Bubble, &[1, 1], &[5]), [4]);
    // Second to last: 1 2 5 3, then 1 2 6 5.
    assert_eq!(left(Eviction::PBLRU_AUTHORS, &[], &[5, 6, 7]), [4, 3, 5]);
    // Without a hit since the last eviction the first one is evicted: 1, then 2 of 2 3 4 5.
    assert_eq!(left(Eviction::DcBubble, &[], &[5, 6]), [1, 2]);
    // A hit protects the first one once: 3 is evicted from 1 2 4 3, then the first one.
    assert_eq!(left(Eviction::DcBubble, &[4], &[5, 6]), [3, 1]);
    // The least recently used: 1 was hit, so 2.
    assert_eq!(left(Eviction::Lru, &[1], &[5, 6]), [2, 3]);
}

/// The hits of a batch take effect after all its lookups: a key moves up once, however many of its
/// packets are in the batch, and not at all if another key's hit has just moved it down.
#[test]
fn packets_of_one_batch_move_their_flow_up_once() {
    let evicted = |batch: &[u64], then: &[u64]| {
        let config = Config::new(0).layout(Layout::FourWay).entry(Entry::Hash64);
        let mut cache = config.eviction(Eviction::PBLRU).seed(1).build().unwrap();
        for key in 1..=4 {
            cache.insert(8 * key, key).unwrap();
        }
        let hashes: Vec<u64> = batch.iter().map(|key| 8 * key).collect();
        let (mut values, mut hits) = (vec![0; batch.len()], [0]);
        assert_eq!(
            cache.lookup_many(&hashes, &mut values, &mut hits),
            batch.len()
        );
        assert_eq!(values, batch);
        for key in then {
            assert_eq!(cache.lookup(8 * key), Some(*key));
        }
        match cache.insert(40, 5).unwrap() {
            nuthatch_flow::Inserted::Evicted { value } => value,
            other => panic!("{other:?}"),
        }
    };
    // 1 2 4 3, and then 1 2 3 4: a second move would have taken it out of reach.
    assert_eq!(evicted(&[4, 4, 4], &[3]), 4);
    // Two batches move it twice: 1 4 2 3, and then 1 4 3 2.
    assert_eq!(evicted(&[4], &[4, 3]), 2);
    // 1 3 2 4, and then 1 3 4 2.
    assert_eq!(evicted(&[3, 4], &[]), 2);
    // 1 2 4 3: the hit on 3 comes too late.
    assert_eq!(evicted(&[4, 3], &[]), 3);
}

/// As many moves are counted as a queue of one bucket makes, and none by an eviction that learns nothing from hits.
#[test]
fn moves_are_counted() {
    let moves = |eviction: Eviction| {
        let config = Config::new(0).layout(Layout::FourWay).entry(Entry::Hash64);
        let mut cache = config.eviction(eviction).seed(1).build().unwrap();
        for key in 1..=4 {
            cache.insert(8 * key, key).unwrap();
        }
        // The first key of the bucket cannot move.
        for key in [1, 2, 2, 4] {
            assert_eq!(cache.lookup(8 * key), Some(key));
        }
        cache.moves()
    };
    // 2 1 3 4, then 2 1 4 3.
    assert_eq!(moves(Eviction::PBLRU), 2);
    assert_eq!(moves(Eviction::DcBubble), 2);
    assert_eq!(moves(Eviction::Random), 0);
    assert_eq!(moves(Eviction::Lru), 0);
}

#[test]
fn moves_through_a_shared_handle_are_counted() {
    let config = Config::new(0).layout(Layout::FourWay).entry(Entry::Tag32);
    let cache = config
        .eviction(Eviction::PBLRU)
        .seed(1)
        .build_shared()
        .unwrap();
    let mut handle = cache.handle();
    for key in 1..=4_u64 {
        handle.insert(key << 40, key).unwrap();
    }
    for key in [1, 4, 4] {
        assert_eq!(handle.lookup(key << 40), Some(key));
    }
    assert_eq!(handle.moves(), 2);
}
