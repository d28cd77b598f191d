//! What it costs the engine itself that its memory is shared: gets of 32 bytes, one by one and in batches of 32, from an
//! engine with private memory and from one whose memory other processes could read. In one run, in turn, the medians.
//!
//!     cargo run --release -p nuthatch-direct --example cost ITEMS
//!
//! The difference is that of the pages: see docs/shared-memory.md for those of shared memory.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Instant;

use nuthatch_cuckoo::layout::EightWay;
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::reply::LastReply;
use nuthatch_engine::{Engine, Handle, Item, Key, Op, Replies, Reply, Request, Store, Time};

const ROUNDS: usize = 31;
const GETS: u64 = 400_000;
const NOW: Time = Time(16);

/// Receives values, and counts the hits.
struct Count {
    bytes: [MaybeUninit<u8>; 32],
    hits: u64,
}

impl<V> Replies<V> for Count {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        &mut self.bytes[..item.value_len]
    }
    fn commit(&mut self, _: usize) {
        self.hits += 1;
        black_box(&self.bytes);
    }
    fn retract(&mut self, _: usize) {}
    fn large(&mut self, _: usize, _: &Item, _: V) {}
    fn done(&mut self, _: usize, _: Reply) {}
}

fn engine(items: u64, shared: bool) -> Arc<Cuckoo<EightWay>> {
    let config = CuckooConfig {
        memory_limit: 1 << 30,
        shared,
        ..CuckooConfig::default()
    };
    let engine: Arc<Cuckoo<EightWay>> = Arc::new(Cuckoo::new(config).expect("an engine"));
    let mut handle = engine.handle();
    for number in 0..items {
        let name = number.to_le_bytes();
        let key = Key::new(&name, engine.hasher());
        let op = Op::Store(Store::set(&[7; 32]));
        let mut last = LastReply(Reply::Miss);
        handle.execute(NOW, &[Request { key, op }], &mut last);
    }
    engine
}

/// Nanoseconds a get, in batches of so many.
fn time(engine: &Arc<Cuckoo<EightWay>>, items: u64, batch: usize) -> f64 {
    let mut handle = engine.handle();
    let mut state = 1_u64;
    let mut count = Count {
        bytes: [MaybeUninit::uninit(); 32],
        hits: 0,
    };
    let begun = Instant::now();
    for _ in 0..GETS / batch as u64 {
        let names: Vec<[u8; 8]> = (0..batch)
            .map(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                ((state >> 33) % items).to_le_bytes()
            })
            .collect();
        let request = |name: &'_ [u8; 8]| Key::new(name, engine.hasher()).hash();
        let hashes: Vec<u64> = names.iter().map(request).collect();
        let requests: Vec<Request<'_>> = names
            .iter()
            .zip(hashes)
            .map(|(name, hash)| Request {
                key: Key::hashed(name, hash),
                op: Op::Get,
            })
            .collect();
        handle.execute(NOW, &requests, &mut count);
    }
    assert_eq!(count.hits, GETS / batch as u64 * batch as u64);
    begun.elapsed().as_nanos() as f64 / GETS as f64
}

fn main() {
    let items = std::env::args().nth(1).and_then(|items| items.parse().ok());
    let items: u64 = items.expect("a number of items");
    let engines = [false, true].map(|shared| engine(items, shared));
    for batch in [1, 32] {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (engine, times) in engines.iter().zip(&mut times) {
                times.push(time(engine, items, batch));
            }
        }
        let [private, shared] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[ROUNDS / 2]
        });
        println!(
            "batches of {batch:2}: private {private:6.1} ns   shared {shared:6.1} ns   {:.2}",
            shared / private
        );
    }
}
