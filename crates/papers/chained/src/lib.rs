//! Chaining under locks: the table of classic memcached, and the baseline of MemC3.
//!
//! A bucket is one word, the head of a list of items. A request locks its key's bucket, follows the list from item to
//! item, each a memory miss of its own, and does all its work under the lock. Three designs of it have names (see
//! [`ChainedConfig::name`]):
//!
//! * `chained-global`: one lock for the table, strict LRU: memcached 1.4, "chaining+LRU" in MemC3's
//!   Figure 8;
//! * `chained`: a lock for every few buckets, strict LRU under a lock a class: memcached as it became;
//! * `chained-clock`: bucket locks and CLOCK, "chaining+CLOCK" in Figure 8.
//!
//! ```text
//!   buckets      items, wherever the slab store put them
//!  | 0 | ----> | next | header | key, value |
//!  | 1 | ----> | next | header | key, value | --next--> | next | header | key, value |
//!  | 2 |  none
//!  | 3 | ...
//!                                          a class's list:  newest <--newer/older--> oldest
//! ```
//!
//! Differences from memcached: classes, pages and large values are those of the project's
//! [store](nuthatch_store::store), so memory moves between classes without a rebalancer's thread. A value is copied
//! under the lock, where memcached counts references and copies later (large values are pinned, which is the same). A
//! table doubles in place, helped along by stores. A hit moves its item to the head of its list every time, where
//! memcached does so once a minute. Items in a page that moves to another class are evicted with it, where memcached
//! moves some of them. (A page many of whose items were used lately does not move.)
//!
//! Locks, in the order in which they are taken: a bucket's; a list's; the store's (pool, class, pins). No thread holds
//! two of a kind. No memory is allocated, and so nothing evicted, under any of them. With one lock for the table no
//! thread ever waits for the list's lock; it is needed for the look at the oldest item before the table is locked.
//!
//! Invariants (on top of those of the [store](nuthatch_store::store)):
//! 1. An item is in exactly one chain, that of its key's bucket.
//! 2. A key has at most one item.
//! 3. With strict LRU, an item in a chain is in the list of its class (a large value in that of the
//!    largest class, whose chunks it holds), and items in lists are in chains. It comes into both, and
//!    leaves both, under its bucket's lock.
//! 4. A chain, and an item in it, is changed only under its bucket's lock.
//! 5. An item that is in the table is in its bucket's chain whenever that bucket's lock is free: a
//!    split moves a chain under one lock.
//! 6. The flush bar never goes back; items whose sequence is lower are dead.
//!
//! Linearization points: the release of the bucket's lock; of a flush, the store to the flush bar ([`Timestamps`]). An
//! eviction or expiry is a removal of its own.

mod audit;
pub mod config;

mod evict;
mod find;
mod grow;
pub mod handle;
mod histogram;
// Public only for the models: the index does not check its callers' bucket numbers.
#[cfg(loom)]
pub mod index;
#[cfg(not(loom))]
mod index;
mod layout;
mod local;
mod read;
mod visit;
mod write;

use std::io;
use std::sync::Arc;

use nuthatch_base::hash::sizing;
use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::mutex::Mutex;
use nuthatch_base::sync::shim::AtomicU64;

pub use config::{ChainedConfig, Locks};
use handle::ChainedHandle;
use index::Index;
use nuthatch_engine::counters::Registry;
use nuthatch_engine::index_stats::IndexHistogram;
use nuthatch_engine::stats::EngineStats;
use nuthatch_engine::{
    AnyEngine, Audit, AuditError, Engine, Evictions, Footprint, Inspect, KeyHasher, LimitError,
};
use nuthatch_store::count::{COUNTS, engine_stats};
use nuthatch_store::eviction::slab::Policy;
pub use nuthatch_store::eviction::slab::{POLICIES, PolicyKind, clock, lru};
use nuthatch_store::item::Header;
use nuthatch_store::memory::arena::Address;
use nuthatch_store::memory::sizes::Sizes;
use nuthatch_store::slab::Slab;
use nuthatch_store::store::{HasStore, Store};
use nuthatch_store::table::Table;
use nuthatch_store::timestamps::Timestamps;

/// Buckets of the smallest table.
const BUCKETS_MIN: u64 = if cfg!(loom) { 2 } else { 64 };

/// The chained engine.
pub struct Chained {
    index: Index,
    /// The rule that decided the index's size at the start.
    index_rule: sizing::IndexRule,
    store: Store<Slab>,
    hasher: KeyHasher,
    name: &'static str,
    item_size_max: usize,
    evicts: bool,
    counters: Registry<COUNTS>,
    timestamps: Timestamps,
    /// Items in the table, without the changes that threads have not published yet: see [`local`].
    population: AtomicU64,
    /// Held by the one thread that splits buckets.
    splitter: Mutex<()>,
}

impl Chained {
    /// An engine. Errors: an impossible configuration, or too little address space.
    pub fn new(config: ChainedConfig) -> io::Result<Self> {
        config.check()?;
        let name = config.name();
        let sizes = Sizes::new(config.memory_limit, config.chunk_min, config.growth_factor);
        let limit_max = sizes
            .limit_max(config.memory_limit_max)
            .max(config.memory_limit);
        let (limit, front) = (config.memory_limit, layout::FRONT);
        let store = Store::<Slab>::new(limit, limit_max, sizes, front, config.eviction)?;
        let memory = config.memory_limit as u64;
        let items = config.initial_items.map(|items| items as u64);
        let sizing::IndexSize { buckets, rule, .. } =
            sizing::index(memory, items, sizing::IndexShape::CHAINS, BUCKETS_MIN);
        let buckets_max = (limit_max / 2 / Index::bytes(1)) as u64;
        let buckets_max = (1 << buckets_max.ilog2()).max(buckets);
        let index = Index::new(buckets, buckets_max, config.locks == Locks::Global)?;
        let charged = store.pool().charge(index.bytes_taken());
        debug_assert!(charged);
        Ok(Self {
            index,
            index_rule: rule,
            store,
            hasher: config.hasher,
            name,
            item_size_max: config.item_size_max,
            evicts: config.evicts,
            counters: Registry::default(),
            timestamps: Timestamps::default(),
            population: AtomicU64::new(0),
            splitter: Mutex::new(()),
        })
    }

    /// A get or a change hit the item: the caller holds its bucket's lock.
    fn hit(&self, address: Address, header: &Header) {
        self.store.hit(address, header);
        self.policy().hit(&self.store, address, header);
    }

    /// The order in which items leave.
    fn policy(&self) -> &dyn Policy {
        &*self.store.placement().policy
    }
}

impl HasStore for Chained {
    type Placement = Slab;

    fn store(&self) -> &Store<Slab> {
        &self.store
    }
}

impl Engine for Chained {
    type Handle = ChainedHandle;

    fn any(self: Arc<Self>) -> Arc<AnyEngine> {
        AnyEngine::new(self)
    }

    fn handle(self: &Arc<Self>) -> ChainedHandle {
        ChainedHandle::new(self)
    }

    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn stats(&self) -> EngineStats {
        let geometry = self.index.geometry();
        let buckets = geometry.allocated_buckets();
        EngineStats {
            index_bytes: Index::bytes(buckets) as u64,
            index_slots: buckets,
            index_growing: geometry.growing,
            index_rule: Some(self.index_rule),
            ..engine_stats(&self.counters, &self.store, &self.timestamps)
        }
    }

    fn reset_stats(&self) {
        self.counters.reset();
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
}

impl Inspect for Chained {
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint {
        self.footprint_of(&self.shape(key_len, value_len, false))
    }

    fn report_evictions(&self, to: Arc<dyn Evictions>) {
        // A second listener is ignored: there is one server.
        let _ = self.store.evictions.set(to);
    }

    fn index_histogram(&self, sample: u64) -> Option<IndexHistogram> {
        Some(self.histogram(sample))
    }
}

impl Audit for Chained {
    fn audit(&self) -> Result<(), AuditError> {
        self.audit_all()
    }
}
