//! Doubling the index while it is used.
//!
//! The table doubles in place: address space for the largest table is reserved at the start, and
//! bucket `i` of `n` divides its items between itself and bucket `i + n`, by one more bit of their
//! hash. Both halves lie on one stripe, so a split takes one lock; nothing can overflow, because
//! both halves together have twice the slots; and no item is ever out of the table.
//!
//! Splits go through the buckets in order. The thread whose insert found the table full starts the
//! doubling; from then on every store, and the background thread, splits a few buckets, so that the
//! whole is done long before the new half fills. Nobody waits for it.
//!
//! Which buckets are split is one number, `split`, stored under the lock of the bucket that it
//! passes. A reader loads it after its snapshot (see [`Index::geometry`](super::index::Index)).

use nuthatch_sync::clock::Time;
use nuthatch_sync::shim::Ordering;

use super::Cuckoo;
use super::index::{Index, Position};
use super::layout::{Design, Geometry, Slot};
use super::local::Local;
use crate::prefetch;

/// Buckets that each store splits while the table doubles. Two would do: a doubling starts when 3 %
/// of the slots are free, and an eighth of `n` stores suffice to split `n` buckets.
const SPLITS_A_STORE: usize = if cfg!(loom) { 1 } else { 8 };

/// The index may take one part in so many of the memory if pages must be taken from items for it.
const SHARE_OF_MEMORY: usize = 8;

/// Buckets of the new half that are backed with memory at a time: 8 MiB.
const WARM_BUCKETS: u64 = 1 << 17;

/// Chunks that a store empties for an index that waits for memory.
const DRAINED_A_STORE: usize = 32;

impl<D: Design> Cuckoo<D> {
    /// Begins a doubling, if memory allows, or helps the one that is under way. False if the table
    /// must stay as it is.
    pub(super) fn start_growth(&self, local: &Local, now: Time) -> bool {
        let Ok(splitter) = self.splitter.try_lock() else {
            return true;
        };
        let geometry = self.index.geometry();
        if !geometry.growing {
            let added = Index::<D>::bytes(geometry.buckets());
            if 2 * geometry.buckets() > self.index.buckets_max() {
                return false;
            }
            if !self.store.pool().charge(added) {
                // What is emptied may have a listener, which may store.
                drop(splitter);
                self.save_for_growth(local, now, added);
                return false;
            }
            // The mapping does not change yet: no lock is needed.
            self.index.publish(Geometry {
                growing: true,
                ..geometry
            });
        }
        drop(splitter);
        self.help_growth();
        true
    }

    /// Empties pages for the index step by step, while it is small beside the items.
    fn save_for_growth(&self, local: &Local, now: Time, bytes: usize) {
        if self.evicts && 2 * bytes <= self.store.pool().limit() / SHARE_OF_MEMORY {
            self.store.pool().earmark(bytes);
            self.shrink(local, now, DRAINED_A_STORE);
        }
    }

    /// Splits a few buckets if the table is doubling.
    #[inline]
    pub(super) fn help_growth(&self) {
        // A look without a lock: who sees an old geometry helps one store later.
        self.split_if_growing(SPLITS_A_STORE);
    }

    /// Splits up to `budget` buckets if the table is doubling. True if it still is afterwards.
    #[inline]
    pub(super) fn split_if_growing(&self, budget: usize) -> bool {
        self.index.geometry().growing && self.split(budget)
    }

    /// Backs what the doubling will soon write to with memory: for the background thread, which may
    /// wait.
    pub(super) fn warm_growth(&self) {
        let geometry = self.index.geometry();
        if geometry.growing {
            let next = geometry.buckets() + geometry.split;
            self.index
                .populate(next, WARM_BUCKETS.min(2 * geometry.buckets() - next));
        }
    }

    /// Splits up to `budget` buckets, unless somebody else is at it. True if the table is still
    /// doubling afterwards.
    #[cold]
    fn split(&self, budget: usize) -> bool {
        let Ok(_splitter) = self.splitter.try_lock() else {
            return true;
        };
        for _ in 0..budget {
            let geometry = self.index.geometry();
            if !geometry.growing {
                return false;
            }
            self.prefetch_split(&geometry);
            self.split_bucket(geometry);
        }
        let geometry = self.index.geometry();
        if geometry.growing && geometry.split == geometry.buckets() {
            // The mapping is the same before and after: no lock is needed.
            let doubled = Geometry {
                mask: 2 * geometry.mask + 1,
                growing: false,
                split: 0,
            };
            self.index.publish(doubled);
            return false;
        }
        geometry.growing
    }

    /// Starts loading what later splits need: items of the bucket two ahead, slots of four ahead.
    fn prefetch_split(&self, geometry: &Geometry) {
        let bucket = |ahead: u64| (geometry.split + ahead).min(geometry.buckets() - 1);
        prefetch::soon(self.index.address(bucket(4)));
        prefetch::soon(self.index.address(bucket(4) + geometry.buckets()));
        for word in self.index.bucket(bucket(2)) {
            let slot = Slot(word.load(Ordering::Relaxed));
            if !slot.is_empty() {
                prefetch::soon(self.store.arena.address(slot.chunk::<D>()));
            }
        }
    }

    /// Splits the next bucket.
    fn split_bucket(&self, geometry: Geometry) {
        if geometry.split == geometry.buckets() {
            return;
        }
        let (low, high) = (geometry.split, geometry.split + geometry.buckets());
        let _guard = self.index.lock_bucket(low);
        for slot in 0..D::SLOTS {
            let from = Position { bucket: low, slot };
            let item = self.index.load(from);
            if !item.is_empty() && self.belongs(item, high, &geometry) {
                self.index.store(Position { bucket: high, slot }, item);
                self.index.store(from, Slot::EMPTY);
            }
        }
        // Under the lock: whoever takes a snapshot of this stripe from now on sees it.
        self.index.publish(Geometry {
            split: geometry.split + 1,
            ..geometry
        });
    }

    /// True if an item of a bucket being split goes to its upper half. Only the key tells: one of
    /// its two positions falls into this bucket, and that position's next bit decides.
    fn belongs(&self, item: Slot, high: u64, geometry: &Geometry) -> bool {
        let Some(place) = self.place_of(item.chunk::<D>()) else {
            return false;
        };
        let mask = 2 * geometry.buckets() - 1;
        [place.first, place.second]
            .iter()
            .any(|full| full & mask == high)
    }
}
