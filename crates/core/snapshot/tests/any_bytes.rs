//! Files that are mended and damaged byte by byte hold the invariants that the fuzzer checks.

mod invariants;

use std::sync::Arc;
use std::time::Duration;

use nuthatch_check::naive::{Naive, Options};
use nuthatch_engine::{Clock, Engine, Expiry, Handle, Key, Op, Request, Store};
use nuthatch_snapshot::{Circumstances, write};

/// Takes no answers.
struct Nothing;

impl<V: nuthatch_engine::Value> nuthatch_engine::Replies<V> for Nothing {
    fn begin(&mut self, _: usize, _: &nuthatch_engine::Item) -> &mut [std::mem::MaybeUninit<u8>] {
        &mut []
    }

    fn commit(&mut self, _: usize) {}

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &nuthatch_engine::Item, _: V) {}

    fn done(&mut self, _: usize, _: nuthatch_engine::Reply) {}
}

/// A file of three items.
fn file() -> Vec<u8> {
    let (engine, clock): (Arc<Naive>, _) = (Naive::new(Options::default()), Clock::start());
    for (key, life) in [(&b"a"[..], None), (b"b", Some(1000)), (b"c", Some(1))] {
        let mut store = Store::set(b"value");
        store.flags = 7;
        let end = |life| Expiry::At(clock.present().end(Duration::from_secs(life)));
        store.expiry = life.map_or(Expiry::Never, end);
        let request = Request {
            key: Key::new(key, engine.hasher()),
            op: Op::Store(store),
        };
        engine
            .handle()
            .execute(clock.now(), &[request], &mut Nothing);
    }
    let mut file = Vec::new();
    write(
        &engine,
        &clock,
        Circumstances::default(),
        &mut file,
        &mut || (),
    )
    .unwrap();
    file
}

#[test]
fn files_that_were_changed_or_cut_anywhere_hold_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let good = file();
    invariants::check(&good, &path);
    for at in 0..good.len() {
        for by in [1, 0x41, 0xff] {
            let mut changed = good.clone();
            changed[at] ^= by;
            invariants::check(&changed, &path);
        }
        invariants::check(&good[..at], &path);
    }
    // The same blocks in a file of version 1.
    let mut first = good.clone();
    first.drain(32..64);
    first[8] = 1;
    invariants::check(&first, &path);
}
