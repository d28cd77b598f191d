//! CPHash: partitions owned by server threads, which clients access by messages (PPoPP 2012).
//!
//! Only one thread touches a partition's table, its buckets, headers and order of use: the server thread that owns it.
//! Clients send it messages through rings in shared memory, one ring for each client and partition, and touch only
//! their own part: the lines of key and value behind an element's header, which they write before an element is READY
//! and read while they have a reference to it.
//!
//! ```text
//!  client 0                                        server thread 0
//!  +---------------+  lookup, allocate, ready,     +---------------------------------+
//!  | batch, lanes  |  release, call                | lease 0: partition 0, its rings  |
//!  |   lane 0   ===|==== ring ====================>|   table | LRU | counts          |
//!  |   lane 1   ===|==== ring ======+              +---------------------------------+
//!  +---------------+                |              server thread 1
//!        ^   |                      |              +---------------------------------+
//!        |   |                      +=============>| lease 1: partition 1, its rings  |
//!        |   |     element, miss, cas              +---------------------------------+
//!        |   +-- keys and values: read and written in place ---> elements' lines
//!        +-- event: where it sleeps if it waits long
//! ```
//!
//! * `get`: a lookup, one word; its answer refers to the element; the client compares the key, copies the value and
//!   sends a release, one word without an answer.
//! * `set`: an allocation, two words; its answer refers to an element that no lookup can find, NOT READY; the client
//!   writes key and value into it and sends ready, one word; its answer is the cas.
//! * everything else: a call, one word: the address of the request, which lies in the waiting client's frame. The owner
//!   carries it out. (A store with flags, an expiry or a condition is an allocation and a call, so that the value still
//!   comes from the client.)
//!
//! **READY, and why no key is missed.** The paper links an element before it is filled, and a
//! lookup meanwhile misses. Here an element enters the table when it is READY and takes the old
//! one's place in the same step, so a key that is being replaced has its old value until then. The
//! ready is answered, which the paper's is not: when a set returns, the next reader finds the new
//! value, by whatever ring.
//!
//! **Own writes.** A client's messages to a partition are served in the order in which it sent them, and it sends a
//! batch's effects in the order of the batch ([`batch`]).
//!
//! **Keys** of any size: a message has the hash, and the client that has a reference to the element compares the key.
//! Where two keys with one hash have been met, the answer to a lookup has all of them.
//!
//! **Threads.** A ring belongs to a partition, not to a thread, and lies in the partition's
//! [lease](nuthatch_base::sync::lease): when a controller moves the partition to another thread, the rings move with it and
//! clients notice nothing ([`control`]; section 8.1 of the paper). A waiting thread spins, then yields, then sleeps. A
//! client that panics first waits for its messages under way. If a server thread panics, its clients panic too, instead
//! of waiting for ever.
//!
//! Invariants (on top of those of the [partitions](nuthatch_partition), of [rings](nuthatch_base::sync::ring) and
//! [leases](nuthatch_base::sync::lease)):
//! 1. Only the thread that holds a partition's lease touches the partition.
//! 2. For each of its references, an element is referred to by messages of one client at a time.
//! 3. The address in a call message is valid until the call is answered: no client returns, unwinds or leaves before.
//! 4. Messages of a client that concern one key take effect in the order of its requests.
//! 5. Every block belongs to one partition or to the pool.
//!
//! Linearization points: of a lookup and of a call, the moment when the owner serves it; of a set, the moment when the
//! owner serves its ready.

pub mod affinity;
mod batch;
mod call;
mod client;
pub mod config;
mod control;
mod count;
mod deliver;
mod handle;
mod lane;
mod message;
mod room;
mod server;
mod shared;
mod value;

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use nuthatch_base::hash::sizing;
use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_base::sync::ring::{Array, RingKind, Single};
use nuthatch_base::sync::shim::{AtomicUsize, Ordering};

use client::Client;
use config::CpHashConfig;
pub use handle::{CpHashHandle, CpHashReservation};
use nuthatch_engine::index_stats::IndexHistogram;
use nuthatch_engine::stats::{EngineStats, MessageStats};
use nuthatch_engine::{
    AnyEngine, Audit, AuditError, Engine, Evictions, Footprint, Inspect, KeyHasher, LimitError,
};
use nuthatch_partition::layout::Layout;
use nuthatch_partition::memory::{BLOCK_COST, BlockMemory};
use nuthatch_partition::visit::footprint;
use nuthatch_partition::{Counts, Partition, PartitionConfig, first_buckets};
use shared::{Shared, SharedPartition};
pub use value::CpValue;

/// A design of the rings, as an engine.
pub trait Rings: RingKind + Sized {
    /// The engine's name.
    const ENGINE: &'static str;

    /// [`Engine::any`] of the engine with these rings.
    fn any(engine: Arc<CpHash<Self>>) -> Arc<AnyEngine>;
}

impl Rings for Array {
    const ENGINE: &'static str = "cphash";

    fn any(engine: Arc<CpHash<Self>>) -> Arc<AnyEngine> {
        AnyEngine::new(engine)
    }
}

impl Rings for Single {
    const ENGINE: &'static str = "cphash-single";

    fn any(engine: Arc<CpHash<Self>>) -> Arc<AnyEngine> {
        AnyEngine::new(engine)
    }
}

/// The CPHash engine.
pub struct CpHash<D: Rings = Array> {
    shared: Arc<Shared<D>>,
    /// The engine's own client, for calls on the engine rather than on a handle.
    control: Mutex<Client<D>>,
    threads: Vec<JoinHandle<()>>,
    /// The rule that decided the index's size at the start.
    index_rule: sizing::IndexRule,
    hasher: KeyHasher,
    item_size_max: usize,
    memory_limit: AtomicUsize,
    /// Sums at the last reset of the statistics.
    base: Mutex<Counts>,
}

impl<D: Rings> CpHash<D> {
    /// An engine with its server threads. Errors: an impossible configuration; address space, a thread or a core that
    /// is not available.
    pub fn new(config: CpHashConfig) -> io::Result<Self> {
        config.check()?;
        let count = config.partition_count();
        let overhead = Self::overhead(count);
        let limit_max = config.memory_limit_max.max(config.memory_limit);
        let memory = Arc::new(BlockMemory::new(
            config.memory_limit.saturating_sub(overhead),
            limit_max.saturating_sub(overhead),
        )?);
        let (first, rule) = first_buckets(config.memory_limit, config.initial_items, count);
        let partition = |number: usize| {
            let mut partition = Partition::new(
                Arc::clone(&memory),
                PartitionConfig {
                    eviction: config.eviction,
                    evicts: config.evicts,
                    item_size_max: config.item_size_max,
                    capacity: usize::MAX,
                    seed: (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                },
            );
            partition.begin(first);
            partition
        };
        let partitions = (0..count).map(partition);
        let shared = Arc::new(Shared::new(Arc::clone(&memory), partitions, &config));
        let (_, threads) = config.threads();
        let mut engine = Self {
            control: Mutex::new(Client::join(&shared)),
            shared,
            threads: Vec::new(),
            index_rule: rule,
            hasher: config.hasher,
            item_size_max: config.item_size_max,
            memory_limit: AtomicUsize::new(config.memory_limit),
            base: Mutex::new(Counts::default()),
        };
        engine.limit_claims(config.memory_limit);
        engine.start(threads, config.pin)?;
        Ok(engine)
    }

    /// Starts the server threads.
    fn start(&mut self, threads: usize, pin: Option<usize>) -> io::Result<()> {
        let cores = pin.map(affinity::Cores::from).transpose()?;
        let core_of = |number| cores.as_ref().map(|cores| cores.of_thread(number));
        let (report, reports) = mpsc::channel();
        for number in 0..threads {
            let (shared, report) = (Arc::clone(&self.shared), report.clone());
            let thread = std::thread::Builder::new().name(format!("cphash {number}"));
            let core = core_of(number);
            let body = move || {
                let pinned = core.map_or(Ok(()), affinity::pin);
                // The receiver is dropped if another thread has failed.
                let _ = report.send((number, pinned));
                server::run(&shared, number as u32);
            };
            self.threads.push(thread.spawn(body)?);
        }
        // Each thread reports once, and then serves.
        let mut reports: Vec<_> = reports.iter().take(threads).collect();
        reports.sort_by_key(|(number, _)| *number);
        let failed = reports.into_iter().find_map(|(number, pinned)| {
            let error: io::Error = pinned.err()?;
            let core = core_of(number)?;
            let words = format!("server thread {number} cannot be pinned to core {core}: {error}");
            Some(io::Error::new(error.kind(), words))
        });
        failed.map_or(Ok(()), Err)
    }

    /// Bytes of the partitions themselves.
    fn overhead(partitions: usize) -> usize {
        partitions * size_of::<SharedPartition<D>>()
    }

    /// How many partitions there are.
    pub fn partition_count(&self) -> usize {
        self.shared.partitions.len()
    }

    /// Where the engine's lines lie.
    pub fn layout(&self) -> Layout {
        let mut layout = Layout::new(&self.shared.partitions, &self.shared.memory);
        self.each(|_, partition| layout.add_buckets(partition));
        layout
    }

    /// Makes the owners of all partitions carry out `work`, one after the other.
    fn each<T: Send>(&self, mut work: impl FnMut(usize, &mut Partition) -> T + Send) -> Vec<T> {
        let mut control = self.control.lock();
        let run =
            |number| control.run(number, Time::default(), |partition| work(number, partition));
        (0..self.partition_count()).map(run).collect()
    }

    fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for counts in self.each(|_, partition| partition.counts()) {
            sum.add(&counts);
        }
        sum
    }

    fn base(&self) -> MutexGuard<'_, Counts> {
        self.base.lock()
    }

    /// Sets what elements may claim together, from the part of a memory limit that blocks may take.
    fn limit_claims(&self, limit: usize) {
        let count = self.partition_count();
        let blocks = limit.saturating_sub(Self::overhead(count));
        self.shared.memory.limit_claims(blocks, count);
    }
}

/// Ends the server threads. No handle is left, since each holds a reference to the engine.
impl<D: Rings> Drop for CpHash<D> {
    fn drop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has informed its clients.
            let _ = thread.join();
        }
    }
}

impl<D: Rings> Engine for CpHash<D> {
    type Handle = CpHashHandle<D>;

    fn any(self: Arc<Self>) -> Arc<AnyEngine> {
        D::any(self)
    }

    fn handle(self: &Arc<Self>) -> CpHashHandle<D> {
        CpHashHandle::new(self)
    }

    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn name(&self) -> &'static str {
        D::ENGINE
    }

    fn stats(&self) -> EngineStats {
        // Read before the counts: a reset beside this can only make the base older than the counts.
        let base = *self.base();
        let stats = self.counts().engine_stats(&base);
        let used = self.shared.memory.used() + Self::overhead(self.partition_count());
        EngineStats {
            // Relaxed: a statistic.
            memory_limit: self.memory_limit.load(Ordering::Relaxed) as u64,
            memory_used: used as u64,
            index_rule: Some(self.index_rule),
            ..stats
        }
    }

    fn reset_stats(&self) {
        let now = self.counts();
        *self.base() = now;
        self.shared.counters.reset();
    }

    fn flush(&self, now: Time, at: Time) {
        self.each(|_, partition| partition.flush(now, at));
    }

    fn number_from(&self, least: u64) {
        self.each(|_, partition| partition.number_from(least));
    }

    fn next_number(&self) -> u64 {
        let next = self.each(|_, partition| partition.next_number());
        next.into_iter().max().unwrap_or(0)
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        let (partitions, overhead) = (
            self.partition_count(),
            Self::overhead(self.partition_count()),
        );
        // A block of buckets for each partition, and the largest item twice.
        let least = 2 * self.item_size_max + overhead + 2 * BLOCK_COST * partitions;
        let memory = &self.shared.memory;
        LimitError::check(bytes, least, memory.limit_max() + overhead)?;
        memory.set_limit(bytes - overhead);
        self.memory_limit.store(bytes, Ordering::Relaxed);
        self.limit_claims(bytes);
        Ok(())
    }

    fn item_size_max(&self) -> usize {
        self.item_size_max
    }

    fn evicts(&self) -> bool {
        self.shared.evicts
    }
}

impl<D: Rings> Inspect for CpHash<D> {
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint {
        footprint(key_len, value_len)
    }

    fn report_evictions(&self, to: Arc<dyn Evictions>) {
        self.shared.memory.report_evictions(to);
    }

    fn index_histogram(&self, sample: u64) -> Option<IndexHistogram> {
        let share = sample / self.partition_count() as u64;
        let mut all = IndexHistogram::default();
        // Each partition's owner does this between two messages.
        for part in self.each(|_, partition| partition.histogram(share)) {
            all.add(&part);
        }
        Some(all)
    }

    fn message_stats(&self) -> Option<MessageStats> {
        // Relaxed: a statistic.
        let threads = self.shared.active.load(Ordering::Relaxed);
        let sums = self.shared.counters.sums_since_reset();
        Some(count::message_stats(&sums, threads))
    }
}

impl<D: Rings> Audit for CpHash<D> {
    fn audit(&self) -> Result<(), AuditError> {
        let mut owners = std::collections::HashMap::new();
        let audits = self.each(|_, partition| partition.audit());
        for (number, blocks) in audits.into_iter().enumerate() {
            let blocks = blocks.map_err(|broken| format!("in partition {number}: {broken}"))?;
            for block in blocks {
                if let Some(other) = owners.insert(block, number) {
                    return Err(format!(
                        "cphash 5: block {block} is partition {other}'s and {number}'s"
                    )
                    .into());
                }
            }
        }
        let used = self.shared.memory.used();
        if owners.len() * BLOCK_COST != used {
            let owned = owners.len();
            return Err(format!(
                "cphash 5: partitions have {owned} blocks, and {used} bytes are given out"
            )
            .into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::config::ServerThreads;
    use super::*;
    use nuthatch_engine::Handle;
    use nuthatch_engine::reply::{Item, Replies, Reply};
    use nuthatch_engine::request::{Delta, Key, Op, Request, Store};

    /// The numbers in the answers.
    #[derive(Default)]
    struct Numbers(Vec<u64>);

    impl<V> Replies<V> for Numbers {
        fn begin(&mut self, index: usize, _item: &Item) -> &mut [std::mem::MaybeUninit<u8>] {
            panic!("no value was asked for by {index}")
        }

        fn commit(&mut self, _index: usize) {}

        fn retract(&mut self, _index: usize) {}

        fn large(&mut self, _index: usize, _item: &Item, _value: V) {}

        fn done(&mut self, _index: usize, reply: Reply) {
            match reply {
                Reply::Number(number, _) => self.0.push(number),
                Reply::Stored(_) => {}
                other => panic!("answered {other:?}"),
            }
        }
    }

    fn engine<D: Rings>(threads: usize) -> Arc<CpHash<D>> {
        let config = CpHashConfig {
            partitions: 4,
            server_threads: ServerThreads::Fixed(threads),
            ..CpHashConfig::default()
        };
        Arc::new(CpHash::new(config).expect("there are memory and threads"))
    }

    /// Clients count up while partitions go from thread to thread as fast as they can.
    fn counts_while_partitions_move<D: Rings>() {
        const ROUNDS: u64 = 200;
        let engine = engine::<D>(3);
        let keys: Vec<_> = (0..16).map(|number| format!("counter {number}")).collect();
        let batch = |op| -> Vec<Request<'_>> {
            let key = |key| Key::new(str::as_bytes(key), engine.hasher());
            keys.iter()
                .map(|name| Request { key: key(name), op })
                .collect()
        };
        let zeros = batch(Op::Store(Store::set(b"0")));
        engine
            .handle()
            .execute(Time(1), &zeros, &mut Numbers::default());
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let counters: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut handle = engine.handle();
                        for _ in 0..ROUNDS {
                            let mut numbers = Numbers::default();
                            let ups = batch(Op::Delta(Delta::up(1)));
                            handle.execute(Time(1), &ups, &mut numbers);
                            assert_eq!(numbers.0.len(), keys.len());
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                for threads in (1..=3).cycle() {
                    engine.shared.share_out(threads);
                    std::thread::yield_now();
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let ended: Vec<_> = counters.into_iter().map(|counter| counter.join()).collect();
            done.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(Result::is_ok));
        });
        let mut numbers = Numbers::default();
        engine
            .handle()
            .execute(Time(1), &batch(Op::Delta(Delta::up(0))), &mut numbers);
        assert_eq!(numbers.0, vec![2 * ROUNDS; keys.len()]);
        let stats = engine.message_stats().expect("it has messages");
        assert!(stats.hand_overs > 0);
        assert_eq!(engine.audit(), Ok(()));
    }

    #[test]
    fn no_message_is_lost_while_partitions_move() {
        counts_while_partitions_move::<Array>();
        counts_while_partitions_move::<Single>();
    }

    /// Values in the order of their arrival, or the replies instead.
    #[derive(Default)]
    struct Values(Vec<Result<Vec<std::mem::MaybeUninit<u8>>, Reply>>);

    impl<V> Replies<V> for Values {
        fn begin(&mut self, _index: usize, item: &Item) -> &mut [std::mem::MaybeUninit<u8>] {
            let room = vec![std::mem::MaybeUninit::new(0); item.value_len];
            self.0.push(Ok(room));
            match self.0.last_mut() {
                Some(Ok(room)) => room,
                _ => &mut [],
            }
        }

        fn commit(&mut self, _index: usize) {}

        fn retract(&mut self, _index: usize) {}

        fn large(&mut self, _index: usize, _item: &Item, _value: V) {}

        fn done(&mut self, _index: usize, reply: Reply) {
            self.0.push(Err(reply));
        }
    }

    /// Keys with one hash are distinguished, whichever was stored first.
    #[test]
    fn keys_with_one_hash_are_different_keys() {
        const HASH: u64 = 0x1234_5678_9abc_def0;
        let engine = engine::<Array>(1);
        let mut handle = engine.handle();
        let names: [&[u8]; 4] = [b"one", b"two", b"three", b"four"];
        let ask = |op: fn(&'static [u8]) -> Op<'static>, names: &[&'static [u8]]| -> Vec<_> {
            let request = |&name: &&'static [u8]| Request {
                key: Key::hashed(name, HASH),
                op: op(name),
            };
            names.iter().map(request).collect()
        };
        // Several stores, so that none is alone in its batch: they are sent as allocations and readies.
        let mut stored = Values::default();
        handle.execute(
            Time(1),
            &ask(|name| Op::Store(Store::set(name)), &names[..3]),
            &mut stored,
        );
        let mut got = Values::default();
        handle.execute(Time(1), &ask(|_| Op::Get, &names), &mut got);
        let told: Vec<_> = got
            .0
            .iter()
            .map(|reply| {
                reply.as_ref().map(|value| {
                    // SAFETY: made initialised, and only ever written.
                    unsafe { value.assume_init_ref() }
                })
            })
            .collect();
        assert_eq!(told[..3], [Ok(names[0]), Ok(names[1]), Ok(names[2])]);
        assert_eq!(told[3], Err(&Reply::Miss));
        // No reference is left to the elements with the other key.
        let held = engine.each(|_, partition| partition.counts().held);
        assert_eq!(held.iter().sum::<u64>(), 0);
        assert_eq!(engine.audit(), Ok(()));
    }

    /// Large batches of lookups: the messages that give references back, which have no answer, fill rings by
    /// themselves.
    #[test]
    fn full_rings_empty_again() {
        fn check<D: Rings>(batches: usize) {
            let engine = engine::<D>(1);
            let mut handle = engine.handle();
            let names: Vec<_> = (0..1000).map(|number: u32| number.to_le_bytes()).collect();
            let batch = |op: fn(&'static [u8]) -> Op<'static>| -> Vec<Request<'_>> {
                let key = |name| Key::new(name, engine.hasher());
                let request = |name| Request {
                    key: key(name),
                    op: op(b"value"),
                };
                names.iter().map(|name| request(&name[..])).collect()
            };
            let mut stored = Values::default();
            handle.execute(
                Time(1),
                &batch(|value| Op::Store(Store::set(value))),
                &mut stored,
            );
            let gets = batch(|_| Op::Get);
            for _ in 0..batches {
                let mut got = Values::default();
                handle.execute(Time(1), &gets, &mut got);
                assert!(got.0.len() == gets.len() && got.0.iter().all(Result::is_ok));
            }
        }
        check::<Array>(500);
        check::<Single>(10);
    }

    /// If a server thread panics, its clients panic too, instead of waiting.
    #[test]
    fn clients_of_a_server_thread_that_panicked_panic() {
        let engine = engine::<Array>(1);
        let ask = || engine.each(|_, _| panic!("on purpose"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(ask)).is_err());
        let again = || engine.handle().maintain(Time(1), 1);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(again)).is_err());
    }

    #[test]
    fn a_core_that_does_not_exist_is_an_error() {
        let config = CpHashConfig {
            pin: Some(100_000),
            ..CpHashConfig::default()
        };
        let error = CpHash::<Array>::new(config)
            .err()
            .expect("there is no such core");
        assert!(
            error
                .to_string()
                .contains("--pin 100000: not one of the cores that this process may use"),
            "{error}"
        );
    }

    #[test]
    fn impossible_configurations_are_errors() {
        let refused = |config: CpHashConfig| config.check().expect_err("impossible").to_string();
        let ok = CpHashConfig::default;
        for partitions in [1, 2048] {
            assert!(refused(CpHashConfig { partitions, ..ok() }).contains("partitions"));
        }
        for window in [0, config::WINDOW_MAX + 1] {
            assert!(refused(CpHashConfig { window, ..ok() }).contains("window"));
        }
        let threads = |server_threads| CpHashConfig {
            partitions: 2,
            server_threads,
            ..ok()
        };
        assert!(refused(threads(ServerThreads::Fixed(0))).contains("server threads"));
        assert!(refused(threads(ServerThreads::Fixed(3))).contains("cannot share 2"));
        // As many partitions as hold the largest item, where none were asked for.
        let few = CpHashConfig {
            item_size_max: 4 << 20,
            server_threads: ServerThreads::Fixed(8),
            ..ok()
        };
        assert!(refused(few).contains("8 cannot share 4"));
        let adaptive = ServerThreads::Adaptive { min: 2, max: 1 };
        assert!(refused(threads(adaptive)).contains("server threads"));
        let large = CpHashConfig {
            item_size_max: 32 << 20,
            ..ok()
        };
        assert!(refused(large).contains("half of a partition"));
    }
}
