//! Doubling an index while it is used: the common part of all indexes that split their buckets one by one.
//!
//! An index doubles in place. Bucket `i` of `n` divides its items between itself and bucket `i + n`, by one more bit
//! of their hash, under its lock. Buckets are split in order; how far that has come is part of the
//! [`Geometry`], which is published under the lock of the bucket that it passes. Every store splits a few buckets,
//! and the background thread more. No operation waits for the whole.

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::mutex::{Mutex, MutexGuard};

use crate::geometry::Geometry;
use crate::reclaim::Reclaim;

/// An engine with such an index.
pub trait Growing: Reclaim {
    /// How many buckets there are, and how far a doubling has come.
    fn geometry(&self) -> Geometry;

    /// Publishes a new geometry.
    fn publish_geometry(&self, geometry: Geometry);

    /// Buckets of the largest index.
    fn buckets_max(&self) -> u64;

    /// Bytes of `buckets` buckets.
    fn bucket_bytes(buckets: u64) -> usize;

    /// Held by the one thread that begins a doubling or splits buckets.
    fn splitter(&self) -> &Mutex<()>;

    /// Splits the bucket `geometry.split`, and publishes under its lock that it is split.
    fn split_bucket(&self, geometry: Geometry);

    /// Starts loading what the next splits need.
    fn prefetch_split(&self, geometry: &Geometry) {
        let _ = geometry;
    }

    /// Begins a doubling, if memory allows and none is under way. False if there is none afterwards: there is no memory
    /// yet, or the index has its largest size.
    fn begin_growth(&self, local: &mut Self::Local, now: Time) -> bool {
        let Some(splitter) = self.splitter().try_lock() else {
            return true;
        };
        let geometry = self.geometry();
        if geometry.growing {
            return true;
        }
        if 2 * geometry.buckets() > self.buckets_max() {
            return false;
        }
        let added = Self::bucket_bytes(geometry.buckets());
        if self.store().pool().charge(added) {
            // No key's bucket changes yet: no bucket's lock is needed.
            self.publish_geometry(Geometry {
                growing: true,
                ..geometry
            });
            return true;
        }
        // A removed item may be told to a listener, which may store.
        drop(splitter);
        self.reclaim_for_index(local, now, added);
        // Where nothing is evicted, the store that needs the growth would be refused otherwise.
        !self.evicts() && self.store().pool().has_room_for(added) && self.begin_growth(local, now)
    }

    /// Splits up to `budget` buckets if the index is doubling. True if it still is afterwards.
    #[inline]
    fn split_if_growing(&self, budget: usize) -> bool {
        // A look without a lock: a thread that sees an old geometry helps one store later.
        self.geometry().growing && self.split(budget)
    }

    /// Splits up to `budget` buckets, unless another thread does. True if the index is still doubling afterwards.
    #[cold]
    fn split(&self, budget: usize) -> bool {
        match self.splitter().try_lock() {
            Some(splitter) => self.split_locked(&splitter, budget),
            None => true,
        }
    }

    /// The same, but waits for the thread that splits: it may have lost its core in between. The caller holds no lock.
    #[cold]
    fn split_waiting(&self, budget: usize) {
        self.split_locked(&self.splitter().lock(), budget);
    }

    /// Splits up to `budget` buckets. True if the index is still doubling afterwards.
    fn split_locked(&self, _splitter: &MutexGuard<'_, ()>, budget: usize) -> bool {
        for _ in 0..budget {
            let geometry = self.geometry();
            if !geometry.growing {
                return false;
            }
            if geometry.split < geometry.buckets() {
                self.prefetch_split(&geometry);
                self.split_bucket(geometry);
            }
            let geometry = self.geometry();
            if geometry.split == geometry.buckets() {
                // The mapping is the same before and after: no bucket's lock is needed.
                self.publish_geometry(Geometry {
                    mask: 2 * geometry.mask + 1,
                    growing: false,
                    split: 0,
                });
                return false;
            }
        }
        true
    }
}
