//! Runs a check on every engine, of what all of them promise.

use std::mem::MaybeUninit;
use std::sync::Arc;

use nuthatch_chained::{Chained, ChainedConfig, POLICIES};
use nuthatch_cphash::CpHash;
use nuthatch_cphash::config::{CpHashConfig, ServerThreads};
use nuthatch_cuckoo::layout::{EightWay, EightWayClock, Paper};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{AnyEngine, Engine, Handle, Item, Key, Op, Replies, Reply, Request, Time};
use nuthatch_partition::{Eviction, LockHash, LockHashConfig};

/// A check of any engine; it calls `make` for each engine that it needs.
pub trait Check {
    fn of(&self, name: &str, make: &dyn Fn() -> Arc<AnyEngine>);
}

fn any<E: Engine>(engine: E) -> Arc<AnyEngine> {
    Arc::new(engine).any()
}

/// Runs the check on each engine.
pub fn every_engine(check: &impl Check) {
    for &eviction in nuthatch_cuckoo::config::POLICIES {
        let config = CuckooConfig {
            eviction,
            ..CuckooConfig::default()
        };
        check.of("cuckoo", &|| {
            any(Cuckoo::<EightWay>::new(config.clone()).unwrap())
        });
    }
    check.of("cuckoo", &|| {
        any(Cuckoo::<EightWayClock>::new(CuckooConfig::default()).unwrap())
    });
    check.of("cuckoo-paper", &|| {
        any(Cuckoo::<Paper>::new(CuckooConfig::default()).unwrap())
    });
    for &eviction in POLICIES {
        let config = ChainedConfig {
            eviction,
            ..ChainedConfig::default()
        };
        check.of(
            config.name(),
            &|| any(Chained::new(config.clone()).unwrap()),
        );
    }
    for eviction in [Eviction::Lru, Eviction::Random] {
        let config = LockHashConfig {
            eviction,
            ..LockHashConfig::default()
        };
        check.of("lockhash", &|| any(LockHash::new(config.clone()).unwrap()));
    }
    check.of("cphash", &|| {
        let config = CpHashConfig {
            server_threads: ServerThreads::Fixed(1),
            partitions: 2,
            ..CpHashConfig::default()
        };
        any(CpHash::<nuthatch_base::sync::ring::Array>::new(config).unwrap())
    });
}

/// The value of a get.
#[derive(Default)]
struct Got {
    room: Vec<MaybeUninit<u8>>,
    hit: bool,
}

impl<V> Replies<V> for Got {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.room = vec![MaybeUninit::new(0); item.value_len];
        &mut self.room
    }
    fn commit(&mut self, _: usize) {
        self.hit = true;
    }
    fn retract(&mut self, _: usize) {}
    fn large(&mut self, _: usize, _: &Item, _: V) {
        panic!("no value is large");
    }
    fn done(&mut self, _: usize, _: Reply) {}
}

/// A key's value at a moment.
pub fn get(engine: &Arc<AnyEngine>, now: Time, key: &[u8]) -> Option<Vec<u8>> {
    let key = Key::new(key, engine.hasher());
    let mut got = Got::default();
    engine
        .handle()
        .execute(now, &[Request { key, op: Op::Get }], &mut got);
    // SAFETY: made initialised, and only ever written.
    let byte = |byte: &MaybeUninit<u8>| unsafe { byte.assume_init() };
    got.hit.then(|| got.room.iter().map(byte).collect())
}
