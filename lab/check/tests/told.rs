//! Tests of the statistics for operators: what the memory is used for, why items left and how old they were, and how
//! many hits more memory would have gained.

use std::sync::Arc;

use nuthatch_chained::{Chained, ChainedConfig, Locks, PolicyKind, clock, lru};
use nuthatch_check::conformance::Client;
use nuthatch_cuckoo::layout::{EightWay, EightWayClock, Variant};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::stats::{EngineStats, MORE_MEMORY};
use nuthatch_engine::{Engine, Handle, KeyHasher, Reply, Store};
use nuthatch_workload::distribution::{Distribution, Popularity};
use rand::SeedableRng;
use rand::rngs::SmallRng;

const KIB: usize = 1 << 10;

fn cuckoo<D: Variant>(kib: usize) -> Client {
    let config = CuckooConfig {
        memory_limit: kib * KIB,
        item_size_max: kib * KIB / 4,
        initial_items: Some(1000),
        hasher: KeyHasher::seeded(1),
        ..CuckooConfig::default()
    };
    let engine = Cuckoo::<D>::new(config).expect("there is address space");
    Client::new(Arc::new(engine).any())
}

fn chained(kib: usize, eviction: &'static PolicyKind) -> Client {
    let config = ChainedConfig {
        memory_limit: kib * KIB,
        item_size_max: kib * KIB / 4,
        locks: Locks::Buckets,
        eviction,
        initial_items: Some(1000),
        ..ChainedConfig::default()
    };
    let engine = Chained::new(config).expect("there is address space");
    Client::new(Arc::new(engine).any())
}

/// Each engine that reports what its memory is used for.
fn all(kib: usize) -> [Client; 4] {
    [
        cuckoo::<EightWay>(kib),
        cuckoo::<EightWayClock>(kib),
        chained(kib, &lru::KIND),
        chained(kib, &clock::KIND),
    ]
}

fn key(number: usize) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Lengths up to some thousands, and now and then one that lies in pieces.
fn len(number: usize) -> usize {
    match number % 97 {
        0 => 100_000,
        _ => number * 37 % 3000,
    }
}

fn set(client: &mut Client, number: usize, len: usize) {
    // Some have the wide header.
    let flags = if number.is_multiple_of(5) {
        u32::MAX
    } else {
        7
    };
    let value = vec![7; len];
    let store = Store {
        flags,
        ..Store::set(&value)
    };
    let reply = client.store(&key(number), store);
    assert!(matches!(reply, Reply::Stored(_)), "{reply:?}");
}

/// Asserts that the parts add up to the whole.
fn assert_sums(stats: &EngineStats) {
    let memory = stats.memory_use.expect("it tells");
    assert_eq!(memory.total(), stats.memory_used, "{memory:?}");
    let bytes = memory.values + memory.keys + memory.headers;
    assert_eq!(bytes, stats.item_bytes, "{memory:?}");
}

#[test]
fn the_memory_is_told_by_what_it_is_used_for() {
    for mut client in all(16 * KIB) {
        let name = client.engine.name();
        let (mut keys, mut values) = (0, 0);
        for number in 0..3000 {
            set(&mut client, number, len(number));
            (keys, values) = (keys + key(number).len(), values + len(number));
        }
        for number in (0..3000).step_by(3) {
            client.delete(&key(number));
            (keys, values) = (keys - key(number).len(), values - len(number));
        }
        for number in (1..3000).step_by(3) {
            set(&mut client, number, len(number + 7));
            values = values - len(number) + len(number + 7);
        }
        let stats = client.engine.stats();
        assert_eq!(stats.evictions, 0, "{name}");
        assert_sums(&stats);
        let memory = stats.memory_use.expect("it tells");
        assert_eq!(memory.keys, keys as u64, "{name}");
        assert_eq!(memory.values, values as u64, "{name}");
        assert!(memory.gaps > 0 && memory.padding > 0, "{name}: {memory:?}");
        // And when it is full, with ghosts.
        for number in 3000..30_000 {
            set(&mut client, number, len(number));
        }
        let stats = client.engine.stats();
        assert!(stats.evictions > 0, "{name}");
        assert_sums(&stats);
        let ghosts = stats.log.map_or(0, |log| log.ghost_bytes);
        assert_eq!(stats.memory_use.expect("it tells").ghosts, ghosts);
        client.audit();
    }
}

/// Each eviction has a reason and an age.
#[test]
fn evictions_are_told_by_reason_and_age() {
    for mut client in all(1024) {
        let name = client.engine.name();
        let one = 500;
        // All of these leave at the age of 100 seconds, except those that are used.
        for number in 0..1000 {
            set(&mut client, number, one);
        }
        for _ in 0..3 {
            (0..300).for_each(|number| drop(client.get(&key(number))));
        }
        client.wait(100);
        for number in 1000..6000 {
            set(&mut client, number, one);
        }
        let stats = client.engine.stats();
        assert!(stats.evictions > 2000, "{name}");
        let ages = &stats.evicted_ages;
        assert_eq!(ages.iter().sum::<u64>(), stats.evictions, "{name}");
        // Less than a second, and 64 to 128 seconds.
        assert_eq!(ages[0] + ages[7], stats.evictions, "{name}: {ages:?}");
        assert!((50..=1000).contains(&ages[7]), "{name}: {ages:?}");
        assert_eq!(stats.evicted_seconds, 100 * ages[7], "{name}");
        if let Some(log) = stats.log {
            let reasons = [log.evicted_probation, log.evicted_main, log.evicted_slots];
            assert_eq!(reasons.iter().sum::<u64>(), stats.evictions);
            assert!(log.evicted_probation > 0 && log.evicted_main > 0);
        }
    }
}

#[test]
fn what_was_flushed_is_told_from_what_has_expired() {
    for mut client in all(4 * KIB) {
        let name = client.engine.name();
        for number in 0..900 {
            let expiry = client.in_seconds(if number < 600 { 10 } else { 1000 });
            let store = Store {
                expiry,
                ..Store::set(b"value")
            };
            client.must_store(&key(number), store);
        }
        client.wait(20);
        client.engine.flush(client.now, client.now);
        for _ in 0..1000 {
            client.handle.maintain(client.now, 1000);
        }
        let stats = client.engine.stats();
        assert_eq!((stats.expired, stats.flushed), (900, Some(300)), "{name}");
        assert_eq!((stats.evictions, stats.items), (0, 0), "{name}");
        assert_sums(&stats);
    }
}

/// How many of `requests` requests hit, and the engine's estimates for more memory.
fn hits(percent: u64, requests: usize) -> (u64, [u64; MORE_MEMORY.len()]) {
    let kib = 2048 * percent as usize / 100;
    let mut client = cuckoo::<EightWay>(kib);
    let mut random = SmallRng::seed_from_u64(3);
    let zipf = Distribution::Zipf { theta: 0.9 };
    let popularity = Popularity::new(zipf, 100_000);
    let mut hits = 0;
    for _ in 0..requests {
        let number = popularity.draw(&mut random) as usize;
        if client.get(&key(number)).is_some() {
            hits += 1;
        } else {
            set(&mut client, number, 100);
        }
    }
    let log = client.engine.stats().log.expect("a log");
    (hits, log.more_hits)
}

/// The estimate is near the result of a run with that much more memory.
#[test]
fn more_memory_gives_about_what_was_estimated() {
    let requests = 400_000;
    let (with_less, estimates) = hits(100, requests);
    for (percent, estimate) in MORE_MEMORY.iter().zip(estimates) {
        let (with_more, _) = hits(100 + percent, requests);
        let gain = with_more - with_less;
        let near = gain * 2 / 3..=gain * 3 / 2;
        assert!(
            near.contains(&estimate),
            "{percent} % more: {estimate} estimated, {gain} gained"
        );
    }
}
