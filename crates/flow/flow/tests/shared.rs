//! Tables that threads share, with one thread and with many; and statistics that another thread reads.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use nuthatch_flow::{
    Config, ConfigError, Entry, Eviction, FiveTuple, FlowHandle, FlowTable, Inserted, KeyHasher,
    Layout, Stats, StatsReader,
};

/// A hash for each number, with all bits used.
fn hash(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ mixed >> 32
}

/// Every combination that threads can share.
fn configs(entries: u64) -> impl Iterator<Item = Config> {
    Layout::ALL.into_iter().flat_map(move |layout| {
        let evictions = Eviction::ALL.into_iter().chain([Eviction::PBLRU_SHARED]);
        evictions
            .map(move |eviction| Config::new(entries).layout(layout).eviction(eviction))
            .filter(|config| config.validate_shared().is_ok())
            .flat_map(|config| {
                [Entry::Tag16, Entry::Tag32].map(|e| config.clone().entry(e).seed(1))
            })
    })
}

#[test]
fn one_thread_finds_what_it_finds_in_an_exclusive_table() {
    for config in configs(256) {
        let shared = config.build_shared().unwrap();
        // Its first handle has the random numbers of an exclusive table with the next seed.
        let mut alone = config.clone().seed(2).build().unwrap();
        let mut handle = shared.handle();
        for number in 0..3000_u64 {
            let (hash, value) = (hash(number * number % 700), number & 0xffff);
            let found = handle.lookup(hash);
            assert_eq!(found, alone.lookup(hash), "{config:?}");
            match number % 11 {
                0 => assert_eq!(handle.remove(hash), alone.remove(hash)),
                1 => assert_eq!(handle.forget_value(value), alone.forget_value(value)),
                _ => assert_eq!(handle.insert(hash, value), alone.insert(hash, value)),
            }
        }
        assert_eq!(shared.stats(), alone.stats());
        assert_eq!(
            (shared.count(), shared.stats().occupied()),
            (alone.count(), alone.count())
        );
        drop(handle);
        assert_eq!(
            shared.stats(),
            alone.stats(),
            "the counts of a handle outlive it"
        );
        let mut handle = shared.handle();
        assert_eq!(handle.clear(), alone.clear());
        assert_eq!(shared.count(), 0);
    }
}

#[test]
fn what_cannot_be_shared_is_a_clear_error() {
    for eviction in [Eviction::Lru, Eviction::DcBubble] {
        let error = Config::new(64)
            .eviction(eviction)
            .build_shared()
            .err()
            .unwrap();
        assert!(matches!(error, ConfigError::EvictionNotShared(_)));
        assert!(error.to_string().contains(eviction.name()), "{error}");
    }
    let error = Config::new(64)
        .entry(Entry::Hash64)
        .build_shared()
        .err()
        .unwrap();
    assert!(matches!(error, ConfigError::EntryNotShared(_)));
    assert!(error.to_string().contains("64+64"), "{error}");
}

/// Multiplier of the operations of a stress run: NUTHATCH_SOAK if that is set.
fn soak() -> u64 {
    let wanted = std::env::var("NUTHATCH_SOAK").ok();
    wanted.and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Reads some residents over and over, alone and in batches: each must always be found, with a value that never goes
/// back.
fn read_residents(handle: &mut FlowHandle, residents: &[u64], done: &AtomicBool) -> u64 {
    let mut last = vec![0; residents.len()];
    let (mut values, mut hits) = (
        vec![0; residents.len()],
        vec![0; residents.len().div_ceil(64)],
    );
    let mut rounds = 0;
    while !done.load(Ordering::Acquire) || rounds == 0 {
        let found = handle.lookup_many(residents, &mut values, &mut hits);
        assert_eq!(found, residents.len(), "a resident was missed in a batch");
        for (index, &hash) in residents.iter().enumerate() {
            assert!(values[index] >= last[index], "a value went back");
            last[index] = handle.lookup(hash).expect("a resident was missed");
            assert!(last[index] >= values[index], "a value went back");
        }
        rounds += 1;
    }
    rounds
}

/// Keys that are never removed nor evicted are never missed while every hit moves an entry up, and their
/// values never go back while one writer counts them up.
#[test]
fn residents_are_never_missed_while_keys_move_up() {
    for layout in [
        Layout::EightWay,
        Layout::CuckooLite,
        Layout::Blp2x4,
        Layout::Blp2x8,
    ] {
        for entry in [Entry::Tag16, Entry::Tag32] {
            let config = Config::new(64)
                .layout(layout)
                .entry(entry)
                .eviction(Eviction::PBLRU_AUTHORS);
            let cache = config.seed(3).build_shared().unwrap();
            let mut writer = cache.handle();
            // Inserts keys only as long as they find an empty slot, so that none is evicted.
            let mut residents = Vec::new();
            for number in 0.. {
                match writer.insert(hash(number), 0).unwrap() {
                    Inserted::Filled => residents.push(hash(number)),
                    Inserted::Updated { .. } => {}
                    Inserted::Evicted { .. } => break,
                }
            }
            // The last insert evicted another key.
            residents.retain(|&hash| writer.lookup(hash).is_some());
            let done = AtomicBool::new(false);
            let rounds = AtomicU64::new(0);
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let mut handle = cache.handle();
                        let read = read_residents(&mut handle, &residents, &done);
                        rounds.fetch_add(read, Ordering::Relaxed);
                    });
                }
                for value in 1..=2000 * soak().min(30) {
                    for &hash in &residents {
                        let inserted = writer.insert(hash, value).unwrap();
                        assert_eq!(inserted, Inserted::Updated { old: value - 1 });
                    }
                }
                done.store(true, Ordering::Release);
            });
            assert!(rounds.into_inner() >= 2);
            assert_eq!(cache.stats().evicted, 1);
        }
    }
}

/// A key's values are made of its number, so that the value of another key is recognised.
#[test]
fn no_reader_ever_gets_the_value_of_another_key() {
    for layout in Layout::ALL {
        let eviction = if layout == Layout::Window {
            Eviction::Random
        } else {
            Eviction::PBLRU_AUTHORS
        };
        let config = Config::new(128)
            .layout(layout)
            .entry(Entry::Tag32)
            .eviction(eviction);
        let cache = config.seed(4).build_shared().unwrap();
        let keys = 1000;
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for reader in 0..2 {
                let (cache, done) = (&cache, &done);
                scope.spawn(move || {
                    let mut handle = cache.handle();
                    let hashes: Vec<u64> = (0..keys).map(hash).collect();
                    let mut values = vec![0; hashes.len()];
                    let mut hits = vec![0; hashes.len().div_ceil(64)];
                    while !done.load(Ordering::Acquire) {
                        handle.lookup_many(&hashes, &mut values, &mut hits);
                        for number in 0..hashes.len() {
                            let hit = hits[number / 64] >> (number % 64) & 1 == 1;
                            assert!(!hit || values[number] >> 16 == number as u64);
                        }
                        if reader == 1 {
                            let value = handle.lookup(hash(7));
                            assert!(value.is_none_or(|value| value >> 16 == 7));
                        }
                    }
                });
            }
            // Two writers: they exclude each other where they meet.
            let second = scope.spawn(|| churn(&mut cache.handle(), keys, 5));
            churn(&mut cache.handle(), keys, 6);
            second.join().unwrap();
            done.store(true, Ordering::Release);
        });
        assert_eq!(cache.count(), cache.stats().occupied());
    }
}

fn churn(handle: &mut FlowHandle, keys: u64, seed: u64) {
    for step in 0..50_000 * soak().min(30) {
        let number = hash(step ^ seed << 40) % keys;
        match step % 8 {
            0 => drop(handle.remove(hash(number))),
            1 if step % 5000 == 1 => drop(handle.forget(|value| value >> 16 == number)),
            _ => drop(handle.insert(hash(number), number << 16 | step & 0xffff)),
        }
    }
}

/// Reads until the owner is done, and returns what it read last. Counters never go back, and there
/// are never more hits than lookups. `changes` tells how often it read something new.
fn watch(reader: &StatsReader, done: &AtomicBool, changes: &AtomicU64) -> Stats {
    let mut before = Stats::default();
    loop {
        // Acquire: pairs with the owner's Release, so that all that it counted is read below.
        let last = done.load(Ordering::Acquire);
        let now = reader.stats();
        assert!(now.hits <= now.lookups);
        for (before, now) in [
            (before.lookups, now.lookups),
            (before.hits, now.hits),
            (before.filled, now.filled),
            (before.updated, now.updated),
            (before.evicted, now.evicted),
            (before.removed, now.removed),
            (before.forgotten, now.forgotten),
        ] {
            assert!(before <= now, "{before} and then {now}");
        }
        changes.fetch_add(u64::from(before != now), Ordering::Relaxed);
        before = now;
        if last {
            return now;
        }
    }
}

/// Runs `step` in this thread and a reader in another, until the reader saw the counters change 100
/// times; returns what it saw last.
fn watched(reader: &StatsReader, mut step: impl FnMut(u64)) -> Stats {
    let (done, changes) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(reader, &done, &changes));
        let mut number = 0;
        while number < 5000 || changes.load(Ordering::Relaxed) < 100 && !watcher.is_finished() {
            step(number);
            number += 1;
        }
        done.store(true, Ordering::Release);
        watcher.join().unwrap()
    })
}

#[test]
fn another_thread_reads_the_statistics_of_a_table_in_use() {
    for entry in Entry::ALL {
        let config = Config::new(256).eviction(Eviction::PBLRU).entry(entry);
        let mut cache = config.seed(1).build().unwrap();
        let reader = cache.stats_reader();
        let (mut values, mut hits) = ([0; 32], [0; 1]);
        let read = watched(&reader, |number| {
            let hash = hash(number % 500);
            match number % 16 {
                0 => drop(cache.remove(hash)),
                1 if number % 1000 == 1 => drop(cache.forget_value(number % 7)),
                2 => drop(cache.lookup_many(&[hash; 32], &mut values, &mut hits)),
                3..8 => drop(cache.lookup(hash)),
                _ => drop(cache.insert(hash, number % 7)),
            }
        });
        assert_eq!(read, cache.stats());
        assert!(
            read.hits > 0 && read.evicted > 0 && read.forgotten > 0,
            "{read:?}"
        );
        drop(cache);
        assert_eq!(reader.stats(), read, "a reader outlives its table");
    }
}

#[test]
fn another_thread_reads_the_statistics_of_a_flow_table_in_use() {
    let mut table = FlowTable::new(&Config::new(256).seed(1), KeyHasher::seeded(1)).unwrap();
    let flow = |number: u64| FiveTuple {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        source_port: (number % 500) as u16,
        destination_port: 443,
        protocol: 6,
    };
    let reader = table.stats_reader();
    let (mut values, mut hits) = ([0; 32], [0; 1]);
    let read = watched(&reader, |number| {
        let flow = flow(number);
        match number % 16 {
            0 => drop(table.remove(&flow)),
            1 if number % 1000 == 1 => drop(table.forget_value(number % 7)),
            2 => drop(table.lookup_many(&[flow; 32], &mut values, &mut hits)),
            3..8 => drop(table.lookup(&flow)),
            _ => drop(table.insert(&flow, number % 7)),
        }
    });
    assert_eq!(read, table.stats());
    assert_eq!(read.occupied(), table.iter().count() as u64);
    assert!(
        read.hits > 0 && read.evicted > 0 && read.forgotten > 0,
        "{read:?}"
    );
}
