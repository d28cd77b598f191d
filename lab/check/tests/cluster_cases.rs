//! Cases of the distributed store that chance seldom meets.

use std::collections::HashMap;
use std::sync::Arc;

use nuthatch_check::answer::{Answer, ask_one};
use nuthatch_cluster::{Config, Operations, in_process};
use nuthatch_engine::{AnyEngine, Audit, Engine, KeyHasher, Op, Reply, Store, Time};

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
