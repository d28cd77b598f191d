//! The library's face, used as a program would.

#![cfg(not(loom))]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use nuthatch::{Cache, CasOutcome, Departure, Error, LoadError};

fn cache() -> Cache {
    Cache::builder().memory_limit(16 << 20).build().unwrap()
}

#[test]
fn values_come_back_as_they_were_put() {
    let cache = cache();
    for len in [0, 1, 7, 8, 100, 8192, 8193, 100_000, 600_000, 1_000_000] {
        let value: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        cache.set(b"k", &value).unwrap();
        assert_eq!(cache.get(b"k").unwrap(), Some(value.clone()), "{len} bytes");
        let (copy, item) = cache.get_item(b"k").unwrap().unwrap();
        assert_eq!((copy, item.value_len), (value, len));
    }
}

#[test]
fn every_operation_does_what_it_says() {
    let cache = cache();
    assert!(!cache.replace(b"a", b"0", None).unwrap());
    assert!(cache.add(b"a", b"1", None).unwrap());
    assert!(!cache.add(b"a", b"2", None).unwrap());
    assert!(cache.append(b"a", b"9").unwrap());
    assert!(cache.prepend(b"a", b"1").unwrap());
    assert_eq!(cache.get(b"a").unwrap().unwrap(), b"119");
    assert_eq!(cache.incr(b"a", 881).unwrap(), Some(1000));
    assert_eq!(cache.decr(b"a", 2000).unwrap(), Some(0));
    assert_eq!(cache.incr(b"none", 1).unwrap(), None);
    cache.set(b"text", b"x").unwrap();
    assert_eq!(cache.incr(b"text", 1), Err(Error::NotNumeric));
    assert!(cache.contains(b"a").unwrap() && !cache.contains(b"b").unwrap());
    assert!(cache.delete(b"a").unwrap() && !cache.delete(b"a").unwrap());
    assert!(!cache.append(b"a", b"1").unwrap());
}

#[test]
fn cas_tells_what_happened() {
    let cache = cache();
    assert_eq!(cache.cas(b"k", b"1", 5, None).unwrap(), CasOutcome::Gone);
    cache.set(b"k", b"1").unwrap();
    let cas = cache.get_item(b"k").unwrap().unwrap().1.cas;
    assert_eq!(
        cache.cas(b"k", b"2", cas, None).unwrap(),
        CasOutcome::Stored
    );
    assert_eq!(
        cache.cas(b"k", b"3", cas, None).unwrap(),
        CasOutcome::Changed
    );
    assert_eq!(cache.get(b"k").unwrap().unwrap(), b"2");
}

#[test]
fn time_ends_items_and_touch_prolongs_them() {
    let cache = cache();
    cache.set_for(b"short", b"1", Duration::ZERO).unwrap();
    assert_eq!(cache.get(b"short").unwrap(), None);
    cache
        .set_for(b"long", b"1", Duration::from_secs(3600))
        .unwrap();
    assert!(cache.touch(b"long", None).unwrap());
    assert_eq!(
        cache.get_item(b"long").unwrap().unwrap().1.expiry,
        nuthatch::Expiry::Never
    );
    assert!(cache.touch(b"long", Some(Duration::ZERO)).unwrap());
    assert_eq!(cache.get(b"long").unwrap(), None);
    assert!(!cache.touch(b"long", None).unwrap());
}

#[test]
fn bad_input_is_refused_and_changes_nothing() {
    let cache = cache();
    assert_eq!(cache.set(b"", b"1"), Err(Error::KeyLength));
    assert_eq!(cache.get(&[1; 251]), Err(Error::KeyLength));
    assert!(cache.set(&[1; 250], b"1").is_ok());
    cache.set(b"k", b"old").unwrap();
    assert_eq!(cache.set(b"k", &vec![0; 2 << 20]), Err(Error::TooLarge));
    assert_eq!(cache.append(b"k", &vec![0; 2 << 20]), Err(Error::TooLarge));
    assert_eq!(cache.get(b"k").unwrap().unwrap(), b"old");
    assert!(cache.multi_get(&[b"k", b""]).is_err());
    assert!(Cache::builder().memory_limit(1).build().is_err());
    assert!(Cache::builder().item_size_max(2 << 30).build().is_err());
}

#[test]
fn multi_get_keeps_the_order_of_its_keys() {
    let cache = cache();
    for number in 0..1000_u32 {
        cache
            .set(&number.to_le_bytes(), number.to_string().as_bytes())
            .unwrap();
    }
    cache.set(b"large", &[7; 20_000]).unwrap();
    let keys: Vec<Vec<u8>> = (0..2000_u32)
        .rev()
        .map(|n| n.to_le_bytes().to_vec())
        .collect();
    let mut asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    asked.push(b"large");
    let values = cache.multi_get(&asked).unwrap();
    assert_eq!(values.len(), 2001);
    assert_eq!(values[2000].as_deref(), Some(&[7; 20_000][..]));
    for (number, value) in (0..2000_u32).rev().zip(&values) {
        let expected = (number < 1000).then(|| number.to_string().into_bytes());
        assert_eq!(*value, expected);
    }
}

#[test]
fn exactly_one_caller_computes() {
    let cache = cache();
    for round in 0..50_u32 {
        let (computed, barrier) = (AtomicU32::new(0), Barrier::new(6));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    barrier.wait();
                    let value = cache.get_or_insert_with(&round.to_le_bytes(), None, || {
                        computed.fetch_add(1, Ordering::Relaxed);
                        b"value".to_vec()
                    });
                    assert_eq!(value.unwrap(), b"value");
                });
            }
        });
        assert_eq!(computed.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_failed_computation_lets_another_try() {
    let cache = cache();
    let failed = cache.try_get_or_insert_with(b"k", None, || Err::<Vec<u8>, _>("no"));
    assert_eq!(failed, Err(LoadError::Load("no")));
    let (attempts, barrier) = (AtomicU32::new(0), Barrier::new(4));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    cache.get_or_insert_with(b"p", None, || {
                        assert!(
                            attempts.fetch_add(1, Ordering::Relaxed) > 0,
                            "the first panics"
                        );
                        b"second".to_vec()
                    })
                }));
                assert!(outcome.is_err() || outcome.unwrap().unwrap() == b"second");
            });
        }
    });
    assert_eq!(attempts.load(Ordering::Relaxed), 2);
}

#[test]
fn iteration_meets_what_stays_exactly_once() {
    let cache = cache();
    let mut expected = HashMap::new();
    for number in 0..20_000_u32 {
        let value = number.to_string().into_bytes();
        cache.set(&number.to_le_bytes(), &value).unwrap();
        expected.insert(number.to_le_bytes().to_vec(), value);
    }
    cache.set(b"large", &[1; 50_000]).unwrap();
    expected.insert(b"large".to_vec(), vec![1; 50_000]);
    let mut met = HashMap::new();
    for (count, (key, value)) in cache.iter().enumerate() {
        // Churn beside it makes cuckoo moves and a growing index.
        let other = [b"other", &count.to_le_bytes()[..]].concat();
        cache.set(&other, b"churn").unwrap();
        if !key.starts_with(b"other") {
            assert_eq!(met.insert(key, value), None, "met twice");
        }
    }
    assert_eq!(met, expected);
}

#[test]
fn the_listener_hears_of_every_eviction() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    let cache = Cache::builder()
        .memory_limit(4 << 20)
        .eviction_listener(move |why, key, item, value| {
            assert_eq!((item.value_len, value.len()), (1000, 1000));
            assert_eq!(value[..4], key[..4]);
            listener.lock().unwrap().push((why, key.to_vec()));
        })
        .build()
        .unwrap();
    for number in 0..10_000_u32 {
        let mut value = vec![0; 1000];
        value[..4].copy_from_slice(&number.to_le_bytes());
        cache.set(&number.to_le_bytes(), &value).unwrap();
    }
    let heard = heard.lock().unwrap();
    let stats = cache.stats();
    assert_eq!(heard.len() as u64, stats.evictions);
    assert_eq!(stats.items + stats.evictions, 10_000);
    assert!(heard.iter().all(|(why, _)| *why == Departure::Evicted));
    for (_, key) in heard.iter() {
        assert_eq!(cache.get(key).unwrap(), None);
    }
}

#[test]
fn a_listener_may_use_the_cache() {
    let slot: Arc<Mutex<Option<Cache>>> = Arc::default();
    let (inner, calls) = (Arc::clone(&slot), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    let cache = Cache::builder()
        .memory_limit(4 << 20)
        .eviction_listener(move |_, key, _, _| {
            let cache = inner.lock().unwrap().clone().unwrap();
            assert_eq!(cache.get(key).unwrap(), None);
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    *slot.lock().unwrap() = Some(cache.clone());
    for number in 0..10_000_u32 {
        cache.set(&number.to_le_bytes(), &[0; 1000]).unwrap();
    }
    assert!(calls.load(Ordering::Relaxed) > 1000);
    // Breaks the circle: the cache holds the listener, which holds the cache.
    *slot.lock().unwrap() = None;
}

#[test]
fn without_eviction_a_full_cache_refuses() {
    let cache = Cache::builder()
        .memory_limit(4 << 20)
        .evict(false)
        .build()
        .unwrap();
    let refused = (0..100_000_u32)
        .find(|number| cache.set(&number.to_le_bytes(), &[0; 100]) == Err(Error::OutOfMemory));
    let first = refused.expect("the cache holds 100,000 items of 120 bytes in 4 MiB");
    for number in 0..first {
        assert!(cache.contains(&number.to_le_bytes()).unwrap());
    }
    assert_eq!(cache.stats().evictions, 0);
    // An item that is overwritten makes room for itself only if its memory is free first; one that
    // was removed does.
    assert!(cache.delete(&0_u32.to_le_bytes()).unwrap());
    assert_eq!(cache.set(b"late", &[0; 100]), Ok(()));
}

#[test]
fn the_limit_is_raised_as_far_as_was_said() {
    const MIB: usize = 1 << 20;
    let build = |most| {
        let builder = Cache::builder().memory_limit(8 * MIB);
        builder.memory_limit_max(most).build().unwrap()
    };
    // Nothing said, and less than the limit: the limit.
    for cache in [build(0), build(MIB)] {
        assert!(cache.set_memory_limit(12 * MIB).is_err());
        assert_eq!(cache.set_memory_limit(6 * MIB), Ok(()));
        assert_eq!(cache.set_memory_limit(8 * MIB), Ok(()));
    }
    let cache = build(32 * MIB);
    let fill = |key: &[u8]| {
        for number in 0..60_000_u32 {
            let key = [key, &number.to_le_bytes()].concat();
            cache.set(&key, &[0; 500]).unwrap();
        }
        cache.stats()
    };
    let small = fill(b"small");
    assert!(small.memory_used <= 8 * MIB as u64);
    let refused = cache.set_memory_limit(40 * MIB).unwrap_err();
    assert!(refused.contains("can be raised to 32 MiB"), "{refused}");
    cache.set_memory_limit(32 * MIB).unwrap();
    let large = fill(b"large");
    assert!(large.memory_used > 24 * MIB as u64 && large.items > 3 * small.items);
    nuthatch::Engine::audit(&**cache.engine()).unwrap();
}

#[test]
fn clear_and_the_sweep_give_memory_back() {
    let cache = cache();
    for number in 0..10_000_u32 {
        cache
            .set_for(&number.to_le_bytes(), &[0; 100], Duration::from_secs(3600))
            .unwrap();
    }
    cache.clear();
    assert_eq!(cache.get(&1_u32.to_le_bytes()).unwrap(), None);
    cache.set(b"new", b"1").unwrap();
    // The sweep is bounded a call: this many calls go round the arena more than once.
    for _ in 0..200 {
        cache.maintain(1000);
    }
    let stats = cache.stats();
    assert_eq!((stats.items, stats.expired), (1, 10_000));
    assert_eq!(cache.get(b"new").unwrap().unwrap(), b"1");
    nuthatch::Engine::audit(&**cache.engine()).unwrap();
}

#[test]
fn the_maintenance_thread_ends_with_the_cache() {
    let cache = Cache::builder().maintenance_thread(true).build().unwrap();
    cache.set_for(b"k", b"1", Duration::from_millis(1)).unwrap();
    while cache.stats().expired == 0 {
        std::thread::yield_now();
    }
    let weak = Arc::downgrade(cache.engine());
    drop(cache);
    while weak.upgrade().is_some() {
        std::thread::yield_now();
    }
}

/// What `stats hash` shows: each search is counted once, alone or in a batch, and a lookup that finds its
/// key's tag looks at no other item, but for the few that share the tag.
#[test]
fn searches_are_counted() {
    let cache = Cache::builder()
        .memory_limit(64 << 20)
        .hash_seed(1)
        .build()
        .unwrap();
    for number in 0..1000_u32 {
        cache.set(&number.to_le_bytes(), b"v").unwrap();
    }
    let before = cache.stats();
    let keys: Vec<[u8; 4]> = (500..1500_u32).map(u32::to_le_bytes).collect();
    for key in &keys {
        cache.get(key).unwrap();
    }
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let found = cache.multi_get(&keys).unwrap();
    assert_eq!(found.iter().flatten().count(), 500);
    let stats = cache.stats();
    assert_eq!(stats.lookups - before.lookups, 2000);
    assert_eq!(stats.lookup_hits - before.lookup_hits, 1000);
    let false_tags = stats.false_tags - before.false_tags;
    let searched_hit = stats.searched_hit - before.searched_hit;
    let searched_miss = stats.searched_miss - before.searched_miss;
    assert_eq!(searched_hit + searched_miss, 1000 + false_tags);
}
