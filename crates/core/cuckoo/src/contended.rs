//! Tests of readers and rewriters beside a writer that is always faster. The writer runs in the middle of their
//! operations, whenever their key is not locked, so each test can count the attempts that it spoiled.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::config::CuckooConfig;
use super::get::ATTEMPTS;
use super::handle::{COPY_MAX, CuckooHandle};
use super::index::Candidates;
use super::layout::{EightWay, Paper, Variant};
use super::local::Local;
use super::*;
use nuthatch_engine::reply::{Item, Replies, Reply};
use nuthatch_engine::request::{
    Expiry, Key, Leave, Op, Read, Removal, Request, Store as Put, StoreMode,
};
use nuthatch_engine::{Cursor, Handle, Value};
use nuthatch_store::count::ThreadCounters;
use nuthatch_store::eviction::log::{
    Candidate, Evicted, Ghost, LogPolicy, LogPolicyKind, Memory, Next, Queue, Queues,
};
use nuthatch_store::item::HEADER;
use nuthatch_store::item::read_hook::{ReadHookGuard, on_read};
use nuthatch_store::table::{self, Table};

const NOW: Time = Time(16);
const KEY: &[u8] = b"contended";

/// No operation may have more attempts spoiled than this.
const ENOUGH: usize = 4 * ATTEMPTS;

type Engine8 = Cuckoo<EightWay>;

fn engine() -> Arc<Engine8> {
    Arc::new(Cuckoo::new(CuckooConfig::default()).unwrap())
}

fn place(engine: &Engine8) -> Candidates {
    engine.index.place(engine.hasher.hash(KEY))
}

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Value(Vec<u8>),
    Found,
    Stored,
    Removed,
    Other,
}

/// The answer to one request; `hook` is called each time that the reader obtains room for a value.
struct One<F> {
    hook: F,
    room: Vec<MaybeUninit<u8>>,
    answer: Answer,
}

impl<F> One<F> {
    fn new(hook: F) -> Self {
        Self {
            hook,
            room: Vec::new(),
            answer: Answer::Other,
        }
    }
}

impl<V: Value, F: FnMut()> Replies<V> for One<F> {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        (self.hook)();
        self.room = vec![MaybeUninit::new(0); item.value_len];
        &mut self.room
    }
    fn commit(&mut self, _: usize) {
        // SAFETY: made initialised, and only ever written.
        let bytes = self.room.iter().map(|byte| unsafe { byte.assume_init() });
        self.answer = Answer::Value(bytes.collect());
    }
    fn retract(&mut self, _: usize) {}
    fn large(&mut self, _: usize, _: &Item, value: V) {
        let mut bytes = Vec::new();
        while bytes.len() < value.len() {
            bytes.extend_from_slice(value.chunk(bytes.len()));
        }
        self.answer = Answer::Value(bytes);
    }
    fn done(&mut self, _: usize, reply: Reply) {
        self.answer = match reply {
            Reply::Stored(_) => Answer::Stored,
            Reply::Found(_) => Answer::Found,
            Reply::Removed => Answer::Removed,
            _ => Answer::Other,
        };
    }
}

fn ask<D: Variant>(handle: &mut CuckooHandle<D>, op: Op<'_>, hook: impl FnMut()) -> Answer {
    let key = Key::new(KEY, &handle.engine().hasher.clone());
    let mut one = One::new(hook);
    handle.execute(NOW, &[Request { key, op }], &mut one);
    one.answer
}

fn set<D: Variant>(handle: &mut CuckooHandle<D>, value: &[u8]) {
    assert_eq!(
        ask(handle, Op::Store(Put::set(value)), || {}),
        Answer::Stored
    );
}

fn get(engine: &Arc<Engine8>) -> Vec<u8> {
    match ask(&mut engine.handle(), Op::Get, || {}) {
        Answer::Value(value) => value,
        answer => panic!("{answer:?}"),
    }
}

/// Stores a new value of `len` bytes whenever the key is not locked, up to `turns` times.
fn writer(
    engine: &Arc<Engine8>,
    len: usize,
    turns: usize,
) -> (impl FnMut() + use<>, Arc<AtomicUsize>) {
    let written = Arc::new(AtomicUsize::new(0));
    let (engine, count) = (Arc::clone(engine), Arc::clone(&written));
    let mut handle = engine.handle();
    let hook = move || {
        if engine.index.begin_at_rest(&place(&engine)).is_some()
            && count.load(Ordering::Relaxed) < turns
        {
            let turn = 1 + count.fetch_add(1, Ordering::Relaxed);
            set(&mut handle, &value(turn, len));
        }
    };
    (hook, written)
}

/// The value of a turn.
fn value(turn: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (turn + at / 100) as u8).collect()
}

#[test]
fn a_read_that_is_spoiled_each_time_takes_the_lock() {
    for op in [Op::Get, Op::Read(Read::default())] {
        let engine = engine();
        let mut handle = engine.handle();
        set(&mut handle, &value(0, 500));
        let (hook, written) = writer(&engine, 500, ENOUGH);
        let answer = ask(&mut handle, op, hook);
        let written = written.load(Ordering::Relaxed);
        // A plain get has tried the fast path before.
        assert!(
            (ATTEMPTS..=ATTEMPTS + 1).contains(&written),
            "{written} attempts"
        );
        assert_eq!(answer, Answer::Value(value(written, 500)));
        assert!(engine.stats().read_retries >= ATTEMPTS as u64);
        engine.audit().unwrap();
    }
}

/// In the paper's design. The reads run in another thread, which would wait for this one.
#[test]
fn a_read_that_changes_nothing_waits_for_no_writer() {
    let engine = Arc::new(Cuckoo::<Paper>::new(CuckooConfig::default()).unwrap());
    for len in [500, COPY_MAX + 1] {
        let stored = value(0, len);
        set(&mut engine.handle(), &stored);
        let writer = engine.one_writer();
        assert!(writer.is_some());
        let (answers, answered) = mpsc::channel();
        let mut handle = engine.handle();
        let reader = thread::spawn(move || {
            answers
                .send(ask(&mut handle, Op::Read(Read::default()), || {}))
                .unwrap();
            answers.send(ask(&mut handle, Op::Get, || {})).unwrap();
        });
        for _ in 0..2 {
            let answer = answered.recv_timeout(Duration::from_secs(60));
            assert!(
                answer == Ok(Answer::Value(stored.clone())),
                "a reader waits for a writer"
            );
        }
        drop(writer);
        reader.join().unwrap();
        engine.audit().unwrap();
    }
}

/// A reader that pins a value, or copies it under the lock, spoils no other reader; one that changes the item does.
#[test]
fn a_read_under_the_lock_that_changes_nothing_is_not_noticed() {
    let touch = Read {
        value: true,
        touch: Some(Expiry::At(Time(1600))),
        ..Read::default()
    };
    let read = Read {
        value: true,
        ..Read::default()
    };
    for (op, spoils) in [
        (Op::Get, false),
        (Op::Read(read), false),
        (Op::Read(touch), true),
    ] {
        let engine = engine();
        let mut handle = engine.handle();
        set(&mut handle, &value(0, COPY_MAX + 1));
        let (seen, _) = engine.index.begin(&place(&engine));
        assert_eq!(
            ask(&mut handle, op, || {}),
            Answer::Value(value(0, COPY_MAX + 1))
        );
        assert_eq!(!engine.index.unchanged(&seen), spoils);
        engine.audit().unwrap();
    }
}

#[test]
fn a_visit_that_is_spoiled_each_time_takes_the_lock() {
    let engine = engine();
    let mut handle = engine.handle();
    // Numbers are changed where they lie, so the walk does not lose the item.
    set(&mut handle, b"100");
    let (seen, turns) = (Arc::clone(&engine), Arc::new(AtomicUsize::new(0)));
    let (count, mut writer) = (Arc::clone(&turns), engine.handle());
    let hooked: ReadHookGuard = on_read(move || {
        if seen.index.begin_at_rest(&place(&seen)).is_some()
            && count.load(Ordering::Relaxed) < ENOUGH
        {
            count.fetch_add(1, Ordering::Relaxed);
            let up = Op::Delta(nuthatch_engine::request::Delta::up(1));
            ask(&mut writer, up, || {});
        }
    });
    let mut met = Vec::new();
    let mut from = Some(Cursor::default());
    while let Some(cursor) = from {
        from = handle.visit(NOW, cursor, 1000, &mut |visit| {
            met.push(visit.value.to_vec())
        });
    }
    drop(hooked);
    let turns = turns.load(Ordering::Relaxed);
    assert_eq!(turns, ATTEMPTS);
    assert_eq!(met, [(100 + turns).to_string().into_bytes()]);
}

#[test]
fn a_value_is_taken_in_one_step() {
    for len in [500, 20_000, 900_000] {
        let engine = engine();
        let mut handle = engine.handle();
        set(&mut handle, &value(0, len));
        let (hook, written) = writer(&engine, len, ENOUGH);
        let mut one = One::new(hook);
        handle.take(NOW, Key::new(KEY, &engine.hasher.clone()), &mut one);
        // The writer does not get between the read and the removal.
        assert_eq!(written.load(Ordering::Relaxed), 0);
        assert_eq!(one.answer, Answer::Value(value(0, len)));
        let mut again = One::new(|| {});
        handle.take(NOW, Key::new(KEY, &engine.hasher.clone()), &mut again);
        assert_eq!(again.answer, Answer::Other);
        assert_eq!(engine.stats().items, 0);
        engine.audit().unwrap();
    }
}

thread_local! {
    /// Runs once, in the middle of a judgement, in which the item is to leave.
    static JUDGED: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// The default policy, interrupted by [`JUDGED`].
struct Interrupted(Box<dyn LogPolicy>);

static INTERRUPTED: LogPolicyKind = LogPolicyKind {
    name: "interrupted",
    help: "",
    ghosts: true,
    build: || Box::new(Interrupted((LogPolicyKind::default_kind().build)())),
};

impl LogPolicy for Interrupted {
    fn admit(&self, ghost: &Ghost, memory: &Memory) -> Queue {
        self.0.admit(ghost, memory)
    }
    fn note_queues(&self, queues: &Queues, memory: &Memory) {
        self.0.note_queues(queues, memory);
    }
    fn uncounted(&self, probation: usize) -> usize {
        self.0.uncounted(probation)
    }
    fn probation(&self, memory: &Memory) -> usize {
        self.0.probation(memory)
    }
    fn next(&self, pages: [usize; 2], memory: &Memory) -> Next {
        self.0.next(pages, memory)
    }
    fn note_emptying(&self, queue: Queue, pages: [usize; 2], memory: &Memory) {
        self.0.note_emptying(queue, pages, memory);
    }
    fn note_stay(&self, queue: Queue) {
        self.0.note_stay(queue);
    }
    fn judge(&self, queue: Queue, item: &Candidate, memory: &Memory) -> Option<u8> {
        if item.bytes == HEADER + KEY.len() + SUBJECT
            && let Some(hook) = JUDGED.take()
        {
            hook();
            return None;
        }
        self.0.judge(queue, item, memory)
    }
    fn note_eviction(&self, queue: Queue, item: &Evicted) {
        self.0.note_eviction(queue, item);
    }
}

/// Bytes of the value that is judged. All others are shorter, and all records of one length but its own: so its page has
/// less room left than others, and is closed before them.
const SUBJECT: usize = 39;

/// Class of bug: what was decided about an item is carried out on the one that took its place.
#[test]
fn a_value_is_not_evicted_by_the_judgement_of_the_one_before() {
    let engine = Arc::new(
        Cuckoo::<EightWay>::new(CuckooConfig {
            memory_limit: 1 << 20,
            item_size_max: 1 << 10,
            eviction: &INTERRUPTED,
            // No item leaves for want of a slot.
            initial_items: Some(30_000),
            ..CuckooConfig::default()
        })
        .unwrap(),
    );
    let mut handle = engine.handle();
    let hasher = engine.hasher().clone();
    let mut numbers = 0_u64..100_000;
    let mut store = |handle: &mut CuckooHandle<EightWay>| {
        let number = numbers.next().expect("the item is judged");
        let key = number.to_le_bytes();
        let request = Request {
            key: Key::new(&key, &hasher),
            op: Op::Store(Put::set(&[1; 32])),
        };
        handle.execute(NOW, &[request], &mut One::new(|| {}));
    };
    // The first items are in the main queue by then, which stays as it is.
    while engine.stats().evictions <= engine.stats().items {
        store(&mut handle);
    }
    set(&mut handle, &value(0, SUBJECT));
    let mut beside = engine.handle();
    JUDGED.set(Some(Box::new(move || {
        set(&mut beside, &value(1, SUBJECT));
    })));
    while JUDGED.with_borrow(Option::is_some) {
        store(&mut handle);
    }
    assert_eq!(get(&engine), value(1, SUBJECT));
    engine.audit().unwrap();
}

/// A dead value is not answered, and its memory is freed.
#[test]
fn a_dead_value_is_taken_out_and_not_answered() {
    let engine = engine();
    let mut handle = engine.handle();
    set(&mut handle, b"gone");
    let mut one = One::new(|| {});
    engine.flush(NOW, NOW);
    handle.take(NOW, Key::new(KEY, &engine.hasher.clone()), &mut one);
    assert_eq!((one.answer, engine.stats().items), (Answer::Other, 0));
    engine.audit().unwrap();
}

#[test]
fn an_item_that_is_replaced_each_time_is_renewed() {
    const LEN: usize = 20_000;
    let engine = engine();
    let mut handle = engine.handle();
    set(&mut handle, &value(0, LEN));
    let (hook, written) = writer(&engine, LEN, usize::MAX);
    let hooked = on_read(hook);
    let (key, later) = (
        Key::new(KEY, &engine.hasher.clone()),
        Expiry::At(Time(1600)),
    );
    let renewed = handle.renew(NOW, key, later, 1 << 20).unwrap();
    drop(hooked);
    assert_eq!((renewed.expiry, renewed.flags), (later, 1 << 20));
    let written = written.load(Ordering::Relaxed);
    assert!(written > ENOUGH, "{written}");
    assert_eq!(get(&engine), value(written, LEN));
    drop(handle);
    engine.audit().unwrap();
}

/// Fills the two buckets of the key with items of other keys.
fn crowd(engine: &Arc<Engine8>, handle: &mut CuckooHandle<EightWay>) {
    let buckets = |hash| {
        let (_, buckets) = engine.index.begin(&engine.index.place(hash));
        [buckets[0].min(buckets[1]), buckets[0].max(buckets[1])]
    };
    let hasher = engine.hasher.clone();
    let here = buckets(hasher.hash(KEY));
    let keys = (0_u64..).map(u64::to_le_bytes);
    for key in keys
        .filter(|key| buckets(hasher.hash(key)) == here)
        .take(16)
    {
        let request = Request {
            key: Key::new(&key, &hasher),
            op: Op::Store(Put::set(b"other")),
        };
        let mut one = One::new(|| {});
        handle.execute(NOW, &[request], &mut one);
        assert_eq!(one.answer, Answer::Stored);
    }
}

/// The last resort of a store that found each slot taken that it had made free: no other turn is needed.
#[test]
fn a_store_takes_the_place_of_an_item_under_the_lock() {
    for evicts in [true, false] {
        let engine = Arc::new(
            Cuckoo::new(CuckooConfig {
                initial_items: Some(1),
                evicts,
                ..CuckooConfig::default()
            })
            .unwrap(),
        );
        crowd(&engine, &mut engine.handle());
        let hasher = engine.hasher.clone();
        let key = Key::new(KEY, &hasher);
        let lookup = &table::Lookup {
            now: NOW,
            key,
            index: 0,
        };
        let counters = ThreadCounters::register(&engine.counters);
        let local = &mut Local::new(0, counters, 1);
        let shape = engine.shape(KEY.len(), 4, false);
        let put = Put::set(b"mine");
        let mut filled = || {
            let fresh = engine.allocate(local, NOW, &key, shape, false).unwrap();
            engine
                .store
                .write_value(fresh.address, &shape, 0, put.value);
            fresh
        };
        let (first, second) = (filled(), filled());
        let Err(first) = engine.enter(local, lookup, first, &put, false) else {
            panic!("a slot is free");
        };
        engine.store.discard(first);
        match engine.enter(local, lookup, second, &put, true) {
            Ok(reply) => {
                assert!(evicts && matches!(reply, Reply::Stored(_)));
                assert_eq!(get(&engine), b"mine");
            }
            Err(second) => {
                assert!(!evicts);
                engine.store.discard(second);
            }
        }
        let stats = engine.stats();
        assert_eq!((stats.items, stats.evictions), (16, u64::from(evicts)));
        engine.audit().unwrap();
    }
}

/// While another thread splits buckets, and has lost its core, the table is full and memory is not: the store waits for a
/// few split buckets, and nothing leaves.
#[test]
fn a_store_waits_for_the_thread_that_splits() {
    const ITEMS: u64 = 4000;
    for evicts in [true, false] {
        let engine = Arc::new(
            Engine8::new(CuckooConfig {
                initial_items: Some(1),
                evicts,
                ..CuckooConfig::default()
            })
            .unwrap(),
        );
        let stored = AtomicUsize::new(0);
        thread::scope(|scope| {
            let splitter = engine.splitter.lock();
            let geometry = engine.index.geometry();
            scope.spawn(|| {
                let handle = &mut engine.handle();
                for number in 0..ITEMS {
                    let key = number.to_le_bytes();
                    let request = Request {
                        key: Key::new(&key, &engine.hasher),
                        op: Op::Store(Put::set(b"value")),
                    };
                    let mut one = One::new(|| {});
                    handle.execute(NOW, &[request], &mut one);
                    assert_eq!(one.answer, Answer::Stored);
                    stored.fetch_add(1, Ordering::Relaxed);
                }
            });
            // Until the table is about full. Then the thread may go on, or wait: nothing must leave.
            let slots = EightWay::SLOTS * geometry.buckets() as usize;
            while stored.load(Ordering::Relaxed) < slots * 9 / 10 {
                thread::yield_now();
            }
            for _ in 0..10_000 {
                thread::yield_now();
            }
            drop(splitter);
        });
        let stats = engine.stats();
        assert_eq!((stats.items, stats.evictions), (ITEMS, 0));
        engine.audit().unwrap();
    }
}

/// A rewrite that keeps a long value, its answer, and the value after it.
struct Case {
    op: Op<'static>,
    answer: Answer,
    after: fn(Vec<u8>) -> Vec<u8>,
}

fn cases() -> [Case; 3] {
    let store = |mode| {
        Op::Store(Put {
            mode,
            ..Put::set(b"more")
        })
    };
    let stale = Removal {
        leave: Leave::Stale {
            expiry: None,
            new_cas: None,
        },
        ..Removal::default()
    };
    [
        Case {
            op: store(StoreMode::Append),
            answer: Answer::Stored,
            after: |value| [&value, &b"more"[..]].concat(),
        },
        Case {
            op: store(StoreMode::Prepend),
            answer: Answer::Stored,
            after: |value| [&b"more"[..], &value].concat(),
        },
        Case {
            op: Op::Remove(stale),
            answer: Answer::Removed,
            after: |value| value,
        },
    ]
}

/// Lengths in one chunk and in pieces.
const LONG: [usize; 2] = [100_000, 900_000];

#[test]
fn a_long_value_is_not_copied_under_the_lock() {
    for len in LONG {
        for Case { op, answer, after } in cases() {
            let engine = engine();
            let mut handle = engine.handle();
            set(&mut handle, &value(0, len));
            let seen = Arc::clone(&engine);
            let reads = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&reads);
            let hooked = on_read(move || {
                let free = seen.index.begin_at_rest(&place(&seen)).is_some();
                assert!(free, "copied under the lock");
                count.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(ask(&mut handle, op, || {}), answer);
            drop(hooked);
            assert!(reads.load(Ordering::Relaxed) > 0);
            assert_eq!(get(&engine), after(value(0, len)));
            drop(handle);
            engine.audit().unwrap();
        }
    }
}

/// A copy is not stored if the item has been replaced meanwhile: the rewrite applies to the new item.
#[test]
fn a_value_that_is_replaced_while_it_is_copied_is_copied_again() {
    for len in LONG {
        for turns in [1, 2] {
            for Case { op, answer, after } in cases() {
                let engine = engine();
                let mut handle = engine.handle();
                set(&mut handle, &value(0, len));
                let (hook, written) = writer(&engine, len, turns);
                let hooked = on_read(hook);
                assert_eq!(ask(&mut handle, op, || {}), answer);
                drop(hooked);
                assert_eq!(written.load(Ordering::Relaxed), turns);
                assert_eq!(get(&engine), after(value(turns, len)));
                drop(handle);
                engine.audit().unwrap();
            }
        }
    }
}

/// A value that is replaced each time is copied under the lock in the end, and is whole.
#[test]
fn a_value_that_is_replaced_each_time_is_copied_under_the_lock() {
    const LEN: usize = 20_000;
    for Case { op, answer, after } in cases() {
        let engine = engine();
        let mut handle = engine.handle();
        set(&mut handle, &value(0, LEN));
        let (hook, written) = writer(&engine, LEN, usize::MAX);
        let hooked = on_read(hook);
        assert_eq!(ask(&mut handle, op, || {}), answer);
        drop(hooked);
        let written = written.load(Ordering::Relaxed);
        // At each piece of each copy but the last.
        assert!(written > ENOUGH, "{written}");
        assert_eq!(get(&engine), after(value(written, LEN)));
        drop(handle);
        engine.audit().unwrap();
    }
}
