//! Doubling the table while it is used: see [`nuthatch_store::growth`] for the common part of all indexes.
//!
//! As in memcached a doubling begins when there are one and a half times as many items as buckets. In memcached the
//! maintenance thread moves the buckets. Here every insert moves two, and the background thread more, so a doubling
//! ends before the doubled table is crowded, even if no thread maintains it.
//!
//! Chains have no maximum length, so a table that may not grow only becomes slower: no item is ever evicted because
//! buckets are short.

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::mutex::Mutex;
use nuthatch_base::sync::shim::Ordering;

use super::Chained;
use super::index::Index;
use super::layout::NEXT;
use super::local::Local;
use nuthatch_store::geometry::Geometry;
use nuthatch_store::growth::Growing;
use nuthatch_store::memory::arena::Address;

/// Buckets moved by each insert while the table doubles: `n` are moved by `n / 2` inserts, when
/// the new table is full to one item a bucket.
const SPLITS_AN_INSERT: usize = if cfg!(loom) { 1 } else { 2 };

/// Items for each two buckets at which the table doubles (memcached: 1.5 a bucket).
const ITEMS_A_PAIR: u64 = 3;

impl Growing for Chained {
    fn geometry(&self) -> Geometry {
        self.index.geometry()
    }

    fn publish_geometry(&self, geometry: Geometry) {
        self.index.publish(geometry);
    }

    fn buckets_max(&self) -> u64 {
        self.index.buckets_max()
    }

    fn bucket_bytes(buckets: u64) -> usize {
        Index::bytes(buckets)
    }

    fn splitter(&self) -> &Mutex<()> {
        &self.splitter
    }

    fn split_bucket(&self, geometry: Geometry) {
        let arena = &self.store.arena;
        let upper = geometry.split + geometry.buckets();
        let locked = self.index.lock_bucket(geometry.split);
        // In their order, behind the last item of either half.
        let mut last: [Option<Address>; 2] = [None; 2];
        let append =
            |half: usize, behind: Option<Address>, to: Option<Address>| match (behind, half) {
                (Some(behind), _) => NEXT.store(arena, behind, to),
                (None, 0) => locked.set_first(to),
                (None, _) => locked.set_first_of_upper(upper, to),
            };
        let mut at = locked.first();
        while let Some(address) = at {
            at = NEXT.load(arena, address);
            let half = usize::from(self.hash_of(address) & geometry.buckets() != 0);
            append(half, last[half], Some(address));
            last[half] = Some(address);
        }
        append(0, last[0], None);
        append(1, last[1], None);
        // Under the lock: a thread that takes it from now on sees it.
        self.index.publish(Geometry {
            split: geometry.split + 1,
            ..geometry
        });
    }
}

impl Chained {
    /// Begins a doubling if there are enough items, and memory allows.
    #[cold]
    pub(super) fn grow_if_crowded(&self, local: &mut Local, now: Time) {
        // Relaxed: a number to decide by, a few items out of date. A negative number, wrapped, counts as zero.
        let items = self.population.load(Ordering::Relaxed);
        let items = if items > u64::MAX / 2 { 0 } else { items };
        let geometry = self.index.geometry();
        if !geometry.growing && 2 * items > ITEMS_A_PAIR * geometry.buckets() {
            self.begin_growth(local, now);
        }
    }

    /// Moves a few buckets if the table is doubling.
    #[inline]
    pub(super) fn help_growth(&self) {
        self.split_if_growing(SPLITS_AN_INSERT);
    }

    /// The hash of the item in a chunk. The chunk is in a chain whose lock is held.
    pub(super) fn hash_of(&self, address: Address) -> u64 {
        match self.store.copy_key(address) {
            Some(key) => self.hasher.hash(key.bytes()),
            None => unreachable!("an item in a chain has a key (chained 4)"),
        }
    }
}
