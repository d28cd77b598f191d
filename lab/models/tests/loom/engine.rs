//! Models of whole operations of the engine beside each other.

use std::sync::Arc;

use loom::thread;
use nuthatch_engine::{Engine, Handle, Key, Op, Reply, Reservation, Store, StoreMode, Time};

use crate::world::*;

/// Runs one thread's operations on a handle of its own.
fn spawn<T: 'static>(
    engine: &Arc<Model>,
    body: impl FnOnce(&mut OurHandle) -> T + 'static,
) -> thread::JoinHandle<T> {
    let mut handle = engine.handle();
    thread::spawn(move || body(&mut handle))
}

/// Cuckoo 4, store 3: a set of an existing key swaps the reference. The old chunk is the next one
/// that the allocator gives out, and is overwritten at once; still a reader sees the old value or
/// the new one, whole, and never a miss.
#[test]
fn a_set_shows_the_old_value_or_the_new_one() {
    let (key, other) = (key_in(8, [0, 1]), key_in(8, [2, 3]));
    model(2, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        set(&mut handle, key, 1);
        let reader = spawn(&engine, move |handle| get(handle, key));
        set(&mut handle, key, 2);
        set(&mut handle, other, 3);
        assert!(matches!(reader.join().unwrap(), Some(1 | 2)));
        assert_eq!(get(&mut handle, key), Some(2));
        assert_eq!(get(&mut handle, other), Some(3));
        audit(&engine);
    });
}

/// The same for a batch, which remembers versions and a candidate between its stages; and two gets of one batch never
/// see the value go back.
#[test]
fn a_batch_shows_the_old_value_or_the_new_one() {
    let (key, other) = (key_in(8, [0, 1]), key_in(8, [2, 3]));
    model(1, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        set(&mut handle, key, 1);
        let reader = spawn(&engine, move |handle| get_both(handle, [key, key]));
        set(&mut handle, key, 2);
        set(&mut handle, other, 3);
        let [first, second] = reader.join().unwrap();
        assert!(matches!(
            (first, second),
            (Some(1), Some(1 | 2)) | (Some(2), Some(2))
        ));
        audit(&engine);
    });
}

/// The same for a batch that was announced before the one before it was carried out, which probes it.
#[test]
fn an_early_announcement_shows_the_old_value_or_the_new_one() {
    let (key, other) = (key_in(8, [0, 1]), key_in(8, [2, 3]));
    model(1, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        set(&mut handle, key, 1);
        let reader = spawn(&engine, move |handle| {
            for announced in [other, other, key, key] {
                handle.prefetch(&Key::new(&announced.to_le_bytes(), &hasher()));
            }
            get_both(handle, [other, other]);
            get_both(handle, [key, key])
        });
        set(&mut handle, key, 2);
        let [first, second] = reader.join().unwrap();
        assert!(matches!(
            (first, second),
            (Some(1), Some(1 | 2)) | (Some(2), Some(2))
        ));
        audit(&engine);
    });
}

/// MemC3 section 4, store 3: the memory is full, so a store evicts and writes into the victim's chunk.
/// A reader of the victim sees its value or a miss, never the next item's bytes.
#[test]
fn a_reader_of_a_victim_never_sees_the_next_item() {
    model(2, || {
        let engine = engine(64);
        let mut handle = engine.handle();
        // Until every page is taken and full: the next store has to evict.
        let mut stored = 0;
        while !is_full(&engine) {
            set(&mut handle, stored, stored);
            stored += 1;
        }
        let reader = spawn(&engine, |handle| get(handle, 0));
        set(&mut handle, stored, stored);
        assert!(matches!(reader.join().unwrap(), None | Some(0)));
        assert_eq!(engine.stats().evictions, 1);
        assert_eq!(get(&mut handle, stored), Some(stored));
        // The reader's hit may have saved the victim.
        let gone = (0..stored).filter(|&key| get(&mut handle, key).is_none());
        assert_eq!(gone.count(), 1);
        audit(&engine);
    });
}

fn is_full(engine: &Model) -> bool {
    let stats = engine.stats();
    stats.items > 0
        && stats.classes.iter().all(|class| class.free_chunks == 0)
        && stats.memory_used + stats.memory_used / 4 > stats.memory_limit
}

/// Store 2: a delete, and the reuse of the chunk by another key.
#[test]
fn a_reader_of_a_deleted_key_sees_its_value_or_nothing() {
    let (key, other) = (key_in(8, [0, 1]), key_in(8, [2, 3]));
    model(2, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        set(&mut handle, key, 1);
        let reader = spawn(&engine, move |handle| get(handle, key));
        assert!(delete(&mut handle, key));
        set(&mut handle, other, 3);
        assert!(matches!(reader.join().unwrap(), None | Some(1)));
        assert_eq!(get(&mut handle, key), None);
        audit(&engine);
    });
}

/// Cuckoo 5: a thread that arrives when a delayed flush is due waits until the flush's bar is raised, and it is raised
/// once. So items stored before are no longer returned, and items stored from then on stay.
#[test]
fn a_flush_that_is_due_takes_the_old_and_spares_the_new() {
    let (old, new) = (key_in(8, [0, 1]), key_in(8, [2, 3]));
    model(2, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        set(&mut handle, old, 1);
        engine.flush(Time(NOW.0 - 1), NOW);
        let reader = spawn(&engine, move |handle| get(handle, old));
        set(&mut handle, new, 2);
        assert_eq!(get(&mut handle, old), None);
        assert_eq!(reader.join().unwrap(), None);
        assert_eq!(get(&mut handle, new), Some(2));
        audit(&engine);
    });
}

/// Store 3: one thread frees a chunk, and another fills it: only the next owner's fence protects a late reader from its
/// bytes.
#[test]
fn a_chunk_reused_by_another_thread_is_not_believed() {
    let (key, other) = (key_in(8, [0, 1]), key_in(8, [2, 3]));
    model(1, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        set(&mut handle, key, 1);
        let reader = spawn(&engine, move |handle| get(handle, key));
        let writer = spawn(&engine, move |handle| set(handle, other, 3));
        assert!(delete(&mut handle, key));
        writer.join().unwrap();
        assert!(matches!(reader.join().unwrap(), None | Some(1)));
    });
}

/// Store 3: the same for a value that arrives piece by piece on a thread that did not reserve it.
#[test]
fn a_value_written_by_another_thread_is_not_believed() {
    let (key, other) = (key_in(8, [0, 1]), key_in(8, [2, 3]));
    model(1, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        // As many words as the reserved item will have, without its wide header.
        set_bytes(&mut handle, key, &[1; 24]);
        let reader = spawn(&engine, move |handle| {
            match &run(handle, &[(key, Op::Get)])[0] {
                Answer::Value(bytes) => assert_eq!(bytes, &[1; 24]),
                answer => assert!(matches!(answer, Answer::Done(Reply::Miss))),
            }
        });
        assert!(delete(&mut handle, key));
        let (hasher, bytes) = (hasher(), other.to_le_bytes());
        let mut reserved = handle.reserve(NOW, Key::new(&bytes, &hasher), 24).unwrap();
        thread::spawn(move || reserved.write(&[9; 24]))
            .join()
            .unwrap();
        reader.join().unwrap();
    });
}

/// Cuckoo 2: of two adds of one key, one stores.
#[test]
fn a_key_is_added_once() {
    let key = key_in(8, [0, 1]);
    model(3, move || {
        let engine = engine(8);
        let add = move |handle: &mut OurHandle| {
            let bytes = value(1);
            let store = Store {
                mode: StoreMode::Add,
                ..Store::set(&bytes)
            };
            matches!(
                run(handle, &[(key, Op::Store(store))])[0],
                Answer::Done(Reply::Stored(_))
            )
        };
        let writer = spawn(&engine, add);
        let here = add(&mut engine.handle());
        assert!(here != writer.join().unwrap());
        audit(&engine);
    });
}

/// Cuckoo 3: changes of one key are one after the other.
#[test]
fn no_increment_is_lost() {
    let key = key_in(8, [0, 1]);
    model(3, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        set_bytes(&mut handle, key, b"8");
        let writer = spawn(&engine, move |handle| increment(handle, key));
        let sums = [increment(&mut handle, key), writer.join().unwrap()];
        assert!(matches!(sums, [9, 10] | [10, 9]));
        audit(&engine);
    });
}

/// Cuckoo 3: a number is overwritten in place, and becomes longer; a reader sees one or the other.
#[test]
fn a_number_changed_in_place_is_read_whole() {
    let key = key_in(8, [0, 1]);
    model(2, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        set_bytes(&mut handle, key, b"9");
        let reader = spawn(&engine, move |handle| {
            match &run(handle, &[(key, Op::Get)])[0] {
                Answer::Value(bytes) => assert!(bytes == b"9" || bytes == b"10", "{bytes:?}"),
                _ => panic!("a miss of a key that is always there"),
            }
        });
        assert_eq!(increment(&mut handle, key), 10);
        reader.join().unwrap();
        audit(&engine);
    });
}

/// Two threads that each store a key and then read the other's do not both miss.
#[test]
fn two_clients_do_not_both_miss_each_other() {
    let keys = [key_in(8, [0, 1]), key_in(8, [2, 3])];
    long_model(2, move || {
        let engine = engine(8);
        let client = move |handle: &mut OurHandle, own: usize| {
            set(handle, keys[own], 1);
            get(handle, keys[1 - own])
        };
        let other = spawn(&engine, move |handle| client(handle, 1));
        let mine = client(&mut engine.handle(), 0);
        assert!(mine.is_some() || other.join().unwrap().is_some());
    });
}
