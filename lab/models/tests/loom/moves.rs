//! Items in a log, which a cleaning moves from page to page while others read, write and remove them.
//!
//! A page has 32 words, and the longest record half of them. All models but those of eviction begin with a log that
//! evicts nothing and is full: a store then cleans the page that has a gap, and moves what else lies there.

use std::sync::Arc;

use loom::thread;
use nuthatch_cuckoo::handle::CuckooHandle;
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{
    Engine, Expiry, Handle, Key, Op, Read, Reply, Reservation, Store, Time, Value,
};

use nuthatch_engine::stats::LogStats;

use crate::world::*;

type Logged = Cuckoo<InLog>;
type LogHandle = CuckooHandle<InLog>;

/// Buckets of the index.
const BUCKETS: u64 = 8;

/// What index and stripes take, and ghosts, of which there is one bucket.
const INDEX: usize = BUCKETS as usize * 2 * 8 + BUCKETS as usize * 4 + 16;

/// What a page takes: itself, its recency bits, and what the log knows of it.
const PAGE: usize = 256 + 3 * 8 + 5 * 8;

/// Of as many bytes as the longest record has beside a key and a narrow header: two fill a page.
const HALF: usize = 104;

/// `value(1)`.
const ONE: [u8; 16] = [
    1, 0, 0, 0, 0, 0, 0, 0, 254, 255, 255, 255, 255, 255, 255, 255,
];

/// What is stored when there is no room: beside it and what moves then, there is room for a short value.
const NEXT: [u8; 64] = [2; 64];

/// Over the models' copy limit, in two segments.
const LARGE: [u8; 200] = [7; 200];

fn engine(pages: usize, evicts: bool) -> Arc<Logged> {
    let limit = INDEX + pages * PAGE;
    let config = CuckooConfig {
        memory_limit: limit,
        memory_limit_max: limit,
        item_size_max: 512,
        evicts,
        chunk_min: 64,
        growth_factor: 2.0,
        initial_items: Some(BUCKETS as usize),
        hasher: hasher(),
        ..CuckooConfig::default()
    };
    Arc::new(Cuckoo::new(config).unwrap())
}

/// The key that the models are about: nothing else is in its buckets.
fn subject() -> u64 {
    key_in(BUCKETS, [0, 1])
}

/// Other keys.
fn fillers() -> [u64; 8] {
    let mut keys = [0; 8];
    let places = [[2, 3], [4, 5], [6, 7]];
    for (place, keys) in places.iter().zip(keys.chunks_mut(3)) {
        let found = keys_in(BUCKETS, *place).take(keys.len());
        keys.iter_mut()
            .zip(found)
            .for_each(|(key, found)| *key = found);
    }
    keys
}

/// Stores a value if there is room.
fn try_set(handle: &mut LogHandle, key: u64, bytes: &[u8]) -> bool {
    match run(handle, &[(key, Op::Store(Store::set(bytes)))])[0] {
        Answer::Done(Reply::Stored(_)) => true,
        Answer::Done(Reply::OutOfMemory) => false,
        _ => panic!("a set is done or finds no room"),
    }
}

/// A log in which there is no room without cleaning.
struct Full {
    engine: Arc<Logged>,
    handle: LogHandle,
    /// A key that is not in it.
    next: u64,
}

/// What lies in the page that is cleaned first, beside half a page that is a gap by then.
#[derive(Clone, Copy)]
enum Moves {
    /// The subject's item, or, of a large one, its head.
    Head,
    /// The second segment of the subject's item.
    Segment,
}

/// The subject's item, a gap, and other items in all pages but the one that is kept free.
fn full(value: &[u8], moves: Moves) -> Full {
    full_after(value, moves, |_| ()).0
}

/// The same, and what is done before the other items come.
fn full_after<T>(value: &[u8], moves: Moves, first: impl FnOnce(&mut LogHandle) -> T) -> (Full, T) {
    let engine = engine(4, false);
    let mut handle = engine.handle();
    let [gap, rest, others @ ..] = fillers();
    match moves {
        Moves::Head => {
            set_bytes(&mut handle, gap, &[1; HALF]);
            set_bytes(&mut handle, subject(), value);
            // Nothing is appended to a page that is full, so it is closed.
            let head = if value.len() > HALF {
                32 + 8 + 2 * 8
            } else {
                16 + 8 + value.len()
            };
            set_bytes(&mut handle, rest, &[1; HALF][head.next_multiple_of(8)..]);
        }
        Moves::Segment => {
            set_bytes(&mut handle, subject(), value);
            set_bytes(&mut handle, gap, &[1; HALF]);
        }
    }
    let made = first(&mut handle);
    let next = others
        .into_iter()
        .find(|&key| !try_set(&mut handle, key, &[1; HALF]));
    assert!(delete(&mut handle, gap));
    let next = next.expect("there is no room for all");
    (
        Full {
            engine,
            handle,
            next,
        },
        made,
    )
}

fn log_stats(engine: &Logged) -> LogStats {
    engine.stats().log.expect("a log")
}

/// A cleaning beside another thread, which does something with the subject, and what must hold then.
fn beside<T: 'static>(
    preemptions: usize,
    value: &'static [u8],
    moves: Moves,
    other: impl Fn(&mut LogHandle) -> T + Copy + Send + Sync + 'static,
    after: impl Fn(&mut LogHandle, T) + Send + Sync + 'static,
) {
    model(preemptions, move || {
        let Full {
            engine,
            mut handle,
            next,
        } = full(value, moves);
        let mut beside = engine.handle();
        let thread = thread::spawn(move || other(&mut beside));
        let stored = try_set(&mut handle, next, &NEXT);
        let seen = thread.join().unwrap();
        // What the other thread was about to free was not there yet.
        assert!(stored || try_set(&mut handle, next, &NEXT));
        after(&mut handle, seen);
        audit(&engine);
    });
}

/// Log 5, cuckoo 4: an item that is moved is never missed, and read whole.
#[test]
fn an_item_that_moves_is_never_missed() {
    beside(
        1,
        &ONE,
        Moves::Head,
        |handle| get(handle, subject()),
        |handle, seen| {
            assert_eq!((seen, get(handle, subject())), (Some(1), Some(1)));
            assert_eq!(log_stats(handle.engine()).pages_cleaned, 1);
        },
    );
}

/// Log 4, store 3: another item is written to where the one that moved has been, and begins at the same word.
#[test]
fn the_place_that_an_item_left_is_used_again() {
    model(1, || {
        let Full {
            engine,
            mut handle,
            next,
        } = full(b"8", Moves::Head);
        let [_, _, first, .., last] = fillers();
        assert!(delete(&mut handle, first));
        let mut beside = engine.handle();
        let reader = thread::spawn(move || get_bytes(&mut beside));
        set_bytes(&mut handle, next, &[2; HALF]);
        set_bytes(&mut handle, last, &[2; HALF]);
        assert_eq!(reader.join().unwrap(), b"8");
        // Half of each of two pages.
        assert_eq!(log_stats(&engine).bytes_moved, 2 * 128);
        audit(&engine);
    });
}

/// Log 5, cuckoo 3: a store finds its key's item in the old place or in the new one. It has no room either, so both
/// threads clean.
#[test]
fn an_item_that_moves_is_replaced() {
    beside(
        1,
        &ONE,
        Moves::Head,
        |handle| set(handle, subject(), 2),
        |handle, ()| {
            assert_eq!(get(handle, subject()), Some(2));
        },
    );
}

/// The same for a value that has arrived before.
#[test]
fn an_item_that_moves_is_replaced_by_one_that_was_arriving() {
    const NEW: &[u8] = b"9";
    model(2, || {
        let arriving = |handle: &mut LogHandle| {
            let (hasher, key) = (hasher(), subject().to_le_bytes());
            let reserved = handle.reserve(NOW, Key::new(&key, &hasher), NEW.len());
            reserved.unwrap_or_else(|_| panic!("there is room"))
        };
        let (
            Full {
                engine,
                mut handle,
                next,
            },
            mut reserved,
        ) = full_after(b"8", Moves::Head, arriving);
        reserved.write(NEW);
        let mut beside = engine.handle();
        let thread = thread::spawn(move || {
            let reply = beside.commit(NOW, reserved, &Store::set(NEW));
            assert!(matches!(reply, Reply::Stored(_)));
        });
        set_bytes(&mut handle, next, &NEXT);
        thread.join().unwrap();
        assert_eq!(increment(&mut handle, subject()), 10);
        audit(&engine);
    });
}

/// Store 2, log 2: a delete frees the old place or the new one, and the cleaning the other, each once: the audit counts.
#[test]
fn an_item_that_moves_is_removed() {
    let remove = |handle: &mut LogHandle| delete(handle, subject());
    beside(3, &ONE, Moves::Head, remove, |handle, removed| {
        assert!(removed);
        assert_eq!(get(handle, subject()), None);
    });
}

/// Log 5: what changes in place is copied under the lock.
#[test]
fn no_increment_of_a_number_that_moves_is_lost() {
    let count = |handle: &mut LogHandle| increment(handle, subject());
    beside(3, b"8", Moves::Head, count, |handle, sum| {
        assert_eq!((sum, increment(handle, subject())), (9, 10));
    });
}

/// Log 5, cuckoo 2: two threads find no room, and each cleans a page, or helps with one. The subject lies in the one, and
/// half of the other is a gap, too.
#[test]
fn two_threads_clean() {
    model(2, || {
        let Full {
            engine,
            mut handle,
            next,
        } = full(&ONE, Moves::Head);
        let [_, _, first, .., last] = fillers();
        assert!(delete(&mut handle, first));
        let mut beside = engine.handle();
        let cleaner = thread::spawn(move || try_set(&mut beside, last, &NEXT));
        let stored = try_set(&mut handle, next, &NEXT);
        assert!(cleaner.join().unwrap() || stored);
        assert_eq!(get(&mut handle, subject()), Some(1));
        audit(&engine);
    });
}

/// Log 5: what is read in place stays where it is, and its page is not used again before it is let go.
#[test]
fn a_value_that_is_read_in_place_does_not_move() {
    for moves in [Moves::Head, Moves::Segment] {
        model(2, move || {
            let Full {
                engine,
                mut handle,
                next,
            } = full(&LARGE, moves);
            let held = run(&mut handle, &[(subject(), Op::Get)]).remove(0);
            let Answer::Large(held) = held else {
                panic!("a large value is there");
            };
            let reader = thread::spawn(move || assert_eq!(bytes_of(&held), LARGE));
            let stored = try_set(&mut handle, next, &NEXT);
            reader.join().unwrap();
            assert_eq!(read_large(&mut handle).as_deref(), Some(&LARGE[..]));
            // Nobody holds it any more, so its page can be cleaned.
            assert!(stored || try_set(&mut handle, next, &NEXT));
            audit(&engine);
        });
    }
}

fn get_bytes(handle: &mut LogHandle) -> Vec<u8> {
    match &run(handle, &[(subject(), Op::Get)])[0] {
        Answer::Value(bytes) => bytes.clone(),
        _ => panic!("a miss of a key that is always there"),
    }
}

/// All bytes of a large value, which gets a new time to live; `None` is a miss. (A plain get has found it without a lock
/// before, like any item: many more orders for a model to explore.)
fn read_large(handle: &mut LogHandle) -> Option<Vec<u8>> {
    let read = Read {
        value: true,
        touch: Some(Expiry::At(Time(NOW.0 + 1))),
        ..Read::default()
    };
    match &run(handle, &[(subject(), Op::Read(read))])[0] {
        Answer::Large(value) => Some(bytes_of(value)),
        Answer::Done(Reply::Miss) => None,
        _ => panic!("a get is answered by a value or a miss"),
    }
}

fn bytes_of(value: &impl Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < value.len() {
        bytes.extend_from_slice(value.chunk(bytes.len()));
    }
    bytes
}

/// Log 5: a large value is found while its head moves, or one of its segments, and all of it is there.
#[test]
fn a_large_value_that_moves_is_never_missed() {
    for moves in [Moves::Head, Moves::Segment] {
        beside(2, &LARGE, moves, read_large, |handle, seen| {
            assert_eq!(seen.as_deref(), Some(&LARGE[..]));
            assert_eq!(read_large(handle).as_deref(), Some(&LARGE[..]));
        });
    }
}

/// Store 2, log 2: the same, and all of it is freed once.
#[test]
fn a_large_value_that_moves_is_removed() {
    let remove = |handle: &mut LogHandle| delete(handle, subject());
    for moves in [Moves::Head, Moves::Segment] {
        beside(2, &LARGE, moves, remove, |handle, removed| {
            assert!(removed);
            assert_eq!(read_large(handle), None);
        });
    }
}
