//! The order of stores, and who is dead by now.
//!
//! Every store has a sequence, which only ever rises: it is the item's cas, tells its age, and which
//! side of a flush it lies on. Each thread takes sequences in stocks, so that writers share no line.

use std::time::Duration;

use nuthatch_sync::clock::Time;
use nuthatch_sync::shim::{AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering};

use crate::item::Header;
use crate::request::Expiry;

/// Sequences that a thread takes at once, so that writers do not share a counter's cache line.
const STOCK: u64 = 1024;

/// A thread's unused sequences.
#[derive(Debug, Default)]
pub struct Sequences {
    next: u64,
    end: u64,
    /// The second in which it took them.
    second: u32,
}

/// When the items of one engine were stored, and which flushes and expiries they are subject to.
#[derive(Debug)]
pub struct Lifetimes {
    /// The next sequence that no thread has.
    sequence: AtomicU64,
    /// When which sequences were given out. Whoever gives out stocks or flushes holds its lock.
    marks: Mutex<Marks>,
    /// Items with a lower sequence are dead (flush_all). Never goes back.
    flush_before: AtomicU64,
    /// The tick at which a delayed flush takes effect; `u32::MAX` for none.
    flush_at: AtomicU32,
    /// 1 once an item with an expiry was stored or a flush happened: there is something to sweep.
    sweeping: AtomicU32,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            sequence: AtomicU64::new(1),
            marks: Mutex::new(Marks::default()),
            flush_before: AtomicU64::new(0),
            flush_at: AtomicU32::new(u32::MAX),
            sweeping: AtomicU32::new(0),
        }
    }
}

impl Lifetimes {
    /// The sequence of a store: unique, above `above` (that of the item it replaces) and above every
    /// flush. Sequences of one second lie above those of every second before.
    #[inline]
    pub fn next_sequence(&self, own: &mut Sequences, now: Time, above: u64) -> u64 {
        // Relaxed: a store beside a flush may take either side of it.
        let flushed = self.flush_before.load(Ordering::Relaxed);
        if own.next == own.end
            || own.next <= above
            || own.next < flushed
            || own.second != now.seconds()
        {
            self.take_stock(own, now);
        }
        own.next += 1;
        own.next - 1
    }

    fn take_stock(&self, own: &mut Sequences, now: Time) {
        let mut marks = self.marks();
        // Relaxed: only uniqueness is wanted of the counter. Under the lock, so that marks and
        // sequences rise together.
        let first = self.sequence.fetch_add(STOCK, Ordering::Relaxed);
        marks.add(first, now);
        own.next = first;
        own.end = first + STOCK;
        own.second = now.seconds();
    }

    /// Time since the item was stored, to the second.
    pub fn age(&self, header: &Header, now: Time) -> Duration {
        now.since(self.marks().time_of(header.sequence()))
    }

    /// True if an item may still be returned.
    #[inline(always)]
    pub fn is_live(&self, header: &Header, now: Time) -> bool {
        // Relaxed: a flush is visible to whoever asks after it returned (it ends in a SeqCst
        // store); a request that runs beside it may take either side.
        !header.is_expired(now) && header.sequence() >= self.flush_before.load(Ordering::Relaxed)
    }

    /// See [`Engine::flush`](crate::Engine::flush).
    pub fn flush(&self, now: Time, at: Time) {
        // One that is due but met no request yet is not replaced.
        self.apply_flush(now);
        let marks = self.marks();
        if at <= now {
            self.flush_now(&marks);
        }
        let awaited = if at <= now { u32::MAX } else { at.0 };
        // Release: as in `take_flush`.
        self.flush_at.store(awaited, Ordering::Release);
    }

    /// Puts a delayed flush into effect once its time has come. To be called before each batch: whoever
    /// comes back from it finds the items stored before that time dead, and stores above the bar.
    #[inline(always)]
    pub fn apply_flush(&self, now: Time) {
        // Acquire: pairs with the Release in `take_flush`: whoever sees that a flush is no longer awaited
        // sees its bar.
        if self.flush_at.load(Ordering::Acquire) <= now.0 {
            self.take_flush(now);
        }
    }

    /// One raises the bar, and only once; the others wait for it.
    #[cold]
    #[inline(never)]
    fn take_flush(&self, now: Time) {
        let marks = self.marks();
        // Relaxed: only changed under the lock.
        if self.flush_at.load(Ordering::Relaxed) <= now.0 {
            self.flush_now(&marks);
            // Release: pairs with the Acquire in `apply_flush`.
            self.flush_at.store(u32::MAX, Ordering::Release);
        }
    }

    /// Raises the bar above all sequences that were given out.
    fn flush_now(&self, _: &MutexGuard<'_, Marks>) {
        // Relaxed: given out under the same lock.
        let next = self.sequence.load(Ordering::Relaxed);
        // SeqCst: no later read of this thread passes it; pairs with the loads in `is_live`.
        self.flush_before.fetch_max(next, Ordering::SeqCst);
        self.sweeping.store(1, Ordering::Relaxed);
    }

    /// There is something for a sweep to find.
    pub fn note_expiry(&self, expiry: Expiry) {
        // Relaxed: the sweep will see it sooner or later.
        if expiry != Expiry::Never && self.sweeping.load(Ordering::Relaxed) == 0 {
            self.sweeping.store(1, Ordering::Relaxed);
        }
    }

    /// False as long as no item can have died.
    pub fn may_have_dead(&self) -> bool {
        self.sweeping.load(Ordering::Relaxed) != 0
    }

    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// When sequences were given out: an item's age without a time in its header.
#[derive(Debug, Default)]
struct Marks {
    /// First sequence of a second, and its time; both ascending.
    marks: Vec<(u64, Time)>,
}

impl Marks {
    /// Seconds remembered; beyond that, old ones become coarser.
    const MAX: usize = 8192;

    fn add(&mut self, sequence: u64, now: Time) {
        if self
            .marks
            .last()
            .is_some_and(|(_, last)| last.seconds() >= now.seconds())
        {
            return;
        }
        self.marks.push((sequence, now));
        if self.marks.len() > Self::MAX {
            // Every second one of the older half goes.
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number > Self::MAX / 2 || number % 2 == 1
            });
        }
    }

    /// When an item with this sequence was stored, to the second.
    fn time_of(&self, sequence: u64) -> Time {
        let after = self.marks.partition_point(|&(first, _)| first <= sequence);
        after
            .checked_sub(1)
            .map_or(Time(0), |index| self.marks[index].1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_the_second_and_stay_bounded() {
        let mut marks = Marks::default();
        assert_eq!(marks.time_of(5), Time(0));
        for second in 0..100_000_u32 {
            marks.add(u64::from(second) * 10, Time(second * 16));
            marks.add(u64::from(second) * 10 + 5, Time(second * 16 + 3));
        }
        assert!(marks.marks.len() <= Marks::MAX);
        assert_eq!(marks.time_of(999_999), Time(99_999 * 16));
        assert_eq!(marks.time_of(999_985), Time(99_998 * 16));
        assert!(marks.time_of(500_000).0 <= 50_000 * 16);
    }
}
