//! Tests of the library's interface, which use it as a program does.
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nuthatch::{Cache, CasOutcome, Error, Lifetime, RemovalCause};

fn cache() -> Cache {
    Cache::builder().memory_limit(16 << 20).build().unwrap()
}

#[test]
fn values_come_back_as_they_were_put() {
    let cache = cache();
    let mut into = b"old".to_vec();
    for len in [0, 1, 7, 8, 100, 8192, 8193, 100_000, 600_000, 1_000_000] {
        let value: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        cache.insert("k", &value).unwrap();
        assert_eq!(cache.get("k"), Some(value.clone()), "{len} bytes");
        assert!(cache.get_into("k", &mut into));
        assert_eq!(into, value);
        let lent = cache.get_with("k", |lent| (lent == value, lent.len()));
        assert_eq!(lent, Some((true, len)));
        #[cfg(feature = "bytes")]
        assert_eq!(cache.get_bytes("k").unwrap(), value);
        assert_eq!(cache.get_item("k").unwrap().value, value);
        assert_eq!(cache.remove("k"), Some(value));
        assert!(!cache.get_into("k", &mut into) && into.is_empty());
        assert_eq!(
            cache.get_with("k", |_| panic!("there is nothing to lend")),
            None::<()>
        );
        assert_eq!(cache.remove("k"), None);
    }
    cache.audit().unwrap();
}

/// Which types may be a key, and which may be a value.
#[test]
fn keys_and_values_are_whatever_has_bytes() {
    let cache = cache();
    cache.insert("k", "str").unwrap();
    assert_eq!(cache.get(b"k"), Some(b"str".to_vec()));
    let string = String::from("k");
    cache.insert(&string, b"array").unwrap();
    assert_eq!(cache.get(&string), Some(b"array".to_vec()));
    cache.insert(vec![b'k'], vec![1, 2, 3]).unwrap();
    assert_eq!(cache.get([b'k'].as_slice()), Some(vec![1, 2, 3]));
    cache.insert([b'k'], String::from("string")).unwrap();
    assert_eq!(
        cache.get(Box::<[u8]>::from(*b"k")),
        Some(b"string".to_vec())
    );
}

/// The closure is lent the value as it was, whatever it and other threads do to the item meanwhile.
#[test]
fn what_a_reader_is_lent_does_not_change() {
    let cache = cache();
    for len in [10, 100_000, 700_000] {
        let old = vec![1; len];
        cache.insert("k", &old).unwrap();
        let lent = cache.get_with("k", |lent| {
            cache.insert("k", vec![2; len]).unwrap();
            cache.invalidate_all();
            for number in 0..2000_u32 {
                cache
                    .insert(number.to_le_bytes(), vec![3; len / 10])
                    .unwrap();
            }
            assert_eq!(cache.get_with("k", |_| ()), None);
            lent == old
        });
        assert_eq!(lent, Some(true));
    }
    cache.audit().unwrap();
}

#[test]
fn every_operation_does_what_it_says() {
    let cache = cache();
    let always = Lifetime::Unlimited;
    assert!(!cache.replace("a", "0", always).unwrap());
    assert!(cache.add("a", "1", always).unwrap());
    assert!(!cache.add("a", "2", always).unwrap());
    assert!(cache.append("a", "9").unwrap());
    assert!(cache.prepend("a", "1").unwrap());
    assert_eq!(cache.get("a").unwrap(), b"119");
    assert_eq!(cache.incr("a", 881), Ok(Some(1000)));
    assert_eq!(cache.decr("a", 2000), Ok(Some(0)));
    assert_eq!(cache.incr("none", 1), Ok(None));
    cache.insert("text", "x").unwrap();
    assert_eq!(cache.incr("text", 1), Err(Error::NotNumeric));
    assert!(cache.contains_key("a") && !cache.contains_key("b"));
    assert!(cache.replace("a", "5", always).unwrap());
    assert_eq!(cache.remove("a"), Some(b"5".to_vec()));
    assert!(!cache.invalidate("a") && cache.invalidate("text"));
    assert!(!cache.append("a", "1").unwrap());
    assert_eq!(cache.entry_count(), 0);
}

#[test]
fn a_version_tells_whether_the_item_is_the_same() {
    let cache = cache();
    let swap = |version, value: &str| {
        let outcome = cache.compare_and_swap("k", version, value, Lifetime::Default);
        outcome.unwrap()
    };
    assert_eq!(swap(5, "1"), CasOutcome::Missing);
    cache.insert("k", "1").unwrap();
    let version = cache.get_item("k").unwrap().version;
    assert_eq!(swap(version, "2"), CasOutcome::Stored);
    assert_eq!(swap(version, "3"), CasOutcome::Changed);
    assert_eq!(cache.get("k").unwrap(), b"2");
}

/// Of all threads that remove an item exactly one gets its value, though others change it meanwhile.
#[test]
fn an_item_is_removed_once() {
    let cache = cache();
    let (stored, removed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (cache, stored, removed) = (&cache, &stored, &removed);
            scope.spawn(move || {
                for round in 0..20_000_usize {
                    if thread % 2 == 0 {
                        let value = (2 * round + thread / 2).to_string();
                        if cache.add("k", &value, Lifetime::Default).unwrap() {
                            stored.fetch_add(value.parse::<usize>().unwrap(), Ordering::Relaxed);
                        }
                    } else if let Some(value) = cache.remove("k") {
                        let value = String::from_utf8(value).unwrap();
                        removed.fetch_add(value.parse::<usize>().unwrap(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let left = cache.remove("k").map_or(0, |value| {
        String::from_utf8(value).unwrap().parse().unwrap()
    });
    assert_eq!(stored.into_inner(), removed.into_inner() + left);
    cache.audit().unwrap();
}

#[test]
fn bad_input_is_refused_and_changes_nothing() {
    let cache = cache();
    let large = vec![0; 2 << 20];
    assert_eq!(cache.insert("", "1"), Err(Error::KeyLength));
    assert_eq!(cache.insert([1; 251], "1"), Err(Error::KeyLength));
    assert_eq!(cache.append("", "1"), Err(Error::KeyLength));
    assert_eq!(cache.insert([1; 250], "1"), Ok(()));
    cache.insert("k", "old").unwrap();
    assert_eq!(cache.insert("k", &large), Err(Error::TooLarge));
    assert_eq!(cache.append("k", &large), Err(Error::TooLarge));
    assert_eq!(cache.get("k").unwrap(), b"old");
    // Keys that cannot be stored are never found.
    for key in [&[][..], &[1; 251]] {
        assert_eq!(cache.get(key), None);
        assert_eq!(cache.get_with(key, <[u8]>::len), None);
        assert_eq!(cache.get_item(key), None);
        assert_eq!(cache.remove(key), None);
        assert_eq!(cache.incr(key, 1), Ok(None));
        assert_eq!(cache.touch(key, Lifetime::Unlimited), Ok(false));
        assert!(!cache.contains_key(key) && !cache.invalidate(key));
        let values = cache.get_many(&[b"none", key, b"k", key]);
        assert_eq!(values, [None, None, Some(b"old".to_vec()), None]);
    }
}

#[test]
fn get_many_keeps_the_order_of_its_keys() {
    let cache = cache();
    for number in 0..1000_u32 {
        let value = number.to_string();
        cache.insert(number.to_le_bytes(), value).unwrap();
    }
    cache.insert(b"large", [7; 20_000]).unwrap();
    let keys: Vec<Vec<u8>> = (0..2000_u32)
        .rev()
        .map(|n| n.to_le_bytes().to_vec())
        .collect();
    let mut asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    asked.push(b"large");
    let values = cache.get_many(&asked);
    assert_eq!(values.len(), 2001);
    assert_eq!(values[2000].as_deref(), Some(&[7; 20_000][..]));
    for (number, value) in (0..2000_u32).rev().zip(&values) {
        let expected = (number < 1000).then(|| number.to_string().into_bytes());
        assert_eq!(*value, expected);
    }
}

/// Values of every length, keys that are none, and closures that use the cache or panic.
#[test]
fn a_batch_is_lent_in_the_order_of_its_keys() {
    let cache = cache();
    let values: Vec<Vec<u8>> = [0, 1, 8192, 8193, 20_000, 600_000]
        .map(|len| vec![len as u8; len])
        .to_vec();
    for value in &values {
        cache.insert(value.len().to_string(), value).unwrap();
    }
    let too_long = "k".repeat(251);
    let mut keys = vec![String::new(), too_long.clone()];
    for value in &values {
        keys.extend([value.len().to_string(), "none".into(), String::new()]);
    }
    keys.push(too_long);
    let expected: Vec<Option<Vec<u8>>> = keys.iter().map(|key| cache.get(key)).collect();
    assert_eq!(expected.iter().flatten().count(), values.len());

    let mut lent = Vec::new();
    cache.get_many_with(&keys, |index, value| {
        assert_eq!(index, lent.len());
        lent.push(value.map(<[u8]>::to_vec));
        // Another batch, whose buffer is not the one of this batch.
        cache.get_many_with(&["1", "none"], |index, inner| {
            assert_eq!(inner, [Some(&[1][..]), None][index]);
        });
        cache.insert("1", [1]).unwrap();
        assert_eq!(value, lent.last().unwrap().as_deref());
    });
    assert_eq!(lent, expected);

    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cache.get_many_with(&keys, |index, _| assert!(index < 3));
    }));
    assert!(panics.is_err());
    assert_eq!(cache.get_many(&keys), expected);
    cache.get_many_with(&[] as &[&str], |_, _| panic!("there is no key"));
    cache.audit().unwrap();
}

#[test]
fn iteration_meets_what_stays_exactly_once() {
    let cache = cache();
    let mut expected = HashMap::new();
    for number in 0..20_000_u32 {
        let value = number.to_string().into_bytes();
        cache.insert(number.to_le_bytes(), &value).unwrap();
        expected.insert(number.to_le_bytes().to_vec(), value);
    }
    cache.insert(b"large", [1; 50_000]).unwrap();
    expected.insert(b"large".to_vec(), vec![1; 50_000]);
    let mut met = HashMap::new();
    for (count, (key, value)) in cache.iter().enumerate() {
        // Churn beside it makes cuckoo moves and a growing index.
        let other = [b"other", &count.to_le_bytes()[..]].concat();
        cache.insert(other, b"churn").unwrap();
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
        .eviction_listener(move |removed| {
            let value = removed.value.unwrap();
            assert_eq!((removed.value_len, value.len()), (1000, 1000));
            assert_eq!(value[..4], removed.key[..4]);
            let heard = (removed.cause, removed.key.to_vec());
            listener.lock().unwrap().push(heard);
        })
        .build()
        .unwrap();
    for number in 0..10_000_u32 {
        let mut value = vec![0; 1000];
        value[..4].copy_from_slice(&number.to_le_bytes());
        cache.insert(number.to_le_bytes(), &value).unwrap();
    }
    let heard = heard.lock().unwrap();
    let stats = cache.stats();
    assert_eq!(heard.len() as u64, stats.evictions);
    assert_eq!(stats.entry_count + stats.evictions, 10_000);
    assert!(heard.iter().all(|(cause, _)| *cause == RemovalCause::Size));
    for (_, key) in heard.iter() {
        assert_eq!(cache.get(key), None);
    }
}

#[test]
fn a_listener_may_use_the_cache() {
    let slot: Arc<Mutex<Option<Cache>>> = Arc::default();
    let (inner, calls) = (Arc::clone(&slot), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    let cache = Cache::builder()
        .memory_limit(4 << 20)
        .eviction_listener(move |removed| {
            let cache = inner.lock().unwrap().clone().unwrap();
            assert_eq!(cache.get(removed.key), None);
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    *slot.lock().unwrap() = Some(cache.clone());
    for number in 0..10_000_u32 {
        cache.insert(number.to_le_bytes(), [0; 1000]).unwrap();
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
        .find(|number| cache.insert(number.to_le_bytes(), [0; 100]) == Err(Error::OutOfMemory));
    let first = refused.expect("the cache holds 100,000 items of 120 bytes in 4 MiB");
    for number in 0..first {
        assert!(cache.contains_key(number.to_le_bytes()));
    }
    assert_eq!(cache.stats().evictions, 0);
    // An item that is overwritten makes room for itself only if its memory is free first; items that were removed make
    // room. (One alone may not, if it is the index that is full: its slot may be out of reach.)
    for number in 0..100_u32 {
        assert!(cache.invalidate(number.to_le_bytes()));
    }
    assert_eq!(cache.insert(b"late", [0; 100]), Ok(()));
}

#[test]
fn the_limit_is_raised_as_far_as_was_said() {
    const MIB: usize = 1 << 20;
    let build = |most| {
        let builder = Cache::builder().memory_limit(8 * MIB);
        builder.memory_limit_max(most).build().unwrap()
    };
    // No maximum, and one below the limit: both mean the limit.
    for cache in [build(0), build(MIB)] {
        assert!(cache.set_memory_limit(12 * MIB).is_err());
        assert_eq!(cache.set_memory_limit(6 * MIB), Ok(()));
        assert_eq!(cache.set_memory_limit(8 * MIB), Ok(()));
    }
    let cache = build(32 * MIB);
    let fill = |key: &[u8]| {
        for number in 0..60_000_u32 {
            let key = [key, &number.to_le_bytes()].concat();
            cache.insert(key, [0; 500]).unwrap();
        }
        cache.stats()
    };
    let small = fill(b"small");
    assert!(small.memory_used <= 8 * MIB as u64);
    let refused = cache.set_memory_limit(40 * MIB).unwrap_err();
    assert_eq!(refused.asked(), 40 * MIB);
    let most = refused.most();
    assert!((32 * MIB..33 * MIB).contains(&most), "{refused}");
    cache.set_memory_limit(32 * MIB).unwrap();
    let large = fill(b"large");
    assert!(large.memory_used > 24 * MIB as u64 && large.entry_count > 3 * small.entry_count);
    cache.audit().unwrap();
}

#[test]
fn invalidate_all_and_the_sweep_give_memory_back() {
    let cache = cache();
    for number in 0..10_000_u32 {
        let hour = Duration::from_secs(3600);
        cache
            .insert_for(number.to_le_bytes(), [0; 100], hour)
            .unwrap();
    }
    cache.invalidate_all();
    assert_eq!(cache.get(1_u32.to_le_bytes()), None);
    cache.insert(b"new", b"1").unwrap();
    // The sweep is bounded a call: this many calls go round the arena more than once.
    for _ in 0..200 {
        cache.maintain(1000);
    }
    let stats = cache.stats();
    assert_eq!((stats.entry_count, stats.expirations), (1, 10_000));
    assert_eq!(cache.get("new").unwrap(), b"1");
    cache.audit().unwrap();
}

#[test]
fn the_maintenance_thread_ends_with_the_cache() {
    // The listener lives as long as the cache.
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let cache = Cache::builder()
        .maintenance_thread(true)
        .eviction_listener(move |_| assert_eq!(*held, ()))
        .build()
        .unwrap();
    cache
        .insert_for("k", "1", Duration::from_millis(1))
        .unwrap();
    while cache.stats().expirations == 0 {
        std::thread::yield_now();
    }
    drop(cache);
    while Arc::strong_count(&alive) > 1 {
        std::thread::yield_now();
    }
}

/// Reads are counted by whether they found a value, each once: alone, in a batch, and where the value is computed; by
/// threads that have ended, and from within a read. Nothing else is counted.
#[test]
fn reads_are_counted() {
    let cache = Cache::builder()
        .memory_limit(16 << 20)
        .time_to_idle(Duration::from_secs(60))
        .build()
        .unwrap();
    assert_eq!(cache.stats().hit_ratio(), None);
    cache.insert("a", "1").unwrap();
    cache.insert("large", vec![1; 100_000]).unwrap();
    let count = |what: &dyn Fn()| {
        let before = cache.stats();
        what();
        let after = cache.stats();
        (after.hits - before.hits, after.misses - before.misses)
    };
    assert_eq!(count(&|| drop(cache.get("a"))), (1, 0));
    assert_eq!(count(&|| drop(cache.get("b"))), (0, 1));
    assert_eq!(count(&|| _ = cache.get_with("large", <[u8]>::len)), (1, 0));
    assert_eq!(count(&|| _ = cache.get_with("b", <[u8]>::len)), (0, 1));
    assert_eq!(count(&|| drop(cache.get_item("a"))), (1, 0));
    assert_eq!(count(&|| drop(cache.get_item("b"))), (0, 1));
    // An empty key is no read: no store would take it.
    let keys = ["a", "", "b", "large", "a", "c"];
    assert_eq!(count(&|| drop(cache.get_many(&keys))), (3, 2));
    let nested = || cache.get_many_with(&["a", "b"], |_, _| drop(cache.get("a")));
    assert_eq!(count(&nested), (3, 1));
    let compute = |key| drop(cache.get_or_insert_with(key, Lifetime::Default, || "computed"));
    assert_eq!(count(&|| compute("d")), (0, 1));
    assert_eq!(count(&|| compute("d")), (1, 0));
    let gone = || std::thread::scope(|scope| drop(scope.spawn(|| cache.get("a")).join()));
    assert_eq!(count(&gone), (1, 0));
    let others = || {
        cache.insert("a", "2").unwrap();
        assert!(cache.contains_key("a") && cache.touch("a", Lifetime::Default).unwrap());
        assert_eq!(cache.incr("a", 1), Ok(Some(3)));
        assert_eq!(cache.iter().count(), 3);
        assert!(cache.remove("a").is_some());
    };
    assert_eq!(count(&others), (0, 0));
    let ratio = cache.stats().hit_ratio().unwrap();
    assert!((0.5..0.8).contains(&ratio), "{ratio}");
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
        cache.insert(number.to_le_bytes(), b"v").unwrap();
    }
    let before = cache.engine_stats();
    let keys: Vec<[u8; 4]> = (500..1500_u32).map(u32::to_le_bytes).collect();
    for key in &keys {
        cache.get(key);
    }
    let found = cache.get_many(&keys);
    assert_eq!(found.iter().flatten().count(), 500);
    let stats = cache.engine_stats();
    assert_eq!(stats.lookups - before.lookups, 2000);
    assert_eq!(stats.lookup_hits - before.lookup_hits, 1000);
    let false_tags = stats.false_tags - before.false_tags;
    let searched_hit = stats.searched_hit - before.searched_hit;
    let searched_miss = stats.searched_miss - before.searched_miss;
    assert_eq!(searched_hit + searched_miss, 1000 + false_tags);
}
