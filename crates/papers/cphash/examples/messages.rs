//! Measures the cost of messages: one client thread, one server thread, and the counts that explain the throughput
//! (CPHash sections 6.1 and 6.2).
//!
//!     cargo run --release -p nuthatch-cphash --example messages -- [single] [no-look-ahead] [size=MIB] [seconds]
//!
//! Keys are numbers of 8 bytes, values the same; 30 % are stores; batches have 1000 requests. An
//! element of such an item takes 128 bytes, so that a working set of 1 MB has 8192 keys.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuthatch_base::sync::ring::{Array, Single};
use nuthatch_cphash::config::{CpHashConfig, ServerThreads};
use nuthatch_cphash::{CpHash, Rings};
use nuthatch_engine::stats::MessageStats;
use nuthatch_engine::{
    Engine, Handle, Inspect, Item, Key, Op, Replies, Reply, Request, Store, Time,
};

const BATCH: usize = 1000;
/// Batches before they repeat: as many as ask for each key twice, within these numbers.
const BATCHES: (usize, usize) = (8, 256);
const ELEMENT: usize = 128;
/// Rounds, of which it prints the median and the best: other work on the machine spoils single rounds, not all.
const ROUNDS: u32 = 21;

/// Takes values, and only counts them.
struct Sink {
    bytes: Vec<MaybeUninit<u8>>,
    hits: u64,
    others: u64,
}

impl<V> Replies<V> for Sink {
    fn begin(&mut self, _index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        &mut self.bytes[..item.value_len]
    }

    fn commit(&mut self, _index: usize) {
        self.hits += 1;
    }

    fn retract(&mut self, _index: usize) {}

    fn large(&mut self, _index: usize, _item: &Item, _value: V) {
        self.hits += 1;
    }

    fn done(&mut self, _index: usize, _reply: Reply) {
        self.others += 1;
    }
}

fn requests<'k, E: Engine>(engine: &E, keys: &'k [[u8; 8]], inserts: u64) -> Vec<Request<'k>> {
    // Weyl's sequence, scrambled: any order is good enough that follows no pattern of the table.
    let mut state = 1_u64;
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 27)
    };
    let request = |_| {
        let key = &keys[draw() as usize % keys.len()];
        let op = match draw() % 100 < inserts {
            true => Op::Store(Store::set(key)),
            false => Op::Get,
        };
        Request {
            key: Key::new(key, engine.hasher()),
            op,
        }
    };
    let batches = (2 * keys.len() / BATCH).clamp(BATCHES.0, BATCHES.1);
    (0..BATCH * batches).map(request).collect()
}

fn measure<D: Rings>(
    bytes: usize,
    inserts: u64,
    look_ahead: bool,
    time: Duration,
) -> std::io::Result<()> {
    let engine = Arc::new(CpHash::<D>::new(CpHashConfig {
        memory_limit: (4 * bytes).max(64 << 20),
        partitions: 2,
        server_threads: ServerThreads::Fixed(1),
        look_ahead,
        ..CpHashConfig::default()
    })?);
    let count = (bytes / ELEMENT) as u64;
    let keys: Vec<[u8; 8]> = (0..count).map(u64::to_le_bytes).collect();
    let mut handle = engine.handle();
    let mut sink = Sink {
        bytes: vec![MaybeUninit::uninit(); 64],
        hits: 0,
        others: 0,
    };
    let fill = |key| Request {
        key: Key::new(key, engine.hasher()),
        op: Op::Store(Store::set(key)),
    };
    for keys in keys.chunks(BATCH) {
        let batch: Vec<_> = keys.iter().map(|key| fill(key)).collect();
        handle.execute(Time(1), &batch, &mut sink);
    }
    let requests = requests(&*engine, &keys, inserts);
    let mut rounds: Vec<(f64, MessageStats)> = Vec::new();
    for _ in 0..ROUNDS {
        engine.reset_stats();
        let started = Instant::now();
        while started.elapsed() < time / ROUNDS {
            for batch in requests.chunks(BATCH) {
                handle.execute(Time(1), batch, &mut sink);
            }
        }
        let stats = engine.message_stats().unwrap_or_default();
        let rate = stats.operations as f64 / started.elapsed().as_secs_f64();
        rounds.push((rate / 1e6, stats));
    }
    let mut costs: Vec<f64> = rounds
        .iter()
        .map(|round| round.1.nanos_a_message())
        .collect();
    costs.sort_by(f64::total_cmp);
    rounds.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (median, stats) = &rounds[rounds.len() / 2];
    println!(
        "{:>7} KB  {inserts:>3} % stores  {median:6.2} M op/s (best {:5.2})  {:4.2} messages/line  \
         {:4.2} lines/op  {:3.0} % busy  {:5.1} ns/message (best {:5.1})",
        bytes >> 10,
        rounds[rounds.len() - 1].0,
        stats.messages_a_line(),
        stats.lines_an_operation(),
        stats.busy_share() * 100.0,
        costs[costs.len() / 2],
        costs[0],
    );
    Ok(())
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let single = arguments.iter().any(|argument| argument == "single");
    let seconds = arguments.iter().find_map(|argument| argument.parse().ok());
    let time = Duration::from_secs_f64(seconds.unwrap_or(1.0));
    let ahead = !arguments.iter().any(|argument| argument == "no-look-ahead");
    let size = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("size=")?.parse::<usize>().ok());
    let sizes = match size {
        Some(size) => vec![size << 20],
        None => vec![64 << 10, 1 << 20, 16 << 20, 256 << 20],
    };
    for bytes in sizes {
        for inserts in [0, 30] {
            match single {
                true => measure::<Single>(bytes, inserts, ahead, time)?,
                false => measure::<Array>(bytes, inserts, ahead, time)?,
            }
        }
    }
    Ok(())
}
