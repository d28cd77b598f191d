//! Models of the protocols between sessions and servers, whose PEs load and store each other's memory: every
//! interleaving up to a number of preemptions, and every value that a relaxed load may return (`tests/loom.rs`).
//!
//! They drive the store's own code: rings, notices, watches, and the locks and reads of blocks by sessions and servers.
//! Only sizes are smaller. A server's steps that no other PE sees (lists of blocks, the expiration bars, which are
//! hints) have no model.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use nuthatch_base::sync::shim;
use nuthatch_engine::counters::Registry;
use nuthatch_engine::{Key, KeyHasher, Store, Time};
use nuthatch_fabric::{Address, Fabric};

use super::operate::Outcome;
use super::shard::Shard;
use crate::bars;
use crate::block::{self, HEAD};
use crate::bucket;
use crate::bucket::Pointer;
use crate::client::Client;
use crate::config::{Config, Fault, MEMORY_MIN, Operations};
use crate::layout::{LINE, Layout, RING};
use crate::message::BlockState;
pub use crate::modelled::Missing;
use crate::modelled::{Area, Memory, Modelled};
use crate::ring::{MESSAGE_MAX, Receiver, Sender, first_word};

const NOW: Time = Time(1000);

/// The first and only page in use.
const PAGE: usize = 0;

/// Words that a session gets of a short key.
const KEY_SEEN: usize = 4;

/// Preemptions of a run.
const PREEMPTIONS: usize = 2;

fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.check(model);
}

/// Messages arrive whole and in order, two in a Put, in a ring that is shorter than all of them (`ring`, 1 to 4).
pub fn messages_arrive(missing: Missing) {
    const MESSAGES: u32 = RING as u32 + 2;
    let message = |number| [first_word(MESSAGE_MAX, number)];
    explore(move || {
        let (staged, ring) = (Address(0), Address((LINE + 2 * RING) as u64));
        let areas: [&[Area]; 2] = [&[(staged, LINE + 2 * RING)], &[(ring, LINE + RING)]];
        let ends = Memory::new(&areas, None, missing).ends();
        let end = Arc::clone(&ends[1]);
        let receiver = thread::spawn(move || {
            let (mut receiver, mut words) = (Receiver::new(0, ring, staged), Vec::new());
            for number in 0..MESSAGES {
                while receiver.read(&*end, &mut words) == Ok(false) {
                    shim::yield_now();
                }
                assert_eq!(words, message(number), "a message is not whole");
                receiver.take(MESSAGE_MAX);
                receiver.acknowledge(&*end).unwrap();
            }
        });
        let mut sender = Sender::new(1, ring, staged);
        for number in 0..MESSAGES {
            while !sender.has_room(&*ends[0], MESSAGE_MAX) {
                shim::yield_now();
            }
            sender.stage(&*ends[0], &message(number));
            if number % 2 == 1 {
                sender.flush(&*ends[0]).unwrap();
            }
        }
        receiver.join().unwrap();
    });
}

/// A server, two PEs of sessions, and a key whose pair both know.
struct World {
    shard: Shard<Modelled>,
    sessions: [Client<Modelled>; 2],
    key: Key<'static>,
    known: BlockState,
}

/// The value of the `number`th set after the first one.
fn value(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

impl World {
    /// `gone`: the first session's PE.
    fn new(fault: Fault, missing: Missing, gone: bool) -> Self {
        let config = Config {
            memory: MEMORY_MIN,
            memory_max: MEMORY_MIN,
            item_size_max: 256,
            buckets: Some(2),
            directory: 1,
            operations: Operations::Direct,
            fault,
            ..Config::default()
        };
        let layout = Layout::new(&config, 3).unwrap();
        let page = layout.block(layout.pointer(0, PAGE, 0));
        let shared = [
            (layout.control(0), LINE),
            (layout.generations(0), 1),
            (layout.busy(0), 1),
        ];
        let own = [
            (layout.bars(0), bars::WORDS),
            (layout.key_seen(0), KEY_SEEN),
        ];
        let of_sessions = [&shared[..], &own].concat();
        let of_server = [
            &shared[..],
            &[
                (layout.notices(0), 3 * LINE),
                (layout.received(0), 3),
                (layout.polled(0, 0), 3),
                (layout.bucket(0), 2 * bucket::WORDS),
                (page, layout.page_words),
            ],
        ]
        .concat();
        let areas: [&[Area]; 3] = [&of_server, &of_sessions, &of_sessions];
        let ends = Memory::new(&areas, gone.then_some(1), missing).ends();
        let counts = Registry::default();
        let layout_of_all = Arc::new(layout.clone());
        let sessions = [1, 2].map(|pe: usize| {
            let own = (Arc::clone(&ends[pe]), Arc::clone(&layout_of_all));
            Client::new(own.0, own.1, &config, 0, counts.register())
        });
        let key = Key::new(b"key", &KeyHasher::seeded(config.seed));
        let mut shard = Shard::new(Arc::clone(&ends[0]), layout, &config);
        let known = store(&mut shard, &key, 0);
        let mut world = Self {
            shard,
            sessions,
            key,
            known,
        };
        for session in &mut world.sessions {
            session.learn_pair(&world.key, known);
        }
        world
    }

    /// The version of the pair's first content.
    fn first_version(&self) -> u64 {
        block::Tail(self.known.tail).version()
    }
}

/// The server's own set.
fn store(shard: &mut Shard<Modelled>, key: &Key<'_>, number: u64) -> BlockState {
    loop {
        match shard.store_op(NOW, key, &Store::set(&value(number)), None) {
            Ok(Outcome::Done(_, known)) => return known.expect("it is stored"),
            Ok(_) => unreachable!("a store returns no value"),
            // A session writes to the block.
            Err(_) => shim::yield_now(),
        }
    }
}

/// What a block holds, once nobody writes: its version, and the value if it is the key's whole pair.
fn content(shard: &mut Shard<Modelled>, pointer: Pointer, key: &[u8]) -> (u64, Option<Vec<u8>>) {
    shard.copy(pointer);
    let words = &shard.scratch;
    let value = match block::judge(words, key, Some(&shard.checksum)) {
        block::Found::Pair(header) => Some(block::value_bytes(words, &header).to_vec()),
        _ => None,
    };
    (words[HEAD], value)
}

/// A session that takes a pair's block for another key's, as if both had one hash, sets beside one that sets the pair. It
/// may lock the block, but writes nothing of its own, and unlocks it (`direct`, `give_back`).
pub fn a_set_of_another_key_gives_the_block_back(missing: Missing) {
    explore(move || {
        let World {
            mut shard,
            sessions: [mut one, mut other],
            key,
            known,
        } = World::new(Fault::None, missing, false);
        let thread = thread::spawn(move || one.set_pair(&key, &value(1)));
        let another = Key::new(b"another", &KeyHasher::seeded(0));
        other.learn_pair(&another, known);
        assert!(!other.set_pair(&another, &value(2)), "it is another key's");
        let was_set = thread.join().unwrap();
        let (_, found) = content(&mut shard, known.pointer, key.bytes());
        let found = found.expect("the block stays locked, or its content is torn");
        assert_eq!(found, value(u64::from(was_set)));
    });
}

/// Two sessions set one pair: one after the other has its lock, and the block is unlocked in the end (`block`, 1 and 2).
pub fn sets_exclude_each_other(fault: Fault, missing: Missing) {
    explore(move || {
        let World {
            mut shard,
            sessions: [mut one, mut other],
            key,
            known,
        } = World::new(fault, missing, false);
        let first = block::Tail(known.tail).version();
        let thread = thread::spawn(move || u64::from(one.set_pair(&key, &value(1))));
        let mut sets = u64::from(other.set_pair(&key, &value(2)));
        sets += thread.join().unwrap();
        let (version, found) = content(&mut shard, known.pointer, key.bytes());
        let found = found.expect("the block stays locked, or its content is torn");
        assert_eq!(version, first + sets, "a set is lost");
        assert!(sets > 0 && (found == value(1) || found == value(2)));
    });
}

/// A session sets a pair twice, and does not wait for its words in between, beside another one that reads it (`block`, 1
/// and 2).
pub fn a_session_sets_twice(missing: Missing) {
    explore(move || {
        let World {
            mut shard,
            sessions: [mut one, mut other],
            key,
            known,
        } = World::new(Fault::None, missing, false);
        let first = block::Tail(known.tail).version();
        let thread = thread::spawn(move || [1, 2].map(|number| one.set_pair(&key, &value(number))));
        if let Some((version, found)) = other.get_pair(&key) {
            assert_eq!(found, value(version - first), "a torn read is accepted");
        }
        assert_eq!(
            thread.join().unwrap(),
            [true, true],
            "its own tail is the last one"
        );
        let (version, found) = content(&mut shard, known.pointer, key.bytes());
        assert_eq!((version, found), (first + 2, Some(value(2).to_vec())));
    });
}

/// A session reads a pair, in order and without a checksum, beside another one that sets it: a version and its value.
pub fn reads_are_whole(missing: Missing) {
    explore(move || {
        let world = World::new(Fault::None, missing, false);
        let (key, first) = (world.key, world.first_version());
        let [mut writer, mut reader] = world.sessions;
        let thread = thread::spawn(move || {
            if let Some((version, found)) = reader.get_pair(&key) {
                assert_eq!(found, value(version - first), "a torn read is accepted");
            }
        });
        assert!(writer.set_pair(&key, &value(1)));
        thread.join().unwrap();
    });
}

/// A server and a session set one pair.
pub fn a_server_sets_beside_a_session() {
    explore(move || {
        let World {
            mut shard,
            sessions: [mut session, _],
            key,
            known,
        } = World::new(Fault::None, Missing::default(), false);
        let thread = thread::spawn(move || session.set_pair(&key, &value(1)));
        let block = store(&mut shard, &key, 2).pointer;
        thread.join().unwrap();
        assert_eq!(block, known.pointer, "the pair fits where it is");
        let (_, found) = content(&mut shard, block, key.bytes());
        let found = found.expect("the block stays locked, or its content is torn");
        assert!(found == value(1) || found == value(2));
    });
}

/// What a session does with a pair whose block it knows.
#[derive(Clone, Copy)]
pub enum Use {
    /// It sets it.
    Set,
    /// It reads it.
    Get,
}

/// The server removes a pair, and the block gets another key's. A session that knows the block writes nothing there, and
/// reads nothing of the other key's (`block`, 3; lazy invalidation).
pub fn a_block_is_used_again(by: Use) {
    explore(move || {
        let World {
            mut shard,
            sessions: [mut session, _],
            key,
            known,
        } = World::new(Fault::None, Missing::default(), false);
        let hasher = KeyHasher::seeded(0);
        let other = Key::new(b"other", &hasher);
        // The page's other blocks have pairs: so the pair's block is the one that is free next.
        while shard.pages.count(known.pointer.class()).2 > 0 {
            let name = shard.counts.items.to_le_bytes();
            store(&mut shard, &Key::new(&name, &hasher), 3);
        }
        let thread = thread::spawn(move || match by {
            Use::Set => {
                session.set_pair(&key, &value(1));
            }
            Use::Get => {
                let found = session.get_pair(&key);
                assert!(found.is_none_or(|(_, found)| found == value(0)));
            }
        });
        let held = loop {
            match shard.lock(known.pointer) {
                Ok(held) => break held,
                Err(_) => shim::yield_now(),
            }
        };
        shard.remove(held);
        let block = store(&mut shard, &other, 4).pointer;
        thread.join().unwrap();
        assert_eq!(block, known.pointer, "the block is used again");
        let (_, found) = content(&mut shard, block, other.bytes());
        assert_eq!(found.as_deref(), Some(&value(4)[..]), "it was written over");
    });
}

/// A server takes over the lock of a writer whose PE is gone, and whose words are late: no session believes the block
/// any more, and it is never used again.
pub fn a_lock_is_taken_over() {
    explore(move || {
        let World {
            mut shard,
            sessions: [mut writer, mut reader],
            key,
            known,
        } = World::new(Fault::None, Missing::default(), true);
        let late = thread::spawn(move || writer.set_pair(&key, &value(1)));
        let locked = shard.lock(known.pointer);
        let taken = shard.counts.recovered == 1;
        if let Ok(held) = locked {
            shard.abort(held);
        } else if taken {
            for _ in 0..2 {
                let found = reader.get_pair(&key);
                assert!(found.is_none(), "the pair comes back");
            }
        }
        late.join().unwrap();
        if taken {
            assert!(shard.pages.has_lost(PAGE), "the block is used again");
            assert!(reader.get_pair(&key).is_none(), "the pair comes back");
        }
    });
}

/// A page changes its class while no session accesses its blocks (`retire`, `notices`, `watch`).
pub fn a_page_changes_while_no_session_is_there(fault: Fault) {
    explore(move || {
        let World {
            mut shard,
            sessions: [mut session, _],
            known,
            ..
        } = World::new(fault, Missing::default(), false);
        let held = shard.lock(known.pointer).expect("nobody writes");
        shard.remove(held);
        // Loom reports an access that the change of the page does not follow or precede.
        let page = Arc::new(UnsafeCell::new(0));
        let visitor = {
            let page = Arc::clone(&page);
            thread::spawn(move || {
                session.visit_page(PAGE, || {
                    // SAFETY: loom checks that no other thread accesses it now.
                    page.with_mut(|page| unsafe { *page += 1 });
                });
            })
        };
        assert!(shard.retire(PAGE, None));
        while shard.retirement.is_some() {
            let fabric = Arc::clone(&shard.fabric);
            shard.notices.send(&*fabric, &shard.layout, fabric.pe());
            shard.advance_retirement(NOW);
            shim::yield_now();
        }
        // SAFETY: as above.
        page.with_mut(|page| unsafe { *page = 100 });
        visitor.join().unwrap();
    });
}
