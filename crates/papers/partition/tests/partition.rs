//! Tests of one partition, driven by its only thread: memory, order of use, references.
#![cfg(not(loom))]

use std::collections::{HashMap, VecDeque};
use std::mem::MaybeUninit;
use std::sync::Arc;

use nuthatch_engine::{
    Delta, Key, KeyHasher, Leave, Op, Read, Removal, Reply, Store, StoreMode, Time, TouchIf,
};
use nuthatch_partition::memory::{BLOCK, BLOCK_COST};
use nuthatch_partition::{
    BlockMemory, Draft, Element, Eviction, Outcome, Partition, PartitionConfig,
};

/// A partition, and the clock that a test sets by hand.
struct World {
    hasher: KeyHasher,
    partition: Partition,
    now: Time,
}

/// A read that leaves no trace.
const PEEK: Read = Read {
    value: false,
    touch: None,
    vivify: None,
    recache_below: None,
    unless_cas: None,
    touch_if: TouchIf::Always,
    new_cas: None,
    may_win: false,
    bump: false,
    idle: false,
    details: true,
};

impl World {
    fn new(blocks: usize, eviction: Eviction) -> Self {
        Self::with(blocks, eviction, true)
    }

    fn with(blocks: usize, eviction: Eviction, evicts: bool) -> Self {
        let bytes = blocks * BLOCK_COST;
        let memory = Arc::new(BlockMemory::new(bytes, bytes).unwrap());
        let config = PartitionConfig {
            eviction,
            evicts,
            item_size_max: 1 << 20,
            capacity: usize::MAX,
            seed: 1,
        };
        Self {
            hasher: KeyHasher::seeded(1),
            partition: Partition::new(memory, config),
            now: Time(100),
        }
    }

    fn ask(&mut self, key: &[u8], op: Op<'_>) -> Outcome {
        let key = Key::new(key, &self.hasher);
        self.partition.execute(self.now, &key, &op)
    }

    fn done(&mut self, key: &[u8], op: Op<'_>) -> Reply {
        match self.ask(key, op) {
            Outcome::Done(reply) => reply,
            Outcome::Value(..) => panic!("{op:?} was answered with a value"),
            Outcome::Draft(_) => panic!("{op:?} made a draft"),
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Reply {
        self.done(key, Op::Store(Store::set(value)))
    }

    fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        match self.ask(key, Op::Get) {
            Outcome::Value(element, item) => Some(self.value(element, item.value_len)),
            Outcome::Done(Reply::Miss) => None,
            other => panic!("a get was answered {other:?}"),
        }
    }

    fn value(&self, element: Element, len: usize) -> Vec<u8> {
        let memory = self.partition.memory();
        let mut value = vec![MaybeUninit::new(0); len];
        memory.read(element, memory.key_len(element), &mut value);
        // SAFETY: made initialised, written over since.
        unsafe { value.assume_init_ref() }.to_vec()
    }

    fn has(&mut self, key: &[u8]) -> bool {
        self.done(key, Op::Read(PEEK)) != Reply::Miss
    }

    /// Looks a key up as a client of a partition does: by its hash.
    fn lookup(&mut self, key: &[u8]) -> Option<Element> {
        let hash = Key::new(key, &self.hasher).hash();
        let element = self.partition.lookup(self.now, hash)?;
        assert!(self.partition.memory().has_key(element, key));
        Some(element)
    }

    fn insert(&mut self, key: &[u8], value_len: usize) -> Result<Element, Reply> {
        let hash = Key::new(key, &self.hasher).hash();
        self.partition.insert(self.now, hash, key.len(), value_len)
    }

    fn audit(&self) {
        if let Err(broken) = self.partition.audit() {
            panic!("audit: {broken}");
        }
    }
}

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) as usize) % end
    }
}

fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + seed * 7) as u8).collect()
}

/// The oracle: keys in order of use, newest first, and their values. The keys that a full partition evicts must be an
/// end of that order, whatever the sizes are.
#[test]
fn eviction_follows_the_order_of_use_exactly() {
    let lens: [&[usize]; 3] = [&[40], &[0, 10, 100, 1000], &[30, 3000, 5000, 20_000]];
    for (round, lens) in lens.into_iter().enumerate() {
        let mut world = World::new(40, Eviction::Lru);
        let mut random = Random(round as u64);
        let mut order: VecDeque<usize> = VecDeque::new();
        let mut values: HashMap<usize, Vec<u8>> = HashMap::new();
        for turn in 0..6000 {
            let number = random.below(3000);
            let key = format!("key {number}");
            let known = order.iter().position(|&other| other == number);
            match random.below(10) {
                0..6 => {
                    let value = bytes(turn, lens[random.below(lens.len())]);
                    assert!(matches!(
                        world.set(key.as_bytes(), &value),
                        Reply::Stored(_)
                    ));
                    known.and_then(|at| order.remove(at));
                    order.push_front(number);
                    values.insert(number, value);
                }
                6..9 => {
                    let expected = known.map(|_| values[&number].clone());
                    assert!(world.get(key.as_bytes()) == expected, "turn {turn}");
                    if let Some(at) = known {
                        order.remove(at);
                        order.push_front(number);
                    }
                }
                _ => {
                    let expected = match known {
                        Some(_) => Reply::Removed,
                        None => Reply::NotFound,
                    };
                    let removal = Op::Remove(Removal::default());
                    assert_eq!(world.done(key.as_bytes(), removal), expected);
                    known.and_then(|at| order.remove(at));
                }
            }
            let kept = world.partition.counts().items as usize;
            order.truncate(kept);
            assert!(world.partition.bytes() <= 40 * BLOCK_COST);
            if turn % 50 == 0 {
                world.audit();
                for (at, number) in order.iter().enumerate() {
                    assert!(
                        world.has(format!("key {number}").as_bytes()),
                        "{at} of {kept}"
                    );
                }
            }
        }
        assert!(world.partition.counts().evicted > 500);
    }
}

#[test]
fn full_memory_is_full_of_items() {
    // Sizes that leave gaps in blocks: the gaps are used as well.
    for len in [10, 100, 1000, 2000, 2100, 3900, 10_000] {
        let mut world = World::new(200, Eviction::Lru);
        for number in 0..200 * BLOCK / len * 2 {
            world.set(format!("key {number}").as_bytes(), &bytes(number, len));
        }
        world.audit();
        let counts = world.partition.counts();
        let index = counts.buckets * 4;
        let lines = counts.items * (64 + 12 + len as u64).next_multiple_of(64) + index;
        let share = lines as f64 / (200 * BLOCK) as f64;
        assert!(share > 0.93, "values of {len} bytes: {share}");
    }
}

#[test]
fn what_is_read_is_neither_freed_nor_changed() {
    for eviction in [Eviction::Lru, Eviction::Random] {
        let mut world = World::new(20, eviction);
        let value = bytes(1, 9000);
        world.set(b"key", &value);
        let element = world.lookup(b"key").unwrap();
        // Replaced, changed by incr, deleted, flushed, and with other stores that evict all the while.
        world.set(b"key", b"12");
        let number = world.lookup(b"key").unwrap();
        assert!(matches!(
            world.done(b"key", Op::Delta(Delta::up(1))),
            Reply::Number(13, _)
        ));
        for turn in 0..500 {
            world.set(format!("other {turn}").as_bytes(), &bytes(turn, 1500));
        }
        world.done(b"key", Op::Remove(Removal::default()));
        world.partition.flush(world.now, world.now);
        assert_eq!(world.value(element, 9000), value);
        assert_eq!(world.value(number, 2), b"12");
        assert_eq!(world.partition.counts().held, 2);
        world.audit();
        world.partition.decref(element);
        world.partition.decref(number);
        assert_eq!(world.partition.counts().held, 0);
        world.audit();
    }
}

#[test]
fn if_all_is_read_an_insert_fails_and_nothing_hangs() {
    for eviction in [Eviction::Lru, Eviction::Random] {
        let mut world = World::new(20, eviction);
        let mut held = Vec::new();
        for number in 0..20 * BLOCK {
            let key = format!("key {number}");
            match world.set(key.as_bytes(), &bytes(number, 1000)) {
                Reply::Stored(_) => held.push((number, world.lookup(key.as_bytes()).unwrap())),
                refusal => {
                    assert_eq!(refusal, Reply::OutOfMemory);
                    break;
                }
            }
        }
        assert!(held.len() > 50, "{} values fit", held.len());
        assert_eq!(world.insert(b"one more", 1000), Err(Reply::OutOfMemory));
        assert!(world.partition.take_wanted() > 0);
        assert_eq!(world.partition.counts().evicted, 0);
        for &(number, element) in &held {
            assert_eq!(world.value(element, 1000), bytes(number, 1000));
        }
        let (_, released) = held.swap_remove(7);
        world.partition.decref(released);
        assert!(matches!(
            world.set(b"one more", &bytes(0, 1000)),
            Reply::Stored(_)
        ));
        assert_eq!(world.partition.counts().evicted, 1);
        for (_, element) in held {
            world.partition.decref(element);
        }
        world.audit();
    }
}

#[test]
fn a_value_larger_than_the_partition_is_refused_and_the_rest_can_go_on() {
    let mut world = World::new(20, Eviction::Lru);
    assert_eq!(world.set(b"key", &bytes(1, 2 << 20)), Reply::TooLarge);
    world.set(b"small", b"value");
    assert_eq!(world.set(b"key", &bytes(1, 100_000)), Reply::OutOfMemory);
    assert!(world.partition.take_wanted() > 3);
    assert!(matches!(world.set(b"key", b"value"), Reply::Stored(_)));
    world.audit();
}

#[test]
fn a_new_element_shows_only_when_it_is_ready() {
    let mut world = World::new(20, Eviction::Lru);
    world.set(b"key", b"old");
    let element = world.insert(b"key", 3).unwrap();
    world.partition.memory().write(element, 0, b"key");
    world.partition.memory().write(element, 3, b"new");
    assert_eq!(world.get(b"key").as_deref(), Some(&b"old"[..]));
    let reply = world
        .partition
        .publish(world.now, element, &Store::set(b""));
    assert!(matches!(reply, Reply::Stored(_)));
    assert_eq!(world.get(b"key").as_deref(), Some(&b"new"[..]));
    world.audit();
    // Dropped, and refused.
    let given_up = world.insert(b"key", 3000).unwrap();
    world.partition.decref(given_up);
    let element = world.insert(b"key", 3).unwrap();
    world.partition.memory().write(element, 0, b"key");
    world.partition.memory().write(element, 3, b"xyz");
    let store = Store {
        mode: StoreMode::Add,
        ..Store::set(b"")
    };
    let refused = world.partition.publish(world.now, element, &store);
    assert_eq!(refused, Reply::NotStored);
    assert_eq!(world.partition.counts().held, 0);
    world.audit();
}

/// Capacity moves, and the order of use stays: the evicted keys are an end of it.
#[test]
fn reclaiming_keeps_the_order_of_use() {
    let mut world = World::new(60, Eviction::Lru);
    let mut random = Random(3);
    for number in 0..3000 {
        let len = [10, 90, 300, 6000][random.below(4)];
        world.set(format!("key {number}").as_bytes(), &bytes(number, len));
    }
    let newest = |world: &mut World, kept: usize| {
        (3000 - kept..3000).all(|number| world.has(format!("key {number}").as_bytes()))
    };
    while world.partition.bytes() > 10 * BLOCK_COST {
        let before = world.partition.bytes();
        assert!(world.partition.reclaim(world.now));
        assert_eq!(world.partition.bytes(), before - BLOCK_COST);
        world.audit();
        let kept = world.partition.counts().items as usize;
        assert!(newest(&mut world, kept), "{kept} items are left");
    }
    assert!(world.partition.counts().moved > 0);
    assert_eq!(world.partition.memory().used(), world.partition.bytes());
}

#[test]
fn without_eviction_deleted_room_comes_back() {
    let mut world = World::with(60, Eviction::Lru, false);
    let mut stored = 0;
    while let Reply::Stored(_) = world.set(format!("key {stored}").as_bytes(), &bytes(1, 900)) {
        stored += 1;
    }
    for number in (0..stored).step_by(2) {
        world.done(
            format!("key {number}").as_bytes(),
            Op::Remove(Removal::default()),
        );
    }
    let mut reclaim = 0;
    while world.partition.reclaim(world.now) {
        reclaim += 1;
    }
    assert!(reclaim > 20, "{reclaim} of 60 blocks for half of the items");
    world.audit();
    for number in (1..stored).step_by(2) {
        let value = world.get(format!("key {number}").as_bytes());
        assert_eq!(value, Some(bytes(1, 900)));
    }
    assert_eq!(world.partition.counts().evicted, 0);
}

#[test]
fn a_walk_meets_each_once_while_the_table_grows_and_moves() {
    let mut world = World::with(400, Eviction::Lru, false);
    for number in 0..500 {
        world.set(format!("stays {number}").as_bytes(), b"value");
    }
    let mut met: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut position = Some(0);
    let mut turn = 0;
    while let Some(from) = position {
        let mut note = |memory: &BlockMemory, element: Element, _: nuthatch_engine::Item| {
            let mut key = vec![MaybeUninit::new(0); memory.key_len(element)];
            memory.read(element, 0, &mut key);
            // SAFETY: made initialised, written over since.
            *met.entry(unsafe { key.assume_init_ref() }.to_vec())
                .or_default() += 1;
        };
        position = world.partition.visit(world.now, from, 7, &mut note);
        for number in 0..3 {
            world.set(format!("comes {turn} {number}").as_bytes(), b"value");
        }
        world.partition.reclaim(world.now);
        turn += 1;
    }
    for number in 0..500 {
        assert_eq!(met.get(format!("stays {number}").as_bytes()), Some(&1));
    }
    world.audit();
}

/// Two partitions on one memory, and all their operations in any order: their bytes pass neither capacity nor limit,
/// whatever is read, filled, dropped or changed in capacity meanwhile.
#[test]
fn bytes_never_pass_the_capacity() {
    for seed in 0..12 {
        let limit = 60 * BLOCK_COST;
        let memory = Arc::new(BlockMemory::new(limit, limit).unwrap());
        let mut random = Random(seed);
        let hasher = KeyHasher::seeded(1);
        let eviction = [Eviction::Lru, Eviction::Random][seed as usize % 2];
        let mut worlds = [0, 1].map(|number| {
            let config = PartitionConfig {
                eviction,
                evicts: true,
                item_size_max: 50_000,
                capacity: 40 * BLOCK_COST,
                seed: number,
            };
            World {
                hasher: hasher.clone(),
                partition: Partition::new(Arc::clone(&memory), config),
                now: Time(100),
            }
        });
        let mut read: [Vec<Element>; 2] = Default::default();
        let mut filling: [Vec<(Vec<u8>, Element)>; 2] = Default::default();
        for turn in 0..4000 {
            let which = random.below(2);
            let (world, read, filling) =
                (&mut worlds[which], &mut read[which], &mut filling[which]);
            let key = format!("key {}", random.below(500)).into_bytes();
            let len = [0, 50, 200, 2000, 9000, 40_000][random.below(6)];
            match random.below(12) {
                0..4 => _ = world.set(&key, &bytes(turn, len)),
                4..6 => read.extend(world.lookup(&key)),
                6..8 if !read.is_empty() => {
                    let element = read.swap_remove(random.below(read.len()));
                    world.partition.decref(element);
                }
                8 if filling.len() < 3 => {
                    let made = world.insert(&key, len);
                    filling.extend(made.ok().map(|element| (key, element)));
                }
                9 if !filling.is_empty() => {
                    let (key, element) = filling.swap_remove(0);
                    world.partition.memory().write(element, 0, &key);
                    if turn % 3 == 0 {
                        world.partition.decref(element);
                    } else {
                        world
                            .partition
                            .publish(world.now, element, &Store::set(b""));
                    }
                }
                10 => _ = world.done(&key, Op::Remove(Removal::default())),
                11 if turn % 50 == 0 => {
                    let blocks = 10 + random.below(40);
                    world.partition.set_capacity(blocks * BLOCK_COST);
                    while world.partition.is_over() && world.partition.reclaim(world.now) {}
                    if read.is_empty() && filling.is_empty() {
                        assert!(!world.partition.is_over());
                    }
                }
                _ => _ = world.get(&key),
            }
            let (bytes, most) = (world.partition.bytes(), world.partition.capacity());
            let held = world.partition.counts().held > 0 || !read.is_empty();
            assert!(bytes <= most || held, "{bytes} bytes of {most}");
            assert!(memory.used() <= limit);
            if turn % 200 == 0 {
                world.audit();
            }
        }
        for (world, (read, filling)) in worlds.iter_mut().zip(read.into_iter().zip(filling)) {
            let filling = filling.into_iter().map(|(_, element)| element);
            for element in read.into_iter().chain(filling) {
                world.partition.decref(element);
            }
            assert_eq!(world.partition.counts().held, 0);
            while world.partition.is_over() {
                assert!(world.partition.reclaim(world.now));
            }
            world.audit();
        }
    }
}

/// The owner of a partition never copies a long value that is kept: it hands out a draft, and serves other requests.
#[test]
fn a_long_value_is_copied_while_others_are_served() {
    let mut world = World::new(60, Eviction::Lru);
    let long = bytes(7, 20_000);
    let append = Op::Store(Store {
        mode: StoreMode::Append,
        ..Store::set(b"after")
    });
    let prepend = Op::Store(Store {
        mode: StoreMode::Prepend,
        ..Store::set(b"before")
    });
    let mark = Op::Remove(Removal {
        leave: Leave::Stale {
            expiry: None,
            new_cas: None,
        },
        ..Removal::default()
    });
    let draft_of = |world: &mut World, op: Op<'_>| match world.ask(b"k", op) {
        Outcome::Draft(draft) => draft,
        other => panic!("{op:?} was answered {other:?}"),
    };
    let finish = |world: &mut World, op: Op<'_>, draft: Draft| {
        let key = Key::new(b"k", &world.hasher);
        draft.fill(world.partition.memory(), &key, &op);
        world.partition.finish(world.now, &key, &op, draft)
    };

    for (op, expected) in [
        (append, [&long[..], b"after"].concat()),
        (prepend, [b"before", &long[..]].concat()),
        (mark, long.clone()),
    ] {
        world.set(b"k", &long);
        let draft = draft_of(&mut world, op);
        // Nothing was put in place, so no reader sees the draft.
        assert_eq!(world.get(b"k").as_deref(), Some(&long[..]));
        assert!(matches!(world.set(b"other", b"1"), Reply::Stored(_)));
        let done = finish(&mut world, op, draft);
        assert!(matches!(
            done,
            Outcome::Done(Reply::Stored(_) | Reply::Removed)
        ));
        assert_eq!(world.get(b"k"), Some(expected));
        world.audit();
        assert_eq!(world.partition.counts().held, 0);
    }

    // Replaced by a short value, and removed.
    world.set(b"k", &long);
    let draft = draft_of(&mut world, append);
    world.set(b"k", b"short");
    let done = finish(&mut world, append, draft);
    assert!(matches!(done, Outcome::Done(Reply::Stored(_))));
    assert_eq!(world.get(b"k").as_deref(), Some(&b"shortafter"[..]));
    world.set(b"k", &long);
    let draft = draft_of(&mut world, append);
    world.done(b"k", Op::Remove(Removal::default()));
    let done = finish(&mut world, append, draft);
    assert!(matches!(done, Outcome::Done(Reply::NotStored)));
    world.audit();

    // Replaced by another long one each time: at last the owner copies.
    world.set(b"k", &long);
    let mut draft = draft_of(&mut world, append);
    let mut drafts = 1;
    let value = loop {
        let other = bytes(drafts, 20_000);
        world.set(b"k", &other);
        match finish(&mut world, append, draft) {
            Outcome::Draft(another) => draft = another,
            Outcome::Done(Reply::Stored(_)) => break [&other[..], b"after"].concat(),
            other => panic!("it was answered {other:?}"),
        }
        drafts += 1;
        assert!(drafts < 100, "it never ends");
    };
    assert!(drafts > 1);
    assert_eq!(world.get(b"k"), Some(value));
    assert_eq!(world.partition.counts().held, 0);
    world.audit();
}
