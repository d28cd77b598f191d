//! Optimistic cuckoo hashing with CLOCK eviction (MemC3, NSDI 2013), and what we add to it.
//!
//! Every key has two candidate buckets, `b1 = HASH(key)` and `b2 = b1 xor HASH(tag)`. A bucket is one
//! cache line of eight slots, each a 16-bit tag and a 48-bit reference to the item (see
//! [`layout`]). A GET touches two lines of the index and, because tags are compared first, hardly
//! ever more than the one item it wants.
//!
//! Readers take no lock and write nothing: they take a snapshot of two version counters, read both
//! buckets, follow the reference, copy the value into the caller's output, and check the counters
//! again. Writers hold the same two counters at odd values while they change a bucket. An insert
//! into two full buckets first searches a path of items to push aside ([`search`]), without
//! locking or moving anything, and then moves them from its end backwards, one at a time.
//!
//! Beyond the paper: many writers, a breadth-first search, a set that swaps the reference in its
//! slot, batches that overlap their memory misses ([`handle`]), and an index that doubles in place
//! while it is used ([`grow`]). [`layout::Paper`] keeps the paper's constants.
//!
//! Invariants (on top of those of [`stripes`](nuthatch_sync::stripes) and of the
//! [store](crate::slab)):
//! 1. An item is referred to by at most one slot, in one of its key's two buckets, under its tag.
//! 2. A key has at most one item.
//! 3. A slot is written only by whoever holds the locks of the stripes of the key's both buckets
//!    (a split holds the stripe of the bucket that it divides: both halves lie on it).
//! 4. An item that is in the table is in one of its buckets at every moment at which its stripes
//!    are even: moves store the new slot and empty the old one under one lock.
//! 5. `flush_before` never goes back; items whose sequence is lower are dead.
//!
//! Linearization points. A read: the successful version check (what it saw was true then). A
//! change: the release of the stripe lock under which it stored the slot or the header. An eviction
//! or expiry is a removal of its own. A flush: the store to `flush_before`.

mod audit;
pub mod config;
mod count;
mod delta;
mod evict;
mod find;
mod get;
mod grow;
pub mod handle;
// Not public but for the models: the index believes its callers' bucket numbers.
#[cfg(loom)]
pub mod index;
#[cfg(not(loom))]
mod index;
pub mod layout;
mod local;
pub mod matching;
mod read;
#[cfg(loom)]
pub mod search;
#[cfg(not(loom))]
mod search;
mod value;
mod visit;
mod write;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use nuthatch_hash::sizing;
use nuthatch_sync::clock::Time;
use nuthatch_sync::shim::{AtomicU32, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};
use nuthatch_sync::stripes::Stripes;

use crate::counters::Registry;
use crate::engine::Engine;
use crate::item::{Header, SEQUENCE_MAX, Shape};
use crate::reply::Item;
use crate::slab::Store;
use crate::slab::arena::{Chunk, WORD};
use crate::slab::sizes::{PAGE, Sizes};
use crate::stats::{ClassStats, EngineStats};
use crate::{KeyHasher, request};
use config::CuckooConfig;
use count::{COUNTS, ClassCount, Count, class_count};
use handle::CuckooHandle;
use index::{Index, Position};
use layout::{Design, EightWay};
use local::Marks;
use matching::Vector;

/// Buckets of the smallest table.
const BUCKETS_MIN: u64 = if cfg!(loom) { 2 } else { 64 };

/// The cuckoo engine.
pub struct Cuckoo<D: Design = EightWay> {
    index: Index<D>,
    /// What decided the index's size at the start.
    index_rule: sizing::IndexRule,
    store: Store,
    hasher: KeyHasher,
    vector: Vector,
    item_size_max: usize,
    evicts: bool,
    listener: Option<config::Listener>,
    counters: Registry<COUNTS>,
    /// The next sequence that no thread has.
    sequence: AtomicU64,
    /// When which sequences were given out.
    marks: Mutex<Marks>,
    /// Items with a lower sequence are dead (flush_all).
    flush_before: AtomicU64,
    /// The tick at which a delayed flush takes effect; `u32::MAX` for none.
    flush_at: AtomicU32,
    /// 1 once an item with an expiry was stored or a flush happened: there is something to sweep.
    sweeping: AtomicU32,
    /// Reservations under way, so that an audit knows whose the private chunks are.
    reserved: AtomicUsize,
    /// Where the background sweep stands.
    sweep: Mutex<u64>,
    /// Held by the one thread that splits buckets.
    splitter: Mutex<()>,
    /// The paper's single writer.
    writer: Mutex<()>,
}

/// An item found in the table.
#[derive(Clone, Copy, Debug)]
struct Found {
    at: Position,
    chunk: Chunk,
    header: Header,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<D: Design> Cuckoo<D> {
    /// An engine. Errors: an impossible configuration, or address space that is not to be had.
    pub fn new(config: CuckooConfig) -> io::Result<Self> {
        config
            .check()
            .map_err(|words| io::Error::new(io::ErrorKind::InvalidInput, words))?;
        let limit_max = match config.memory_limit_max {
            0 => machine_memory().max(config.memory_limit),
            most => most.max(config.memory_limit),
        };
        let sizes = Sizes::new(config.chunk_min, config.growth_factor);
        let store = Store::new(config.memory_limit, limit_max, sizes)?;
        let memory = config.memory_limit as u64;
        let items = config.initial_items.map(|items| items as u64);
        let sizing::IndexSize { buckets, rule, .. } =
            sizing::index(memory, items, D::SLOTS as u64, BUCKETS_MIN);
        let buckets_max = (limit_max / 2 / Index::<D>::bytes(1)) as u64;
        let buckets_max = (1 << buckets_max.ilog2()).max(buckets);
        let stripes = Stripes::MEMC3.min(buckets as usize);
        let index = Index::new(buckets, buckets_max, stripes)?;
        let charged = store
            .pool()
            .charge(Index::<D>::bytes(buckets) + stripes * 4);
        debug_assert!(charged);
        Ok(Self {
            index,
            index_rule: rule,
            store,
            hasher: config.hasher,
            vector: Vector::detect::<D>(),
            item_size_max: config.item_size_max,
            evicts: config.evicts,
            listener: config.listener,
            counters: Registry::default(),
            sequence: AtomicU64::new(1),
            marks: Mutex::new(Marks::default()),
            flush_before: AtomicU64::new(0),
            flush_at: AtomicU32::new(u32::MAX),
            sweeping: AtomicU32::new(0),
            reserved: AtomicUsize::new(0),
            sweep: Mutex::new(0),
            splitter: Mutex::new(()),
            writer: Mutex::new(()),
        })
    }

    /// The shape of an item.
    fn shape(&self, key_len: usize, value_len: usize, wide: bool) -> Shape {
        Shape::new(key_len, value_len, wide, self.store.chunk_max())
    }

    /// True if an item may still be returned.
    #[inline(always)]
    fn is_live(&self, header: &Header, now: Time) -> bool {
        // Relaxed: a flush is visible to whoever asks after it returned (it ends in a SeqCst
        // store); a request that runs beside it may take either side.
        !header.is_expired(now) && header.sequence() >= self.flush_before.load(Ordering::Relaxed)
    }

    /// The metadata that clients see.
    fn item(&self, chunk: Chunk, header: &Header, now: Time) -> Item {
        Item {
            fetched: self.store.recency.was_fetched(chunk),
            idle: self.age(header, now),
            ..plain_item(header)
        }
    }

    fn age(&self, header: &Header, now: Time) -> Duration {
        now.since(lock(&self.marks).time_of(header.sequence()))
    }

    /// Puts a delayed flush into effect once its time has come.
    #[inline(always)]
    fn apply_flush(&self, now: Time) {
        // Relaxed: whoever comes late, or twice, does no harm: see `flush_now`.
        let at = self.flush_at.load(Ordering::Relaxed);
        if at <= now.0 {
            self.take_flush(at);
        }
    }

    #[cold]
    #[inline(never)]
    fn take_flush(&self, at: u32) {
        let mine =
            self.flush_at
                .compare_exchange(at, u32::MAX, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_ok() {
            self.flush_now();
        }
    }

    fn flush_now(&self) {
        // Relaxed: sequences given out before are all lower, whatever the order.
        let next = self.sequence.load(Ordering::Relaxed);
        // SeqCst: no later read of this thread passes it; pairs with the loads in `is_live`.
        self.flush_before.fetch_max(next, Ordering::SeqCst);
        self.sweeping.store(1, Ordering::Relaxed);
    }

    /// In the paper's design writers come one at a time.
    #[inline]
    fn one_writer(&self) -> Option<MutexGuard<'_, ()>> {
        D::ONE_WRITER.then(|| lock(&self.writer))
    }

    fn class_stats(&self, sums: &[u64; COUNTS], live: &[u64; COUNTS], class: usize) -> ClassStats {
        let inner = self.store.class(class);
        let count = |count| sums[class_count(class, count)];
        ClassStats {
            class: class + 1,
            chunk_size: inner.chunk_bytes,
            chunks_per_page: inner.per_page as usize,
            pages: inner.pages.len(),
            used_chunks: inner.used,
            free_chunks: inner.free_chunks(),
            requested_bytes: live[class_count(class, ClassCount::Bytes)],
            evictions: count(ClassCount::Evicted),
            evicted_unfetched: count(ClassCount::EvictedUnfetched),
            out_of_memory: count(ClassCount::OutOfMemory),
        }
    }
}

/// The metadata that the header tells: all that a plain get needs.
#[inline(always)]
fn plain_item(header: &Header) -> Item {
    Item {
        flags: header.flags(),
        value_len: header.value_len(),
        cas: header.cas(),
        expiry: header.expiry(),
        stale: header.is_stale(),
        won: false,
        won_before: header.is_won(),
        fetched: false,
        idle: Duration::ZERO,
    }
}

/// This machine's memory in bytes.
fn machine_memory() -> usize {
    #[cfg(not(miri))]
    // SAFETY: sysconf reads two numbers of the system and touches no memory of ours.
    let (pages, bytes) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    #[cfg(miri)]
    let (pages, bytes) = (0_i64, 0_i64);
    usize::try_from(pages)
        .unwrap_or(0)
        .saturating_mul(usize::try_from(bytes).unwrap_or(0))
}

impl<D: Design> Engine for Cuckoo<D> {
    type Handle = CuckooHandle<D>;

    fn handle(self: &Arc<Self>) -> CuckooHandle<D> {
        CuckooHandle::new(self)
    }

    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn name(&self) -> &'static str {
        D::NAME
    }

    fn stats(&self) -> EngineStats {
        let (sums, live) = (self.counters.sums_since_reset(), self.counters.sums());
        let count = |count: Count| sums[count as usize];
        let items = live[Count::Linked as usize].wrapping_sub(live[Count::Unlinked as usize]);
        let geometry = self.index.geometry();
        let buckets = if geometry.growing {
            2 * geometry.buckets()
        } else {
            geometry.buckets()
        };
        let (memory_limit, memory_used) = {
            let pool = self.store.pool();
            (pool.limit() as u64, pool.used() as u64)
        };
        EngineStats {
            // The sums are taken one thread after the other; never show less than nothing.
            items: if items > u64::MAX / 2 { 0 } else { items },
            total_items: count(Count::Stored),
            item_bytes: live[Count::Bytes as usize],
            memory_limit,
            memory_used,
            index_bytes: Index::<D>::bytes(buckets) as u64,
            index_slots: buckets * D::SLOTS as u64,
            index_growing: geometry.growing,
            index_rule: Some(self.index_rule),
            evictions: count(Count::Evicted),
            evicted_unfetched: count(Count::EvictedUnfetched),
            expired: count(Count::Expired),
            expired_unfetched: count(Count::ExpiredUnfetched),
            out_of_memory: count(Count::OutOfMemory),
            pages_moved: self.store.pages_moved(),
            swept: count(Count::Swept),
            read_retries: count(Count::Retries),
            false_tags: count(Count::FalseTags),
            displacements: count(Count::Displaced),
            classes: (0..self.store.sizes.count())
                .map(|class| self.class_stats(&sums, &live, class))
                .filter(|class| class.pages > 0 || class.evictions > 0 || class.out_of_memory > 0)
                .collect(),
        }
    }

    fn reset_stats(&self) {
        self.counters.reset();
    }

    fn flush(&self, now: Time, at: Time) {
        // One that is due but met no request yet is not replaced.
        self.apply_flush(now);
        if at <= now {
            self.flush_at.store(u32::MAX, Ordering::Relaxed);
            self.flush_now();
        } else {
            self.flush_at.store(at.0, Ordering::Relaxed);
        }
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), String> {
        if self.item_size_max > bytes / 2 {
            let least = (2 * self.item_size_max).div_ceil(PAGE);
            return Err(format!(
                "the memory limit is at least twice the item limit: {least} MiB"
            ));
        }
        self.store.pool().set_limit(bytes)
    }

    fn item_size_max(&self) -> usize {
        self.item_size_max
    }

    fn evicts(&self) -> bool {
        self.evicts
    }

    fn audit(&self) -> Result<(), String> {
        self.audit_all()
    }
}

const _: () = {
    // The key's length fits its eight bits, the sequence its 48.
    assert!(request::KEY_LEN_MAX < 256 && SEQUENCE_MAX == (1 << 48) - 1);
    assert!(PAGE.is_multiple_of(WORD));
};
