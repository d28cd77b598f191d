//! Models of the chained engine: chains under locks, strict LRU lists under locks of their own, and a table that
//! doubles bucket by bucket. Claims cite the invariants of `chained/lib.rs` ("chained n").

use std::sync::Arc;

use loom::thread;
use nuthatch_chained::index::Index;
use nuthatch_chained::{Chained, ChainedConfig, Locks, PolicyKind, clock, lru};
use nuthatch_engine::{Engine, Handle, Op, Reply, Store, StoreMode};
use nuthatch_store::memory::arena::Address;

use crate::world::{
    Answer, audit, delete, get, hasher, increment, model, run, set, set_bytes, value,
};

/// Two buckets, each with a lock of its own; 6 pages for items.
pub fn engine(eviction: &'static PolicyKind) -> Arc<Chained> {
    let config = ChainedConfig {
        memory_limit: 2048,
        memory_limit_max: 2048,
        item_size_max: 1024,
        chunk_min: 64,
        growth_factor: 2.0,
        initial_items: Some(1),
        locks: Locks::Buckets,
        eviction,
        hasher: hasher(),
        ..ChainedConfig::default()
    };
    Arc::new(Chained::new(config).unwrap())
}

type OurHandle = <Chained as Engine>::Handle;

/// Runs one thread's operations on a handle of its own.
fn spawn<T: 'static>(
    engine: &Arc<Chained>,
    body: impl FnOnce(&mut OurHandle) -> T + 'static,
) -> thread::JoinHandle<T> {
    let mut handle = engine.handle();
    thread::spawn(move || body(&mut handle))
}

/// The first keys that fall into `bucket` of a table of `buckets`.
fn keys_in(bucket: u64, buckets: u64) -> impl Iterator<Item = u64> {
    let hash = |key: &u64| hasher().hash(&key.to_le_bytes());
    (0..).filter(move |key| hash(key) & (buckets - 1) == bucket)
}

/// Chained 5: a bucket that is being divided hides none of its items, neither one that stays nor one
/// that moves; after the doubling all are in the right half.
#[test]
fn a_doubling_hides_nothing() {
    let keys: Vec<_> = keys_in(0, 4).take(2).chain(keys_in(2, 4).take(2)).collect();
    for sought in [keys[0], keys[2]] {
        let keys = keys.clone();
        model(3, move || {
            let engine = engine(&clock::KIND);
            let mut handle = engine.handle();
            for &key in &keys[..3] {
                set(&mut handle, key, key);
            }
            let reader = spawn(&engine, move |handle| get(handle, sought));
            // The fourth item is one too many for two buckets: the table doubles, and this store
            // divides the first bucket.
            set(&mut handle, keys[3], keys[3]);
            assert_eq!(reader.join().unwrap(), Some(sought));
            while engine.stats().index_growing {
                handle.maintain(crate::world::NOW, 1);
            }
            assert_eq!(engine.stats().index_slots, 4);
            audit(&engine);
        });
    }
}

/// Chained 5: two threads that store while the table doubles.
#[test]
fn stores_beside_a_doubling_are_found() {
    let keys: Vec<_> = keys_in(0, 4).take(3).chain(keys_in(2, 4).take(2)).collect();
    model(3, move || {
        let engine = engine(&clock::KIND);
        let mut handle = engine.handle();
        for &key in &keys[..3] {
            set(&mut handle, key, key);
        }
        let (here, there) = (keys[3], keys[4]);
        let writer = spawn(&engine, move |handle| set(handle, there, there));
        set(&mut handle, here, here);
        writer.join().unwrap();
        for &key in &keys {
            assert_eq!(get(&mut handle, key), Some(key));
        }
        audit(&engine);
    });
}

/// Canary: a bucket is moved, but the moved items are published without its lock. The reader must be able to miss the
/// item.
#[test]
#[should_panic(expected = "an item was missed")]
fn canary_a_move_published_late_is_missed() {
    model(3, || {
        let index = Arc::new(Index::new(2, 4, false).unwrap());
        let item = Address(5);
        index.lock(2).set_first(Some(item));
        let geometry = index.geometry();
        index.publish(nuthatch_cuckoo::layout::Geometry {
            growing: true,
            ..geometry
        });
        let reader = {
            let index = Arc::clone(&index);
            thread::spawn(move || index.lock(2).first())
        };
        let locked = index.lock_bucket(0);
        locked.set_first(None);
        locked.set_first_of_upper(2, Some(item));
        drop(locked);
        index.publish(nuthatch_cuckoo::layout::Geometry {
            growing: true,
            split: 1,
            ..geometry
        });
        assert_eq!(reader.join().unwrap(), Some(item), "an item was missed");
    });
}

/// Fills the memory. Returns the keys, in the order in which they were stored.
fn fill(engine: &Arc<Chained>, handle: &mut OurHandle) -> Vec<u64> {
    let mut stored = Vec::new();
    loop {
        let stats = engine.stats();
        let free: usize = stats.classes.iter().map(|class| class.free_chunks).sum();
        let page_fits = stats.memory_used + stats.memory_used / 4 <= stats.memory_limit;
        if !stored.is_empty() && free == 0 && !page_fits {
            assert_eq!(stats.evictions, 0);
            return stored;
        }
        let key = stored.len() as u64;
        set(handle, key, key);
        stored.push(key);
    }
}

/// Chained 3: the oldest item is evicted while a reader makes it the newest. Either the reader was late, and misses it;
/// or it was in time, and the next one is evicted.
#[test]
fn a_hit_saves_the_oldest_or_misses_it() {
    model(3, || {
        let engine = engine(&lru::KIND);
        let mut handle = engine.handle();
        let stored = fill(&engine, &mut handle);
        let (oldest, second, new) = (stored[0], stored[1], stored.len() as u64);
        let reader = spawn(&engine, move |handle| get(handle, oldest));
        set(&mut handle, new, new);
        let read = reader.join().unwrap();
        assert_eq!(engine.stats().evictions, 1);
        assert_eq!(get(&mut handle, new), Some(new));
        match get(&mut handle, oldest) {
            // Read before it was to be evicted: the second oldest was evicted.
            Some(found) => {
                assert_eq!((read, found), (Some(oldest), oldest));
                assert_eq!(get(&mut handle, second), None);
            }
            None => assert_eq!(get(&mut handle, second), Some(second)),
        }
        audit(&engine);
    });
}

/// Chained 1, 3: two threads need a victim at once; each item is evicted once, and each thread gets its own chunk.
#[test]
fn two_evictions_take_two_items() {
    for eviction in [&lru::KIND, &clock::KIND] {
        model(2, move || {
            let engine = engine(eviction);
            let mut handle = engine.handle();
            let stored = fill(&engine, &mut handle);
            let (here, there) = (stored.len() as u64, stored.len() as u64 + 1);
            let writer = spawn(&engine, move |handle| set(handle, there, there));
            set(&mut handle, here, here);
            writer.join().unwrap();
            assert_eq!(engine.stats().evictions, 2);
            assert_eq!(get(&mut handle, here), Some(here));
            assert_eq!(get(&mut handle, there), Some(there));
            audit(&engine);
        });
    }
}

/// Chained 4: a delete, the reuse of the chunk, and a reader.
#[test]
fn a_reader_of_a_deleted_key_sees_its_value_or_nothing() {
    let keys: Vec<_> = keys_in(0, 2).take(2).collect();
    model(3, move || {
        let engine = engine(&lru::KIND);
        let mut handle = engine.handle();
        let (key, other) = (keys[0], keys[1]);
        set(&mut handle, key, 1);
        let reader = spawn(&engine, move |handle| get(handle, key));
        assert!(delete(&mut handle, key));
        set(&mut handle, other, 3);
        assert!(matches!(reader.join().unwrap(), None | Some(1)));
        assert_eq!(get(&mut handle, other), Some(3));
        audit(&engine);
    });
}

/// Chained 2: of two adds of one key, one stores.
#[test]
fn a_key_is_added_once() {
    model(3, || {
        let engine = engine(&lru::KIND);
        let add = |handle: &mut OurHandle| {
            let bytes = value(1);
            let store = Store {
                mode: StoreMode::Add,
                ..Store::set(&bytes)
            };
            matches!(
                run(handle, &[(7, Op::Store(store))])[0],
                Answer::Done(Reply::Stored(_))
            )
        };
        let writer = spawn(&engine, add);
        let here = add(&mut engine.handle());
        assert!(here != writer.join().unwrap());
        audit(&engine);
    });
}

/// Chained 4: changes of one key are one after the other.
#[test]
fn no_increment_is_lost() {
    model(3, || {
        let engine = engine(&lru::KIND);
        let mut handle = engine.handle();
        set_bytes(&mut handle, 7, b"8");
        let writer = spawn(&engine, |handle| increment(handle, 7));
        let sums = [increment(&mut handle, 7), writer.join().unwrap()];
        assert!(matches!(sums, [9, 10] | [10, 9]));
        audit(&engine);
    });
}
