//! Tests of the engine's listener: it is called once for every stored value, with the right cause.
//!
//! A model holds the values that were stored and have not left. Whatever operations do, the listener must get the value
//! that the model holds for the key, and before another value takes its place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use nuthatch_check::answer::{Answer, ask_one};
use nuthatch_check::soak;
use nuthatch_cuckoo::config::{Listener, RemovalCause};
use nuthatch_cuckoo::layout::{EightWay, EightWayClock, Paper, Variant};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::request::Leave;
use nuthatch_engine::{
    AnyEngine, AnyHandle, Audit, Condition, Delta, Engine, Expiry, Handle, Item, Key, KeyHasher,
    Op, Read, Removal, Reply, Reservation, Store, StoreMode, Time,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const MIB: usize = 1 << 20;

/// A call of the listener.
struct Removals {
    cause: RemovalCause,
    key: Vec<u8>,
    value: Vec<u8>,
}

type Log = Arc<Mutex<Vec<Removals>>>;

/// A design of the engine, with one of its stores.
struct Design {
    one_writer: bool,
    new: fn(CuckooConfig) -> Arc<AnyEngine>,
}

impl Design {
    const fn of<D: Variant>() -> Self {
        Self {
            one_writer: D::ONE_WRITER,
            new: |config| Arc::new(Cuckoo::<D>::new(config).unwrap()).any(),
        }
    }

    /// An engine whose listener writes this log.
    fn engine(&self, memory_limit: usize, hears_all: bool) -> (Arc<AnyEngine>, Log) {
        let log = Log::default();
        let told = Arc::clone(&log);
        let callback = move |cause, key: &[u8], _: &Item, value: &[u8]| {
            told.lock().unwrap().push(Removals {
                cause,
                key: key.to_vec(),
                value: value.to_vec(),
            });
        };
        let config = CuckooConfig {
            memory_limit,
            item_size_max: memory_limit / 4,
            initial_items: Some(100),
            hasher: KeyHasher::seeded(1),
            listener: Some(Listener {
                callback: Arc::new(callback),
                hears_all,
            }),
            ..CuckooConfig::default()
        };
        ((self.new)(config), log)
    }
}

const DESIGNS: [Design; 3] = [
    Design::of::<EightWay>(),
    Design::of::<EightWayClock>(),
    Design::of::<Paper>(),
];

/// A value that the model holds.
#[derive(Clone)]
struct StoredValue {
    value: Vec<u8>,
    expiry: Expiry,
    flushed: bool,
}

impl StoredValue {
    fn is_live(&self, now: Time) -> bool {
        !self.flushed && !self.expiry.is_past(now)
    }
}

struct Model {
    engine: Arc<AnyEngine>,
    handle: AnyHandle,
    log: Log,
    held: HashMap<Vec<u8>, StoredValue>,
    now: Time,
    /// Values that the listener got, by cause: evicted, expired, removed, replaced.
    told: [usize; 4],
}

impl Model {
    fn new(design: &Design) -> Self {
        let (engine, log) = design.engine(MIB, true);
        Self {
            handle: engine.handle(),
            engine,
            log,
            held: HashMap::new(),
            now: Time(1000),
            told: [0; 4],
        }
    }

    /// Takes the listener's calls during `operation`, which is one on `key` or on no key.
    fn hear(&mut self, operation: &Operation, key: &[u8]) {
        let told = std::mem::take(&mut *self.log.lock().unwrap());
        for Removals {
            cause,
            key: of,
            value,
        } in told
        {
            let Some(held) = self.held.remove(&of) else {
                panic!("{operation:?}: {cause:?} of a value that was not there, or left before")
            };
            assert!(
                held.value == value,
                "{operation:?}: {cause:?}, another value"
            );
            let live = held.is_live(self.now);
            let by_operation = of == key && live;
            let lawful = match cause {
                RemovalCause::Size => live,
                RemovalCause::Expired => held.expiry.is_past(self.now),
                RemovalCause::Explicit => {
                    held.flushed || by_operation && matches!(operation, Operation::Delete)
                }
                RemovalCause::Replaced => by_operation && operation.replaces(),
                _ => false,
            };
            assert!(lawful, "{operation:?}: a value left, {cause:?}");
            self.told[cause as usize] += 1;
        }
    }

    /// An operation took effect: the key has this value from now on.
    fn now_holds(&mut self, operation: &Operation, key: &[u8], value: Vec<u8>, expiry: Expiry) {
        let held = StoredValue {
            value,
            expiry,
            flushed: false,
        };
        let before = self.held.insert(key.to_vec(), held);
        assert!(
            before.is_none(),
            "{operation:?}: what was there did not leave"
        );
    }

    fn step(&mut self, operation: &Operation, key: &[u8]) {
        let before = self.held.get(key).cloned();
        let answer = match operation {
            Operation::Flush => {
                self.engine.flush(self.now, self.now);
                self.held.values_mut().for_each(|held| held.flushed = true);
                return;
            }
            Operation::Wait => {
                self.now = Time(self.now.0 + 8);
                return;
            }
            Operation::Maintain => {
                self.handle.maintain(self.now, 1000);
                return self.hear(operation, b"");
            }
            Operation::Pieces(value) => self.store_in_pieces(key, value),
            _ => {
                let op = operation.op(self.now);
                ask_one(&mut self.handle, self.engine.hasher(), self.now, key, op)
            }
        };
        self.hear(operation, key);
        let old = before.map(|held| (held.value, held.expiry));
        let expiry = operation.expiry(self.now);
        match (operation, answer) {
            (Operation::Store(StoreMode::Append | StoreMode::Prepend, bytes), _)
                if bytes.is_empty() => {}
            (Operation::Store(mode, bytes), Answer::Done(Reply::Stored(_))) => {
                let (value, expiry) = match (mode, old) {
                    (StoreMode::Append, Some((old, expiry))) => {
                        ([&old, &bytes[..]].concat(), expiry)
                    }
                    (StoreMode::Prepend, Some((old, expiry))) => {
                        ([&bytes[..], &old].concat(), expiry)
                    }
                    _ => (bytes.clone(), expiry),
                };
                self.now_holds(operation, key, value, expiry);
            }
            (Operation::Cas(bytes) | Operation::Pieces(bytes), Answer::Done(Reply::Stored(_))) => {
                self.now_holds(operation, key, bytes.clone(), expiry);
            }
            (Operation::Count, Answer::Done(Reply::Number(number, _))) => {
                let expiry = old.expect("there was a number").1;
                self.now_holds(operation, key, number.to_string().into_bytes(), expiry);
            }
            (Operation::Empty, Answer::Done(Reply::Removed)) => {
                let expiry = old.expect("there was a value").1;
                self.now_holds(operation, key, Vec::new(), expiry);
            }
            (Operation::Vivify, answer)
                if answer.item().is_some() && !self.held.contains_key(key) =>
            {
                self.now_holds(operation, key, Vec::new(), expiry);
            }
            (Operation::Touch, Answer::Value(..) | Answer::Done(Reply::Found(_))) => {
                self.held.get_mut(key).expect("it was found").expiry = expiry;
            }
            (Operation::Delete, Answer::Done(reply)) => {
                let gone = !self.held.contains_key(key);
                assert!(gone, "a deleted value did not leave: {reply:?}");
            }
            _ => {}
        }
    }

    fn store_in_pieces(&mut self, key: &[u8], value: &[u8]) -> Answer {
        let key = Key::new(key, self.engine.hasher());
        Answer::Done(match self.handle.reserve(self.now, key, value.len()) {
            Ok(mut reservation) => {
                reservation.write(value);
                self.handle.commit(self.now, reservation, &Store::set(b""))
            }
            Err(refusal) => refusal,
        })
    }

    /// Checks that the engine holds the model's values and no others, and that all of them leave at the end.
    fn finish(mut self) -> [usize; 4] {
        let keys: Vec<_> = self.held.keys().cloned().collect();
        for key in keys {
            let answer = ask_one(
                &mut self.handle,
                self.engine.hasher(),
                self.now,
                &key,
                Op::Get,
            );
            let held = &self.held[&key];
            let value = held.is_live(self.now).then_some(&held.value[..]);
            assert!(answer.value() == value, "another value is there");
        }
        self.step(&Operation::Flush, b"");
        for _ in 0..1000 {
            self.step(&Operation::Maintain, b"");
        }
        assert!(
            self.held.is_empty(),
            "{} values never left",
            self.held.len()
        );
        assert_eq!(self.engine.stats().untold, 0);
        drop(self.handle);
        self.engine.audit().unwrap();
        self.told
    }
}

#[derive(Debug)]
enum Operation {
    Store(StoreMode, Vec<u8>),
    /// A store that may demand a version which no item has, or none.
    Cas(Vec<u8>),
    Pieces(Vec<u8>),
    Count,
    Vivify,
    Touch,
    Delete,
    /// A removal that leaves the value, marked.
    Stale,
    /// A removal that leaves the item without its value.
    Empty,
    Flush,
    Wait,
    Maintain,
}

impl Operation {
    fn random(random: &mut SmallRng) -> Self {
        let number = random.random_range(0..100);
        match number {
            86..92 | 0..30 => Operation::Store(StoreMode::Set, value(random)),
            30..35 => Operation::Store(StoreMode::Add, value(random)),
            35..40 => Operation::Store(StoreMode::Replace, value(random)),
            40..45 => Operation::Store(StoreMode::Append, short(random)),
            45..50 => Operation::Store(StoreMode::Prepend, short(random)),
            50..53 => Operation::Cas(value(random)),
            53..58 => Operation::Pieces(value(random)),
            58..70 => Operation::Count,
            70..75 => Operation::Vivify,
            75..79 => Operation::Touch,
            79..86 => Operation::Delete,
            92..94 => Operation::Stale,
            94..96 => Operation::Empty,
            96 => Operation::Wait,
            97 => Operation::Maintain,
            _ if random.random_ratio(1, 60) => Operation::Flush,
            _ => Operation::Wait,
        }
    }

    fn op(&self, now: Time) -> Op<'_> {
        let expiry = self.expiry(now);
        let removal = |leave| {
            Op::Remove(Removal {
                leave,
                ..Removal::default()
            })
        };
        match self {
            Operation::Store(mode, value) => Op::Store(Store {
                mode: *mode,
                expiry,
                ..Store::set(value)
            }),
            Operation::Cas(value) => Op::Store(Store {
                condition: match value.len() % 2 {
                    0 => Condition::None,
                    _ => Condition::Cas(u64::MAX),
                },
                expiry,
                ..Store::set(value)
            }),
            Operation::Count => Op::Delta(Delta::up(7)),
            Operation::Vivify => Op::Read(Read {
                vivify: Some(expiry),
                ..Read::default()
            }),
            Operation::Touch => Op::Read(Read {
                touch: Some(expiry),
                ..Read::default()
            }),
            Operation::Delete => removal(Leave::Nothing),
            Operation::Stale => removal(Leave::Stale {
                expiry: None,
                new_cas: None,
            }),
            Operation::Empty => removal(Leave::Empty {
                stale: false,
                expiry: None,
                new_cas: None,
            }),
            Operation::Pieces(_) | Operation::Flush | Operation::Wait | Operation::Maintain => {
                unreachable!("no request")
            }
        }
    }

    /// The expiry of the value that it stores: a few steps of the clock later, or never.
    fn expiry(&self, now: Time) -> Expiry {
        match self {
            Operation::Store(_, value) | Operation::Cas(value) if value.len() % 5 == 0 => {
                Expiry::At(Time(now.0 + 20))
            }
            Operation::Touch => Expiry::At(Time(now.0 + 40)),
            _ => Expiry::Never,
        }
    }

    /// Whether it replaces the key's value.
    fn replaces(&self) -> bool {
        matches!(
            self,
            Operation::Store(..)
                | Operation::Cas(_)
                | Operation::Pieces(_)
                | Operation::Count
                | Operation::Empty
        )
    }
}

/// A number, a short value, a long one, one in pieces.
fn value(random: &mut SmallRng) -> Vec<u8> {
    let len = match random.random_range(0..100) {
        0..30 => return random.random::<u32>().to_string().into_bytes(),
        30..90 => random.random_range(0..2000),
        90..99 => random.random_range(2000..12_000),
        _ => random.random_range(12_000..400_000),
    };
    let first: u8 = random.random();
    (0..len).map(|at| first.wrapping_add(at as u8)).collect()
}

fn short(random: &mut SmallRng) -> Vec<u8> {
    let len = random.random_range(0..5);
    (0..len).map(|_| random.random_range(b'0'..=b'9')).collect()
}

#[test]
fn every_value_leaves_once_with_its_cause() {
    for design in DESIGNS {
        for seed in 0..soak(4) as u64 {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut model = Model::new(&design);
            for _ in 0..30_000 {
                let operation = Operation::random(&mut random);
                // Few keys that are used often, and many that must be evicted.
                let key = match random.random_ratio(1, 2) {
                    true => format!("often {}", random.random_range(0..50)),
                    false => format!("seldom {}", random.random_range(0..3000)),
                };
                model.step(&operation, key.as_bytes());
            }
            let told = model.finish();
            assert!(told.iter().all(|count| *count > 100), "{told:?}");
        }
    }
}

/// Threads replace and remove each other's values: the listener is called once for each, whichever thread removed it.
#[test]
fn every_value_leaves_once_of_those_that_threads_replace() {
    for design in DESIGNS {
        let (engine, log) = design.engine(2 * MIB, true);
        let now = Time(1000);
        let stored = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..3_u64 {
                let (engine, stored) = (&engine, &stored);
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(thread);
                    let mut handle = engine.handle();
                    let hasher = engine.hasher();
                    for number in 0..10_000 {
                        let key = format!("key {}", random.random_range(0..4000_u32));
                        // Now and then a few keys, so that threads meet.
                        let key = if number % 3 == 0 { &key[..5] } else { &key };
                        if random.random_ratio(1, 5) {
                            let op = Op::Remove(Removal::default());
                            ask_one(&mut handle, hasher, now, key.as_bytes(), op);
                            continue;
                        }
                        let mut value = format!("{thread} {number} ");
                        value.extend(std::iter::repeat_n('.', random.random_range(0..1500)));
                        let op = Op::Store(Store::set(value.as_bytes()));
                        let answer = ask_one(&mut handle, hasher, now, key.as_bytes(), op);
                        if matches!(answer, Answer::Done(Reply::Stored(_))) {
                            stored.lock().unwrap().push(value.into_bytes());
                        }
                    }
                });
            }
        });
        engine.flush(now, now);
        let mut handle = engine.handle();
        (0..1000).for_each(|_| _ = handle.maintain(now, 1000));
        assert_eq!(engine.stats().untold, 0);
        let mut told: Vec<_> = log
            .lock()
            .unwrap()
            .drain(..)
            .map(|told| told.value)
            .collect();
        let mut stored = stored.into_inner().unwrap();
        told.sort();
        stored.sort();
        assert!(
            told == stored,
            "{} told, {} stored",
            told.len(),
            stored.len()
        );
    }
}

/// The listener is called during a batch that replaces much, so that few copies are held at a time.
#[test]
fn a_batch_that_replaces_much_is_told_on_its_way() {
    for design in DESIGNS {
        let (engine, log) = design.engine(16 * MIB, true);
        let value = vec![7; 200_000];
        let key = Key::new(b"same", engine.hasher());
        let op = Op::Store(Store::set(&value));
        let batch = vec![nuthatch_engine::Request { key, op }; 100];
        let answers = nuthatch_check::answer::ask(&mut engine.handle(), Time(1000), &batch);
        assert!(
            answers
                .iter()
                .all(|answer| matches!(answer, Answer::Done(Reply::Stored(_))))
        );
        let (told, untold) = (log.lock().unwrap().len() as u64, engine.stats().untold);
        assert_eq!(told + untold, 99);
        // The paper's one writer holds its lock throughout, and keeps copies of no more than 8 MiB.
        assert!(design.one_writer || untold == 0, "{untold} untold");
    }
}

#[test]
fn a_listener_of_evictions_hears_of_nothing_else() {
    for design in DESIGNS {
        let (engine, log) = design.engine(2 * MIB, false);
        let (mut handle, now) = (engine.handle(), Time(1000));
        for number in 0..10_000_u32 {
            let key = (number % 3000).to_le_bytes();
            let mut ask = |op| ask_one(&mut handle, engine.hasher(), now, &key, op);
            ask(Op::Store(Store::set(&[7; 1000])));
            ask(Op::Store(Store::set(&[8; 1000])));
            if number % 10 == 0 {
                ask(Op::Remove(Removal::default()));
            }
        }
        engine.flush(now, now);
        (0..100).for_each(|_| _ = handle.maintain(now, 1000));
        let told = log.lock().unwrap();
        assert!(told.iter().all(|told| told.cause == RemovalCause::Size));
        assert_eq!(told.len() as u64, engine.stats().evictions);
    }
}
