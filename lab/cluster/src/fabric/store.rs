//! How long the distributed store's operations take, beside those of the fabric and of a memcached.
//!
//! The first PE serves, and the second one sends requests, one at a time.

use std::fmt::{self, Display};
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hdrhistogram::Histogram;
use nuthatch_cluster::{Checksum, Cluster, Config, ConfigError, Member, Operations};
use nuthatch_engine::{
    Engine, Handle, Inspect, Item, Key, Op, Removal, Replies, Reply, Request, Store, Time,
};
use nuthatch_fabric::{Address, Fabric, Gone};
use serde::Serialize;

use crate::fabric::memcached::Memcached;

/// Bytes of the values, unless others are chosen.
pub const BYTES: [usize; 6] = [32, 128, 512, 1024, 4096, 16_384];

pub(crate) const NOW: Time = Time(1);

/// Bytes of a server.
pub(crate) const MEMORY: usize = 64 << 20;

/// The cases that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// The fabric's Get of as many bytes as the pair's block has.
    RawGet,
    /// The checksum of as many bytes.
    Checksum,
    /// A compare-swap, a Put of the block, a fence, a set, and a quiet: what a direct set is made of, and the wait for its
    /// arrival, which a set over a network leaves out.
    RawSet,
    /// A get that the directory leads to its block.
    GetHit,
    /// A get that reads the bucket and the block.
    GetMiss,
    /// A get by a message.
    GetActive,
    /// A set of a pair that the directory knows.
    SetDirect,
    /// A set by a message.
    SetActive,
    /// A get of a memcached over TCP.
    MemcachedGet,
    /// A set of it.
    MemcachedSet,
}

impl Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Case::RawGet => "fabric: Get of the block",
            Case::Checksum => "checksum of the block",
            Case::RawSet => "fabric: CAS, Put, set, quiet",
            Case::GetHit => "get, directory hit",
            Case::GetMiss => "get, directory miss",
            Case::GetActive => "get, active",
            Case::SetDirect => "set, direct",
            Case::SetActive => "set, active",
            Case::MemcachedGet => "memcached over TCP: get",
            Case::MemcachedSet => "memcached over TCP: set",
        })
    }
}

/// The latency of a case.
#[derive(Clone, Debug, Serialize)]
pub struct StoreLatency {
    /// The case.
    pub case: Case,
    /// Bytes of the value.
    pub bytes: usize,
    /// The mean, without a clock in between, in nanoseconds.
    pub mean_ns: f64,
    /// The median of calls that were timed by themselves.
    pub p50_ns: u64,
    /// One in a hundred takes longer.
    pub p99_ns: u64,
}

/// The names of the columns.
pub const HEADING: &str = "operation                        bytes    mean ns   p50 ns   p99 ns";

impl Display for StoreLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            case,
            bytes,
            mean_ns,
            p50_ns,
            p99_ns,
        } = self;
        write!(
            f,
            "{case:<30}{bytes:>8}{mean_ns:>11.0}{p50_ns:>9}{p99_ns:>9}"
        )
    }
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum Failed {
    /// The store cannot be opened.
    Config(ConfigError),
    /// A PE is gone.
    Gone(Gone),
    /// The memcached gives no valid answer.
    Memcached(io::Error),
}

impl Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Config(error) => error.fmt(f),
            Failed::Gone(gone) => gone.fmt(f),
            Failed::Memcached(error) => write!(f, "memcached: {error}"),
        }
    }
}

impl From<ConfigError> for Failed {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<Gone> for Failed {
    fn from(gone: Gone) -> Self {
        Self::Gone(gone)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Memcached(error)
    }
}

/// Takes replies, and keeps the last short value and the count of hits and stores.
pub(crate) struct Sink {
    value: Vec<MaybeUninit<u8>>,
    pub(crate) hits: usize,
}

impl Sink {
    pub(crate) fn new() -> Self {
        Self {
            value: vec![MaybeUninit::new(0); 1 << 20],
            hits: 0,
        }
    }
}

impl<V> Replies<V> for Sink {
    #[inline]
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        &mut self.value[..item.value_len]
    }

    #[inline]
    fn commit(&mut self, _: usize) {
        self.hits += 1;
    }

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &Item, _: V) {
        self.hits += 1;
    }

    #[inline]
    fn done(&mut self, _: usize, reply: Reply) {
        self.hits += usize::from(matches!(reply, Reply::Stored(_)));
    }
}

pub(crate) fn config(operations: Operations, directory: usize) -> Config {
    Config {
        servers: 1,
        memory: MEMORY,
        memory_max: MEMORY,
        operations,
        directory,
        ..Config::default()
    }
}

/// The longest value whose latency is measured.
pub const LONGEST: usize = 16_384;

/// Words that the fabric's own operations work on: more than a block of the longest value has.
const RAW: usize = 4096;

/// Words of symmetric memory that the latencies take on each PE.
pub const WORDS: usize = 4 * (MEMORY / 8 + (2 << 20));

/// Words of symmetric memory that one store takes on each PE, and what is beside it.
pub const STORE_WORDS: usize = MEMORY / 8 + (2 << 20);

/// Words beside a store: how many clients are through, and those where they meet. One allocation holds all: a job can
/// make few allocations, and some runs open many stores.
pub(crate) const BESIDE: usize = 8;

/// A store on the fabric; the first PE serves while `work` runs on the others, and gets the place of the words
/// where they meet. Collective.
pub(crate) fn with_store<F: Fabric, T>(
    fabric: &Arc<F>,
    config: &Config,
    work: impl FnOnce(&Arc<Cluster<F>>, usize, Address) -> Result<T, Failed>,
) -> Result<Option<T>, Failed> {
    let member = Member::open(Arc::clone(fabric), config)?;
    let done = fabric.allocate(BESIDE).map_err(ConfigError::from)?;
    // Acquire: a client counts itself behind its last request.
    let word = |at: Address| fabric.local(at, 1)[0].load(Ordering::Acquire);
    for word in fabric.local(done, BESIDE) {
        // Relaxed: a barrier follows.
        word.store(0, Ordering::Relaxed);
    }
    fabric.barrier();
    let mut result = Ok(None);
    if member.is_server() {
        let clients = fabric.pes() as u64 - 1;
        member.server().run_until(|| word(done) == clients);
    } else {
        result = work(&member.engine(), fabric.pe(), done.plus(1)).map(Some);
        fabric.fetch_add(0, done, 1)?;
    }
    fabric.barrier();
    result
}

/// Times `work`: `count` calls together, and `count` one by one.
fn time(case: Case, bytes: usize, count: u64, mut work: impl FnMut()) -> StoreLatency {
    (0..count / 10 + 10).for_each(|_| work());
    let started = Instant::now();
    (0..count).for_each(|_| work());
    let mean_ns = started.elapsed().as_nanos() as f64 / count as f64;
    let mut histogram = Histogram::<u64>::new(3).expect("three digits are lawful");
    for _ in 0..count {
        let started = Instant::now();
        work();
        let nanos = started.elapsed().as_nanos() as u64;
        let recorded = histogram.record(nanos.max(1));
        recorded.expect("the histogram grows");
    }
    StoreLatency {
        case,
        bytes,
        mean_ns,
        p50_ns: histogram.value_at_quantile(0.5),
        p99_ns: histogram.value_at_quantile(0.99),
    }
}

/// Measures each case `count` times, with values of these sizes, up to [`LONGEST`]. Collective; the second PE has the results. `memcached`: the address of a memcached
/// that is measured, too.
pub fn latencies<F: Fabric>(
    fabric: &Arc<F>,
    count: u64,
    sizes: &[usize],
    memcached: Option<&str>,
) -> Result<Vec<StoreLatency>, Failed> {
    let mut found = Vec::new();
    let place = fabric.allocate(RAW).map_err(ConfigError::from)?;
    let direct = config(Operations::Direct, 1 << 10);
    let part = with_store(fabric, &direct, |engine, pe, _| {
        only_second(pe, || {
            let mut found = raw(&**fabric, engine, place, count, sizes)?;
            found.extend(of_store(
                engine,
                count,
                sizes,
                Case::GetHit,
                Case::SetDirect,
            ));
            Ok(found)
        })
    })?;
    found.extend(part.into_iter().flatten());
    let blind = config(Operations::Direct, 0);
    let part = with_store(fabric, &blind, |engine, pe, _| {
        only_second(pe, || {
            let all = of_store(engine, count, sizes, Case::GetMiss, Case::SetActive);
            Ok(all
                .into_iter()
                .filter(|one| one.case == Case::GetMiss)
                .collect())
        })
    })?;
    found.extend(part.into_iter().flatten());
    let active = config(Operations::Active, 0);
    let part = with_store(fabric, &active, |engine, pe, _| {
        only_second(pe, || {
            Ok(of_store(
                engine,
                count,
                sizes,
                Case::GetActive,
                Case::SetActive,
            ))
        })
    })?;
    found.extend(part.into_iter().flatten());
    if let (Some(address), true) = (memcached, fabric.pe() == 1 % fabric.pes()) {
        found.extend(of_memcached(address, count.min(20_000), sizes)?);
    }
    fabric.barrier();
    found.sort_by_key(|one| one.bytes);
    Ok(found)
}

fn only_second<T>(
    pe: usize,
    work: impl FnOnce() -> Result<Vec<T>, Failed>,
) -> Result<Vec<T>, Failed> {
    match pe {
        1 => work(),
        _ => Ok(Vec::new()),
    }
}

/// The fabric's own operations on blocks of the sizes that the values take.
fn raw<F: Fabric>(
    fabric: &F,
    engine: &Arc<Cluster<F>>,
    at: Address,
    count: u64,
    sizes: &[usize],
) -> Result<Vec<StoreLatency>, Failed> {
    let mut found = Vec::new();
    let mut handle = engine.handle();
    let mut sink = Sink::new();
    // Over TCP the server's calls carry these operations out, and a server without a message for two seconds rests.
    let mut ask_server = || {
        let key = Key::new(b"key of none", engine.hasher());
        let op = Op::Remove(Removal::default());
        handle.execute(NOW, &[Request { key, op }], &mut sink);
    };
    for &bytes in sizes {
        let words = engine.footprint(16, bytes).size / 8;
        let mut into = vec![0; words];
        let mut failed = None;
        ask_server();
        found.push(time(Case::RawGet, bytes, count, || {
            if let Err(gone) = fabric.get(0, at, &mut into) {
                failed = Some(gone);
            }
        }));
        let checksum = Checksum::seeded(1);
        found.push(time(Case::Checksum, bytes, count, || {
            std::hint::black_box(checksum.of(1, std::hint::black_box(&into)));
        }));
        let from = vec![0; words];
        ask_server();
        found.push(time(Case::RawSet, bytes, count, || {
            let done = fabric
                .compare_swap(0, at, 0, 0)
                .and_then(|_| fabric.put(0, at.plus(8), &from))
                .and_then(|()| {
                    fabric.fence();
                    fabric.set(0, at, 0)
                })
                .and_then(|()| fabric.quiet());
            if let Err(gone) = done {
                failed = Some(gone);
            }
        }));
        if let Some(gone) = failed {
            return Err(gone.into());
        }
    }
    Ok(found)
}

fn of_store<F: Fabric>(
    engine: &Arc<Cluster<F>>,
    count: u64,
    sizes: &[usize],
    get: Case,
    set: Case,
) -> Vec<StoreLatency> {
    let mut handle = engine.handle();
    let mut sink = Sink::new();
    let mut found = Vec::new();
    for &bytes in sizes {
        let value = vec![7; bytes];
        let name = format!("key of {bytes:>9}");
        let key = Key::new(name.as_bytes(), engine.hasher());
        let mut ask = |op| handle.execute(NOW, &[Request { key, op }], &mut sink);
        ask(Op::Store(Store::set(&value)));
        found.push(time(set, bytes, count, || {
            ask(Op::Store(Store::set(&value)))
        }));
        found.push(time(get, bytes, count, || ask(Op::Get)));
    }
    assert!(sink.hits > 0, "what was stored is there");
    found
}

/// Measures a memcached, by a client that sends a request and waits for its answer.
fn of_memcached(address: &str, count: u64, sizes: &[usize]) -> Result<Vec<StoreLatency>, Failed> {
    let longest = sizes.iter().copied().max().unwrap_or(0);
    let mut client = Memcached::connect(address, longest)?;
    let mut found = Vec::new();
    for &bytes in sizes {
        let (key, value) = (format!("key-of-{bytes:09}"), vec![b'v'; bytes]);
        let mut failed: Option<io::Error> = None;
        let mut hits = 0;
        let mut note = |answered: io::Result<usize>| match answered {
            Ok(answered) => hits += answered,
            Err(error) => failed = Some(error),
        };
        found.push(time(Case::MemcachedSet, bytes, count, || {
            let sent = client.set(&key, &value);
            note(sent.and_then(|()| client.finish()));
        }));
        found.push(time(Case::MemcachedGet, bytes, count, || {
            let sent = client.get(&key);
            note(sent.and_then(|()| client.finish()));
        }));
        if let Some(error) = failed {
            return Err(error.into());
        }
        assert!(hits > 0, "what was stored is there");
    }
    Ok(found)
}
