//! Doubling the index while it is used: see [`nuthatch_store::growth`] for the common part of all indexes.
//!
//! Both halves of a bucket lie on one stripe, so a split takes one lock. Nothing can overflow, because both halves
//! together have twice the slots. No item is ever out of the table. The thread whose insert found the table full starts
//! the doubling, and the doubling ends long before the new half fills.
//!
//! A reader loads the geometry after its snapshot (see [`Index::geometry`](super::index::Index)).

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::mutex::Mutex;
use nuthatch_base::sync::shim::Ordering;

use super::Cuckoo;
use super::index::{Index, Position};
use super::layout::{Geometry, SlotWord, Variant};
use super::local::Local;
use nuthatch_store::growth::Growing;
use nuthatch_store::prefetch;

/// Buckets that each store splits while the table doubles. Two would do: a doubling starts when 3 %
/// of the slots are free, and an eighth of `n` stores suffice to split `n` buckets.
const SPLITS_A_STORE: usize = if cfg!(loom) { 1 } else { 8 };

/// Buckets of the new half that are backed with memory at a time: 8 MiB.
const WARM_BUCKETS: u64 = 1 << 17;

impl<D: Variant> Growing for Cuckoo<D> {
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
        Index::<D>::bytes(buckets)
    }

    fn splitter(&self) -> &Mutex<()> {
        &self.splitter
    }

    fn split_bucket(&self, geometry: Geometry) {
        let (low, high) = (geometry.split, geometry.split + geometry.buckets());
        let _guard = self.index.lock_bucket(low);
        for slot in 0..D::SLOTS {
            let from = Position { bucket: low, slot };
            let item = self.index.load(from);
            if !item.is_empty() && self.belongs(item, high, &geometry) {
                self.index.store(Position { bucket: high, slot }, item);
                self.index.store(from, SlotWord::EMPTY);
            }
        }
        // Under the lock: a reader that takes a snapshot of this stripe from now on sees it.
        self.index.publish(Geometry {
            split: geometry.split + 1,
            ..geometry
        });
    }

    /// Prefetches the items of the bucket two ahead, and the slots of the one four ahead.
    fn prefetch_split(&self, geometry: &Geometry) {
        let bucket = |ahead: u64| (geometry.split + ahead).min(geometry.buckets() - 1);
        prefetch::soon(self.index.address(bucket(4)));
        prefetch::soon(self.index.address(bucket(4) + geometry.buckets()));
        for word in self.index.bucket(bucket(2)) {
            let slot = SlotWord(word.load(Ordering::Relaxed));
            if !slot.is_empty() {
                prefetch::soon(self.store.arena.pointer(slot.address::<D>()));
            }
        }
    }
}

impl<D: Variant> Cuckoo<D> {
    /// Begins a doubling, or helps the one that is under way. False if there is none.
    pub(super) fn start_growth(&self, local: &mut Local, now: Time) -> bool {
        let begun = self.begin_growth(local, now);
        self.help_growth();
        begun
    }

    /// Splits a few buckets if the table is doubling.
    #[inline]
    pub(super) fn help_growth(&self) {
        self.split_if_growing(SPLITS_A_STORE);
    }

    /// The same if there is no path: each search finds a few buckets more split than the one before it.
    pub(super) fn await_growth(&self) {
        self.split_waiting(SPLITS_A_STORE);
    }

    /// Backs the buckets that the doubling will soon write to with memory: for the background thread, which may wait.
    pub(super) fn warm_growth(&self) {
        let geometry = self.index.geometry();
        if geometry.growing {
            let next = geometry.buckets() + geometry.split;
            self.index
                .populate(next, WARM_BUCKETS.min(2 * geometry.buckets() - next));
        }
    }

    /// True if an item of a bucket being split goes to its upper half. This needs the key: one of its two positions
    /// falls into this bucket, and that position's next bit decides.
    fn belongs(&self, item: SlotWord, high: u64, geometry: &Geometry) -> bool {
        let Some(place) = self.candidates_of(item.address::<D>()) else {
            return false;
        };
        let mask = 2 * geometry.buckets() - 1;
        [place.first, place.second]
            .iter()
            .any(|full| full & mask == high)
    }
}
