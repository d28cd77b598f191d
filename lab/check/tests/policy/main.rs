//! The engine's policy against its model: the same victims in the same order, whatever a client does.

mod model;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use model::{Arriving, Model, Told};
use nuthatch_check::conformance::Client;
use nuthatch_check::soak;
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{
    AnyReservation, Engine, Evicted, Evictions, Expiry, Handle, Inspect, Key, KeyHasher, Op, Read,
    Reply, Reservation, Store,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const LIMIT: usize = 1 << 20;
const LIMIT_MAX: usize = 4 << 20;

/// The largest item, header and all.
const ITEM_MAX: usize = 64 << 10;

/// Records each victim: its key, and whether it was fetched.
#[derive(Default)]
struct Victims(Mutex<Vec<(Vec<u8>, bool)>>);

impl Evictions for Victims {
    fn are_wanted(&self) -> bool {
        true
    }

    fn evicted(&self, item: &Evicted<'_>) {
        let victim = (item.key.to_vec(), item.fetched);
        self.0.lock().expect("no panic").push(victim);
    }
}

/// An engine and its model.
struct Both {
    client: Client,
    victims: Arc<Victims>,
    model: Model,
    hasher: KeyHasher,
    /// Values that are arriving.
    arriving: Vec<(AnyReservation, Arriving)>,
}

fn key(number: usize) -> Vec<u8> {
    format!("key {number:07}").into_bytes()
}

impl Both {
    fn new() -> Self {
        let hasher = KeyHasher::seeded(1);
        let config = CuckooConfig {
            memory_limit: LIMIT,
            memory_limit_max: LIMIT_MAX,
            item_size_max: ITEM_MAX,
            // The index must neither grow nor fill up: evictions for the index are not the policy's choice.
            initial_items: Some(12_000),
            hasher: hasher.clone(),
            ..CuckooConfig::default()
        };
        let engine: Cuckoo = Cuckoo::new(config).expect("there is address space");
        let victims = Arc::new(Victims::default());
        engine.report_evictions(Arc::clone(&victims) as Arc<dyn Evictions>);
        let client = Client::new(Arc::new(engine).any());
        let charged = client.engine.stats().memory_used as usize;
        let mut model = Model::new(LIMIT, charged, LIMIT_MAX, ITEM_MAX);
        model.now = client.now.0.into();
        Self {
            client,
            victims,
            model,
            hasher,
            arriving: Vec::new(),
        }
    }

    fn hash(&self, number: usize) -> u64 {
        Key::new(&key(number), &self.hasher).hash()
    }

    /// The expiry of an item that is stored now for this many seconds: for the engine, and for the model.
    fn expiry(&self, seconds: Option<u64>) -> (Expiry, u64) {
        match seconds.map(|seconds| self.client.in_seconds(seconds)) {
            None | Some(Expiry::Never) => (Expiry::Never, u64::MAX),
            Some(Expiry::At(time)) => (Expiry::At(time), time.0.into()),
        }
    }

    fn get(&mut self, number: usize) -> bool {
        let hit = self.client.get(&key(number)).is_some();
        assert_eq!(hit, self.model.get(number), "a get of {number}");
        hit
    }

    /// gat, or touch.
    fn touch(&mut self, number: usize, seconds: Option<u64>, value: bool) {
        let (expiry, tick) = self.expiry(seconds);
        let read = Read {
            value,
            touch: Some(expiry),
            ..Read::default()
        };
        let hit = self.client.read(&key(number), read).item().is_some();
        assert_eq!(hit, self.model.touch(number, tick), "a touch of {number}");
    }

    fn set(&mut self, number: usize, len: usize, seconds: Option<u64>) {
        let (expiry, tick) = self.expiry(seconds);
        let (name, value) = (key(number), vec![7; len]);
        let store = Store {
            expiry,
            ..Store::set(&value)
        };
        let reply = self.client.store(&name, store);
        let hash = self.hash(number);
        let stored = self.model.set(number, hash, name.len(), len, tick);
        assert_eq!(matches!(reply, Reply::Stored(_)), stored, "{reply:?}");
    }

    /// A value whose length alone is known.
    fn reserve(&mut self, number: usize, len: usize) {
        let name = key(number);
        let (now, hash) = (self.client.now, self.hash(number));
        let asked = Key::new(&name, &self.hasher);
        let reserved = self.client.handle.reserve(now, asked, len);
        let known = self.model.reserve(number, hash, name.len(), len);
        match (reserved, known) {
            (Ok(mut reserved), Some(known)) => {
                reserved.write(&vec![7; len]);
                self.arriving.push((reserved, known));
            }
            (reserved, known) => {
                let (made, modelled) = (reserved.is_ok(), known.is_some());
                assert_eq!(made, modelled, "memory for {len} bytes");
            }
        }
    }

    /// One of them has arrived, or is dropped.
    fn arrive(&mut self, which: usize, comes: bool) {
        let (reserved, known) = self.arriving.swap_remove(which);
        if comes {
            let now = self.client.now;
            let reply = self.client.handle.commit(now, reserved, &Store::set(&[]));
            assert!(matches!(reply, Reply::Stored(_)), "{reply:?}");
            self.model.commit(known, u64::MAX);
        } else {
            drop(reserved);
            self.model.forget(known);
        }
    }

    fn delete(&mut self, number: usize) {
        self.client.delete(&key(number));
        self.model.delete(number);
    }

    fn flush(&mut self) {
        self.client.engine.flush(self.client.now, self.client.now);
        self.model.flush();
    }

    fn set_limit(&mut self, bytes: usize) {
        let set = self.client.engine.set_memory_limit(bytes);
        assert_eq!(set.is_ok(), self.model.set_limit(bytes), "{set:?}");
    }

    fn maintain(&mut self, budget: usize) {
        self.client.handle.maintain(self.client.now, budget);
        self.model.maintain(budget);
    }

    fn wait(&mut self, seconds: u64) {
        self.client.wait(seconds);
        self.model.now = self.client.now.0.into();
    }

    /// The same victims, for the same reasons.
    fn compare(&mut self) {
        let victims = std::mem::take(&mut *self.victims.0.lock().expect("no panic"));
        let left = std::mem::take(&mut self.model.left);
        let left: Vec<_> = left
            .iter()
            .map(|item| (key(item.key), item.fetched))
            .collect();
        assert_eq!(victims, left, "who left");
        let stats = self.client.engine.stats();
        let log = stats.log.expect("a log");
        let told = Told {
            expired: stats.expired,
            flushed: stats.flushed.expect("a log tells"),
            evicted: [log.evicted_probation, log.evicted_main],
            ghost_hits: log.ghost_hits,
            moved_to_main: log.moved_to_main,
            moved_within_main: log.moved_within_main,
            pages_cleaned: log.pages_cleaned,
            bytes_moved: log.bytes_moved,
        };
        assert_eq!(told, self.model.told, "why, and what moved");
        assert_eq!(log.evicted_slots, 0, "the index is not to be full");
        let pages = [log.probation_pages, log.main_pages].map(|pages| pages as usize);
        assert_eq!(pages, self.model.lengths(), "how long the queues are");
        assert_eq!(
            stats.memory_used as usize,
            self.model.used(),
            "what is used"
        );
    }

    /// Both hold the same keys.
    fn compare_keys(&mut self, keys: usize) {
        let alive: HashSet<usize> = self
            .model
            .keys()
            .filter_map(|(key, alive)| alive.then_some(key))
            .collect();
        assert_eq!(
            self.client.engine.stats().items,
            self.model.keys().count() as u64
        );
        let look = Op::Read(Read {
            value: false,
            bump: false,
            ..Read::default()
        });
        for number in 0..keys {
            let there = self.client.ask(&key(number), look).item().is_some();
            assert_eq!(there, alive.contains(&number), "key {number}");
        }
    }
}

/// The mix of a sequence's operations: drawn for each sequence.
struct Mix {
    keys: usize,
    /// The longest value of most keys.
    most: usize,
    /// One key in this many has a value in several pieces; 0: none has.
    long: usize,
    /// Percent of operations that set a key anew, delete one, set one that expires, touch one, and store a value that
    /// arrives.
    sets: u32,
    deletes: u32,
    expiring: u32,
    touches: u32,
    arrivals: u32,
    /// Operations for each flush, each change of the limit, and each run of background work; 0: none.
    flushes: u32,
    limits: u32,
    maintains: u32,
}

impl Mix {
    fn draw(seed: u64, random: &mut SmallRng) -> Self {
        let long = *[0, 100, 10, 2].get(seed as usize % 4).expect("one of four");
        Self {
            keys: random.random_range(4_000..20_000) / if long == 2 { 8 } else { 1 },
            most: *[100, 300, 900]
                .get(seed as usize % 3)
                .expect("one of three"),
            long,
            sets: random.random_range(0..30),
            deletes: random.random_range(0..6) * random.random_range(0..2),
            expiring: random.random_range(0..100) * random.random_range(0..2),
            touches: random.random_range(0..20) * random.random_range(0..2),
            arrivals: random.random_range(0..20) * random.random_range(0..2),
            flushes: 4000 * random.random_range(0..2),
            limits: 500 * random.random_range(0..2),
            maintains: 20 * random.random_range(0..2),
        }
    }

    /// Each key has a length, which a store may change.
    fn len(&self, number: usize) -> usize {
        if self.long > 0 && number.is_multiple_of(self.long) {
            return 1000 + number * 7919 % 30_000;
        }
        number * 7919 % self.most
    }

    fn other_len(&self, number: usize, random: &mut SmallRng) -> usize {
        match self.long > 0 && number.is_multiple_of(self.long) {
            true => random.random_range(0..30_000),
            false => random.random_range(0..self.most),
        }
    }
}

fn once_in(times: u32, random: &mut SmallRng) -> bool {
    times > 0 && random.random_range(0..times) == 0
}

fn sequence(seed: u64, operations: usize) -> Told {
    let mut random = SmallRng::seed_from_u64(seed);
    let mix = Mix::draw(seed, &mut random);
    let mut both = Both::new();
    let mut scan = 0;
    for step in 0..operations {
        // Some keys are requested more often, and some in sequence.
        let number = match random.random_range(0..10) {
            0..6 => random.random_range(0..mix.keys) * random.random_range(0..mix.keys) / mix.keys,
            6..8 => {
                scan = (scan + 1) % mix.keys;
                scan
            }
            _ => random.random_range(0..mix.keys / 10),
        };
        let mut len = mix.len(number);
        let expires = random.random_range(0..100) < mix.expiring;
        let seconds = expires.then(|| random.random_range(1..60));
        let dice = random.random_range(0..100);
        let kinds = [mix.sets, mix.deletes, mix.touches, mix.arrivals];
        let mut sum = 0;
        let kind = kinds.iter().position(|percent| {
            sum += percent;
            dice < sum
        });
        match kind {
            Some(0) => {
                if random.random_range(0..2) == 0 {
                    len = mix.other_len(number, &mut random);
                }
                both.set(number, len, seconds);
            }
            Some(1) => both.delete(number),
            Some(2) => both.touch(number, seconds, random.random_bool(0.5)),
            Some(_) => {
                if both.arriving.len() > random.random_range(0..3) {
                    let which = random.random_range(0..both.arriving.len());
                    both.arrive(which, random.random_bool(0.8));
                }
                both.reserve(number, len);
            }
            None if !both.get(number) => both.set(number, len, seconds),
            None => {}
        }
        if once_in(60, &mut random) {
            both.wait(1);
        }
        if once_in(mix.flushes, &mut random) {
            both.flush();
        }
        if once_in(mix.limits, &mut random) {
            both.set_limit(random.random_range(LIMIT / 2..LIMIT * 2));
        }
        if once_in(mix.maintains, &mut random) {
            both.maintain(random.random_range(1..50));
        }
        both.compare();
        if step % 5000 == 4999 {
            both.compare_keys(mix.keys);
        }
    }
    both.arriving.clear();
    both.client.audit();
    both.model.told
}

#[test]
fn victims_are_those_of_the_model() {
    let mut sum = [0; 7];
    for seed in 0..soak(24) as u64 {
        let told = sequence(seed, 15_000);
        let [probation, main] = told.evicted;
        let of = [
            probation,
            main,
            told.expired,
            told.flushed,
            told.ghost_hits,
            told.moved_to_main,
            told.moved_within_main,
        ];
        sum = std::array::from_fn(|at| sum[at] + of[at]);
    }
    // All that the policy does was done.
    assert!(sum.iter().all(|&count| count > 1000), "{sum:?}");
}
