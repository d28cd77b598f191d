//! The common part of the models: an engine small enough for them, and a client of it.

use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
// Not loom's: the models' own bookkeeping is not explored.
use std::sync::atomic::{AtomicUsize, Ordering};

use nuthatch_base::hash::split;
use nuthatch_base::memory::Source;
use nuthatch_cuckoo::handle::CuckooHandle;
use nuthatch_cuckoo::layout::{Search, Variant};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{
    Delta, Engine, Handle, Item, Key, KeyHasher, Op, Removal, Replies, Reply, Request, Store, Time,
    Value,
};
use nuthatch_store::log::Log;
use nuthatch_store::slab::Slab;

/// The moment of every request.
pub const NOW: Time = Time(16);

/// Buckets of one slot: paths get long with few keys.
#[derive(Default)]
pub struct OneSlot;

impl Variant for OneSlot {
    const NAME: &'static str = "model";
    const SLOTS: usize = 1;
    const TAG_BITS: u32 = 16;
    const ONE_WRITER: bool = false;
    const SEARCH: Search = Search::BreadthFirst { slots: 8 };

    type Placement = Slab;

    fn store(
        config: &CuckooConfig,
        _source: Source,
    ) -> io::Result<nuthatch_store::store::Store<Slab>> {
        config.size_classes()
    }
}

/// Buckets of two slots, and items in a log.
#[derive(Default)]
pub struct InLog;

impl Variant for InLog {
    const NAME: &'static str = "model in a log";
    const SLOTS: usize = 2;
    const TAG_BITS: u32 = 16;
    const ONE_WRITER: bool = false;
    const SEARCH: Search = Search::BreadthFirst { slots: 8 };

    type Placement = Log;

    fn store(
        config: &CuckooConfig,
        source: Source,
    ) -> io::Result<nuthatch_store::store::Store<Log>> {
        config.log(source)
    }
}

pub type Model = Cuckoo<OneSlot>;
pub type OurHandle = CuckooHandle<OneSlot>;

/// An engine with `buckets` buckets. Its memory is the smallest possible: loom looks through every atomic at every
/// fence.
pub fn engine(buckets: usize) -> Arc<Model> {
    let config = CuckooConfig {
        memory_limit: 1024,
        memory_limit_max: 1024,
        item_size_max: 512,
        chunk_min: 64,
        growth_factor: 2.0,
        initial_items: Some(buckets * 9 / 10),
        hasher: hasher(),
        ..CuckooConfig::default()
    };
    build(move || Arc::new(Cuckoo::new(config).unwrap()))
}

/// Every run has the same keys in the same places.
pub fn hasher() -> KeyHasher {
    KeyHasher::seeded(1)
}

/// Bits of both positions of a key.
fn positions(key: u64) -> [u64; 2] {
    let hash = hasher().hash(&key.to_le_bytes());
    [hash, hash ^ split::partner_offset(split::tag16(hash))]
}

/// The first key whose two buckets, in a table of `buckets`, are `wanted`.
pub fn key_in(buckets: u64, wanted: [u64; 2]) -> u64 {
    assert_eq!((wanted[0] ^ wanted[1]) & 1, 1, "no key has such buckets");
    keys_in(buckets, wanted).next().unwrap()
}

/// All keys whose two buckets are `wanted`.
pub fn keys_in(buckets: u64, wanted: [u64; 2]) -> impl Iterator<Item = u64> {
    (0..).filter(move |&key| positions(key).map(|full| full & (buckets - 1)) == wanted)
}

/// A value in which a mixture of two numbers is detected.
pub fn value(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(&(!number).to_le_bytes());
    bytes
}

/// The number in a value; panics if it is a mixture.
pub fn number(bytes: &[u8]) -> u64 {
    assert_eq!(bytes.len(), 16, "a torn length");
    let (number, inverse) = bytes.split_at(8);
    let number = u64::from_le_bytes(number.try_into().unwrap());
    assert_eq!(inverse, (!number).to_le_bytes(), "a torn value");
    number
}

/// The answers to a batch.
struct Answers<V> {
    answers: Vec<Answer<V>>,
    begun: Option<Vec<u8>>,
}

/// An answer to one request.
pub enum Answer<V> {
    Value(Vec<u8>),
    Large(V),
    Done(Reply),
}

impl<V: Value> Replies<V> for Answers<V> {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        let bytes = self.begun.insert(vec![0; item.value_len]);
        // SAFETY: initialised bytes are also bytes that may be uninitialised, and the engine only
        // writes initialised ones.
        unsafe { std::mem::transmute::<&mut [u8], &mut [MaybeUninit<u8>]>(bytes) }
    }

    fn commit(&mut self, _: usize) {
        self.answers.push(Answer::Value(self.begun.take().unwrap()));
    }

    fn retract(&mut self, _: usize) {
        self.begun = None;
    }

    fn large(&mut self, _: usize, _: &Item, value: V) {
        self.answers.push(Answer::Large(value));
    }

    fn done(&mut self, _: usize, reply: Reply) {
        self.answers.push(Answer::Done(reply));
    }
}

/// Runs operations, each with its key, as one batch.
pub fn run<H: Handle>(handle: &mut H, ops: &[(u64, Op<'_>)]) -> Vec<Answer<H::Value>> {
    let hasher = hasher();
    let keys: Vec<_> = ops.iter().map(|(key, _)| key.to_le_bytes()).collect();
    let batch: Vec<_> = keys
        .iter()
        .zip(ops)
        .map(|(key, &(_, op))| Request {
            key: Key::new(key, &hasher),
            op,
        })
        .collect();
    let mut answers = Answers {
        answers: Vec::new(),
        begun: None,
    };
    handle.execute(NOW, &batch, &mut answers);
    answers.answers
}

fn got<V>(answer: &Answer<V>) -> Option<u64> {
    match answer {
        Answer::Value(bytes) => Some(number(bytes)),
        Answer::Done(Reply::Miss) => None,
        _ => panic!("a get is answered by a value or a miss"),
    }
}

/// The number in the key's value.
pub fn get(handle: &mut impl Handle, key: u64) -> Option<u64> {
    got(&run(handle, &[(key, Op::Get)])[0])
}

/// Two gets in one batch, which uses probes.
pub fn get_both(handle: &mut impl Handle, keys: [u64; 2]) -> [Option<u64>; 2] {
    let answers = run(handle, &keys.map(|key| (key, Op::Get)));
    [got(&answers[0]), got(&answers[1])]
}

/// Stores bytes.
pub fn set_bytes(handle: &mut impl Handle, key: u64, bytes: &[u8]) {
    let answers = run(handle, &[(key, Op::Store(Store::set(bytes)))]);
    assert!(matches!(answers[0], Answer::Done(Reply::Stored(_))));
}

/// Stores a number.
pub fn set(handle: &mut impl Handle, key: u64, number: u64) {
    set_bytes(handle, key, &value(number));
}

/// True if there was something to delete.
pub fn delete(handle: &mut impl Handle, key: u64) -> bool {
    let answers = run(handle, &[(key, Op::Remove(Removal::default()))]);
    matches!(answers[0], Answer::Done(Reply::Removed))
}

/// Adds one. Returns the sum.
pub fn increment(handle: &mut impl Handle, key: u64) -> u64 {
    match run(handle, &[(key, Op::Delta(Delta::up(1)))])[0] {
        Answer::Done(Reply::Number(number, _)) => number,
        _ => panic!("not a number"),
    }
}

/// Checks all invariants that the engine can recompute.
pub fn audit(engine: &Arc<impl Engine>) {
    engine.audit().unwrap();
}

/// Makes what the threads of a model share. A new engine is passed by value through several functions; loom's atomics
/// make it so large that loom's usual stack of 32 KiB is too small for that.
pub fn build<T: Send + 'static>(make: impl FnOnce() -> T + Send + 'static) -> T {
    let builder = loom::thread::Builder::new().stack_size(1 << 16);
    builder.spawn(make).unwrap().join().unwrap()
}

/// Explores a model with at most `preemptions` preemptions of a thread, unless the environment
/// (LOOM_MAX_PREEMPTIONS) says otherwise.
pub fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = {
        let runs = Arc::clone(&runs);
        move || {
            runs.fetch_add(1, Ordering::Relaxed);
            body();
        }
    };
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    let started = std::time::Instant::now();
    builder.check(counted);
    println!(
        "{} executions in {:?}",
        runs.load(Ordering::Relaxed),
        started.elapsed()
    );
}

/// The same for a model that takes long with so many preemptions: with one fewer, but in long checks (`scripts/soak.sh`).
pub fn long_model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    model(in_long_checks(preemptions), body);
}

/// So many preemptions in long checks, and one fewer otherwise.
pub fn in_long_checks(preemptions: usize) -> usize {
    preemptions - usize::from(std::env::var_os("NUTHATCH_SOAK").is_none())
}
