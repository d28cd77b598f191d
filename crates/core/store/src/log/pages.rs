//! The state that a log keeps of each of its pages.

use std::io;

use nuthatch_base::sync::shim::{AtomicU64, Ordering, fence};

use super::Queue;
use crate::memory::words::Words;

/// The state of all pages: zeroed, and touched only when needed.
pub struct Pages(Words);

/// Its place in the order in which pages were opened, from 1; 0: the log does not have the page.
const SEQUENCE: usize = 0;
/// Words up to which records were appended.
const END: usize = 1;
/// Words of the records in use, and above them, from [`PRIVATE`] on, how many of these records are private.
const HELD: usize = 2;
/// The queue that it is in, [`CLOSED`], and [`COUNTS`].
const STATE: usize = 3;
/// [`HELD`] and 1 more when a cleaning left something in the page; [`TRIED`]; 0: another cleaning may find more.
const STUCK: usize = 4;
/// The tick at which it is to be swept, or [`NEVER`]: see [`due`](super::due).
const DUE: usize = 5;
/// Ghosts that had been inserted when it came to its place in its queue.
const GHOSTS: usize = 6;
const FIELDS: usize = 7;

/// [`DUE`] of a page in which nothing dies.
pub const NEVER: u64 = u64::MAX;

/// [`STUCK`] of a page that is being cleaned.
const TRIED: u64 = u64::MAX;

/// One private record.
const PRIVATE: u64 = 1 << 32;

/// [`STATE`] of a page to which nothing is appended any more.
const CLOSED: u64 = 2;

/// [`STATE`] of a page whose items' uses count.
const COUNTS: u64 = 4;

/// Bytes of a page's state.
pub const PAGE_STATE: usize = FIELDS * size_of::<AtomicU64>();

/// A page's records in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy(u64);

impl Occupancy {
    /// The words of these records.
    pub fn words(self) -> usize {
        (self.0 % PRIVATE) as usize
    }

    /// How many of these records are private to a thread: in no index yet.
    pub fn private(self) -> u64 {
        self.0 / PRIVATE
    }
}

impl Pages {
    /// The state of so many pages, none of which is in the log.
    pub fn reserve(count: usize) -> io::Result<Self> {
        Ok(Self(Words::reserve(count * FIELDS)?))
    }

    /// Adds an empty page to the log. `ghosts` is the number of ghosts inserted so far.
    pub fn open(&self, page: u32, sequence: u64, queue: Queue, ghosts: u64) {
        let state = self.of(page);
        state[END].store(0, Ordering::Relaxed);
        state[HELD].store(0, Ordering::Relaxed);
        state[STATE].store(queue as u64, Ordering::Relaxed);
        state[STUCK].store(0, Ordering::Relaxed);
        state[DUE].store(NEVER, Ordering::Relaxed);
        state[GHOSTS].store(ghosts, Ordering::Relaxed);
        // Release: pairs with the Acquire in `sequence`: a thread that sees it sees the empty page, or a later one.
        state[SEQUENCE].store(sequence, Ordering::Release);
    }

    /// Removes a page without a record in use from the log.
    pub fn leave(&self, page: u32) {
        self.of(page)[SEQUENCE].store(0, Ordering::Relaxed);
        // Release fence: pairs with the Acquire fence in `is_still`: a walker that sees words of the page's next life
        // sees that it has left.
        fence(Ordering::Release);
    }

    /// Its place in the order in which pages were opened; 0 if the log does not have it.
    pub fn sequence(&self, page: u32) -> u64 {
        // Acquire: pairs with the Release in `open`.
        self.all()
            .get(page as usize)
            .map_or(0, |state| state[SEQUENCE].load(Ordering::Acquire))
    }

    /// True if a page that had this sequence still has it: then the words read since belong to the log.
    pub fn is_still(&self, page: u32, sequence: u64) -> bool {
        // Acquire fence: pairs with the Release fence in `leave`.
        fence(Ordering::Acquire);
        self.of(page)[SEQUENCE].load(Ordering::Relaxed) == sequence
    }

    /// The words of a page up to which there are records.
    pub fn end(&self, page: u32) -> usize {
        // Acquire: pairs with the Release in `append`: each record below it tells its length.
        self.of(page)[END].load(Ordering::Acquire) as usize
    }

    /// Notes that a private record of `words` words was appended, and ends here. The stream's lock is held.
    #[inline]
    pub fn append(&self, page: u32, words: usize, end: usize) {
        let state = self.of(page);
        // Relaxed: a thread that reads it once the page is closed has taken the stream's lock, or the queues', after
        // this.
        state[HELD].fetch_add(PRIVATE + words as u64, Ordering::Relaxed);
        // Release: pairs with the Acquire in `end`.
        state[END].store(end as u64, Ordering::Release);
    }

    /// A private record is now in the index.
    #[inline]
    pub fn link(&self, page: u32) {
        // Release: pairs with the Acquire in `held`: a thread that sees that no record is private sees their headers.
        self.of(page)[HELD].fetch_sub(PRIVATE, Ordering::Release);
    }

    /// A record of `words` words is no longer in use.
    #[inline]
    pub fn free(&self, page: u32, words: usize, private: bool) {
        let private = if private { PRIVATE } else { 0 };
        // Release: pairs with the Acquire in `held`: a thread that sees that nothing is in use may let the page be
        // overwritten.
        let before = self.of(page)[HELD].fetch_sub(private + words as u64, Ordering::Release);
        debug_assert!(before % PRIVATE >= words as u64, "log: freed twice");
    }

    /// The records in use.
    pub fn held(&self, page: u32) -> Occupancy {
        // Acquire: pairs with the Release in `link` and in `free`.
        Occupancy(self.of(page)[HELD].load(Ordering::Acquire))
    }

    /// Notes that a cleaning of the page begins.
    pub fn note_tried(&self, page: u32) {
        // Relaxed, here and below: a hint for the choice of a page. The lock of the pins orders it: the last reader of
        // an item that the cleaning finds pinned takes that lock later, and calls `note_unpinned` under it.
        self.of(page)[STUCK].store(TRIED, Ordering::Relaxed);
    }

    /// Notes that the cleaning left these records in the page, unless an item there has lost its last pin meanwhile.
    pub fn note_stuck(&self, page: u32, held: Occupancy) {
        let (relaxed, stuck) = (Ordering::Relaxed, &self.of(page)[STUCK]);
        let _ = stuck.compare_exchange(TRIED, held.0 + 1, relaxed, relaxed);
    }

    /// Notes that an item in the page has lost its last pin.
    pub fn note_unpinned(&self, page: u32) {
        let state = self.of(page);
        // Mostly nothing is stuck, and nothing is written. If a cleaning ends at the same time, one of the two
        // exchanges sees the other.
        if state[STUCK].load(Ordering::Relaxed) != 0 {
            state[STUCK].swap(0, Ordering::Relaxed);
        }
    }

    /// True if a cleaning left something in the page, and since then nothing was freed there, or lost its last pin.
    pub fn is_stuck(&self, page: u32) -> bool {
        let left = self.of(page)[STUCK].load(Ordering::Relaxed);
        left != 0 && left == self.held(page).0 + 1
    }

    /// The page is to be swept at this tick, or earlier.
    #[inline]
    pub fn note_due(&self, page: u32, tick: u64) {
        // SeqCst, here and below: see `next_due`. It includes a Release, which pairs with the Acquire in `take_due`: a
        // thread that takes the tick sees the item's expiry.
        self.of(page)[DUE].fetch_min(tick, Ordering::SeqCst);
    }

    /// The tick at which the page is to be swept.
    pub fn due(&self, page: u32) -> u64 {
        self.of(page)[DUE].load(Ordering::SeqCst)
    }

    /// Takes the tick of a page that is being swept: ticks noted from now on are for a later sweep.
    pub fn take_due(&self, page: u32) {
        self.of(page)[DUE].swap(NEVER, Ordering::SeqCst);
    }

    /// Nothing is appended to the page from now on. The stream's lock is held.
    pub fn close(&self, page: u32) {
        // Release: pairs with the Acquire in `is_closed`, which sees all that was appended.
        self.of(page)[STATE].fetch_or(CLOSED, Ordering::Release);
    }

    /// True if nothing is appended to it any more.
    pub fn is_closed(&self, page: u32) -> bool {
        // Acquire: pairs with the Release in `close`.
        self.of(page)[STATE].load(Ordering::Acquire) & CLOSED != 0
    }

    /// The queue that it is in.
    pub fn queue(&self, page: u32) -> Queue {
        // Relaxed: a hint for threads that do not hold the queues' lock.
        match self.of(page)[STATE].load(Ordering::Relaxed) & 1 {
            0 => Queue::Probation,
            _ => Queue::Main,
        }
    }

    /// The page goes to the back of its queue. `ghosts` is the number of ghosts inserted so far. The queues' lock is
    /// held.
    pub fn note_passed(&self, page: u32, ghosts: u64) {
        // Relaxed: read under the lock.
        self.of(page)[GHOSTS].store(ghosts, Ordering::Relaxed);
    }

    /// How many ghosts had been inserted when the page was opened, or went to the back. The queues' lock is held.
    pub fn ghosts(&self, page: u32) -> u64 {
        // Relaxed: written under the lock.
        self.of(page)[GHOSTS].load(Ordering::Relaxed)
    }

    /// The page goes from the probation queue to the main one.
    pub fn promote(&self, page: u32) {
        // Relaxed: only changed under the queues' lock, and read as a hint otherwise.
        self.of(page)[STATE].fetch_or(Queue::Main as u64, Ordering::Relaxed);
    }

    /// Uses of the page's items count from now on. False if they did before. The queues' lock is held.
    pub fn start_counting(&self, page: u32) -> bool {
        // Relaxed, here and in `counts`: only changed under the lock, and read as a hint otherwise.
        self.of(page)[STATE].fetch_or(COUNTS, Ordering::Relaxed) & COUNTS == 0
    }

    /// True if uses of the page's items count: in a page of the main queue in any case.
    pub fn counts(&self, page: u32) -> bool {
        self.of(page)[STATE].load(Ordering::Relaxed) & (COUNTS | Queue::Main as u64) != 0
    }

    #[inline(always)]
    fn of(&self, page: u32) -> &[AtomicU64; FIELDS] {
        &self.all()[page as usize]
    }

    #[inline(always)]
    fn all(&self) -> &[[AtomicU64; FIELDS]] {
        self.0.as_chunks().0
    }
}
