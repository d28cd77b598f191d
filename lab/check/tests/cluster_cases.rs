//! Cases of the distributed store that random tests seldom meet.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nuthatch_check::answer::{Answer, ask_one};
use nuthatch_cluster::{Clocks, Config, Member, Operations, in_process};
use nuthatch_engine::{
    AnyEngine, Audit, Engine, Expiry, Handle, KeyHasher, Op, Read, Reply, Store, Time,
};
use nuthatch_fabric::threads::Network;

const NOW: Time = Time(1000);

fn start(config: &Config) -> Arc<AnyEngine> {
    in_process(config, 1)
        .expect("there are memory and threads")
        .any()
}

/// Two keys that a directory of one set might confuse: the upper halves of their hashes are equal.
fn alike(hasher: &KeyHasher) -> (String, String) {
    let mut seen: HashMap<u32, String> = HashMap::new();
    for number in 0_u32.. {
        let key = format!("key {number}");
        let half = (hasher.hash(key.as_bytes()) >> 32) as u32;
        if let Some(other) = seen.insert(half, key.clone()) {
            return (other, key);
        }
    }
    unreachable!("there are more keys than halves")
}

#[test]
fn a_pair_is_not_written_over_by_another_key_with_half_its_hash() {
    let engine = start(&Config {
        operations: Operations::Direct,
        directory: 8,
        ..Config::default()
    });
    let mut handle = engine.handle();
    let (one, other) = alike(engine.hasher());
    for (key, text) in [(&one, b"1"), (&other, b"2")] {
        let op = Op::Store(Store::set(text));
        let reply = ask_one(&mut handle, engine.hasher(), NOW, key.as_bytes(), op);
        assert!(matches!(reply, Answer::Done(Reply::Stored(_))));
    }
    for (key, text) in [(&one, b"1"), (&other, b"2")] {
        let read = ask_one(&mut handle, engine.hasher(), NOW, key.as_bytes(), Op::Get);
        assert_eq!(read.value(), Some(&text[..]));
    }
    assert_eq!(engine.audit(), Ok(()));
}

/// Class of bug: work that is never at its end, because one server has something left whenever another has not.
#[test]
fn maintenance_comes_to_an_end_on_several_servers() {
    for _ in 0..20 {
        let engine = start(&Config {
            servers: 2,
            buckets: Some(1 << 12),
            ..Config::default()
        });
        let mut handle = engine.handle();
        for number in 0..100 {
            let key = format!("key {number}");
            let op = Op::Store(Store::set(b"value"));
            ask_one(&mut handle, engine.hasher(), NOW, key.as_bytes(), op);
        }
        // A server sweeps its 4,096 buckets in five calls, beside what it sweeps by itself.
        let has_more = |_: &usize| handle.maintain(NOW, 1000);
        assert!((0..10_000).take_while(has_more).count() < 10_000);
    }
}

#[test]
fn a_read_of_a_large_value_tells_of_the_item_what_its_server_knows() {
    let engine = start(&Config {
        operations: Operations::Active,
        ..Config::default()
    });
    let mut handle = engine.handle();
    for (value_len, first) in [(100, NOW), (5000, Time(2 * NOW.0))] {
        let text = vec![7; value_len];
        let key = value_len.to_string();
        let mut ask = |now, op| ask_one(&mut handle, engine.hasher(), now, key.as_bytes(), op);
        ask(first, Op::Store(Store::set(&text)));
        // Another client's message begins another epoch.
        let later = Time(first.0 + 160);
        ask(later, Op::Get);
        let latest = Time(later.0 + 160);
        let read = Read {
            idle: true,
            ..Read::default()
        };
        let answer = ask(latest, Op::Read(read));
        let item = answer.item().expect("it is there");
        assert!(item.fetched && item.idle.as_secs() >= 10, "{item:?}");
        ask(latest, Op::Store(Store::set(&text)));
        let answer = ask(latest, Op::Get);
        assert!(!answer.item().expect("it is there").fetched);
    }
}

/// Runs a server whose clock decides, and gives `work` the engines of two clients.
fn with_one_clock(work: impl FnOnce(&[Arc<AnyEngine>])) {
    let config = Config {
        clocks: Clocks::FirstServers,
        ..Config::default()
    };
    let words = config.symmetric_words(3).expect("it can be");
    let ends = Network::free(3, words).ends();
    let members: Vec<_> = thread::scope(|scope| {
        let opening: Vec<_> = (ends.into_iter())
            .map(|end| scope.spawn(|| Member::open(end, &config).expect("there is memory")))
            .collect();
        (opening.into_iter())
            .map(|opening| opening.join().expect("it opens"))
            .collect()
    });
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| members[0].server().run(&done));
        let engines: Vec<_> = (members[1..].iter())
            .map(|member| member.engine().any())
            .collect();
        let worked = catch_unwind(AssertUnwindSafe(|| work(&engines)));
        done.store(true, Ordering::Relaxed);
        worked.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

#[test]
fn who_is_ahead_does_not_end_others_pairs() {
    with_one_clock(|engines| {
        let [one, other] = engines else {
            panic!("there are two");
        };
        let hasher = one.hasher();
        // An hour ahead.
        let (now, ahead) = (Time(1), Time(1 + 3600 * 16));
        let minute = 60 * 16;
        let store = Store {
            expiry: Expiry::At(Time(now.0 + minute)),
            ..Store::set(b"value")
        };
        let (mut handle, mut others) = (one.handle(), other.handle());
        ask_one(&mut handle, hasher, now, b"key", Op::Store(store));
        for _ in 0..3 {
            let read = Op::Read(Read::default());
            let answer = ask_one(&mut others, hasher, ahead, b"key", read);
            // What is left of a minute, by the reader's own clock.
            let Some(Expiry::At(end)) = answer.item().map(|item| item.expiry) else {
                panic!("it expired by another's clock");
            };
            assert!(end > ahead && end.0 <= ahead.0 + minute + 2, "{end:?}");
            // The clock that is ahead lengthens no life of its own pairs, and shortens none of others'.
            let brief = Store {
                expiry: Expiry::At(Time(ahead.0 + 8)),
                ..Store::set(b"brief")
            };
            ask_one(&mut others, hasher, ahead, b"brief", Op::Store(brief));
            while (ask_one(&mut handle, hasher, now, b"brief", Op::Get).value()).is_some() {
                thread::yield_now();
            }
            others.maintain(ahead, 1 << 20);
        }
    });
}
