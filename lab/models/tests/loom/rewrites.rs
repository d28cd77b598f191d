//! Models of rewrites that keep a long value: it is copied without the lock, from an item that is pinned, and the copy
//! is stored only if that item is still the key's.

use loom::thread;
use nuthatch_engine::{Engine, Op, Reply, Store, StoreMode, Value};

use crate::world::*;

/// Longer than the models' limit for copies under a lock.
const LONG: [u8; 33] = [7; 33];
const OTHER: [u8; 33] = [8; 33];

fn append(handle: &mut OurHandle, key: u64) -> bool {
    let store = Store {
        mode: StoreMode::Append,
        ..Store::set(b"+")
    };
    match run(handle, &[(key, Op::Store(store))])[0] {
        Answer::Done(Reply::Stored(_)) => true,
        Answer::Done(Reply::NotStored) => false,
        _ => panic!("an append is done or finds nothing"),
    }
}

fn bytes(handle: &mut OurHandle, key: u64) -> Option<Vec<u8>> {
    match &run(handle, &[(key, Op::Get)])[0] {
        Answer::Value(bytes) => Some(bytes.clone()),
        Answer::Large(value) => {
            let mut bytes = Vec::new();
            while bytes.len() < value.len() {
                bytes.extend_from_slice(value.chunk(bytes.len()));
            }
            Some(bytes)
        }
        Answer::Done(Reply::Miss) => None,
        Answer::Done(_) => panic!("a get is answered by a value or a miss"),
    }
}

fn used_chunks(engine: &Model) -> usize {
    let classes = engine.stats().classes;
    classes.iter().map(|class| class.used_chunks).sum()
}

/// Store 1, cuckoo 3: beside an append the value is replaced, removed or appended to. The result is that of one
/// operation after the other, and every chunk is freed once; the chunk of the old value is freed by its last reader.
fn beside(other: fn(&mut OurHandle, u64), lawful: fn(Option<&[u8]>, bool) -> bool) {
    let key = key_in(8, [0, 1]);
    model(2, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        set_bytes(&mut handle, key, &LONG);
        let mut appending = engine.handle();
        let appender = thread::spawn(move || append(&mut appending, key));
        other(&mut handle, key);
        let appended = appender.join().unwrap();
        let left = bytes(&mut handle, key);
        assert!(lawful(left.as_deref(), appended), "{left:?}, {appended}");
        audit(&engine);
        assert_eq!(used_chunks(&engine), usize::from(left.is_some()));
    });
}

fn with(value: &[u8], tail: &[u8]) -> Vec<u8> {
    [value, tail].concat()
}

#[test]
fn a_value_is_replaced_while_it_is_appended_to() {
    beside(
        |handle, key| set_bytes(handle, key, &OTHER),
        |left, appended| {
            appended && left.is_some_and(|left| left == OTHER || left == with(&OTHER, b"+"))
        },
    );
}

#[test]
fn a_value_is_removed_while_it_is_appended_to() {
    beside(
        |handle, key| assert!(delete(handle, key)),
        |left, _| left.is_none(),
    );
}

#[test]
fn two_append_to_one_value() {
    beside(
        |handle, key| assert!(append(handle, key)),
        |left, appended| appended && left == Some(&with(&LONG, b"++")),
    );
}

/// A reader whose attempts are spoiled twice takes the lock, and still sees one of the values. (Numbers that change in
/// place: with sets, which also allocate and free, this model takes more than a quarter of an hour.)
#[test]
fn a_reader_beside_two_changes_sees_one_of_three_values() {
    let key = key_in(8, [0, 1]);
    model(2, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        set_bytes(&mut handle, key, b"1");
        let mut other = engine.handle();
        let reader = thread::spawn(move || match &run(&mut other, &[(key, Op::Get)])[0] {
            Answer::Value(bytes) => {
                assert!([b"1", b"2", b"3"].contains(&&bytes[..].try_into().unwrap()))
            }
            _ => panic!("a miss of a key that is always there"),
        });
        increment(&mut handle, key);
        increment(&mut handle, key);
        reader.join().unwrap();
        audit(&engine);
    });
}
