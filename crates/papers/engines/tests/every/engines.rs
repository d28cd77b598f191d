//! Runs a check on every engine, of what all of them promise.

use std::mem::MaybeUninit;
use std::sync::Arc;

use clap::ValueEnum;
use nuthatch_engine::{AnyEngine, Engine, Handle, Item, Key, Op, Replies, Reply, Request, Time};
use nuthatch_engines::{EngineName, EngineSettings, ThreadRange, Tuning};

/// A check of any engine; it calls `make` for each engine that it needs.
pub trait Check {
    fn of(&self, name: &str, make: &dyn Fn() -> Arc<AnyEngine>);
}

/// Runs the check on each engine, with each eviction that it has.
pub fn every_engine(check: &impl Check) {
    for &name in EngineName::value_variants() {
        for &eviction in name.evictions() {
            let threads = name.has_server_threads();
            let settings = EngineSettings {
                name,
                tuning: Tuning {
                    eviction: Some(eviction),
                    // As few as there may be: checks make many engines.
                    server_threads: threads.then_some(ThreadRange { min: 1, max: 1 }),
                    partitions: threads.then_some(2),
                    ..Tuning::default()
                },
                ..EngineSettings::default()
            };
            let called = format!("{} with {}", name.name(), eviction.name());
            check.of(&called, &|| EngineName::build(&settings).unwrap());
        }
    }
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
