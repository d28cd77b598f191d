//! Models of items in a log, which a cleaning moves from page to page while other threads read, write and remove them.
//!
//! A page has 32 words, and the longest record half of them. Most models begin with a full log that evicts nothing: a
//! store then cleans the page that has a gap, and moves the other records in it.

use std::sync::Arc;

use loom::sync::atomic::{Ordering, fence};
use loom::thread;
use nuthatch_cuckoo::handle::CuckooHandle;
use nuthatch_cuckoo::index::Index;
use nuthatch_cuckoo::layout::SlotWord;
use nuthatch_cuckoo::reading::{Copied, Reading};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{
    Delta, Engine, Expiry, Handle, Key, Op, Read, Reply, Reservation, Store, Time, Value,
};

use nuthatch_engine::stats::LogStats;
use nuthatch_store::eviction::log::LogPolicyKind;
use nuthatch_store::fault::{self, Fault as StoreFault};
use nuthatch_store::item::{Fields, Header, Shape};
use nuthatch_store::log::{Log, Need, Plan, Purpose, Stream};
use nuthatch_store::memory::arena::Address;
use nuthatch_store::memory::sizes::Sizes;

use crate::world::*;

type Logged = Cuckoo<InLog>;
pub type LogStore = nuthatch_store::store::Store<Log>;
type LogHandle = CuckooHandle<InLog>;

/// Buckets of the index.
const BUCKETS: u64 = 8;

/// Bytes of index and stripes, and of the ghosts, which have one bucket.
const INDEX: usize = BUCKETS as usize * 2 * 8 + BUCKETS as usize * 4 + 16;

/// Bytes of a page: itself, its recency bits, and the log's state of it.
const PAGE: usize = 256 + 3 * 8 + 7 * 8;

/// A value length that makes the longest record, with a key and a narrow header: two records fill a page.
const HALF: usize = 104;

/// `value(1)`.
const ONE: [u8; 16] = [
    1, 0, 0, 0, 0, 0, 0, 0, 254, 255, 255, 255, 255, 255, 255, 255,
];

/// A value of another record size than `ONE`, so that it is not written over it.
const SHORTER: [u8; 8] = [3; 8];

/// The value that is stored when there is no room: beside it and the records that move then, a short value fits.
const NEXT: [u8; 64] = [2; 64];

/// Over the models' copy limit, in two pieces.
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
    build(move || Arc::new(Cuckoo::new(config).unwrap()))
}

/// A store of a few pages, without an index.
pub fn log_store() -> Arc<LogStore> {
    build(|| {
        let sizes = Sizes::for_log(1024, 64, 2.0);
        let policy = LogPolicyKind::default_kind();
        Arc::new(LogStore::new(1024, 1024, sizes, policy).unwrap())
    })
}

/// The key that the models are about: no other key is in its buckets.
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

/// A log without room unless a page is cleaned.
struct Full {
    engine: Arc<Logged>,
    handle: LogHandle,
    /// A key that it does not have.
    next: u64,
}

/// The record in the page that is cleaned first, beside half a page that is a gap by then.
#[derive(Clone, Copy)]
enum Moves {
    /// The subject's item; if that is large, its head.
    Head,
    /// The second piece of the subject's item.
    Piece,
}

/// The subject's item, a gap, and other items in all pages but the one that is kept free.
fn full(value: &[u8], moves: Moves) -> Full {
    full_after(value, moves, |_| ()).0
}

/// The same, with an action before the other items are stored.
fn full_after<T>(value: &[u8], moves: Moves, first: impl FnOnce(&mut LogHandle) -> T) -> (Full, T) {
    let engine = engine(4, false);
    let mut handle = engine.handle();
    let [gap, rest, others @ ..] = fillers();
    match moves {
        Moves::Head => {
            set_bytes(&mut handle, gap, &[1; HALF]);
            set_bytes(&mut handle, subject(), value);
            // A full page gets no more records, so it is closed.
            let head = if value.len() > HALF {
                32 + 8 + 2 * 8
            } else {
                16 + 8 + value.len()
            };
            set_bytes(&mut handle, rest, &[1; HALF][head.next_multiple_of(8)..]);
        }
        Moves::Piece => {
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

/// A cleaning beside another thread, which uses the subject; `after` checks the result.
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
        // If not, the memory that the other thread was about to free was still missing.
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

/// Log 4, store 3: another item is written to the place that the moved one has left, and begins at the same word.
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
        |handle| set_bytes(handle, subject(), &SHORTER),
        |handle, ()| {
            assert_eq!(get_bytes(handle), SHORTER);
        },
    );
}

/// Log 5: the same for a value that is written over the present one. Bytes that a cleaning has copied without the lock
/// are then copied again.
#[test]
fn an_item_that_moves_is_overwritten() {
    beside(
        3,
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

/// Store 2, log 2: a delete frees the old place or the new one, and the cleaning the other, each once: the audit
/// counts.
#[test]
fn an_item_that_moves_is_removed() {
    let remove = |handle: &mut LogHandle| delete(handle, subject());
    beside(3, &ONE, Moves::Head, remove, |handle, removed| {
        assert!(removed);
        assert_eq!(get(handle, subject()), None);
    });
}

/// Log 5: words that change in place are copied under the lock.
#[test]
fn no_increment_of_a_number_that_moves_is_lost() {
    let count = |handle: &mut LogHandle| increment(handle, subject());
    beside(3, b"8", Moves::Head, count, |handle, sum| {
        assert_eq!((sum, increment(handle, subject())), (9, 10));
    });
}

/// Log 5, cuckoo 2: two threads find no room, and each cleans a page, or helps with one. The subject lies in one of
/// them, and half of the other is a gap, too.
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

/// Log 5: a value that is read in place stays there, and its page is not used again before its reader has released it.
#[test]
fn a_value_that_is_read_in_place_does_not_move() {
    for moves in [Moves::Head, Moves::Piece] {
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
            // No reader holds it any more, so its page can be cleaned.
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

/// Reads all bytes of a large value, with a new time to live; `None` is a miss. (A plain get would find it without a
/// lock first, like any item: many more interleavings for a model to explore.)
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

/// Log 5: a large value is found while its head moves, or one of its pieces, and all of it is there.
#[test]
fn a_large_value_that_moves_is_never_missed() {
    for moves in [Moves::Head, Moves::Piece] {
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
    for moves in [Moves::Head, Moves::Piece] {
        beside(2, &LARGE, moves, remove, |handle, removed| {
            assert!(removed);
            assert_eq!(read_large(handle), None);
        });
    }
}

/// The value of the item that is evicted below.
const VICTIM: u64 = 7;

/// A log that evicts, and is short of pages as soon as another item comes: then a page is cleaned that has the subject,
/// which was used, and items that were not. `next` is a key that it does not have.
fn short() -> Full {
    short_of(&value(VICTIM))
}

/// The same with another value of the first victim.
fn short_of(first: &[u8]) -> Full {
    let engine = engine(4, true);
    let mut handle = engine.handle();
    let [victim, rest, others @ ..] = fillers();
    set_bytes(&mut handle, victim, first);
    set_bytes(&mut handle, subject(), b"8");
    assert_eq!(get_bytes(&mut handle), b"8");
    // The rest of the page.
    set_bytes(
        &mut handle,
        rest,
        &[1; 48][first.len().next_multiple_of(8)..],
    );
    for key in &others[..3] {
        set_bytes(&mut handle, *key, &[1; HALF]);
    }
    assert_eq!(
        (engine.stats().evictions, log_stats(&engine).pages_cleaned),
        (0, 0)
    );
    Full {
        engine,
        handle,
        next: others[4],
    }
}

/// A store that evicts and moves beside another thread.
fn beside_eviction<T: 'static>(
    preemptions: usize,
    other: impl Fn(&mut LogHandle) -> T + Copy + Send + Sync + 'static,
    after: impl Fn(&mut LogHandle, T) + Send + Sync + 'static,
) {
    model(preemptions, move || {
        let Full {
            engine,
            mut handle,
            next,
        } = short();
        let mut beside = engine.handle();
        let thread = thread::spawn(move || other(&mut beside));
        set_bytes(&mut handle, next, &[2; HALF]);
        after(&mut handle, thread.join().unwrap());
        assert_eq!(get(&mut handle, fillers()[0]), None);
        assert_ne!(log_stats(&engine).bytes_moved, 0);
        audit(&engine);
    });
}

/// Store 1 and 2, log 5: a cleaning passes over pinned items, but a reader may pin a value between that look and the
/// eviction. Its bytes stay, and none of its pages is used again, before the reader has released it; then all of it is
/// freed once, by the reader or by the thread that evicts.
#[test]
fn a_value_that_is_read_in_place_is_evicted() {
    long_model(3, || {
        let engine = engine(4, true);
        let mut handle = engine.handle();
        set_bytes(&mut handle, subject(), &LARGE);
        let [first, second, others @ ..] = fillers();
        set_bytes(&mut handle, first, &[1; HALF]);
        assert_eq!(engine.stats().evictions, 0);
        let mut beside = engine.handle();
        let reader = thread::spawn(move || {
            // This read is no use, or the value would stay.
            let read = Read {
                bump: false,
                touch: Some(Expiry::Never),
                ..Read::default()
            };
            match &run(&mut beside, &[(subject(), Op::Read(read))])[0] {
                Answer::Large(value) => assert_eq!(bytes_of(value), LARGE),
                Answer::Done(Reply::Miss) => {}
                _ => panic!("a get is answered by a value or a miss"),
            }
        });
        let stored = try_set(&mut handle, second, &[2; HALF]);
        reader.join().unwrap();
        // No reader holds it any more, so its pages can be used, in the order of the queue: beside the reader the store
        // may have passed over them, and evicted the first.
        assert!(stored || try_set(&mut handle, second, &[2; HALF]));
        for other in &others[..3] {
            set_bytes(&mut handle, *other, &[3; HALF]);
        }
        assert_eq!(read_large(&mut handle), None);
        audit(&engine);
    });
}

/// MemC3 section 4, store 2: a client removes a victim at the same time, and it is freed once.
#[test]
fn a_victim_is_removed_or_evicted() {
    let remove = |handle: &mut LogHandle| delete(handle, fillers()[0]);
    beside_eviction(3, remove, |handle, removed| {
        let evictions = handle.engine().stats().evictions;
        // The other items of the page leave in any case.
        assert_eq!(evictions + u64::from(removed), 3);
        assert_eq!(increment(handle, subject()), 9);
    });
}

/// A number that is not used is counted up beside the eviction that has judged it. (It is written over in place, like a
/// value by a store. But a store that comes too late looks for memory, in too many ways for a model.)
fn count_up_a_victim(fault: Option<StoreFault>) {
    model(3, move || {
        fault::choose(fault);
        let Full {
            engine,
            mut handle,
            next,
        } = short_of(b"7");
        let victim = fillers()[0];
        let mut beside = engine.handle();
        let counter = thread::spawn(move || {
            let answer = &run(&mut beside, &[(victim, Op::Delta(Delta::up(1)))])[0];
            matches!(answer, Answer::Done(Reply::Number(8, _)))
        });
        set_bytes(&mut handle, next, &[2; HALF]);
        let counted = counter.join().unwrap();
        let answer = &run(&mut handle, &[(victim, Op::Get)])[0];
        let left = matches!(answer, Answer::Value(bytes) if bytes == b"8");
        assert_eq!(left, counted, "a change is lost");
        audit(&engine);
    });
}

/// Log 5: who wrote over the victim's value was told so: the judgement of the value before is not carried out on it.
#[test]
fn a_value_is_not_evicted_by_the_judgement_of_the_one_before() {
    count_up_a_victim(None);
}

#[test]
#[should_panic(expected = "a change is lost")]
fn canary_a_value_is_evicted_by_the_judgement_of_the_one_before() {
    count_up_a_victim(Some(StoreFault::JudgesTheOneBefore));
}

/// Log 5: an item that stays is changed beside the eviction: it moves before the change or after it.
#[test]
fn what_stays_is_counted_up_beside_an_eviction() {
    let count = |handle: &mut LogHandle| increment(handle, subject());
    beside_eviction(3, count, |handle, sum| {
        assert_eq!((sum, increment(handle, subject())), (9, 10));
    });
}

/// Log 3 and 4: two threads store, evict and move. (With a preemption it takes minutes.)
#[test]
fn two_threads_evict() {
    let store = |handle: &mut LogHandle| set_bytes(handle, fillers()[6], &[3; HALF]);
    beside_eviction(in_long_checks(1), store, |handle, ()| {
        assert_eq!(increment(handle, subject()), 9);
    });
}

/// Log 3: a thread that finds no page to clean may close a page at any moment. That page is cleaned only if nothing in
/// it is private.
#[test]
fn a_page_with_a_private_record_is_not_cleaned() {
    model(2, || {
        let store = log_store();
        let append = |store: &LogStore| {
            let log = store.log();
            let appended = log.append(store, Stream::New, 64, None, Purpose::New);
            appended.unwrap().address
        };
        let gap = append(&store);
        store.free_private(gap);
        let appender = {
            let store = Arc::clone(&store);
            thread::spawn(move || append(&store))
        };
        let closer = {
            let store = Arc::clone(&store);
            thread::spawn(move || store.log().close_open())
        };
        let log = store.log();
        let plan = Plan {
            need: Need::Room,
            evicts: true,
        };
        if let Ok(mut work) = log.start_cleaning(&store, &plan) {
            let cleaning = work.take().unwrap();
            assert!(log.finish_cleaning(&store, &cleaning), "it is not empty");
        }
        appender.join().unwrap();
        closer.join().unwrap();
    });
}

/// One step that a move leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// None.
    Whole,
    /// All that may change is copied before the lock is taken, and not again under it.
    CopiesBefore,
    /// The lock is released as if nothing had changed.
    KeepsVersions,
    /// The copy made before the lock was taken is used without a check.
    TrustsItsCopy,
}

/// One item with a value of two words, or of one piece of two words, and the place to which it, or its piece,
/// moves.
struct Steps {
    store: Arc<LogStore>,
    index: Index<InLog>,
    shape: Shape,
    head: Address,
    to: Address,
}

/// The item's hash.
const HASH: u64 = 5 << 40;

pub fn fields(sequence: u64) -> Fields {
    Fields {
        flags: 0,
        expiry: Expiry::Never,
        sequence,
        cas: None,
        stale: false,
        won: false,
    }
}

impl Steps {
    fn new(piece: Option<usize>) -> Arc<Self> {
        let store = log_store();
        let shape = Shape {
            key_len: 8,
            value_len: if piece.is_some() { 8 } else { 16 },
            wide: piece.is_some(),
            piece,
        };
        let append = |bytes, whole: Option<&Shape>| {
            let log = store.log();
            log.append(&store, Stream::Kept, bytes, whole, Purpose::New)
                .unwrap()
                .address
        };
        let obtain = |bytes, whole: Option<&Shape>| Some(append(bytes, whole));
        let head = store.allocate_item(&shape, obtain).unwrap();
        let value = [7_u64.to_le_bytes(); 2];
        store.write_value(head, &shape, 0, &value.as_flattened()[..shape.value_len]);
        Header::new(&shape, &fields(1)).store(&store.arena, head);
        let to = append(32, None);
        let index = Index::new(2, 2, 2).unwrap();
        let locked = index.lock(&index.place(HASH));
        let at = locked.free_slot().unwrap();
        locked.store(at, SlotWord::new::<InLog>(locked.place.tag, head));
        drop(locked);
        Arc::new(Self {
            store,
            index,
            shape,
            head,
            to,
        })
    }

    /// The item's chunk.
    fn chunk(&self, buckets: [u64; 2]) -> Address {
        let found = self.index.first_match(buckets, self.index.place(HASH).tag);
        found.expect("the item is in the index").address::<InLog>()
    }

    /// The place of the value's word: in the item, or in its piece.
    fn word(&self, address: Address) -> (Address, usize) {
        match self.shape.piece {
            Some(_) => (self.store.piece(address, &self.shape, 0), 2),
            None => (address, 3),
        }
    }

    /// The value, if nothing has changed meanwhile.
    fn read(&self) -> Option<u64> {
        let (snapshot, buckets) = self.index.begin(&self.index.place(HASH));
        let (address, at) = self.word(self.chunk(buckets));
        let number = self.store.arena.load(address, at);
        self.index.unchanged(&snapshot).then_some(number)
    }

    /// The value as another process reads it, in one attempt. `None`: it was spoiled.
    fn copy(&self) -> Option<u64> {
        let reading = Reading {
            index: &self.index,
            arena: &self.store.arena,
        };
        // The arena is zero where nothing was written.
        let (key, limits) = (Key::hashed(&[0; 8], HASH), (self.store.cut(), 512));
        let mut into = Vec::new();
        match reading.copy(&key, limits, |_| true, &mut into) {
            Copied::Found(..) => Some(u64::from_le_bytes(*into.first_chunk().unwrap())),
            Copied::Absent => panic!("the item is in the index"),
            Copied::Spoiled => None,
        }
    }

    fn count_up(&self) {
        let locked = self.index.lock(&self.index.place(HASH));
        let (address, at) = self.word(self.chunk([locked.first, locked.second]));
        let number = self.store.arena.load(address, at);
        self.store.arena.store(address, at, number + 1);
        drop(locked);
    }

    /// Writes another value over the item's: in both of its words.
    fn overwrite(&self, number: u64) {
        let locked = self.index.lock(&self.index.place(HASH));
        let address = self.chunk([locked.first, locked.second]);
        let value = [number.to_le_bytes(); 2];
        self.store
            .write_value(address, &self.shape, 0, value.as_flattened());
        fence(Ordering::Release);
        Header::new(&self.shape, &fields(2)).store(&self.store.arena, address);
        drop(locked);
    }

    /// The second word of the item's value, while no thread changes it.
    fn last(&self) -> u64 {
        let (_, buckets) = self.index.begin(&self.index.place(HASH));
        self.store.arena.load(self.chunk(buckets), 4)
    }

    fn move_all(&self, fault: Fault) {
        let Self {
            store, to, head, ..
        } = self;
        let from = if self.shape.piece.is_some() {
            store.piece(*head, &self.shape, 0)
        } else {
            *head
        };
        // As in a cleaning: the words after the first four.
        let before = match self.shape.piece {
            None => store.copy_constant(from, *to, 8),
            Some(_) => 0,
        };
        let finish = || {
            let copied = match fault {
                Fault::TrustsItsCopy => Header::load(&store.arena, from).sequence(),
                _ => before,
            };
            if self.shape.piece.is_some() {
                assert!(store.finish_piece_move(*head, from, *to));
            } else {
                store.finish_move(from, *to, copied);
            }
        };
        if fault == Fault::CopiesBefore {
            finish();
        }
        let locked = self.index.lock(&self.index.place(HASH));
        if fault != Fault::CopiesBefore {
            finish();
        }
        if self.shape.piece.is_none() {
            let tag = locked.place.tag;
            let at = locked.find(SlotWord::new::<InLog>(tag, from)).unwrap();
            locked.store(at, SlotWord::new::<InLog>(tag, *to));
        }
        if fault == Fault::KeepsVersions {
            locked.release_unmodified();
        } else {
            drop(locked);
        }
        // The next owner.
        store.begin_fill();
        for at in 0..4 {
            store.arena.store(from, at, 9);
        }
    }
}

/// Data bytes of a piece.
const PIECE: usize = 112;

fn read_beside_a_move(piece: Option<usize>, fault: Fault) {
    model(3, move || {
        let steps = Steps::new(piece);
        let reader = {
            let steps = Arc::clone(&steps);
            thread::spawn(move || assert_ne!(steps.read(), Some(9), "another's bytes"))
        };
        steps.move_all(fault);
        reader.join().unwrap();
        assert_eq!(steps.read(), Some(7));
    });
}

/// Log 5, store 3: readers without a lock, which copy, see the value in the old place or in the new one.
#[test]
fn a_move_shows_no_bytes_of_the_next_owner() {
    read_beside_a_move(None, Fault::Whole);
}

/// The same for a piece of a value that is copied.
#[test]
fn a_move_of_a_piece_shows_no_bytes_of_the_next_owner() {
    read_beside_a_move(Some(PIECE), Fault::Whole);
}

#[test]
#[should_panic(expected = "another's bytes")]
fn canary_a_move_that_keeps_the_versions_is_not_noticed() {
    read_beside_a_move(None, Fault::KeepsVersions);
}

fn copy_beside_a_move(piece: Option<usize>, fault: Fault) {
    model(2, move || {
        let steps = Steps::new(piece);
        let reader = {
            let steps = Arc::clone(&steps);
            thread::spawn(move || assert_ne!(steps.copy(), Some(9), "another's bytes"))
        };
        steps.move_all(fault);
        reader.join().unwrap();
        assert_eq!(steps.copy(), Some(7));
    });
}

/// Log 5, store 3: another process, which takes neither locks nor pins, sees the value in the old place or in the new one,
/// or tries again.
#[test]
fn another_process_sees_no_bytes_of_the_next_owner() {
    copy_beside_a_move(None, Fault::Whole);
}

/// The same for a value in pieces.
#[test]
fn another_process_sees_no_bytes_of_a_pieces_next_owner() {
    copy_beside_a_move(Some(PIECE), Fault::Whole);
}

#[test]
#[should_panic(expected = "another's bytes")]
fn canary_another_process_does_not_notice_a_move_that_keeps_the_versions() {
    copy_beside_a_move(Some(PIECE), Fault::KeepsVersions);
}

fn count_beside_a_move(fault: Fault) {
    model(3, move || {
        let steps = Steps::new(None);
        let counter = {
            let steps = Arc::clone(&steps);
            thread::spawn(move || steps.count_up())
        };
        steps.move_all(fault);
        counter.join().unwrap();
        assert_eq!(steps.read(), Some(8), "a change is lost");
    });
}

fn overwrite_beside_a_move(fault: Fault) {
    model(3, move || {
        let steps = Steps::new(None);
        let writer = {
            let steps = Arc::clone(&steps);
            thread::spawn(move || steps.overwrite(8))
        };
        steps.move_all(fault);
        writer.join().unwrap();
        assert_eq!((steps.read(), steps.last()), (Some(8), 8), "a part is old");
    });
}

/// Log 5: words that change with the sequence are copied again if it has changed.
#[test]
fn a_move_takes_the_new_value_along() {
    overwrite_beside_a_move(Fault::Whole);
}

#[test]
#[should_panic(expected = "a part is old")]
fn canary_a_move_that_does_not_look_at_the_sequence_keeps_old_bytes() {
    overwrite_beside_a_move(Fault::TrustsItsCopy);
}

/// Log 5: words that change under the lock are copied under it.
#[test]
fn a_move_loses_no_change() {
    count_beside_a_move(Fault::Whole);
}

#[test]
#[should_panic(expected = "a change is lost")]
fn canary_a_move_that_copies_before_the_lock_loses_a_change() {
    count_beside_a_move(Fault::CopiesBefore);
}
