//! Tests of stores beside slow readers: large values that are read in place hold nearly all of the memory, and what the
//! rest of it holds makes room.

use std::sync::Arc;

use nuthatch_chained::{Chained, ChainedConfig};
use nuthatch_check::conformance::Client;
use nuthatch_cuckoo::layout::{EightWay, EightWayClock, Variant};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{AnyValue, Engine, Handle, KeyHasher, Reply, Store, Value};

/// Beside as many held values as it has room for, a log keeps three pages: with fewer, one that is read in place in each
/// of them leaves no room.
const LIMIT: usize = (64 << 20) + (512 << 10);

/// Bytes of each value that is read in place.
const LARGE: usize = 1_000_000;

/// Small values, of one piece, and values that are read in place themselves.
const SHORT: usize = 100;
const LONGER: usize = 20_000;

/// Calls of maintenance that are enough for all pages of the memory.
const MAINTAINED_MAX: usize = 100_000;

fn log() -> Client {
    cuckoo::<EightWay>()
}

fn cuckoo<D: Variant>() -> Client {
    let config = CuckooConfig {
        memory_limit: LIMIT,
        memory_limit_max: 2 * LIMIT,
        hasher: KeyHasher::seeded(1),
        ..CuckooConfig::default()
    };
    let engine = Cuckoo::<D>::new(config).expect("there is address space");
    Client::new(Arc::new(engine).any())
}

fn chained() -> Client {
    let config = ChainedConfig {
        memory_limit: LIMIT,
        ..ChainedConfig::default()
    };
    let engine = Chained::new(config).expect("there is address space");
    Client::new(Arc::new(engine).any())
}

/// False: the store was refused.
fn put(client: &mut Client, number: usize, len: usize) -> bool {
    let value = vec![b'v'; len];
    match client.store(&key(number), Store::set(&value)) {
        Reply::Stored(_) => true,
        Reply::OutOfMemory => false,
        other => panic!("a set was answered {other:?}"),
    }
}

fn key(number: usize) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Fills the memory with values of `len` bytes and reads all in place that are there at the end.
fn fill_and_hold(client: &mut Client, len: usize) -> Vec<AnyValue> {
    let numbers = LARGE..LARGE + LIMIT / len + 1;
    for number in numbers.clone() {
        assert!(put(client, number, len));
    }
    let present: Vec<usize> = numbers
        .filter(|&number| client.get(&key(number)).is_some())
        .collect();
    let keep = |number| client.keep(&key(number));
    present.into_iter().map(keep).collect()
}

/// Stores so many values, each of which is there at once, and counts those that are refused.
fn refused(client: &mut Client, len: usize, count: usize) -> usize {
    let mut refused = 0;
    for number in 0..count {
        if put(client, number, len) {
            assert!(client.get(&key(number)).is_some(), "the newest is there");
        } else {
            refused += 1;
        }
        if number % 100 == 0 {
            client.handle.maintain(client.now, 100);
        }
    }
    refused
}

/// All pages but a few are held, and small values for many times these few are stored.
fn stores_go_on(client: &mut Client, len: usize, count: usize) {
    let held = fill_and_hold(client, LARGE);
    assert!(held.len() * LARGE > LIMIT * 9 / 10, "{} values", held.len());
    assert_eq!(refused(client, len, count), 0);
    let stats = client.engine.stats();
    assert!(stats.memory_used <= stats.memory_limit);
    assert!(
        stats.items as usize > held.len() + 10,
        "{} items",
        stats.items
    );
    client.audit();
    drop(held);
    client.audit();
}

#[test]
fn short_values_are_stored_beside_slow_readers() {
    stores_go_on(&mut log(), SHORT, 60_000);
}

#[test]
fn longer_values_are_stored_beside_slow_readers() {
    stores_go_on(&mut log(), LONGER, 2000);
}

#[test]
fn values_of_both_lengths_are_stored_beside_slow_readers() {
    let mut client = log();
    let _held = fill_and_hold(&mut client, LARGE);
    for round in 0..10 {
        for (len, count) in [(SHORT, 6000), (LONGER, 200), (8000, 500)] {
            assert_eq!(
                refused(&mut client, len, count),
                0,
                "{len} bytes, round {round}"
            );
        }
    }
    client.audit();
}

/// Where nothing can leave, stores are refused until the readers have finished.
#[test]
fn what_readers_held_makes_room_when_they_have_finished() {
    const REFUSED: usize = 2000;
    let mut client = log();
    let mut held = fill_and_hold(&mut client, LONGER);
    // What is stored beside them is held as well.
    for number in 0..100 {
        if put(&mut client, number, LONGER) {
            held.push(client.keep(&key(number)));
        }
    }
    assert_eq!(refused(&mut client, LONGER, REFUSED), REFUSED);
    // As soon as the readers have finished, all that they held makes room.
    drop(held);
    for number in 0..2 * LIMIT / LARGE {
        assert!(put(&mut client, number, LARGE));
    }
    assert!(client.engine.stats().item_bytes as usize > LIMIT * 3 / 4);
    client.audit();
}

/// Class of bug: a limit below what readers hold keeps a thread busy until they have finished.
#[test]
fn maintenance_rests_while_readers_hold_more_than_the_limit() {
    let mut client = log();
    let held = fill_and_hold(&mut client, LARGE);
    assert_eq!(client.engine.set_memory_limit(LIMIT / 2), Ok(()));
    let rests = |client: &mut Client| {
        let more = |_: &usize| client.handle.maintain(client.now, 100);
        (0..MAINTAINED_MAX).take_while(more).count() < MAINTAINED_MAX
    };
    assert!(rests(&mut client));
    let stats = client.engine.stats();
    assert!(stats.memory_used > stats.memory_limit, "all is held");
    drop(held);
    assert!(rests(&mut client));
    let stats = client.engine.stats();
    assert!(stats.memory_used <= stats.memory_limit);
    client.audit();
}

/// Nothing can leave, until the limit is raised: then as much more is stored as it allows, beside what readers hold, and
/// all of that is still as they read it.
#[test]
fn a_limit_raised_beside_slow_readers_makes_room() {
    let mut client = log();
    let mut held = fill_and_hold(&mut client, LARGE);
    // What the store finds beside them is held as well.
    let mut number = 0;
    while put(&mut client, number, LARGE) {
        held.push(client.keep(&key(number)));
        number += 1;
        assert!(number < LIMIT / LARGE, "nothing is held");
    }
    assert_eq!(client.engine.set_memory_limit(2 * LIMIT), Ok(()));
    let more = LIMIT * 9 / 10 / LARGE;
    for new in number..number + more {
        assert!(put(&mut client, new, LARGE), "{new}");
    }
    for new in number..number + more {
        assert!(client.get(&key(new)).is_some(), "{new}");
    }
    for value in &held {
        let mut at = 0;
        while at < value.len() {
            let chunk = value.chunk(at);
            assert!(!chunk.is_empty() && chunk.iter().all(|&byte| byte == b'v'));
            at += chunk.len();
        }
    }
    client.audit();
    drop(held);
    assert_eq!(refused(&mut client, LARGE, 4 * more), 0);
    let stats = client.engine.stats();
    assert!(stats.item_bytes as usize > LIMIT * 3 / 2);
    client.audit();
}

/// Of a hundred sets, one after the other, of values of half and of a quarter of a cache of 1 MiB none is refused: nothing
/// is read or written beside a set, so it evicts what is in its way. Two values of a half do not fit beside each other.
#[test]
fn sets_of_half_the_smallest_limit_evict_each_other() {
    for (part, stored) in [(2, 100), (4, 100)] {
        let config = CuckooConfig {
            memory_limit: 1 << 20,
            item_size_max: 1 << 19,
            hasher: KeyHasher::seeded(1),
            ..CuckooConfig::default()
        };
        let engine: Cuckoo = Cuckoo::new(config).expect("there is address space");
        let mut client = Client::new(Arc::new(engine).any());
        let len = (1 << 20) / part - 100;
        let count = (0..100).filter(|&number| put(&mut client, number, len));
        assert_eq!(count.count(), stored, "a part in {part}");
        client.audit();
    }
}

/// In a store of size classes each class in use has pages of its own.
#[test]
fn size_classes_go_on_beside_slow_readers() {
    for mut client in [cuckoo::<EightWayClock>(), chained()] {
        for len in [SHORT, LONGER] {
            assert!(put(&mut client, 0, len));
        }
        let held = fill_and_hold(&mut client, LARGE);
        assert!(held.len() * LARGE > LIMIT * 8 / 10, "{} values", held.len());
        for (len, count) in [(SHORT, 60_000), (LONGER, 2000)] {
            assert_eq!(refused(&mut client, len, count), 0, "{len} bytes");
        }
        client.audit();
    }
}
