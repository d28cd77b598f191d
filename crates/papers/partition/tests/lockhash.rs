//! Tests of LockHash where partitions interact: memory that moves between them, and slow readers.
#![cfg(not(loom))]

use std::mem::MaybeUninit;
use std::sync::{Arc, Barrier, Mutex};

use nuthatch_base::hash::split;
use nuthatch_engine::{
    Audit, Condition, Engine, Evicted, Evictions, Expiry, Handle, Inspect, Item, Key, KeyHasher,
    Op, Read, Replies, Reply, Request, Store, StoreMode, Time, Value,
};
use nuthatch_partition::lockhash::{COPY_MAX, LockHashHandle, LockHashValue};
use nuthatch_partition::{Eviction, LockHash, LockHashConfig};

const MIB: usize = 1 << 20;

fn engine(memory: usize, item: usize, partitions: u32) -> Arc<LockHash> {
    engine_of(Eviction::Lru, memory, item, partitions)
}

fn engine_of(eviction: Eviction, memory: usize, item: usize, partitions: u32) -> Arc<LockHash> {
    let config = LockHashConfig {
        memory_limit: memory,
        item_size_max: item,
        eviction,
        partitions: Some(partitions),
        hasher: KeyHasher::seeded(1),
        ..LockHashConfig::default()
    };
    Arc::new(LockHash::new(config).unwrap())
}

/// The answer to one request.
enum Answer {
    Value,
    Large(LockHashValue),
    Done(Reply),
}

#[derive(Default)]
struct One {
    begun: Vec<MaybeUninit<u8>>,
    answer: Option<Answer>,
}

impl Replies<LockHashValue> for One {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        // No test stores this byte: it is seen where an engine has not written.
        self.begun = vec![MaybeUninit::new(0xee); item.value_len];
        &mut self.begun
    }

    fn commit(&mut self, _: usize) {
        self.answer = Some(Answer::Value);
    }

    fn retract(&mut self, _: usize) {
        panic!("nothing moves under a lock");
    }

    fn large(&mut self, _: usize, _: &Item, value: LockHashValue) {
        self.answer = Some(Answer::Large(value));
    }

    fn done(&mut self, _: usize, reply: Reply) {
        self.answer = Some(Answer::Done(reply));
    }
}

fn ask(handle: &mut LockHashHandle, now: Time, key: &[u8], op: Op<'_>) -> Answer {
    let engine = Arc::clone(handle.engine());
    let key = Key::new(key, engine.hasher());
    let mut one = One::default();
    handle.execute(now, &[Request { key, op }], &mut one);
    one.answer.expect("each request is answered")
}

fn set(handle: &mut LockHashHandle, now: Time, key: &[u8], value: &[u8]) -> Reply {
    match ask(handle, now, key, Op::Store(Store::set(value))) {
        Answer::Done(reply) => reply,
        _ => panic!("a set is not answered with a value"),
    }
}

/// The bytes of a value that is read in place.
fn whole(value: &LockHashValue) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < value.len() {
        bytes.extend_from_slice(value.chunk(bytes.len()));
    }
    bytes
}

fn hits(handle: &mut LockHashHandle, now: Time, key: &[u8]) -> bool {
    matches!(ask(handle, now, key, Op::Get), Answer::Value)
}

/// Keys of one partition.
fn keys_of(engine: &LockHash, partition: u32) -> impl Iterator<Item = Vec<u8>> {
    let count = engine.partition_count() as u32;
    let hasher = engine.hasher().clone();
    let keys = (0_u64..).map(|number| format!("key {number}").into_bytes());
    keys.filter(move |key| split::partition(hasher.hash(key), count) == partition)
}

/// The weakness of sharding that MemC3 reports: skewed keys waste the memory of cold partitions. Here
/// the working set lies in one partition of eight and needs three times its share.
#[test]
fn capacity_moves_from_cold_partitions_to_a_hot_one() {
    let engine = engine(8 * MIB, 100_000, 8);
    let mut handle = engine.handle();
    let value = [7; 900];
    for number in 0..9000 {
        let reply = set(
            &mut handle,
            Time(1),
            format!("cold {number}").as_bytes(),
            &value,
        );
        assert!(matches!(reply, Reply::Stored(_)));
    }
    assert!(engine.stats().evictions > 0, "the memory is full");
    let hot: Vec<_> = keys_of(&engine, 3).take(3000).collect();
    let mut rates = Vec::new();
    for round in 1..80 {
        let now = Time(round * 16);
        let mut hit = 0;
        for key in &hot {
            if hits(&mut handle, now, key) {
                hit += 1;
            } else {
                set(&mut handle, now, key, &value);
            }
        }
        for _ in 0..20 {
            handle.maintain(now, 100);
        }
        rates.push(hit);
        if hit == hot.len() {
            break;
        }
    }
    let stats = engine.stats();
    assert!(stats.memory_used <= stats.memory_limit);
    assert_eq!(rates.last(), Some(&hot.len()), "hits a round: {rates:?}");
    engine.audit().unwrap();
}

#[test]
fn slow_readers_of_everything_make_an_insert_fail_and_nothing_else() {
    for eviction in [Eviction::Lru, Eviction::Random] {
        everything_is_read(&engine_of(eviction, 4 * MIB, MIB, 4));
    }
}

fn everything_is_read(engine: &Arc<LockHash>) {
    let mut handle = engine.handle();
    let now = Time(1);
    let mut held = Vec::new();
    let value = vec![9; 100_000];
    let refused = loop {
        let key = format!("key {}", held.len());
        match set(&mut handle, now, key.as_bytes(), &value) {
            Reply::Stored(_) => match ask(&mut handle, now, key.as_bytes(), Op::Get) {
                Answer::Large(value) => held.push(value),
                _ => panic!("over the copy limit"),
            },
            reply => break reply,
        }
        assert!(held.len() < 42, "more than there is memory");
    };
    assert_eq!(refused, Reply::OutOfMemory);
    assert!(held.len() > 30, "{} values fit", held.len());
    assert_eq!(engine.stats().out_of_memory, 1);
    for value in &held {
        let mut seen = 0;
        while seen < value.len() {
            let piece = value.chunk(seen);
            assert!(piece.iter().all(|&byte| byte == 9));
            seen += piece.len();
        }
        assert!(value.chunk(seen).is_empty());
    }
    // One reader has finished: there is room again.
    held.pop();
    assert!(matches!(
        set(&mut handle, now, b"more", &value),
        Reply::Stored(_)
    ));
    drop(held);
    engine.audit().unwrap();
}

/// With random eviction readers use the partition's descriptor. The effects that the partition itself would have
/// counted and noted must be the same.
#[test]
fn reads_at_the_bucket_are_counted_and_their_touches_heard_of() {
    let engine = engine_of(Eviction::Random, 4 * MIB, MIB, 4);
    let mut handle = engine.handle();
    for number in 0..100 {
        set(
            &mut handle,
            Time(1),
            format!("key {number}").as_bytes(),
            b"v",
        );
    }
    engine.reset_stats();
    let touch = Read {
        touch: Some(Expiry::At(Time(50))),
        ..Read::default()
    };
    for number in 0..200 {
        let key = format!("key {number}");
        let found = ask(&mut handle, Time(2), key.as_bytes(), Op::Read(touch));
        assert_eq!(matches!(found, Answer::Value), number < 100);
    }
    let stats = engine.stats();
    assert_eq!((stats.lookups, stats.lookup_hits), (200, 100));
    assert!(stats.searched_hit >= 100);
    // The counts of a handle stay after it is dropped.
    let mut other = engine.handle();
    drop(handle);
    assert_eq!(engine.stats().lookups, 200);
    // They were stored without an expiry: only the readers gave them one.
    while engine.stats().expired < 100 {
        other.maintain(Time(60), 1000);
    }
    assert_eq!(engine.stats().items, 0);
    engine.audit().unwrap();
}

/// The keys that were evicted.
#[derive(Default)]
struct Listener(Mutex<Vec<Vec<u8>>>);

impl Evictions for Listener {
    fn are_wanted(&self) -> bool {
        true
    }

    fn evicted(&self, item: &Evicted<'_>) {
        self.0.lock().unwrap().push(item.key.to_vec());
    }
}

/// Class of bug: a replace evicted the item that it replaced. With random eviction, where others read beside the owner,
/// a reader could miss the item, and find the new one after that.
#[test]
fn what_a_store_depends_on_is_not_evicted_for_it() {
    let engine = engine_of(Eviction::Random, 4 * MIB, MIB, 4);
    let listener = Arc::new(Listener::default());
    engine.report_evictions(Arc::clone(&listener) as Arc<dyn Evictions>);
    let mut handle = engine.handle();
    // About as much as a partition has.
    let value = vec![3; 600_000];
    let mut number = 0;
    while engine.stats().evictions == 0 {
        let key = format!("key {number}");
        set(&mut handle, Time(1), key.as_bytes(), &value);
        number += 1;
    }
    for round in 0..40 {
        let key = format!("mine {}", round % 7);
        let Reply::Stored(old) = set(&mut handle, Time(1), key.as_bytes(), &value) else {
            panic!("there is room for it in all partitions together");
        };
        listener.0.lock().unwrap().clear();
        let set = Store::set(&value);
        let replace = match round % 3 {
            0 => Store {
                mode: StoreMode::Replace,
                ..set
            },
            1 => Store {
                condition: Condition::Cas(old.cas),
                ..set
            },
            _ => Store {
                condition: Condition::CasOrStale(old.cas - 1),
                ..set
            },
        };
        let answer = ask(&mut handle, Time(1), key.as_bytes(), Op::Store(replace));
        assert!(matches!(answer, Answer::Done(Reply::Stored(_))));
        assert!(!listener.0.lock().unwrap().contains(&key.into_bytes()));
    }
    engine.audit().unwrap();
}

#[test]
fn a_value_larger_than_its_partition_takes_from_others_and_the_largest_is_refused() {
    let engine = engine(4 * MIB, MIB, 64);
    let mut handle = engine.handle();
    for number in 0..5000 {
        set(
            &mut handle,
            Time(1),
            format!("small {number}").as_bytes(),
            &[1; 1000],
        );
    }
    let large = vec![2; MIB - 1000];
    for number in 0..20 {
        let key = format!("large {number}");
        let reply = set(&mut handle, Time(2), key.as_bytes(), &large);
        assert!(matches!(reply, Reply::Stored(_)), "{reply:?}");
        let found = ask(&mut handle, Time(2), key.as_bytes(), Op::Get);
        assert!(matches!(found, Answer::Large(value) if value.len() > COPY_MAX));
    }
    assert_eq!(
        set(&mut handle, Time(2), b"key", &vec![2; MIB]),
        Reply::TooLarge
    );
    let stats = engine.stats();
    assert!(stats.memory_used <= stats.memory_limit);
    assert_eq!(stats.out_of_memory, 0);
    engine.audit().unwrap();
}

#[test]
fn impossible_configurations_are_refused_in_words() {
    let refused = |config: LockHashConfig| match LockHash::new(config) {
        Ok(_) => panic!("an impossible engine was made"),
        Err(error) => error.to_string(),
    };
    let base = LockHashConfig::default();
    let small = LockHashConfig {
        memory_limit: 1000,
        ..base.clone()
    };
    assert!(refused(small).contains("memory limit"));
    let items = LockHashConfig {
        item_size_max: 40 * MIB,
        ..base.clone()
    };
    assert!(refused(items).contains("half"));
    let many = LockHashConfig {
        partitions: Some(1 << 20),
        ..base.clone()
    };
    assert!(refused(many).contains("partitions: from 1 to 4096"));
    let none = LockHashConfig {
        partitions: Some(0),
        ..base
    };
    assert!(refused(none).contains("partitions"));
}

#[test]
fn the_limit_can_be_raised_and_lowered_while_items_stay() {
    let config = LockHashConfig {
        memory_limit: 4 * MIB,
        memory_limit_max: 16 * MIB,
        item_size_max: 10_000,
        ..LockHashConfig::default()
    };
    let engine = Arc::new(LockHash::new(config).unwrap());
    let mut handle = engine.handle();
    let mut fill = |engine: &LockHash| {
        for number in 0..20_000 {
            set(
                &mut handle,
                Time(1),
                format!("key {number}").as_bytes(),
                &[1; 1000],
            );
        }
        engine.stats().items
    };
    let few = fill(&engine);
    engine.set_memory_limit(16 * MIB).unwrap();
    let many = fill(&engine);
    assert!(many > 3 * few, "{few} and {many} items");
    assert!(
        engine
            .set_memory_limit(20 * MIB)
            .is_err_and(|error| (16 * MIB..17 * MIB).contains(&error.most()))
    );
    assert!(engine.set_memory_limit(1000).is_err());
    engine.set_memory_limit(4 * MIB).unwrap();
    while handle.maintain(Time(2), 1000) {}
    let stats = engine.stats();
    assert!(stats.memory_used <= stats.memory_limit);
    assert!(
        stats.items * 10 > few * 9,
        "{few} and {} items",
        stats.items
    );
    engine.audit().unwrap();
}

#[test]
fn the_limit_of_the_start_can_come_back() {
    let config = LockHashConfig {
        memory_limit: MIB,
        memory_limit_max: 16 * MIB,
        item_size_max: MIB / 2,
        ..LockHashConfig::default()
    };
    let engine = Arc::new(LockHash::new(config).unwrap());
    let mut handle = engine.handle();
    for limit in [16 * MIB, MIB] {
        engine.set_memory_limit(limit).unwrap();
        for number in 0..20_000 {
            let key = format!("key {number}");
            set(&mut handle, Time(1), key.as_bytes(), &[1; 1000]);
        }
        while handle.maintain(Time(1), 1000) {}
        let stats = engine.stats();
        assert!(stats.items > 0 && stats.memory_used <= limit as u64);
        engine.audit().unwrap();
    }
    assert!(engine.set_memory_limit(MIB - 1).is_err());
}

#[test]
fn small_memory_has_fewer_partitions() {
    let count = |memory_limit, item_size_max| {
        let config = LockHashConfig {
            memory_limit,
            item_size_max,
            ..LockHashConfig::default()
        };
        config.partition_count()
    };
    assert_eq!(count(64 * MIB, MIB), 64);
    assert_eq!(count(64 * MIB, 8 * MIB), 8);
    assert_eq!(count(8 << 30, MIB), 4096);
}

/// Partition 0 has all of the memory, so a read that makes an item in another one finds none there at first. Meanwhile
/// somebody else stores the key: then the answer is that value.
#[test]
fn a_read_that_would_make_an_item_returns_what_was_stored_while_it_had_no_memory() {
    const PARTITIONS: u32 = 256;
    for (eviction, len) in [
        (Eviction::Lru, 64),
        (Eviction::Random, 64),
        (Eviction::Lru, COPY_MAX + 1),
    ] {
        let engine = engine_of(eviction, 16 * MIB, MIB, PARTITIONS);
        let mut handle = engine.handle();
        for key in keys_of(&engine, 0).take(30) {
            set(&mut handle, Time(1), &key, &vec![1; 900_000]);
        }
        let key_in = |partition| keys_of(&engine, partition).next().expect("endless");
        let keys: Vec<_> = (1..PARTITIONS).map(key_in).collect();
        let value = vec![7; len];
        let together = Barrier::new(2);
        let mut answers = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut handle = engine.handle();
                for key in &keys {
                    together.wait();
                    set(&mut handle, Time(1), key, &value);
                }
            });
            for key in &keys {
                together.wait();
                let read = Read {
                    vivify: Some(Expiry::Never),
                    value: true,
                    ..Read::default()
                };
                let key = Key::new(key, engine.hasher());
                let op = Op::Read(read);
                let mut one = One::default();
                handle.execute(Time(1), &[Request { key, op }], &mut one);
                answers.push(one);
            }
        });
        for One { begun, answer } in answers {
            let answered = match answer.expect("each request is answered") {
                // SAFETY: `begin` has initialized all of it.
                Answer::Value => begun
                    .iter()
                    .map(|byte| unsafe { byte.assume_init() })
                    .collect(),
                Answer::Large(value) => whole(&value),
                Answer::Done(reply) => panic!("a read that makes an item was answered {reply:?}"),
            };
            assert!(answered.is_empty() || answered == value, "{answered:?}");
        }
        engine.audit().unwrap();
    }
}
