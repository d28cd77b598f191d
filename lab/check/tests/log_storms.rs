//! Stress tests of items in a log under several threads while its pages are cleaned: each value read is verified, the
//! limit is kept, and stores find room.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use nuthatch_check::answer::{Answer, ask_one, to_vec};
use nuthatch_check::soak;
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{
    AnyEngine, AnyHandle, AnyReservation, AnyValue, Audit, Cursor, Engine, Expiry, Handle, Item,
    Key, KeyHasher, Op, Read, Removal, Replies, Reply, Request, Reservation, Store, StoreMode,
    Time,
};
use nuthatch_workload::{KeyMaker, Seed, value};
use rand::Rng;
use rand::rngs::SmallRng;

const MIB: usize = 1 << 20;
const KEY_SIZE: usize = 16;

/// The tick at which a storm begins.
const START: u32 = 1000;

/// Operations of a tick.
const TICK: u32 = 64;

/// Keys from here on have values that are appended to: units that check themselves.
const APPENDED: u64 = 1 << 40;
const UNIT: usize = 64;

/// The work of the threads.
#[derive(Clone, Debug)]
struct Storm {
    mib: usize,
    item_max: usize,
    evicts: bool,
    threads: usize,
    /// Operations of each thread.
    operations: usize,
    keys: u64,
    /// Lengths of values: each order of magnitude as often as another.
    lens: Range<usize>,
    /// Percent of operations. All others are gets, a fifth of which touch.
    sets: u32,
    deletes: u32,
    appends: u32,
    /// Gets that hold large values for a while.
    holds: u32,
    /// Values that arrive in two pieces, some of them late or never.
    arrivals: u32,
    /// An item that is stored or touched lives for up to this many ticks; 0: for ever.
    lives: u32,
}

impl Storm {
    const SMALL: Self = Self {
        mib: 4,
        item_max: 2 * MIB,
        evicts: true,
        threads: 4,
        operations: 20_000,
        keys: 20_000,
        lens: 40..4000,
        sets: 40,
        deletes: 5,
        appends: 0,
        holds: 0,
        arrivals: 0,
        lives: 0,
    };

    /// All kinds of operations, on values of up to 80 kB.
    const ALL: Self = Self {
        operations: 8000,
        keys: 2000,
        lens: 40..80_000,
        sets: 30,
        deletes: 5,
        appends: 5,
        holds: 5,
        arrivals: 10,
        ..Self::SMALL
    };

    fn engine(&self) -> Arc<AnyEngine> {
        let limit = self.mib * MIB;
        let config = CuckooConfig {
            memory_limit: limit,
            memory_limit_max: 4 * limit,
            item_size_max: self.item_max.min(limit / 2),
            evicts: self.evicts,
            initial_items: Some(1000),
            ..CuckooConfig::default()
        };
        let engine: Cuckoo = Cuckoo::new(config).expect("there is address space");
        Arc::new(engine).any()
    }
}

/// What all threads of a storm share.
struct Sky<'a> {
    engine: &'a Arc<AnyEngine>,
    storm: &'a Storm,
    /// Operations so far: [`TICK`] of them are a tick.
    done: AtomicU32,
    working: AtomicUsize,
    /// Stores that took place, and those for which there was no room: of all lengths, and of one piece.
    stored: AtomicUsize,
    refused: [AtomicUsize; 2],
    hits: AtomicUsize,
    /// Bytes of values that were stored.
    bytes: AtomicUsize,
}

impl Sky<'_> {
    // Relaxed, here and below: the numbers publish no other memory.
    fn now(&self) -> Time {
        Time(START + self.done.load(Ordering::Relaxed) / TICK)
    }

    /// True until all threads that work have finished.
    fn blows(&self) -> bool {
        self.working.load(Ordering::Relaxed) > 0
    }

    fn refused(&self) -> [usize; 2] {
        self.refused
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed))
    }
}

/// Counts a thread as finished, also if it panics.
struct Working<'a>(&'a AtomicUsize);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A storm on an engine, and the work of other threads beside it until it is over. Ends with an audit, when maintenance
/// has nothing to do any more.
fn blow<'a>(
    engine: &'a Arc<AnyEngine>,
    storm: &'a Storm,
    beside: &[&(dyn Fn(&Sky<'_>) + Sync)],
) -> Sky<'a> {
    let sky = Sky {
        engine,
        storm,
        done: AtomicU32::new(0),
        working: AtomicUsize::new(storm.threads),
        stored: AtomicUsize::new(0),
        refused: Default::default(),
        hits: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        for thread in 0..storm.threads {
            let sky = &sky;
            scope.spawn(move || {
                let _working = Working(&sky.working);
                Worker::new(sky, thread).work();
            });
        }
        for work in beside {
            let sky = &sky;
            scope.spawn(move || work(sky));
        }
    });
    let mut handle = engine.handle();
    let turns = (0..100_000).find(|_| !handle.maintain(sky.now(), 100));
    assert!(turns.is_some(), "maintenance has no end");
    engine
        .audit()
        .unwrap_or_else(|broken| panic!("audit: {broken}"));
    let stats = engine.stats();
    let (used, limit) = (stats.memory_used, stats.memory_limit);
    assert!(used <= limit, "{used} bytes used of {limit}");
    sky
}

/// Values that are held in place, with their keys; values that are copied are dropped.
#[derive(Default)]
struct Held {
    values: Vec<(Vec<u8>, AnyValue)>,
    asked: Vec<u8>,
    room: Vec<MaybeUninit<u8>>,
}

impl Replies<AnyValue> for Held {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.room = vec![MaybeUninit::new(0); item.value_len];
        &mut self.room
    }

    fn commit(&mut self, _: usize) {}

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &Item, value: AnyValue) {
        self.values.push((self.asked.clone(), value));
    }

    fn done(&mut self, _: usize, _: Reply) {}
}

/// A value of which half has arrived.
struct HalfWay {
    reservation: AnyReservation,
    value: Vec<u8>,
}

struct Worker<'a> {
    sky: &'a Sky<'a>,
    handle: AnyHandle,
    hasher: KeyHasher,
    keys: KeyMaker,
    random: SmallRng,
    stamp: u64,
    held: Held,
    half_way: Vec<HalfWay>,
}

impl<'a> Worker<'a> {
    fn new(sky: &'a Sky<'a>, thread: usize) -> Self {
        Self {
            sky,
            handle: sky.engine.handle(),
            hasher: sky.engine.hasher().clone(),
            keys: KeyMaker::new(KEY_SIZE),
            random: Seed(7).thread(thread),
            stamp: (thread as u64) << 48,
            held: Held::default(),
            half_way: Vec::new(),
        }
    }

    fn work(&mut self) {
        let storm = self.sky.storm;
        for _ in 0..storm.operations {
            self.sky.done.fetch_add(1, Ordering::Relaxed);
            let number = self.random.random_range(0..storm.keys);
            let kinds = [
                storm.sets,
                storm.deletes,
                storm.appends,
                storm.holds,
                storm.arrivals,
            ];
            let dice = self.random.random_range(0..100);
            let mut sum = 0;
            let kind = kinds.iter().position(|percent| {
                sum += percent;
                dice < sum
            });
            match kind {
                Some(0) => self.set(number),
                Some(1) => self.delete(number),
                Some(2) => self.append(number),
                Some(3) => self.hold(number),
                Some(_) => self.arrive(number),
                None => self.get(number),
            }
            if self.random.random_range(0..200) == 0 {
                self.handle.maintain(self.sky.now(), 20);
            }
        }
    }

    fn ask(&mut self, name: &[u8], op: Op<'_>) -> Answer {
        ask_one(&mut self.handle, &self.hasher, self.sky.now(), name, op)
    }

    /// A new value.
    fn value(&mut self, name: &[u8]) -> Vec<u8> {
        let Range { start, end } = self.sky.storm.lens;
        let len = (end as f64 / start as f64).powf(self.random.random()) * start as f64;
        self.stamp += 1;
        value::make(name, self.stamp, len as usize)
    }

    fn expiry(&mut self) -> Expiry {
        match self.sky.storm.lives {
            0 => Expiry::Never,
            most => Expiry::At(Time(self.sky.now().0 + self.random.random_range(1..most))),
        }
    }

    fn set(&mut self, number: u64) {
        let name = self.keys.key(number);
        let (value, expiry) = (self.value(&name), self.expiry());
        let store = Store {
            expiry,
            ..Store::set(&value)
        };
        let answer = self.ask(&name, Op::Store(store));
        self.count(&answer, value.len());
    }

    fn count(&self, answer: &Answer, len: usize) {
        match answer {
            Answer::Done(Reply::Stored(_)) => {
                self.sky.bytes.fetch_add(len, Ordering::Relaxed);
                self.sky.stored.fetch_add(1, Ordering::Relaxed)
            }
            Answer::Done(Reply::OutOfMemory) => {
                let [all, small] = &self.sky.refused;
                small.fetch_add(usize::from(len < 900), Ordering::Relaxed);
                all.fetch_add(1, Ordering::Relaxed)
            }
            other => panic!("a store was answered {other:?}"),
        };
    }

    fn delete(&mut self, number: u64) {
        let name = self.keys.key(number);
        self.ask(&name, Op::Remove(Removal::default()));
    }

    fn get(&mut self, number: u64) {
        let name = self.keys.key(number);
        let op = match self.random.random_range(0..5) {
            0 => Op::Read(Read {
                touch: Some(self.expiry()),
                ..Read::default()
            }),
            _ => Op::Get,
        };
        if let Some(found) = self.ask(&name, op).value() {
            check(&name, found);
            self.sky.hits.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Appends one unit; now and then the value begins anew.
    fn append(&mut self, number: u64) {
        let name = self.keys.key(APPENDED + number % 50);
        self.stamp += 1;
        let unit = value::make(&name, self.stamp, UNIT);
        let mode = match self.random.random_range(0..200) {
            0 => StoreMode::Set,
            _ => StoreMode::Append,
        };
        let store = Store {
            mode,
            vivify: Some(Expiry::Never),
            ..Store::set(&unit)
        };
        let answer = self.ask(&name, Op::Store(store));
        self.count(&answer, UNIT);
        if let Some(found) = self.ask(&name, Op::Get).value() {
            assert_eq!(found.len() % UNIT, 0, "a torn length");
            found.chunks(UNIT).for_each(|unit| check(&name, unit));
        }
    }

    /// Reads a large value in place, for a while.
    fn hold(&mut self, number: u64) {
        let name = self.keys.key(number);
        let key = Key::new(&name, &self.hasher);
        self.held.asked.clone_from(&name);
        let batch = [Request { key, op: Op::Get }];
        self.handle.execute(self.sky.now(), &batch, &mut self.held);
        if self.held.values.len() > 2 {
            let which = self.random.random_range(0..self.held.values.len());
            let (name, value) = self.held.values.swap_remove(which);
            check(&name, &to_vec(&value));
        }
    }

    fn arrive(&mut self, number: u64) {
        let name = self.keys.key(number);
        let value = self.value(&name);
        let key = Key::new(&name, &self.hasher);
        let now = self.sky.now();
        match self.handle.reserve(now, key, value.len()) {
            Ok(mut reservation) => {
                reservation.write(&value[..value.len() / 2]);
                self.half_way.push(HalfWay { reservation, value });
            }
            Err(refusal) => self.count(&Answer::Done(refusal), value.len()),
        }
        // Another value has arrived, or is dropped.
        if self.half_way.len() > self.random.random_range(0..3) {
            let which = self.random.random_range(0..self.half_way.len());
            let HalfWay {
                mut reservation,
                value,
            } = self.half_way.swap_remove(which);
            if self.random.random_range(0..4) > 0 {
                reservation.write(&value[value.len() / 2..]);
                let reply = self.handle.commit(now, reservation, &Store::set(&[]));
                self.count(&Answer::Done(reply), value.len());
            }
        }
    }
}

#[track_caller]
fn check(name: &[u8], found: &[u8]) {
    if let Err(fault) = value::check(name, found) {
        let name = String::from_utf8_lossy(name);
        panic!("{name} has {} bytes with a wrong {fault:?}", found.len());
    }
}

/// Walks over all items again and again.
fn walk(sky: &Sky<'_>) {
    let mut handle = sky.engine.handle();
    while sky.blows() {
        let mut cursor = Some(Cursor::default());
        while let Some(from) = cursor {
            cursor = handle.visit(sky.now(), from, 50, &mut |met| {
                // Longer ones come without their bytes.
                let mut units = met.value.chunks(UNIT);
                let whole = met.value.is_empty() || value::check(met.key, met.value).is_ok();
                assert!(whole || units.all(|unit| value::check(met.key, unit).is_ok()));
            });
            std::thread::yield_now();
        }
    }
}

/// Values of all lengths, some of them held in place, some arriving slowly, appended to, and walked over. At no moment is
/// more than half of the memory held or on its way, so there is room for all.
#[test]
fn values_of_all_lengths_check_themselves_while_they_move() {
    let tiny = Storm {
        mib: 1,
        lens: 40..20_000,
        ..Storm::ALL
    };
    let mebibytes = Storm {
        mib: 16,
        operations: 2000,
        keys: 5000,
        lens: 40..MIB,
        holds: 0,
        arrivals: 0,
        ..Storm::ALL
    };
    for storm in [tiny, Storm::ALL, mebibytes] {
        let storm = Storm {
            operations: soak(storm.operations),
            ..storm
        };
        let engine = storm.engine();
        let sky = blow(&engine, &storm, &[&walk]);
        let hits = sky.hits.load(Ordering::Relaxed);
        assert!(
            hits > 0 && engine.stats().evictions > 0,
            "{storm:?}: {hits} hits"
        );
        assert_eq!(sky.refused(), [0; 2], "{storm:?}");
    }
}

/// Several threads only write, values of all lengths: each store takes place, and the bytes moved for it are bounded.
#[test]
fn memory_gives_way_to_those_who_only_write() {
    for lens in [40..1000, 40..100_000, 40_000..40_001, 900..1100] {
        let storm = Storm {
            operations: soak(4000 * 1000 / lens.end.max(1000)).max(500),
            keys: 1 << 30,
            lens,
            sets: 100,
            deletes: 0,
            ..Storm::SMALL
        };
        let engine = storm.engine();
        let sky = blow(&engine, &storm, &[]);
        assert_eq!(sky.refused(), [0; 2], "{storm:?}");
        let stats = engine.stats();
        let log = stats.log.expect("a log");
        let (written, cleaned) = (sky.bytes.into_inner(), log.pages_cleaned * log.page_bytes);
        assert!(stats.evictions > 0, "{storm:?}");
        assert!(
            (cleaned as usize) < 4 * written,
            "{storm:?}: {cleaned} bytes cleaned for {written}"
        );
    }
}

/// A limit that goes down and up while all threads write: no store is refused, and in the end the limit is kept.
#[test]
fn a_limit_that_goes_down_and_up_refuses_nobody() {
    const TO: [usize; 2] = [4, 16];
    let storm = Storm {
        mib: TO[1],
        operations: soak(40_000),
        keys: 60_000,
        lens: 40..1000,
        sets: 60,
        ..Storm::SMALL
    };
    let engine = storm.engine();
    let set = |mib: usize| engine.set_memory_limit(mib * MIB).expect("there is room");
    let shake = |sky: &Sky<'_>| {
        for mib in TO.iter().cycle().take_while(|_| sky.blows()) {
            set(*mib);
            std::thread::sleep(Duration::from_millis(5));
        }
        set(TO[0]);
    };
    let sky = blow(&engine, &storm, &[&shake]);
    assert_eq!(sky.refused(), [0; 2]);
    assert_eq!(engine.stats().memory_limit as usize, TO[0] * MIB);
}

/// Without eviction: near the limit threads store, delete, hold values in place and walk. Then as much as was deleted
/// can be stored again. (When new items took the room for moved records, no page was free any more, and nothing could
/// be stored.)
#[test]
fn gaps_are_filled_where_nothing_is_evicted_and_all_write() {
    let large = Storm {
        keys: 1500,
        lens: 40..40_000,
        holds: 3,
        arrivals: 5,
        ..Storm::SMALL
    };
    for storm in [
        Storm {
            keys: 30_000,
            lens: 40..1000,
            ..Storm::SMALL
        },
        large,
    ] {
        for threads in [1, 4] {
            let storm = Storm {
                evicts: false,
                threads,
                operations: soak(storm.operations) * 4 / threads,
                deletes: 20,
                ..storm.clone()
            };
            let engine = storm.engine();
            let sky = blow(&engine, &storm, &[&walk]);
            let [refused, _] = sky.refused();
            assert!(refused > 0, "{storm:?}: there was room for all");
            let (deleted, again) = delete_half(&engine, &storm);
            assert!(
                again > deleted * 9 / 10,
                "{storm:?}: {again} of {deleted} bytes fit again"
            );
            engine
                .audit()
                .unwrap_or_else(|broken| panic!("audit: {broken}"));
        }
    }
}

/// Deletes half of the keys, and stores short values until one is refused: returns the bytes of both.
fn delete_half(engine: &Arc<AnyEngine>, storm: &Storm) -> (usize, usize) {
    let (keys, mut handle) = (KeyMaker::new(KEY_SIZE), engine.handle());
    let mut ask = |number: u64, op: Op<'_>| {
        ask_one(
            &mut handle,
            engine.hasher(),
            Time(START),
            &keys.key(number),
            op,
        )
    };
    let before = engine.stats().item_bytes;
    for number in (0..storm.keys).step_by(2) {
        ask(number, Op::Remove(Removal::default()));
    }
    let after = engine.stats().item_bytes;
    let stored = |number: &u64| {
        let answer = ask(storm.keys + number, Op::Store(Store::set(&[1; 200])));
        matches!(answer, Answer::Done(Reply::Stored(_)))
    };
    (0..).take_while(stored).count();
    let end = engine.stats().item_bytes;
    ((before - after) as usize, (end - after) as usize)
}

/// Without eviction a walk meets all items that stay, while pages are cleaned around it. (No more pages than there are:
/// nothing is promised for a walk that is slower than the cleaning.)
#[test]
fn walks_meet_what_stays_while_all_write() {
    let storm = Storm {
        evicts: false,
        threads: 2,
        keys: 25_000,
        lens: 40..1000,
        deletes: 20,
        operations: soak(40_000),
        ..Storm::SMALL
    };
    let engine = storm.engine();
    let keys = KeyMaker::new(KEY_SIZE);
    let residents = storm.keys..storm.keys + 500;
    store_residents(&engine, &storm, residents.clone());
    let cleaned = || engine.stats().log.expect("a log").pages_cleaned;
    let (walks, beside) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let look = |sky: &Sky<'_>| {
        let mut handle = sky.engine.handle();
        while sky.blows() {
            let before = cleaned();
            let mut met = std::collections::HashSet::new();
            let mut cursor = Some(Cursor::default());
            while let Some(from) = cursor {
                cursor = handle.visit(sky.now(), from, 200, &mut |visit| {
                    met.insert(visit.key.to_vec());
                });
            }
            let pages = cleaned() - before;
            if pages > 100 {
                continue;
            }
            let missed = residents
                .clone()
                .find(|&number| !met.contains(&keys.key(number)));
            assert_eq!(missed, None, "{pages} pages were cleaned, walk {walks:?}");
            walks.fetch_add(1, Ordering::Relaxed);
            beside.fetch_add(pages as usize, Ordering::Relaxed);
        }
    };
    // On a busy machine walks may all be too slow.
    for _ in 0..20 {
        blow(&engine, &storm, &[&look, &look]);
        if beside.load(Ordering::Relaxed) > 100 {
            break;
        }
    }
    assert!(
        beside.into_inner() > 0,
        "{walks:?} walks, beside none of which a page was cleaned"
    );
}

/// Stores residents, between others of which most will be deleted.
fn store_residents(engine: &Arc<AnyEngine>, storm: &Storm, residents: Range<u64>) {
    let (keys, mut handle) = (KeyMaker::new(KEY_SIZE), engine.handle());
    for number in residents {
        let others = (0..8).map(|other| (number * 8 + other) % storm.keys);
        for number in std::iter::once(number).chain(others) {
            let name = keys.key(number);
            let value = value::make(&name, 0, 100);
            let op = Op::Store(Store::set(&value));
            let answer = ask_one(&mut handle, engine.hasher(), Time(START), &name, op);
            assert!(
                matches!(answer, Answer::Done(Reply::Stored(_))),
                "{answer:?}"
            );
        }
    }
}

/// A third of the memory lives for ever, and all other items die within seconds: dead items make room, and hardly any
/// live ones. (Another thread may be sweeping the page that is due, and then a store does not wait for it for long: 2 %
/// on a busy machine.)
#[test]
fn short_lives_push_out_hardly_anything_while_all_write() {
    const PERMANENT: u64 = 5000;
    let storm = Storm {
        operations: soak(60_000),
        keys: 1 << 30,
        lens: 200..201,
        sets: 100,
        deletes: 0,
        lives: 120,
        ..Storm::SMALL
    };
    let engine = storm.engine();
    let (keys, mut handle) = (KeyMaker::new(KEY_SIZE), engine.handle());
    let mut ask = |number: u64, op: Op<'_>| {
        let name = keys.key(storm.keys + number);
        ask_one(&mut handle, engine.hasher(), Time(START), &name, op)
    };
    for number in 0..PERMANENT {
        let answer = ask(number, Op::Store(Store::set(&[1; 200])));
        assert!(
            matches!(answer, Answer::Done(Reply::Stored(_))),
            "{answer:?}"
        );
    }
    let sky = blow(&engine, &storm, &[]);
    let (stats, stored) = (engine.stats(), sky.stored.load(Ordering::Relaxed) as u64);
    assert!(
        stats.expired > stored / 2,
        "{} of {stored} expired",
        stats.expired
    );
    assert!(
        stats.evictions < stored / 10,
        "{} of {stored} evicted",
        stats.evictions
    );
    let kept = (0..PERMANENT).filter(|&number| ask(number, Op::Get).value().is_some());
    let kept = kept.count() as u64;
    assert!(kept + stats.evictions >= PERMANENT, "{kept} stay");
}
