//! The index of the chained engine: buckets, their locks, and the geometry. It only has access to the first item of a
//! chain.
//!
//! The table doubles in place, a bucket at a time: address space for the largest table is reserved at the start, and
//! memcached's "new table" is the upper half here. Bucket `i` and the bucket `n` above it, with which it shares its
//! items, lie under one lock, so moving a bucket takes one lock.

use std::io;

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use nuthatch_store::geometry::Geometry;
use nuthatch_store::item::links::{pack, unpack};
use nuthatch_store::memory::arena::Address;
use nuthatch_store::memory::words::Words;
use nuthatch_store::prefetch;

/// The most locks: far more than threads, and they fit the second-level cache. Few in a model.
const LOCKS_MAX: usize = if cfg!(loom) { 2 } else { 4096 };

/// A lock in a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Padded(Mutex<()>);

/// The buckets of one table.
pub struct Index {
    words: Words,
    geometry: AtomicU64,
    buckets_max: u64,
    /// Bucket `b` belongs to lock `b mod locks`; their number is a power of two.
    locks: Box<[Padded]>,
}

/// The bucket of a key, locked.
pub struct LockedBucket<'a> {
    index: &'a Index,
    _guard: MutexGuard<'a, ()>,
    /// Its number, which does not change while the lock is held.
    pub bucket: u64,
}

impl Index {
    /// A table of `buckets` (a power of two) that can double up to `buckets_max`, under one lock or
    /// many.
    pub fn new(buckets: u64, buckets_max: u64, one_lock: bool) -> io::Result<Self> {
        assert!(buckets.is_power_of_two() && buckets_max.is_power_of_two());
        assert!(buckets <= buckets_max);
        let locks = if one_lock {
            1
        } else {
            LOCKS_MAX.min(buckets as usize)
        };
        let geometry = Geometry {
            mask: buckets - 1,
            growing: false,
            split: 0,
        };
        let words = Words::reserve_to_grow(buckets_max as usize)?;
        words.expect(buckets as usize);
        Ok(Self {
            words,
            geometry: AtomicU64::new(geometry.pack()),
            buckets_max,
            locks: (0..locks).map(|_| Padded::default()).collect(),
        })
    }

    /// Bytes of `buckets` buckets.
    pub fn bytes(buckets: u64) -> usize {
        buckets as usize * size_of::<u64>()
    }

    /// Bytes that it takes: all buckets of the doubling included, and its locks.
    pub fn bytes_taken(&self) -> usize {
        Self::bytes(self.geometry().allocated_buckets()) + size_of_val(&*self.locks)
    }

    /// Buckets it can grow to.
    pub fn buckets_max(&self) -> u64 {
        self.buckets_max
    }

    /// The geometry. A thread that must know the bucket of a key holds the lock; without it, the answer may be out of
    /// date.
    #[inline(always)]
    pub fn geometry(&self) -> Geometry {
        // Relaxed: if a bucket under the caller's lock was split, the thread that split it held this lock, and its
        // release shows the geometry that it stored under the lock. Splits of other buckets do not change the buckets
        // of the caller's keys.
        Geometry::unpack(self.geometry.load(Ordering::Relaxed))
    }

    /// Changes the geometry. Called by the one thread that splits, under the lock of the bucket that
    /// it has split, or when no key's bucket changes.
    pub fn publish(&self, geometry: Geometry) {
        if geometry.growing && geometry.split == 0 {
            self.words.expect(geometry.allocated_buckets() as usize);
        }
        // Relaxed: pairs with `geometry`, by way of the lock.
        self.geometry.store(geometry.pack(), Ordering::Relaxed);
    }

    /// Locks the bucket of the keys with this hash.
    #[inline]
    pub fn lock(&self, hash: u64) -> LockedBucket<'_> {
        let _guard = self.guard(hash);
        LockedBucket {
            index: self,
            bucket: self.geometry().locate(hash),
            _guard,
        }
    }

    /// Locks a bucket by its number, and with it the one that it is split into.
    pub fn lock_bucket(&self, bucket: u64) -> LockedBucket<'_> {
        LockedBucket {
            index: self,
            _guard: self.guard(bucket),
            bucket,
        }
    }

    #[inline]
    fn guard(&self, hash: u64) -> MutexGuard<'_, ()> {
        let lock = hash as usize & (self.locks.len() - 1);
        // A thread that panicked under a lock left a consistent table: the only code of a caller that runs there makes
        // the replies' room for a value.
        self.locks[lock].0.lock()
    }

    /// True if a thread holds the lock of a hash's bucket.
    #[cfg(test)]
    pub fn is_locked(&self, hash: u64) -> bool {
        self.locks[hash as usize & (self.locks.len() - 1)]
            .0
            .try_lock()
            .is_none()
    }

    /// Starts loading the bucket of a hash.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        let bucket = self.geometry().locate(hash) as usize;
        prefetch::soon(self.words.as_ptr().wrapping_add(bucket));
    }

    /// The first item of a hash's chain, as a hint.
    #[inline(always)]
    pub fn peek(&self, hash: u64) -> Option<Address> {
        self.first_of(self.geometry().locate(hash))
    }

    fn first_of(&self, bucket: u64) -> Option<Address> {
        unpack(self.words[bucket as usize].load(Ordering::Relaxed))
    }

    fn set_first_of(&self, bucket: u64, to: Option<Address>) {
        // Relaxed, as in `first_of`: both are under the bucket's lock, or a hint.
        self.words[bucket as usize].store(pack(to), Ordering::Relaxed);
    }
}

impl LockedBucket<'_> {
    /// The first item of the chain.
    #[inline(always)]
    pub fn first(&self) -> Option<Address> {
        self.index.first_of(self.bucket)
    }

    /// Makes another item the first.
    #[inline(always)]
    pub fn set_first(&self, to: Option<Address>) {
        self.index.set_first_of(self.bucket, to);
    }

    /// The same for the bucket that this one is being split into.
    pub fn set_first_of_upper(&self, upper: u64, to: Option<Address>) {
        debug_assert_eq!(
            (upper ^ self.bucket) as usize & (self.index.locks.len() - 1),
            0
        );
        self.index.set_first_of(upper, to);
    }
}
