//! LockHash: the partition table behind locks (CPHash, section 4.2).
//!
//! Here any thread calls [`Partition`]'s operations itself, as the owner, while it holds the partition's lock. With
//! thousands of partitions two threads hardly ever need the same one, so the lock is a spinlock. Anderson's queue, with
//! which the paper compares it, is a setting ([`AndersonLock`]). An operation costs the lines that it fetches: the
//! lock and the partition beside it, a bucket, the header, key and value.
//!
//! ```text
//!  hash -> partition:  | lock, partition 0 | lock, partition 1 | ... | lock, partition 4095 |
//!                                                |      blocks
//!                                                v
//!                           one arena, one pool: | 0 | 1 | 2 | 3 | ...
//! ```
//!
//! **A lock a bucket.** With random eviction, as in the paper, a read takes its bucket's lock instead of its
//! partition's: each partition then has a [descriptor](super::descriptor), which gives the places of its buckets and
//! which no hit writes to. A read writes the word of its bucket, and its element's header once a tick; two threads meet
//! only at one bucket. An operation that changes the table takes the partition's lock, and under it the lock of the
//! bucket that it changes, because the blocks from which an element's lines come have one owner. The descriptor's
//! documentation lists the operations under each lock. With LRU there are no descriptors: a hit makes its element the
//! newest of its partition in any case.
//!
//! ```text
//!  hash -> descriptor:      | descriptor 0 | descriptor 1 | ... | descriptor 4095 |      random eviction, reads
//!                                     |  buckets
//!                                     v
//!                           | L bucket | L bucket | ... -> elements
//! ```
//!
//! Values up to [`COPY_MAX`] are copied under the lock, so no reference outlives it. Larger ones are read in place,
//! with a reference that is given back under the partition's lock.
//!
//! **Memory.** Partitions take blocks from one pool as they need them. Once the pool is empty a partition evicts its
//! own elements. If a value is larger than all that it has, it takes blocks from others, the coldest of a few.
//! [`Handle::maintain`](nuthatch_engine::Handle::maintain) moves blocks from cold partitions to hot ones.
//!
//! Invariants (on top of those of the [partitions](super)):
//! 1. Only the holder of a partition's lock has access to it, except for reads through its descriptor.
//! 2. No thread holds two partitions' locks. So there is no circle of waiters, and no thread takes memory from other
//!    partitions while it holds a lock.
//! 3. Every block belongs to one partition or to the pool.
//!
//! Linearization point of every operation: the release of the lock under which it ran (for a large read, of the lock
//! under which it took its reference; where there is a descriptor, of the lock of the bucket that it read or changed).

pub mod config;
mod handle;
mod lock;
mod read;
mod room;
mod value;

use std::io;
use std::sync::Arc;

use nuthatch_base::hash::{sizing, split};
use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::shim::{AtomicUsize, Ordering};
use nuthatch_base::sync::spinlock::SpinLock;

use super::layout::Layout;
use super::memory::{BLOCK_COST, BlockMemory};
use super::visit::footprint;
use super::{Counts, Descriptor, Eviction, Partition, PartitionConfig, Searches, first_buckets};
use config::LockHashConfig;
pub use handle::{COPY_MAX, LockHashHandle, LockHashReservation};
pub use lock::{AndersonLock, Lock};
use nuthatch_engine::counters::Registry;
use nuthatch_engine::index_stats::IndexHistogram;
use nuthatch_engine::stats::EngineStats;
use nuthatch_engine::{
    AnyEngine, Audit, AuditError, Engine, Evictions, Footprint, Inspect, KeyHasher, LimitError,
};
pub use value::LockHashValue;

/// Partitions of the paper's LockHash.
pub const PARTITIONS: u32 = 4096;

/// A partition and its lock, separated from others by the lines that a processor fetches together.
#[repr(align(128))]
struct PartitionLock<L>(L);

/// The LockHash engine, with locks of one kind.
pub struct LockHash<L: Lock<Partition> = SpinLock<Partition>> {
    memory: Arc<BlockMemory>,
    partitions: Box<[PartitionLock<L>]>,
    /// The partitions' descriptors; none with LRU.
    descriptors: Arc<[Descriptor]>,
    /// The searches of readers by the descriptors.
    searches: Registry<{ Searches::COUNTS }>,
    /// The rule that decided the index's size at the start.
    index_rule: sizing::IndexRule,
    hasher: KeyHasher,
    item_size_max: usize,
    evicts: bool,
    /// The least limit, in bytes.
    memory_limit_min: usize,
    memory_limit: AtomicUsize,
    /// Sums at the last reset of the statistics.
    base: SpinLock<Counts>,
    /// Bytes of the partitions themselves, with locks and descriptors.
    overhead: usize,
    /// The partition that maintenance looks at next.
    next: AtomicUsize,
}

impl LockHash {
    /// An engine with spinlocks. Errors: as [`LockHash::with_locks`].
    pub fn new(config: LockHashConfig) -> io::Result<Self> {
        Self::with_locks(config)
    }
}

impl<L: Lock<Partition>> LockHash<L> {
    /// An engine. Errors: an impossible configuration, or too little address space.
    pub fn with_locks(config: LockHashConfig) -> io::Result<Self> {
        config.check()?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let count = config.partition_count();
        let descriptors: Arc<[Descriptor]> = match config.eviction {
            Eviction::Lru => Arc::default(),
            Eviction::Random => (0..count).map(|_| Descriptor::default()).collect(),
        };
        let overhead = count as usize * L::bytes(threads) + size_of_val(&*descriptors);
        let limit_max = config.memory_limit_max.max(config.memory_limit);
        let memory = Arc::new(BlockMemory::new(
            config.memory_limit.saturating_sub(overhead),
            limit_max.saturating_sub(overhead),
        )?);
        let (first, rule) =
            first_buckets(config.memory_limit, config.initial_items, count as usize);
        let partition = |number: u32| {
            let partition = PartitionConfig {
                eviction: config.eviction,
                evicts: config.evicts,
                item_size_max: config.item_size_max,
                capacity: usize::MAX,
                seed: u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            };
            let memory = Arc::clone(&memory);
            let mut partition = if descriptors.is_empty() {
                Partition::new(memory, partition)
            } else {
                Partition::with_descriptor(
                    memory,
                    partition,
                    Arc::clone(&descriptors),
                    number as usize,
                )
            };
            partition.begin(first);
            PartitionLock(L::new(partition, threads))
        };
        // A block of buckets for each partition, and the largest item twice; in any case the limit of the start.
        let least = 2 * config.item_size_max + overhead + 2 * BLOCK_COST * count as usize;
        let engine = Self {
            partitions: (0..count).map(partition).collect(),
            descriptors,
            searches: Registry::default(),
            memory,
            index_rule: rule,
            hasher: config.hasher,
            item_size_max: config.item_size_max,
            evicts: config.evicts,
            memory_limit_min: least.min(config.memory_limit),
            memory_limit: AtomicUsize::new(config.memory_limit),
            base: SpinLock::default(),
            overhead,
            next: AtomicUsize::new(0),
        };
        engine.limit_claims(config.memory_limit);
        Ok(engine)
    }

    /// How many partitions there are.
    pub fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    /// Where the engine's lines lie.
    pub fn layout(&self) -> Layout {
        let mut layout = Layout::new(&self.partitions, &self.memory);
        for partition in 0..self.partitions.len() {
            self.at(partition, |locked| layout.add_buckets(locked));
        }
        layout
    }

    #[inline(always)]
    fn partition_of(&self, hash: u64) -> usize {
        split::partition(hash, self.partitions.len() as u32) as usize
    }

    #[inline(always)]
    fn lock(&self, partition: usize) -> L::Guard<'_> {
        self.partitions[partition].0.lock()
    }

    /// Calls `act` with a partition, locked for as long as the call lasts and no longer.
    #[inline(always)]
    fn at<T>(&self, partition: usize, act: impl FnOnce(&mut Partition) -> T) -> T {
        act(&mut self.lock(partition))
    }

    /// Sums over all partitions, one after the other.
    fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for partition in 0..self.partitions.len() {
            sum.add(&self.at(partition, |locked| locked.counts()));
        }
        sum.searches.add(self.searches.sums());
        sum
    }

    /// Sets what elements may claim together, from the part of a memory limit that blocks may take.
    fn limit_claims(&self, limit: usize) {
        let blocks = limit.saturating_sub(self.overhead);
        self.memory.limit_claims(blocks, self.partitions.len());
    }
}

impl<L: Lock<Partition>> Engine for LockHash<L> {
    type Handle = LockHashHandle<L>;

    fn any(self: Arc<Self>) -> Arc<AnyEngine> {
        AnyEngine::new(self)
    }

    fn handle(self: &Arc<Self>) -> LockHashHandle<L> {
        LockHashHandle::new(self)
    }

    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn name(&self) -> &'static str {
        L::ENGINE
    }

    fn stats(&self) -> EngineStats {
        // Read before the counts: a reset beside this can only make the base older than the counts.
        let base = *self.base.lock();
        let stats = self.counts().engine_stats(&base);
        let used = self.memory.used() + self.overhead;
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
        *self.base.lock() = now;
    }

    fn flush(&self, now: Time, at: Time) {
        for partition in 0..self.partitions.len() {
            self.at(partition, |locked| locked.flush(now, at));
        }
    }

    fn number_from(&self, least: u64) {
        for partition in 0..self.partitions.len() {
            self.at(partition, |locked| locked.number_from(least));
        }
    }

    fn next_number(&self) -> u64 {
        let partitions = 0..self.partitions.len();
        let next = partitions.map(|partition| self.at(partition, |locked| locked.next_number()));
        next.max().unwrap_or(0)
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        let overhead = self.overhead;
        LimitError::check(
            bytes,
            self.memory_limit_min,
            self.memory.limit_max() + overhead,
        )?;
        self.memory.set_limit(bytes - overhead);
        self.memory_limit.store(bytes, Ordering::Relaxed);
        self.limit_claims(bytes);
        Ok(())
    }

    fn item_size_max(&self) -> usize {
        self.item_size_max
    }

    fn evicts(&self) -> bool {
        self.evicts
    }
}

impl<L: Lock<Partition>> Inspect for LockHash<L> {
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint {
        footprint(key_len, value_len)
    }

    fn report_evictions(&self, to: Arc<dyn Evictions>) {
        self.memory.report_evictions(to);
    }

    fn index_histogram(&self, sample: u64) -> Option<IndexHistogram> {
        let count = self.partitions.len() as u64;
        let mut all = IndexHistogram::default();
        for partition in 0..self.partitions.len() {
            all.add(&self.at(partition, |locked| locked.histogram(sample / count)));
        }
        Some(all)
    }
}

impl<L: Lock<Partition>> Audit for LockHash<L> {
    fn audit(&self) -> Result<(), AuditError> {
        let mut owners = std::collections::HashMap::new();
        for number in 0..self.partitions.len() {
            let blocks = self.at(number, |locked| locked.audit());
            let blocks = blocks.map_err(|broken| format!("in partition {number}: {broken}"))?;
            for block in blocks {
                if let Some(other) = owners.insert(block, number) {
                    return Err(format!(
                        "lockhash 3: block {block} is partition {other}'s and {number}'s"
                    )
                    .into());
                }
            }
        }
        let used = self.memory.used();
        if owners.len() * BLOCK_COST != used {
            let owned = owners.len();
            return Err(format!(
                "lockhash 3: partitions have {owned} blocks, and {used} bytes are given out"
            )
            .into());
        }
        Ok(())
    }
}
