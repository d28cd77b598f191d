//! Cases of the distributed store that chance seldom meets.

use std::collections::HashMap;
use std::sync::Arc;

use nuthatch_check::answer::{Answer, ask_one};
use nuthatch_cluster::{Config, Operations, in_process};
use nuthatch_engine::{AnyEngine, Audit, Engine, KeyHasher, Op, Read, Reply, Store, Time};

const NOW: Time = Time(1000);

fn start(config: &Config) -> Arc<AnyEngine> {
    AnyEngine::new(in_process(config, 1).expect("there are memory and threads"))
}

/// Two keys of which a directory of one set might take one for the other: their hashes are alike in the upper half.
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
        // Somebody else's message begins another epoch.
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
