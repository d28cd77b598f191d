//! The CPHash engine under every check, with both designs of its rings.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use nuthatch_base::sync::ring::{Array, Single};
use nuthatch_check::conformance::{self, Client, Setup};
use nuthatch_check::suite::Extent;
use nuthatch_check::{soak, suite};
use nuthatch_cphash::config::{CpHashConfig, ServerThreads};
use nuthatch_cphash::{CpHash, Rings};
use nuthatch_engine::{
    Audit, Engine, Handle, Item, Key, KeyHasher, Op, Read, Removal, Replies, Reply, Request, Store,
    Time,
};
use nuthatch_partition::Eviction;

fn config(setup: Setup) -> CpHashConfig {
    CpHashConfig {
        memory_limit: setup.memory_limit,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        // Small at first, so that it grows under every check.
        initial_items: Some(100),
        server_threads: ServerThreads::Adaptive { min: 1, max: 2 },
        ..CpHashConfig::default()
    }
}

fn start<D: Rings>(config: CpHashConfig) -> Arc<CpHash<D>> {
    Arc::new(CpHash::new(config).expect("there are memory and threads"))
}

/// The array of buffers.
fn array(setup: Setup) -> Arc<CpHash> {
    start(config(setup))
}

/// The single buffer.
fn single(setup: Setup) -> Arc<CpHash<Single>> {
    start(config(setup))
}

/// More server threads than cores, and several partitions for each thread, more for some.
fn crowded(setup: Setup) -> Arc<CpHash> {
    start(CpHashConfig {
        partitions: 7,
        server_threads: ServerThreads::Fixed(4),
        ..config(setup)
    })
}

/// Checks that wait for an answer at each step wait for another thread here, so they are smaller.
const ARRAY: Extent = Extent {
    cases: Extent::CASES_OF_PARTITIONS,
    sequences: 70,
    sequences_full: 20,
    sequences_of_bytes: 20,
    batches: 500,
    batches_of_churn: 300,
    batches_of_increments: 100,
    histories: 700,
    ..Extent::SMOKE
};

/// The checks that concern the rings.
const SINGLE: Extent = Extent {
    cases: &["batch", "read", "store", "reserve", "size"],
    histories: 700,
    ..ARRAY.part(4)
};

/// The checks that concern the threads.
const CROWDED: Extent = Extent {
    cases: &["batch", "read", "delta", "expiry", "visit"],
    threads: 8,
    // With two sequences it can happen that neither reads what it stored.
    sequences_full: 6,
    batches: 350,
    histories: 700,
    ..ARRAY.part(10)
};

suite!(array, array, ARRAY);
suite!(single, single, SINGLE);
suite!(crowded, crowded, CROWDED);

/// Without the case of drifting sizes: each element is evicted with the same chance whatever its size, so old small
/// ones keep their share for long.
#[test]
fn evicts_at_random() {
    let random = |setup| {
        start::<Array>(CpHashConfig {
            eviction: Eviction::Random,
            ..config(setup)
        })
        .any()
    };
    conformance::run(&["memory_full"], &random);
}

/// Memory of elements after everything was flushed and swept: nothing, unless a reference was lost.
fn lines_left<D: Rings>(engine: &Arc<CpHash<D>>) -> usize {
    let now = Time(2000);
    engine.flush(now, now);
    let mut handle = engine.handle();
    for _ in 0..engine.partition_count() {
        while handle.maintain(now, 1 << 20) {}
    }
    assert_eq!(engine.stats().items, 0);
    assert_eq!(engine.audit(), Ok(()));
    engine.stats().classes[0].used_chunks
}

/// Takes replies, keeps large values, and panics at one of them.
struct Keeper<V> {
    bytes: Vec<MaybeUninit<u8>>,
    replies: Vec<Option<Reply>>,
    values: Vec<V>,
    panics_at: Option<usize>,
}

impl<V> Keeper<V> {
    fn new(panics_at: Option<usize>) -> Self {
        Self {
            bytes: Vec::new(),
            replies: Vec::new(),
            values: Vec::new(),
            panics_at,
        }
    }

    fn note(&mut self, index: usize, reply: Option<Reply>) {
        assert_ne!(self.panics_at, Some(index), "as it was told");
        assert_eq!(index, self.replies.len());
        self.replies.push(reply);
    }
}

impl<V> Replies<V> for Keeper<V> {
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.note(index, None);
        self.bytes.resize(item.value_len, MaybeUninit::new(0));
        &mut self.bytes
    }

    fn commit(&mut self, _index: usize) {}

    fn retract(&mut self, _index: usize) {}

    fn large(&mut self, index: usize, _item: &Item, value: V) {
        self.note(index, None);
        self.values.push(value);
    }

    fn done(&mut self, index: usize, reply: Reply) {
        self.note(index, Some(reply));
    }
}

/// A batch of every kind of request, about half of which hit when they are carried out.
fn mixture<'b>(hasher: &KeyHasher, keys: &'b [Vec<u8>], value: &'b [u8]) -> Vec<Request<'b>> {
    let op = |number: usize| match number % 6 {
        0 | 1 => Op::Get,
        2 => Op::Store(Store::set(value)),
        3 => Op::Store(Store {
            flags: 7,
            ..Store::set(value)
        }),
        4 => Op::Read(Read::default()),
        _ => Op::Remove(Removal::default()),
    };
    let request = |(number, key): (usize, &'b Vec<u8>)| Request {
        key: Key::new(key, hasher),
        op: op(number),
    };
    keys.iter().enumerate().map(request).collect()
}

fn keys(count: usize, different: usize) -> Vec<Vec<u8>> {
    let key = |number| format!("key {}", number * 7 % different).into_bytes();
    (0..count).map(key).collect()
}

/// A client panics with messages under way: it waits for them, and no memory is lost or kept.
#[test]
fn a_client_may_panic_in_the_middle_of_a_batch() {
    fn check<D: Rings>(engine: &Arc<CpHash<D>>) {
        let keys = keys(300, 40);
        for value in [vec![b'v'; 100], vec![b'v'; 20_000]] {
            let batch = mixture(engine.hasher(), &keys, &value);
            for panics_at in (0..batch.len()).step_by(7) {
                let mut handle = engine.handle();
                let mut keeper = Keeper::new(Some(panics_at));
                let run = || handle.execute(Time(1000), &batch, &mut keeper);
                assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
                // The same handle still works.
                let mut keeper = Keeper::new(None);
                handle.execute(Time(1000), &batch, &mut keeper);
                assert_eq!(keeper.replies.len(), batch.len());
            }
        }
        assert_eq!(lines_left(engine), 0);
    }
    check(&crowded(Setup::AMPLE));
    check(&single(Setup::AMPLE));
}

/// Handles are made and dropped all the time, some while their thread unwinds, while others stay.
#[test]
fn clients_come_and_go() {
    let engine = crowded(Setup::AMPLE);
    let keys = keys(200, 100);
    let value = vec![b'v'; 300];
    let batch = mixture(engine.hasher(), &keys, &value);
    let visit = |round: usize| {
        let mut handle = engine.handle();
        for _ in 0..round % 5 {
            let mut keeper = Keeper::new(None);
            handle.execute(
                Time(1000),
                &batch[..1 + round * 37 % batch.len()],
                &mut keeper,
            );
        }
        let mut keeper = Keeper::new(Some(round * 13 % batch.len()));
        let last = AssertUnwindSafe(|| handle.execute(Time(1000), &batch, &mut keeper));
        assert!(catch_unwind(last).is_err());
    };
    let stay = || {
        let mut handle = engine.handle();
        for _ in 0..soak(100) {
            let mut keeper = Keeper::new(None);
            handle.execute(Time(1000), &batch, &mut keeper);
            assert_eq!(keeper.replies.len(), batch.len());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(stay);
        for thread in 0..3 {
            scope.spawn(move || (0..soak(40)).for_each(|round| visit(3 * round + thread)));
        }
    });
    assert_eq!(lines_left(&engine), 0);
}

/// Slow readers pin all memory: a store is refused, and nothing hangs. Then they release it.
#[test]
fn what_is_being_read_is_not_evicted() {
    let engine = array(Setup {
        memory_limit: 8 << 20,
        item_size_max: 512 << 10,
        evicts: true,
    });
    let mut handle = engine.handle();
    let value = vec![b'v'; 300 << 10];
    let mut held = Vec::new();
    let mut number = 0;
    let refused = loop {
        let key = format!("key {number}").into_bytes();
        let key = Key::new(&key, engine.hasher());
        let op = Op::Store(Store::set(&value));
        let batch = [Request { key, op }, Request { key, op: Op::Get }];
        let mut keeper = Keeper::new(None);
        handle.execute(Time(1000), &batch, &mut keeper);
        held.append(&mut keeper.values);
        if let Some(Reply::OutOfMemory) = keeper.replies[0] {
            break number;
        }
        assert_eq!(held.len(), number + 1, "{:?}", keeper.replies);
        number += 1;
    };
    assert!(refused > 10 && engine.stats().out_of_memory > 0);
    held.clear();
    let mut client = Client::new(Arc::clone(&engine).any());
    client.set(b"at last", &value);
    assert_eq!(client.get(b"at last").as_deref(), Some(&value[..]));
    assert_eq!(lines_left(&engine), 0);
}
