//! The locks of LockHash: what it asks of a lock, and Anderson's.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use nuthatch_base::sync::mutex::MutexGuard;
use nuthatch_base::sync::shim::{AtomicU64, Ordering, spin};
use nuthatch_base::sync::spinlock::SpinLock;

use super::PartitionLock;

/// A lock around a value.
pub trait Lock<T>: Send + Sync + 'static {
    /// The name of LockHash with such locks.
    const ENGINE: &'static str;
    /// The right to use the value, until it is dropped.
    type Guard<'a>: DerefMut<Target = T>
    where
        Self: 'a;

    /// An unlocked lock, at which about so many threads meet.
    fn new(value: T, threads: usize) -> Self;

    /// Locks it, and gives access to the value.
    fn lock(&self) -> Self::Guard<'_>;

    /// Locks it unless a thread holds it or waits for it.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;

    /// Bytes of such a lock and its value in an array.
    fn bytes(threads: usize) -> usize;
}

impl<T: Send + 'static> Lock<T> for SpinLock<T> {
    const ENGINE: &'static str = "lockhash";
    type Guard<'a> = MutexGuard<'a, T>;

    fn new(value: T, _threads: usize) -> Self {
        Self::new(value)
    }

    #[inline(always)]
    fn lock(&self) -> MutexGuard<'_, T> {
        self.lock()
    }

    #[inline(always)]
    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.try_lock()
    }

    fn bytes(_threads: usize) -> usize {
        size_of::<PartitionLock<Self>>()
    }
}

/// Anderson's lock: an array of places in a queue. CPHash's authors compare it with the spinlock (section 6.2): a thread
/// waits at a line of its own, so a release disturbs only the next one, but even a lock that nobody else wants takes two
/// lines, the queue's end and a place, and its release a third.
///
/// ```text
///  next: 7                                       ticket 7 is the next to be drawn
///  places:   | 4 | 5 | 2 | 3 |                   a place names the ticket that may enter there
///                  ^
///                  the holder drew 5; 6 waits at the next place until it is named there
/// ```
///
/// In Anderson's array a place is a flag, and more threads than places would let two in. Here it names a ticket: then
/// some of them share a place and its line, and nothing else changes. Waiting threads spin, then yield. None parks: the
/// queue is strict, so a thread that waits for a core holds up all behind it.
///
/// Invariants:
/// 1. A ticket is drawn once. Only the thread that drew the ticket named last holds the lock.
/// 2. Only the holder writes a place: it names the ticket behind its own, when it leaves.
/// 3. So tickets are named one after the other, and a place names the next of its tickets only once the threads with the
///    earlier ones have left.
#[derive(Debug)]
pub struct AndersonLock<T> {
    /// The next ticket to be drawn.
    next: Line,
    /// A power of two.
    places: Box<[Line]>,
    value: UnsafeCell<T>,
}

/// A number on a line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU64);

/// The right to use an [`AndersonLock`]'s value.
pub struct AndersonGuard<'a, T> {
    lock: &'a AndersonLock<T>,
    ticket: u64,
    /// Shared between threads only as the value may be.
    value: PhantomData<&'a mut T>,
}

impl<'a, T> AndersonGuard<'a, T> {
    /// Of the ticket that was named.
    #[inline(always)]
    fn new(lock: &'a AndersonLock<T>, ticket: u64) -> Self {
        Self {
            lock,
            ticket,
            value: PhantomData,
        }
    }
}

/// The places of a lock at which so many threads meet.
fn places(threads: usize) -> usize {
    threads.max(1).next_power_of_two()
}

// SAFETY: the value is only accessible through a guard, of which there is one at a time (invariant 1). Each next holder
// sees what the last one wrote: `drop` names its ticket by a Release store, which it has read with Acquire.
unsafe impl<T: Send> Sync for AndersonLock<T> {}

impl<T> AndersonLock<T> {
    /// The place of a ticket.
    #[inline(always)]
    fn place(&self, ticket: u64) -> &AtomicU64 {
        &self.places[ticket as usize & (self.places.len() - 1)].0
    }

    /// True if a ticket may enter.
    #[inline(always)]
    fn is_named(&self, ticket: u64) -> bool {
        // Acquire: pairs with the Release of the last holder's `drop`.
        self.place(ticket).load(Ordering::Acquire) == ticket
    }
}

impl<T: Send + 'static> Lock<T> for AndersonLock<T> {
    const ENGINE: &'static str = "lockhash-anderson";
    type Guard<'a> = AndersonGuard<'a, T>;

    fn new(value: T, threads: usize) -> Self {
        Self {
            next: Line::default(),
            // All name ticket 0, whose place is the first: so the others name none of their own tickets.
            places: (0..places(threads)).map(|_| Line::default()).collect(),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    fn lock(&self) -> AndersonGuard<'_, T> {
        // Relaxed: the ticket's place orders everything else.
        let ticket = self.next.0.fetch_add(1, Ordering::Relaxed);
        let mut turn = 0;
        while !self.is_named(ticket) {
            spin(turn);
            turn = turn.saturating_add(1);
        }
        AndersonGuard::new(self, ticket)
    }

    #[inline]
    fn try_lock(&self) -> Option<AndersonGuard<'_, T>> {
        // Relaxed, twice: as in `lock`. The ticket that is named cannot enter elsewhere before it is drawn.
        let ticket = self.next.0.load(Ordering::Relaxed);
        let free = self.is_named(ticket);
        let draw = || {
            let next = &self.next.0;
            next.compare_exchange(ticket, ticket + 1, Ordering::Relaxed, Ordering::Relaxed)
        };
        // Not made if there is none to drop.
        (free && draw().is_ok()).then(|| AndersonGuard::new(self, ticket))
    }

    fn bytes(threads: usize) -> usize {
        size_of::<PartitionLock<Self>>() + places(threads) * size_of::<Line>()
    }
}

impl<T> Deref for AndersonGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this is the only guard (invariant 1), and borrowed.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for AndersonGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and borrowed uniquely.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for AndersonGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let next = self.ticket + 1;
        // Release: pairs with the Acquire in `is_named`.
        self.lock.place(next).store(next, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn more_threads_than_places_lose_nothing() {
        for places in [1, 2, 16] {
            let lock = Arc::new(AndersonLock::new(0_u64, places));
            let threads: Vec<_> = (0..8)
                .map(|thread| {
                    let lock = Arc::clone(&lock);
                    std::thread::spawn(move || {
                        let mut done = 0;
                        while done < 2_000 {
                            let guard = match (thread + done) % 3 {
                                0 => lock.try_lock(),
                                _ => Some(lock.lock()),
                            };
                            if let Some(mut guard) = guard {
                                *guard += 1;
                                done += 1;
                            } else {
                                std::thread::yield_now();
                            }
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().expect("no thread panics");
            }
            assert_eq!(*lock.lock(), 8 * 2_000);
        }
    }

    #[test]
    fn what_is_held_is_not_locked_again() {
        let lock = AndersonLock::new(7, 2);
        for _ in 0..5 {
            let guard = lock.lock();
            assert!(lock.try_lock().is_none());
            drop(guard);
            assert!(lock.try_lock().is_some_and(|value| *value == 7));
        }
    }

    #[test]
    fn a_holder_that_panicked_locks_nobody_out() {
        let lock = Arc::new(AndersonLock::new(7, 2));
        let other = Arc::clone(&lock);
        let panicked = std::thread::spawn(move || {
            let _guard = other.lock();
            panic!("on purpose");
        });
        assert!(panicked.join().is_err());
        assert_eq!(*lock.lock(), 7);
    }
}
