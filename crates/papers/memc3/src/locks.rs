//! How threads keep out of each other's way: not at all, by one lock, by locks of buckets, by versions.

use std::cell::Cell;
use std::marker::PhantomData;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_base::sync::spinlock::SpinLock;
use nuthatch_base::sync::stripes::Stripes;

/// Locks of an index.
pub trait Locks {
    /// For an index of so many buckets.
    fn new(buckets: u64) -> Self;

    /// What `read` found in two buckets while nobody changed them. It may be called again.
    fn read<T>(&self, one: u64, other: u64, read: impl FnMut() -> T) -> T;

    /// Changes two buckets while nobody else reads or changes them.
    fn change<T>(&self, one: u64, other: u64, change: impl FnOnce() -> T) -> T;
}

/// Locks that let one thread at a time insert and remove.
pub trait Writers: Locks {
    /// Runs while no other thread inserts or removes.
    fn exclusive<T>(&self, write: impl FnOnce() -> T) -> T;
}

/// No locks. Its index cannot be shared by threads.
pub struct NoLocks(PhantomData<Cell<()>>);

impl Locks for NoLocks {
    fn new(_: u64) -> Self {
        Self(PhantomData)
    }

    #[inline(always)]
    fn read<T>(&self, _: u64, _: u64, mut read: impl FnMut() -> T) -> T {
        read()
    }

    #[inline(always)]
    fn change<T>(&self, _: u64, _: u64, change: impl FnOnce() -> T) -> T {
        change()
    }
}

impl Writers for NoLocks {
    #[inline(always)]
    fn exclusive<T>(&self, write: impl FnOnce() -> T) -> T {
        write()
    }
}

/// One lock for all, as in memcached at the time.
pub struct OneLock(Mutex<()>);

impl Locks for OneLock {
    fn new(_: u64) -> Self {
        Self(Mutex::new(()))
    }

    #[inline]
    fn read<T>(&self, _: u64, _: u64, mut read: impl FnMut() -> T) -> T {
        let _held = self.0.lock();
        read()
    }

    #[inline]
    fn change<T>(&self, _: u64, _: u64, change: impl FnOnce() -> T) -> T {
        let _held = self.0.lock();
        change()
    }
}

/// A lock for each bucket, shared with others of the same remainder: as many as there are versions.
pub struct BucketLocks {
    locks: Box<[SpinLock<()>]>,
    writer: Mutex<()>,
}

impl BucketLocks {
    /// Runs under the locks of two buckets, which may be one.
    #[inline(always)]
    fn locked<T>(&self, one: u64, other: u64, run: impl FnOnce() -> T) -> T {
        let lock = |bucket: u64| bucket as usize & (self.locks.len() - 1);
        let (one, other) = (lock(one), lock(other));
        // In index order, so that no circle of waiting threads can form.
        let _low = self.locks[one.min(other)].lock();
        let _high = (one != other).then(|| self.locks[one.max(other)].lock());
        run()
    }
}

impl Locks for BucketLocks {
    fn new(buckets: u64) -> Self {
        let count = Stripes::MEMC3.min(buckets as usize);
        Self {
            locks: (0..count).map(|_| SpinLock::new(())).collect(),
            writer: Mutex::new(()),
        }
    }

    #[inline]
    fn read<T>(&self, one: u64, other: u64, mut read: impl FnMut() -> T) -> T {
        self.locked(one, other, &mut read)
    }

    #[inline]
    fn change<T>(&self, one: u64, other: u64, change: impl FnOnce() -> T) -> T {
        self.locked(one, other, change)
    }
}

impl Writers for BucketLocks {
    #[inline]
    fn exclusive<T>(&self, write: impl FnOnce() -> T) -> T {
        let _held = self.writer.lock();
        write()
    }
}

/// Versions, which readers compare before and after. Only for pairs of buckets on two stripes, such as a key's two are.
pub struct Versions {
    stripes: Stripes,
    writer: Mutex<()>,
}

impl Locks for Versions {
    fn new(buckets: u64) -> Self {
        Self {
            stripes: Stripes::new(Stripes::MEMC3.min(buckets as usize)),
            writer: Mutex::new(()),
        }
    }

    #[inline(always)]
    fn read<T>(&self, one: u64, other: u64, mut read: impl FnMut() -> T) -> T {
        let pair = self.stripes.pair(one, other);
        loop {
            let seen = self.stripes.snapshot(pair);
            let found = read();
            if self.stripes.unchanged(&seen) {
                return found;
            }
        }
    }

    #[inline]
    fn change<T>(&self, one: u64, other: u64, change: impl FnOnce() -> T) -> T {
        let _held = self.stripes.lock(self.stripes.pair(one, other));
        change()
    }
}

impl Writers for Versions {
    #[inline]
    fn exclusive<T>(&self, write: impl FnOnce() -> T) -> T {
        let _held = self.writer.lock();
        write()
    }
}
