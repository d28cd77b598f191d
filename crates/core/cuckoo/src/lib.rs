//! Optimistic cuckoo hashing (MemC3, NSDI 2013), with additions.
//!
//! Every key has two candidate buckets, `b1 = HASH(key)` and `b2 = b1 xor HASH(tag)`. A bucket is one
//! cache line of eight slots, each a 16-bit tag and a reference to the item (see
//! [`layout`]). A GET touches two lines of the index and, because tags are compared first, hardly
//! ever more than the one item it wants.
//!
//! Readers take no lock and write nothing: they take a snapshot of two version counters, read both
//! buckets, follow the reference, copy the value into the caller's output, and check the counters
//! again. (A batch looks into first buckets alone, under one counter each, as long as it hits there.) Writers hold the same two counters at odd values while they change a bucket. An insert
//! into two full buckets first searches a path of items to push aside ([`search`]), without
//! locking or moving anything, and then moves them from its end backwards, one at a time.
//!
//! Items lie in a [log](nuthatch_store::log), whose pages are emptied by two queues and ghosts, or in size classes with
//! CLOCK, as in the paper.
//!
//! Beyond the paper: many writers, a breadth-first search, a set that swaps the reference in its
//! slot, batches that overlap their memory misses ([`handle`]), and an index that doubles in place
//! while it is used ([`grow`]). [`layout::Paper`] keeps the paper's constants.
//!
//! Invariants (on top of those of [`stripes`](nuthatch_base::sync::stripes) and of the
//! [store](nuthatch_store::store)):
//! 1. An item is referred to by at most one slot, in one of its key's two buckets, under its tag.
//! 2. A key has at most one item.
//! 3. A slot is written only by the holder of the locks of the stripes of the key's both buckets
//!    (a split holds the stripe of the bucket that it divides: both halves lie on it).
//! 4. An item that is in the table is in one of its buckets at every moment at which its stripes
//!    are even: moves store the new slot and empty the old one under one lock.
//! 5. The flush bar never goes back; items whose sequence is lower are dead.
//!
//! Linearization points. A read: the successful version check (all that it loaded was valid then). A change: the
//! release of the stripe lock under which it stored the slot or the header. An eviction or expiry is a removal of its
//! own. A flush: the store to the flush bar ([`Timestamps`]).

mod ahead;
mod audit;
pub mod config;
#[cfg(all(test, debug_assertions, not(loom)))]
mod contended;
mod evict;
mod find;
mod foreign;
pub mod get;
mod grow;
pub mod handle;
// Public only for the models: the index does not check its callers' bucket numbers.
#[cfg(loom)]
pub mod index;
#[cfg(not(loom))]
mod index;
pub mod layout;
mod local;
pub mod matching;
#[cfg(loom)]
pub mod parts;
#[cfg(not(loom))]
mod parts;
mod read;
#[cfg(loom)]
pub mod reading;
#[cfg(not(loom))]
mod reading;
#[cfg(loom)]
pub mod search;
#[cfg(not(loom))]
mod search;
mod visit;
mod write;

use std::io;
use std::sync::Arc;

use nuthatch_base::hash::sizing;
use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_base::sync::shim::{AtomicU64, AtomicUsize, Ordering};
use nuthatch_base::sync::stripes::Stripes;

pub use config::CuckooConfig;
pub use foreign::{ForeignTable, NotRead};
use handle::CuckooHandle;
use index::{Index, Position};
use layout::{EightWay, SlotWord, Variant};
use nuthatch_engine::counters::Registry;
use nuthatch_engine::index_stats::{BucketKind, IndexHistogram};
use nuthatch_engine::stats::EngineStats;
use nuthatch_engine::{
    AnyEngine, Audit, AuditError, Engine, Evictions, Footprint, Inspect, KeyHasher, LimitError,
    Sharing,
};
use nuthatch_store::count::{COUNTS, engine_stats};
use nuthatch_store::item::{Header, plain_item};
use nuthatch_store::memory::arena::{Address, WORD};
use nuthatch_store::memory::sizes::PAGE;
use nuthatch_store::reclaim::removals::Removals;
use nuthatch_store::shared::{Plan, Shared};
use nuthatch_store::store::{HasStore, Store};
use nuthatch_store::table::Table;
use nuthatch_store::timestamps::Timestamps;

/// Buckets of the smallest table.
const BUCKETS_MIN: u64 = if cfg!(loom) { 2 } else { 64 };

/// The cuckoo engine.
pub struct Cuckoo<D: Variant = EightWay> {
    index: Index<D>,
    /// The rule that decided the index's size at the start.
    index_rule: sizing::IndexRule,
    store: Store<D::Placement>,
    hasher: KeyHasher,
    item_size_max: usize,
    evicts: bool,
    removals: Option<Removals>,
    counters: Registry<COUNTS>,
    /// Handles that were ever made.
    handles: AtomicUsize,
    /// The order of stores, flushes and expiries.
    timestamps: Timestamps,
    /// Held by the one thread that splits buckets.
    splitter: Mutex<()>,
    /// The paper's single writer.
    writer: Mutex<()>,
    /// What other processes read.
    shared: Option<Arc<Shared>>,
}

/// An item found in the table.
#[derive(Clone, Copy, Debug)]
struct Found {
    at: Position,
    address: Address,
    header: Header,
}

impl<D: Variant> Cuckoo<D> {
    /// An engine. Errors: an impossible configuration, or too little address space.
    pub fn new(config: CuckooConfig) -> io::Result<Self> {
        config.check()?;
        let shared = Self::shared(&config)?;
        let source = shared.as_ref().map(|shared| shared.source());
        let source = source.unwrap_or_default();
        let told = || shared.as_ref().map(|shared| Arc::clone(shared.page()));
        let store = D::store(&config, source.clone())?;
        if store.limit_max() / WORD >= 1 << layout::address_bits::<D>() {
            let words = "a memory limit beyond what a slot can address";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        let memory = config.memory_limit as u64;
        let items = config.initial_items.map(|items| items as u64);
        let shape = sizing::IndexShape::cuckoo(D::SLOTS as u64);
        let sizing::IndexSize { buckets, rule, .. } =
            sizing::index(memory, items, shape, BUCKETS_MIN);
        let buckets_max = (store.limit_max() / 2 / Index::<D>::bytes(1)) as u64;
        let buckets_max = (1 << buckets_max.ilog2()).max(buckets);
        let stripes = Stripes::MEMC3.min(buckets as usize);
        let index = Index::new_in(&source, told(), buckets, buckets_max, stripes)?;
        let charged = store.pool().charge(index.bytes_taken());
        debug_assert!(charged);
        let timestamps = Timestamps::told_on(told());
        let hasher = match &shared {
            Some(shared) => Self::complete(shared, &config, &index, &store)?,
            None => config.hasher,
        };
        Ok(Self {
            index,
            index_rule: rule,
            store,
            hasher,
            item_size_max: config.item_size_max,
            evicts: config.evicts,
            removals: config.listener.map(Removals::new),
            counters: Registry::default(),
            handles: AtomicUsize::new(0),
            timestamps,
            splitter: Mutex::new(()),
            writer: Mutex::new(()),
            shared: shared.map(Arc::new),
        })
    }

    /// The file that other processes are to read, if the configuration asks for it.
    fn shared(config: &CuckooConfig) -> io::Result<Option<Shared>> {
        if config.shared && !D::CAN_BE_SHARED {
            let words = "the memory of this engine cannot be shared";
            return Err(io::Error::new(io::ErrorKind::Unsupported, words));
        }
        config.shared.then(Shared::new).transpose()
    }

    /// Completes the file that other processes are to read. Returns the hash function, which they know.
    fn complete(
        shared: &Shared,
        config: &CuckooConfig,
        index: &Index<D>,
        store: &Store<D::Placement>,
    ) -> io::Result<KeyHasher> {
        let seed = KeyHasher::random_seed();
        let mut plan = Plan {
            arena: store.arena.part(),
            piece_max: store.piece_max() as u64,
            item_size_max: config.item_size_max as u64,
            key_len_max: store.key_len_max(config.item_size_max) as u64,
            seed,
            ..Plan::default()
        };
        index.note_parts(&mut plan);
        shared.complete(&plan)?;
        Ok(KeyHasher::seeded(seed))
    }

    /// In the paper's design writers come one at a time.
    #[inline]
    fn one_writer(&self) -> Option<MutexGuard<'_, ()>> {
        D::ONE_WRITER.then(|| self.writer.lock())
    }
}

impl<D: Variant> HasStore for Cuckoo<D> {
    type Placement = D::Placement;

    #[inline(always)]
    fn store(&self) -> &Store<D::Placement> {
        &self.store
    }
}

impl<D: Variant> Engine for Cuckoo<D> {
    type Handle = CuckooHandle<D>;

    fn any(self: Arc<Self>) -> Arc<AnyEngine> {
        D::any(self)
    }

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
        let geometry = self.index.geometry();
        let buckets = geometry.allocated_buckets();
        EngineStats {
            index_bytes: Index::<D>::bytes(buckets) as u64,
            index_slots: buckets * D::SLOTS as u64,
            index_growing: geometry.growing,
            index_rule: Some(self.index_rule),
            untold: self.removals.as_ref().map_or(0, Removals::untold),
            ..engine_stats(&self.counters, &self.store, &self.timestamps)
        }
    }

    fn reset_stats(&self) {
        self.counters.reset();
        if let Some(removals) = &self.removals {
            removals.reset();
        }
    }

    fn flush(&self, now: Time, at: Time) {
        self.timestamps.flush(now, at);
    }

    fn number_from(&self, least: u64) {
        self.timestamps.number_from(least);
    }

    fn next_number(&self) -> u64 {
        self.timestamps.next_number()
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        self.store.set_limit(bytes, self.item_size_max)
    }

    fn item_size_max(&self) -> usize {
        self.item_size_max
    }

    fn key_len_max(&self) -> usize {
        self.store.key_len_max(self.item_size_max)
    }

    fn evicts(&self) -> bool {
        self.evicts
    }

    fn note_use(&self, address: u64) {
        let address = Address(address);
        if self.store.arena.contains(address) {
            self.store.recency.hit(address);
        }
    }

    fn sharing(&self) -> Option<Arc<dyn Sharing>> {
        let shared = self.shared.as_ref()?;
        Some(Arc::<Shared>::clone(shared))
    }
}

impl<D: Variant> Inspect for Cuckoo<D> {
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint {
        self.footprint_of(&self.shape(key_len, value_len, false))
    }

    fn report_evictions(&self, to: Arc<dyn Evictions>) {
        // A second listener is ignored: there is one server.
        let _ = self.store.evictions.set(to);
    }

    fn index_histogram(&self, sample: u64) -> Option<IndexHistogram> {
        // A store beside this count may move an item from a bucket already counted to one that is not.
        let buckets = self.index.geometry().live_buckets();
        let used = |word: &AtomicU64| word.load(Ordering::Relaxed) != SlotWord::EMPTY.0;
        let seen = IndexHistogram::take(buckets, sample, 0, |bucket| {
            let slots = self.index.bucket(bucket).iter();
            slots.filter(|word| used(word)).count()
        });
        Some(IndexHistogram {
            bucket: BucketKind::Slots {
                slots: D::SLOTS as u64,
                tag_bits: D::TAG_BITS,
            },
            ..seen
        })
    }
}

impl<D: Variant> Audit for Cuckoo<D> {
    fn audit(&self) -> Result<(), AuditError> {
        self.audit_all()
    }
}

const _: () = {
    assert!(PAGE.is_multiple_of(WORD));
};
