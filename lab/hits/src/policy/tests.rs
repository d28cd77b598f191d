//! Tests of all policies: properties of each, and comparisons of some with naive models.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::costs::Costs;
use super::log::{Log, LogShape};
use super::s3fifo::S3FifoShape;
use super::slab::{Slab, SlabShape};
use super::*;
use nuthatch_store::eviction::log::POLICIES;

/// One of each kind, and some with other parameters.
const ALL: [&str; 26] = [
    "fifo",
    "clock",
    "clock2",
    "clock3",
    "lru",
    "sampled-lru",
    "sampled-lru:2:0",
    "slru",
    "slru:0.1:0.2",
    "2q",
    "2q:0.5:2",
    "arc",
    "lirs",
    "lirs:0.1:1",
    "lirs:0.5:0",
    "sieve",
    "s3-fifo",
    "s3-fifo:0.3:2:1",
    "s3-fifo:0.2:2:1:0.5",
    "w-tinylfu",
    "w-tinylfu:0.4",
    "w-tinylfu-climb",
    "gdsf",
    "optimum",
    "lib:moka",
    "lib:quick_cache",
];

/// Simulated stores, whose capacity pays for more than the items.
const STORES: [&str; 6] = [
    "slab-s3-fifo",
    "slab-s3-fifo:1.25:64:0.2:3:1:0.5",
    "log-s3-fifo",
    "log-s3-fifo:256:0.2:3:1:0.5",
    "log:s3-fifo",
    "log:sieve:128",
];

/// Plays requests for keys of one letter. H for a hit, a point for a miss.
pub(super) fn hits(policy: &str, capacity: u64, keys: &str) -> String {
    let requests: Vec<(char, u32)> = keys.chars().map(|key| (key, 1)).collect();
    hits_of_sizes(policy, capacity, &requests)
}

/// The same with charges.
pub(super) fn hits_of_sizes(policy: &str, capacity: u64, requests: &[(char, u32)]) -> String {
    let number = |key: char| u32::from(key) - u32::from('a');
    let requests: Vec<(u32, u32)> = requests
        .iter()
        .map(|&(key, charge)| (number(key), charge))
        .collect();
    replay(policy, capacity, 26, &requests, |_, _, _| {})
        .into_iter()
        .map(|hit| if hit { 'H' } else { '.' })
        .collect()
}

/// Plays requests, looks after each, and returns which of them hit.
fn replay(
    policy: &str,
    capacity: u64,
    keys: usize,
    requests: &[(u32, u32)],
    mut look: impl FnMut(&dyn Policy, u32, bool),
) -> Vec<bool> {
    let future = Future::of(requests.iter().map(|&(key, _)| key), keys).unwrap();
    let name: PolicyName = policy.parse().unwrap();
    let mut policy = name.build(&Room {
        capacity,
        keys,
        items: capacity,
        future: Some(&future),
    });
    let one = |&(key, charge): &(u32, u32)| {
        let held = policy.holds(key);
        let hit = policy.request(key, charge);
        assert_eq!(hit, held, "{name} answers what it holds");
        look(&*policy, key, hit);
        hit
    };
    requests.iter().map(one).collect()
}

/// Requests of several habits: skewed, in loops, once.
fn random_requests(seed: u64, keys: u32, count: usize, charge_max: u32) -> Vec<(u32, u32)> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut at = 0;
    let one = |_| {
        let key = match random.random_range(0..4) {
            0 => random.random_range(0..keys),
            1 => {
                at = (at + 1) % keys;
                at
            }
            _ => {
                let most = random.random_range(0..keys);
                random.random_range(0..=most)
            }
        };
        (key, random.random_range(1..=charge_max))
    };
    (0..count).map(one).collect()
}

#[test]
fn no_policy_is_ever_over_its_capacity() {
    for policy in ALL {
        for (seed, (capacity, charge_max)) in [(1, 1), (2, 1), (10, 1), (100, 1), (50, 20), (7, 9)]
            .into_iter()
            .enumerate()
        {
            let requests = random_requests(seed as u64, 60, 4000, charge_max);
            let mut held = vec![0; 60];
            let mut position = 0;
            replay(policy, capacity, 60, &requests, |state, key, hit| {
                let (_, charge) = requests[position];
                position += 1;
                if !hit {
                    held[key as usize] = charge;
                }
                let used: u32 = (0..60)
                    .filter(|&key| state.holds(key))
                    .map(|key| held[key as usize])
                    .sum();
                assert_eq!(state.used(), u64::from(used), "{policy}, {capacity}");
                assert!(state.used() <= capacity, "{policy}, {capacity}");
                let fits = u64::from(charge) <= capacity;
                assert!(fits || hit || !state.holds(key), "{policy}, {capacity}");
            });
        }
    }
}

#[test]
fn what_fits_stays() {
    for policy in ALL {
        let requests = random_requests(3, 50, 2000, 1);
        let hits = replay(policy, 60, 50, &requests, |_, _, _| {});
        let hits = hits.into_iter().filter(|&hit| hit).count();
        assert_eq!(hits, 1950, "{policy}");
    }
}

#[test]
fn nothing_has_more_hits_than_the_optimum() {
    for seed in 0..10 {
        let requests = random_requests(seed, 100, 4000, 1);
        for capacity in [1, 5, 20, 70] {
            let count = |policy: &str| {
                let hits = replay(policy, capacity, 100, &requests, |_, _, _| {});
                hits.into_iter().filter(|&hit| hit).count()
            };
            let most = count("optimum");
            for policy in ALL {
                assert!(count(policy) <= most, "{policy}, {capacity}");
            }
        }
    }
}

/// A policy written directly after its paper's text, without links and marks in arrays.
trait Naive {
    fn request(&mut self, key: u32, charge: u32, capacity: u64) -> bool;
}

#[derive(Clone, Copy)]
struct Entry {
    key: u32,
    charge: u32,
    count: u32,
}

fn taken(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| u64::from(entry.charge)).sum()
}

fn place(entries: &[Entry], key: u32) -> Option<usize> {
    entries.iter().position(|entry| entry.key == key)
}

/// A list, the oldest first, in which hits count up to `most`; with `moves` a hit also renews.
struct NaiveList {
    entries: Vec<Entry>,
    most: u32,
    moves: bool,
}

impl Naive for NaiveList {
    fn request(&mut self, key: u32, charge: u32, capacity: u64) -> bool {
        if let Some(at) = place(&self.entries, key) {
            let entry = &mut self.entries[at];
            entry.count = (entry.count + 1).min(self.most);
            if self.moves {
                self.entries[at..].rotate_left(1);
            }
            return true;
        }
        if u64::from(charge) > capacity {
            return false;
        }
        while taken(&self.entries) + u64::from(charge) > capacity {
            let mut oldest = self.entries.remove(0);
            if oldest.count > 0 {
                oldest.count -= 1;
                self.entries.push(oldest);
            }
        }
        let count = 0;
        self.entries.push(Entry { key, charge, count });
        false
    }
}

/// SIEVE's list, the oldest first, and the hand's place in it.
struct NaiveSieve {
    entries: Vec<Entry>,
    hand: usize,
}

impl Naive for NaiveSieve {
    fn request(&mut self, key: u32, charge: u32, capacity: u64) -> bool {
        if let Some(at) = place(&self.entries, key) {
            self.entries[at].count = 1;
            return true;
        }
        if u64::from(charge) > capacity {
            return false;
        }
        while taken(&self.entries) + u64::from(charge) > capacity {
            if self.hand == self.entries.len() {
                self.hand = 0;
            }
            if self.entries[self.hand].count > 0 {
                self.entries[self.hand].count = 0;
                self.hand += 1;
            } else {
                self.entries.remove(self.hand);
                // At the newest: it begins at the oldest, whatever comes before it is needed again.
                if self.hand == self.entries.len() {
                    self.hand = 0;
                }
            }
        }
        if self.hand == self.entries.len() {
            self.hand = 0;
        }
        let count = 0;
        self.entries.push(Entry { key, charge, count });
        false
    }
}

/// S3-FIFO's Algorithm 1.
struct NaiveS3Fifo {
    small: Vec<Entry>,
    main: Vec<Entry>,
    ghosts: Vec<Entry>,
}

impl NaiveS3Fifo {
    fn evict_main(&mut self) {
        loop {
            let mut tail = self.main.remove(0);
            if tail.count == 0 {
                return;
            }
            tail.count -= 1;
            self.main.push(tail);
        }
    }
}

impl Naive for NaiveS3Fifo {
    fn request(&mut self, key: u32, charge: u32, capacity: u64) -> bool {
        for queue in [&mut self.small, &mut self.main] {
            if let Some(at) = place(queue, key) {
                queue[at].count = (queue[at].count + 1).min(3);
                return true;
            }
        }
        if u64::from(charge) > capacity {
            return false;
        }
        let tenth = |tenths: f64| (capacity as f64 * tenths / 10.0).round() as u64;
        let (small_share, ghosts_max) = (tenth(1.0).max(1), tenth(9.0).max(1));
        let ghost = place(&self.ghosts, key).map(|at| self.ghosts.remove(at));
        while taken(&self.small) + taken(&self.main) + u64::from(charge) > capacity {
            if taken(&self.small) < small_share && !self.main.is_empty() {
                self.evict_main();
                continue;
            }
            while !self.small.is_empty() {
                let mut tail = self.small.remove(0);
                if tail.count > 1 {
                    tail.count = 0;
                    self.main.push(tail);
                    if taken(&self.main) > capacity - small_share {
                        self.evict_main();
                    }
                } else {
                    self.ghosts.push(tail);
                    while taken(&self.ghosts) > ghosts_max {
                        self.ghosts.remove(0);
                    }
                    break;
                }
            }
        }
        let count = 0;
        let queue = match ghost {
            Some(_) => &mut self.main,
            None => &mut self.small,
        };
        queue.push(Entry { key, charge, count });
        false
    }
}

/// Which of the requests hit in the policy must be those that hit in the model.
fn beside(policy: &str, naive: impl Fn() -> Box<dyn Naive>) {
    for seed in 0..8 {
        for (capacity, charge_max) in [(1, 1), (3, 1), (20, 1), (60, 1), (100, 20), (300, 20)] {
            let requests = random_requests(seed, 100, 3000, charge_max);
            let hits = replay(policy, capacity, 100, &requests, |_, _, _| {});
            let mut naive = naive();
            for (position, &(key, charge)) in requests.iter().enumerate() {
                let hit = naive.request(key, charge, capacity);
                let words = format!("{policy} of {capacity}, seed {seed}, request {position}");
                assert_eq!(hits[position], hit, "{words}");
            }
        }
    }
}

#[test]
fn beside_naive_models() {
    for (policy, most, moves) in [
        ("fifo", 0, false),
        ("lru", 0, true),
        ("clock", 1, false),
        ("clock2", 3, false),
        ("clock3", 7, false),
    ] {
        beside(policy, || {
            Box::new(NaiveList {
                entries: Vec::new(),
                most,
                moves,
            })
        });
    }
    beside("sieve", || {
        Box::new(NaiveSieve {
            entries: Vec::new(),
            hand: 0,
        })
    });
    beside("s3-fifo", || {
        Box::new(NaiveS3Fifo {
            small: Vec::new(),
            main: Vec::new(),
            ghosts: Vec::new(),
        })
    });
}

/// Costs of pages of `page` bytes, in which items take nothing beside themselves.
fn no_costs(page: u64) -> Costs {
    Costs {
        page,
        header: 0,
        piece_header: 0,
        unit: 1,
        outside: 0.0,
        bits: 0.0,
    }
}

fn room(capacity: u64, keys: usize) -> Room<'static> {
    Room {
        capacity,
        keys,
        items: capacity,
        future: None,
    }
}

#[test]
fn a_slab_store_of_one_class_is_s3_fifo() {
    for seed in 0..8 {
        for capacity in [4, 20, 60] {
            // Two chunks of one byte a page.
            let shape = SlabShape::default();
            let mut slab = Slab::with_costs(&room(capacity, 100), &shape, no_costs(2), 1);
            let mut naive = NaiveS3Fifo {
                small: Vec::new(),
                main: Vec::new(),
                ghosts: Vec::new(),
            };
            for (position, (key, _)) in random_requests(seed, 100, 3000, 1).into_iter().enumerate()
            {
                let hit = naive.request(key, 1, capacity);
                let words = format!("{capacity}, seed {seed}, request {position}");
                assert_eq!(slab.request(key, 1), hit, "{words}");
            }
            let movement = slab.movement().unwrap();
            assert_eq!((movement.items, movement.moved), (capacity, 0));
        }
    }
}

#[test]
fn a_log_of_many_pages_hits_as_often_as_s3_fifo() {
    // Pages of 16 items, 256 of them, and one that is free.
    let (page, pages) = (16, 256);
    let requests = random_requests(1, 25_000, 150_000, 1);
    let mut log = Log::with_costs(
        &room(page * (pages + 1), 25_000),
        &LogShape::default(),
        no_costs(page),
    );
    let log_hits = requests
        .iter()
        .filter(|&&(key, _)| log.request(key, 1))
        .count();
    let exact = replay("s3-fifo", page * pages, 25_000, &requests, |_, _, _| {});
    let exact_hits = exact.into_iter().filter(|&hit| hit).count();
    let points = (log_hits as f64 - exact_hits as f64).abs() / requests.len() as f64;
    assert!(points < 0.005, "{log_hits}, {exact_hits}");
}

#[test]
fn stores_hold_what_they_say_at_real_costs() {
    let queues = [
        S3FifoShape::default(),
        S3FifoShape {
            uncounted: 0.5,
            promotion: 1,
            ..S3FifoShape::default()
        },
    ];
    for (seed, queues) in (0..6).flat_map(|seed| queues.map(|queues| (seed, queues))) {
        // Up to seven times a page's longest record, in 64 pages.
        let limit = 1 << 20;
        let most = [100, 2000, 20_000][seed as usize % 3];
        let requests = random_requests(seed, 4000, 12_000, most);
        let slab_shape = SlabShape {
            queues,
            ..SlabShape::default()
        };
        let mut slab = Slab::new(&room(limit, 4000), slab_shape);
        let log_shape = LogShape {
            queues,
            ..LogShape::default()
        };
        let mut log = Log::new(&room(limit, 4000), log_shape);
        for (position, (key, charge)) in requests.into_iter().enumerate() {
            let held = (slab.holds(key), log.holds(key));
            assert_eq!((slab.request(key, charge), log.request(key, charge)), held);
            assert!(slab.holds(key), "slab: {key}, {charge}, {position}");
            assert!(log.holds(key), "log: {key}, {charge}, {position}");
            if position % 500 == 0 {
                slab.audit();
                log.audit();
            }
        }
        for (store, part) in [(&slab as &dyn Policy, 5), (&log, 2)] {
            let movement = store.movement().unwrap();
            let items = (0..4000).filter(|&key| store.holds(key)).count();
            assert_eq!(movement.items, items as u64);
            // A slab store of so few pages holds few large values of all sizes.
            let wanted = u64::from(most) * 1000;
            assert!(
                store.used() > limit.min(wanted) / part,
                "{most}: {}",
                store.used()
            );
            assert!(store.used() < limit);
        }
    }
}

/// Every policy of the engine's log holds as much as there is room for, and nothing that it does not know of.
#[test]
fn a_log_is_full_under_every_policy_of_the_engine() {
    for kind in POLICIES {
        for (seed, most) in [(1, 100), (2, 2000), (3, 20_000)] {
            let limit = 1 << 20;
            let mut log = Log::of(&room(limit, 4000), 64, kind);
            for (position, (key, charge)) in random_requests(seed, 4000, 12_000, most)
                .into_iter()
                .enumerate()
            {
                let held = log.holds(key);
                assert_eq!(log.request(key, charge), held);
                assert!(log.holds(key), "{kind:?}: {key}, {charge}, {position}");
                if position % 500 == 0 {
                    log.audit();
                }
            }
            let wanted = limit.min(u64::from(most) * 1000);
            assert!(log.used() > wanted / 2, "{kind:?}: {}", log.used());
            assert!(log.used() < limit);
        }
    }
}

#[test]
fn a_slab_store_gives_pages_to_the_sizes_that_are_asked_for() {
    let keys = 40_000;
    let mut slab = Slab::new(&room(1 << 20, keys as usize), SlabShape::default());
    let mut asked = |keys: std::ops::Range<u32>, charge| {
        let mut random = SmallRng::seed_from_u64(1);
        for _ in 0..60_000 {
            slab.request(random.random_range(keys.clone()), charge);
        }
        slab.audit();
        keys.filter(|&key| slab.holds(key)).count()
    };
    // Twice as many as there is room for.
    assert!(asked(0..14_000, 100) > 5_000);
    assert!(asked(20_000..20_600, 3000) > 200);
    assert!(asked(0..14_000, 100) > 5_000);
}

#[test]
fn names_as_typed() {
    for name in STORES {
        assert_eq!(name.parse::<PolicyName>().unwrap().to_string(), name);
    }
    for name in ALL {
        assert_eq!(name.parse::<PolicyName>().unwrap().to_string(), name);
    }
    for wrong in [
        "",
        "lfu",
        "lru:1",
        "s3-fifo:0",
        "s3-fifo:1.5",
        "s3-fifo:0.1:-1",
        "s3-fifo:0.1:1:4",
        "s3-fifo:0.1:1:1:1",
        "s3-fifo:0.1:1:1:0.5:1",
        "slab-s3-fifo:1",
        "slab-s3-fifo:1.1:4",
        "log-s3-fifo:4",
        "log",
        "log:lru",
        "log:sieve:4",
        "sampled-lru:0",
        "slru:0.6:0.4",
        "lirs:nan",
        "clock4",
    ] {
        assert!(wrong.parse::<PolicyName>().is_err(), "{wrong}");
    }
    let all = names();
    for name in ALL.iter().chain(&STORES) {
        let name = name.split(':').next().unwrap();
        assert!(all.contains(name), "{name}");
    }
}
