//! Notes of when sequences were taken: they give the age of an item without a time in its header.
//!
//! Once a second a writer notes the next free sequence and the time. The time of a sequence is the time of the last
//! note whose sequence is not higher. Readers search the notes without a lock. A version tells them whether a writer
//! changed the notes meanwhile, as for buckets ([`stripes`](nuthatch_base::sync::stripes)).
//!
//! Invariants:
//! 1. The version is odd exactly while the notes are being changed. Only the thread that holds the lock changes them.
//! 2. While the version is even, the first `len` notes rise, by sequence and by time.
//! 3. The result of a search is used only if the version was even before it and the same after it.

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_base::sync::shim::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// Capacity in notes, 24 KiB. When the array is full, old notes become coarser.
const NOTES_MAX: usize = if cfg!(loom) { 4 } else { 2048 };

/// An old note is dropped if the gap that it leaves is at most this part of its age. The sum of two neighbouring gaps
/// is larger, so `2 * 64 * ln(T / 64) + 64` notes stay after `T` seconds: some 2000 at the end of the clock.
const PART: u32 = if cfg!(loom) { 1 } else { 64 };

/// Searches without a lock. If a writer changed the notes during each of them, the reader takes the lock for the next
/// search. Notes change once a second.
const SEARCHES_MAX: usize = 3;

/// The first sequence of each second.
#[derive(Debug)]
pub struct Ages {
    version: AtomicU32,
    /// The second noted last.
    second: AtomicU32,
    len: AtomicUsize,
    sequences: Box<[AtomicU64]>,
    times: Box<[AtomicU32]>,
    writer: Mutex<()>,
}

impl Default for Ages {
    fn default() -> Self {
        Self {
            version: AtomicU32::new(0),
            second: AtomicU32::new(0),
            len: AtomicUsize::new(0),
            sequences: (0..NOTES_MAX).map(|_| AtomicU64::new(0)).collect(),
            times: (0..NOTES_MAX).map(|_| AtomicU32::new(0)).collect(),
            writer: Mutex::new(()),
        }
    }
}

impl Ages {
    /// Makes sure that this second is noted: sequences from `next` on are taken in it or later. The caller calls this
    /// before it takes a sequence, so that the sequences of one second are above those of every earlier second.
    #[inline]
    pub fn note(&self, now: Time, next: &AtomicU64) {
        // Acquire: pairs with the Release in `write`: the sequence that the caller takes next is not below the note.
        if self.second.load(Ordering::Acquire) < now.seconds() {
            self.write(now, next);
        }
    }

    #[cold]
    fn write(&self, now: Time, next: &AtomicU64) {
        let writer = self.lock();
        // Relaxed, here and below: only the holder of the lock changes these fields.
        if self.second.load(Ordering::Relaxed) >= now.seconds() {
            return;
        }
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        // Release fence: pairs with the Acquire fence in `search`: a search that sees a note written below sees the
        // odd version, or a later one.
        fence(Ordering::Release);
        if self.len.load(Ordering::Relaxed) == NOTES_MAX {
            self.thin(&writer, now);
        }
        let len = self.len.load(Ordering::Relaxed);
        debug_assert!(len < NOTES_MAX);
        if len < NOTES_MAX {
            // Relaxed: sequences that other threads take at this moment may count for either second.
            self.put(len, next.load(Ordering::Relaxed), now.0);
            self.len.store(len + 1, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `search`, which then sees these notes.
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
        // Release: pairs with the Acquire in `note`.
        self.second.store(now.seconds(), Ordering::Release);
    }

    /// Drops notes that the precision of ages does not need. The first and the last stay.
    fn thin(&self, _: &MutexGuard<'_, ()>, now: Time) {
        let time = |number: usize| self.times[number].load(Ordering::Relaxed);
        let mut kept = 1;
        for number in 1..NOTES_MAX {
            let dispensable = |next| time(next) - time(kept - 1) <= (now.0 - time(number)) / PART;
            if number + 1 == NOTES_MAX || !dispensable(number + 1) {
                let sequence = self.sequences[number].load(Ordering::Relaxed);
                self.put(kept, sequence, time(number));
                kept += 1;
            }
        }
        self.len.store(kept, Ordering::Relaxed);
    }

    fn put(&self, number: usize, sequence: u64, tick: u32) {
        self.sequences[number].store(sequence, Ordering::Relaxed);
        self.times[number].store(tick, Ordering::Relaxed);
    }

    /// The time at which a sequence was taken, to the second.
    pub fn time_of(&self, sequence: u64) -> Time {
        for _ in 0..SEARCHES_MAX {
            if let Some(time) = self.search(sequence) {
                return time;
            }
        }
        let _no_writer = self.lock();
        self.found(sequence)
    }

    /// [`Ages::time_of`] without the lock; `None` if a writer changed the notes meanwhile.
    fn search(&self, sequence: u64) -> Option<Time> {
        // Acquire: pairs with the Release in `write`.
        let version = self.version.load(Ordering::Acquire);
        if version & 1 != 0 {
            return None;
        }
        let time = self.found(sequence);
        // Acquire fence: pairs with the Release fence in `write`.
        fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == version).then_some(time)
    }

    /// The result of a search. It may be anything if the notes are being changed.
    fn found(&self, sequence: u64) -> Time {
        let len = self.len.load(Ordering::Relaxed);
        let after = self.sequences[..len].partition_point(|first| {
            // Relaxed: the caller checks the version.
            first.load(Ordering::Relaxed) <= sequence
        });
        match after.checked_sub(1) {
            Some(last) => Time(self.times[last].load(Ordering::Relaxed)),
            None => Time(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.writer.lock()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn notes_tell_the_second_and_stay_bounded() {
        let ages = Ages::default();
        assert_eq!(ages.time_of(5), Time(0));
        for second in 0..100_000_u32 {
            let first = u64::from(second) * 10;
            ages.note(Time(second * 16), &AtomicU64::new(first));
            ages.note(Time(second * 16 + 3), &AtomicU64::new(first + 5));
        }
        assert_eq!(ages.time_of(999_999), Time(99_999 * 16));
        assert_eq!(ages.time_of(999_985), Time(99_998 * 16));
        for age in [100, 1000, 10_000, 50_000, 90_000] {
            let found = 99_999 - ages.time_of(999_999 - 10 * u64::from(age)).0 / 16;
            assert!((age..=age + age / 64).contains(&found), "{found} for {age}");
        }
    }

    #[test]
    fn there_is_room_until_the_end_of_the_clock() {
        let ages = Ages::default();
        let mut second = 1;
        let mut longest = 0;
        // Every second of a day, and then every minute: a second without a store takes no note.
        while second < u32::MAX / 16 {
            ages.note(Time(16 * second), &AtomicU64::new(second.into()));
            second += if second < 86_400 { 1 } else { 60 };
            longest = longest.max(ages.len.load(Ordering::Relaxed));
        }
        assert_eq!(longest, NOTES_MAX);
        let found = ages.time_of(u64::from(second / 2)).0 / 16;
        assert!(second / 2 - found <= second / 2 / 64, "{found}");
    }

    #[test]
    fn a_search_takes_no_lock() {
        let ages = Ages::default();
        ages.note(Time(16), &AtomicU64::new(1));
        let _held = ages.lock();
        assert_eq!(ages.time_of(7), Time(16));
    }
}
