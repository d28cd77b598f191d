//! Leases: the right to a value that one server thread at a time owns for long, and hands over on request.
//!
//! A partition of a table has a lease. Its owner holds the lease's lock all the time, so it works on the partition
//! without any synchronisation. Other threads only see which thread the owner is. A controller writes which thread is
//! to own it; the owner checks that between two lines of messages and hands over; the new owner takes the lock. The
//! rings of a partition's clients lie in the lease too: a client only refers to partitions, and notices nothing.
//!
//! ```text
//!  controller        owner 0                          owner 1
//!  assign(1) ------> is_called_away: yes
//!                    drops the guard
//!                    owner = 1  (hand_over) --------> take: owner is 1, takes the lock
//! ```
//!
//! An owner that goes to sleep releases its leases. While it sleeps, a client that would have to wake it may take a
//! lease for a moment and serve the messages there, its own among them: that is cheaper than waking a thread while
//! there is little to do. A client that finds the lease taken wakes the owner.
//!
//! Invariants:
//! 1. The value is touched only under the lock, and the lock is taken only by the thread that
//!    `owner` names, or for a moment while that one sleeps.
//! 2. `owner` is written only by the thread that it names, with the lock released: it never names a thread that has to
//!    wait for long.
//! 3. A message that a client announced before a hand-over is served by the old owner, or seen by the new one before it
//!    sleeps: the new one looks after it became the owner, and a client reads `owner` after its announcement and wakes
//!    the owner that it finds. If that is the old one although it has handed over, the client's fence came before the
//!    fence of the new owner's sleep.

use crate::sync::shim::{AtomicU32, Mutex, MutexGuard, Ordering};

/// A lease, with the value that its owner uses.
#[derive(Debug)]
pub struct Lease<T> {
    owner: AtomicU32,
    wanted: AtomicU32,
    value: Mutex<T>,
}

/// The right to use the value, for as long as the owner likes.
pub type LeaseGuard<'a, T> = MutexGuard<'a, T>;

impl<T> Lease<T> {
    /// A lease of the thread with this number.
    pub fn new(owner: u32, value: T) -> Self {
        Self {
            owner: AtomicU32::new(owner),
            wanted: AtomicU32::new(owner),
            value: Mutex::new(value),
        }
    }

    /// The owner: the thread to wake after an announcement.
    #[inline]
    pub fn owner(&self) -> u32 {
        // Relaxed: read behind the caller's announcement (invariant 3).
        self.owner.load(Ordering::Relaxed)
    }

    /// Its next owner.
    pub fn wanted(&self) -> u32 {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Controller: sets its next owner. The controller then announces this to the present owner.
    pub fn assign(&self, owner: u32) {
        // Relaxed: the reader needs nothing but the number.
        self.wanted.store(owner, Ordering::Relaxed);
    }

    /// Owner: true if it is to hand over.
    #[inline]
    pub fn is_called_away(&self, me: u32) -> bool {
        self.wanted.load(Ordering::Relaxed) != me
    }

    /// Owner: hands over, and returns the new owner, to which the caller announces it. The old owner must have finished
    /// its work (no answer may be unpublished).
    pub fn hand_over(&self, held: LeaseGuard<'_, T>) -> u32 {
        let next = self.wanted.load(Ordering::Relaxed);
        drop(held);
        // Release: pairs with the Acquire in `take`. After the lock is free, so that the next one
        // finds it so (invariant 2).
        self.owner.store(next, Ordering::Release);
        next
    }

    /// Takes the lease if `me` is its owner and does not hold it yet. A value that a panicking owner left behind has no
    /// owner: `None` for ever.
    pub fn take(&self, me: u32) -> Option<LeaseGuard<'_, T>> {
        // Acquire: pairs with the Release in `hand_over`.
        if self.owner.load(Ordering::Acquire) != me {
            return None;
        }
        self.value.lock().ok()
    }

    /// Takes the lease for a moment, if it is free: its owner was found asleep.
    pub fn borrow(&self) -> Option<LeaseGuard<'_, T>> {
        self.value.try_lock().ok()
    }

    /// True if an owner panicked while it held the value.
    #[cfg(not(loom))]
    pub fn is_abandoned(&self) -> bool {
        self.value.is_poisoned()
    }
}
