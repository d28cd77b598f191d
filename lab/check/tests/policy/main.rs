//! The engine's policy against its model: the same victims in the same order, whatever a client does.

mod model;

use std::sync::{Arc, Mutex};

use model::{Model, Told};
use nuthatch_check::conformance::Client;
use nuthatch_check::{AnyEngine, soak};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{
    Engine, Evicted, Evictions, Expiry, Inspect, Key, KeyHasher, Op, Read, Reply, Store,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const LIMIT: usize = 1 << 20;

/// Who is told of each victim: its key, and whether it was fetched.
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
}

fn key(number: usize) -> Vec<u8> {
    format!("key {number:07}").into_bytes()
}

impl Both {
    fn new() -> Self {
        let hasher = KeyHasher::seeded(1);
        let config = CuckooConfig {
            memory_limit: LIMIT,
            item_size_max: 8 << 10,
            // The index is not to grow, nor to be full: what leaves then is not the policy's choice.
            initial_items: Some(12_000),
            hasher: hasher.clone(),
            ..CuckooConfig::default()
        };
        let engine: Cuckoo = Cuckoo::new(config).expect("there is address space");
        let victims = Arc::new(Victims::default());
        engine.tell_evictions(Arc::clone(&victims) as Arc<dyn Evictions>);
        let client = Client::new(AnyEngine::new(Arc::new(engine)));
        let mut model = Model::new(LIMIT, client.engine.stats().memory_used as usize);
        model.now = client.now.0.into();
        Self {
            client,
            victims,
            model,
            hasher,
        }
    }

    fn get(&mut self, number: usize) -> bool {
        let hit = self.client.get(&key(number)).is_some();
        assert_eq!(hit, self.model.get(number), "a get of {number}");
        hit
    }

    fn set(&mut self, number: usize, len: usize, seconds: Option<u64>) {
        let expiry = seconds.map_or(Expiry::Never, |seconds| self.client.in_seconds(seconds));
        let name = key(number);
        let value = vec![7; len];
        let store = Store {
            expiry,
            ..Store::set(&value)
        };
        let reply = self.client.store(&name, store);
        let tick = match expiry {
            Expiry::Never => u64::MAX,
            Expiry::At(time) => time.0.into(),
        };
        let hash = Key::new(&name, &self.hasher).hash();
        let stored = self.model.set(number, hash, 16 + name.len() + len, tick);
        assert_eq!(matches!(reply, Reply::Stored(_)), stored, "{reply:?}");
    }

    fn delete(&mut self, number: usize) {
        self.client.delete(&key(number));
        self.model.delete(number);
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
            evicted: [log.evicted_probation, log.evicted_main],
            ghost_hits: log.ghost_hits,
            moved_to_main: log.moved_to_main,
            moved_within_main: log.moved_within_main,
            pages_cleaned: log.pages_cleaned,
            bytes_moved: log.bytes_moved,
        };
        assert_eq!(told, self.model.told, "why, and what moved");
        assert_eq!(log.evicted_slots, 0, "the index is not to be full");
    }

    /// The same keys are there.
    fn compare_keys(&mut self, keys: usize) {
        let alive: std::collections::HashSet<usize> = self
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

/// How a sequence asks: drawn for each.
struct Mix {
    keys: usize,
    /// The longest value.
    most: usize,
    /// Percent of operations that set a key anew, delete one, and set one that expires.
    sets: u32,
    deletes: u32,
    expiring: u32,
}

fn sequence(seed: u64, operations: usize) -> Told {
    let mut random = SmallRng::seed_from_u64(seed);
    let mix = Mix {
        keys: random.random_range(4_000..20_000),
        most: *[100, 300, 900]
            .get(seed as usize % 3)
            .expect("one of three"),
        sets: random.random_range(0..30),
        deletes: random.random_range(0..6) * random.random_range(0..2),
        expiring: random.random_range(0..100) * random.random_range(0..2),
    };
    let mut both = Both::new();
    let mut scan = 0;
    for step in 0..operations {
        // Some keys are asked for more, and some come one after the other.
        let number = match random.random_range(0..10) {
            0..6 => random.random_range(0..mix.keys) * random.random_range(0..mix.keys) / mix.keys,
            6..8 => {
                scan = (scan + 1) % mix.keys;
                scan
            }
            _ => random.random_range(0..mix.keys / 10),
        };
        // Each key has a length, which a set may change.
        let mut len = (number * 7919) % mix.most;
        let seconds =
            (random.random_range(0..100) < mix.expiring).then(|| random.random_range(1..60));
        let dice = random.random_range(0..100);
        if dice < mix.sets {
            if random.random_range(0..2) == 0 {
                len = random.random_range(0..mix.most);
            }
            both.set(number, len, seconds);
        } else if dice < mix.sets + mix.deletes {
            both.delete(number);
        } else if !both.get(number) {
            both.set(number, len, seconds);
        }
        if random.random_range(0..60) == 0 {
            both.wait(1);
        }
        both.compare();
        if step % 5000 == 4999 {
            both.compare_keys(mix.keys);
        }
    }
    both.client.audit();
    both.model.told
}

#[test]
fn victims_are_those_of_the_model() {
    let mut sum = [0; 6];
    for seed in 0..soak(20) as u64 {
        let told = sequence(seed, 20_000);
        let [probation, main] = told.evicted;
        let of = [
            probation,
            main,
            told.expired,
            told.ghost_hits,
            told.moved_to_main,
            told.moved_within_main,
        ];
        sum = std::array::from_fn(|at| sum[at] + of[at]);
    }
    // All that the policy does was done.
    assert!(sum.iter().all(|&count| count > 1000), "{sum:?}");
}
