//! Timestamps: the order of stores, and the rules by which items are dead.
//!
//! Every store takes a sequence number. It has three uses:
//! * It is the item's cas, unless the client chose one. So no two stores have the same cas, and an item that replaces
//!   another has a higher one (`ms` with `I` compares them).
//! * It tells whether the item was stored before or after a flush: items below the bar are dead.
//! * It tells when the item was stored ([`Ages`]).
//!
//! Sequences come from one counter. A thread takes them in blocks, so that writers do not share its cache line. If
//! another thread stored the key last, with a sequence of a later block, the store takes a single sequence from the
//! counter, and the thread keeps its block: threads that write one key in turn use one sequence for each write.
//! Blocks begin with one sequence and double, up to [`BLOCK_MAX`], while the thread uses them up within a second. At
//! the end of a second, and at a flush, the rest of a block is dropped. So each store uses fewer than two sequences,
//! whatever the threads do.
//!
//! Invariants:
//! 1. No sequence is given out twice: the counter only rises, by the number that was taken.
//! 2. A thread that has seen a bar gets no sequence below it: the bar is a value that the counter had reached, and
//!    a thread that sees the bar sees that value of the counter, or a later one.
//! 3. The bar never goes back.
//! 4. An item that is made from another (by an append, a number, a cas) does not outlive a flush that takes the other.
//!    A flush reads the counter and then raises the bar; a sequence that is taken between the two is above the bar, the
//!    item that was read by then is below it. So a flush first announces that it will raise the bar. A thread that has
//!    taken a sequence for a new item made from another waits for that, and checks the other again
//!    ([`Timestamps::was_flushed`]).
//!
//! There are [`SEQUENCE_MAX`] sequences: four million stores a second for as long as the clock runs (8.5 years). After
//! the last one every store panics. To go on without would be worse: flushes could not tell new items from old
//! ones, and a cas that repeats loses updates.

use std::sync::Arc;
use std::time::Duration;

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_base::sync::shim::{AtomicU32, AtomicU64, Ordering};

use crate::ages::Ages;
use crate::item::{Header, SEQUENCE_MAX};
use crate::shared::SharedPage;
use nuthatch_engine::request::Expiry;

/// Sequences that a thread takes at once, at most.
const BLOCK_MAX: u64 = 1024;

/// The message of the panic at an engine's last store.
pub const SPENT: &str = "this engine has numbered all the stores it can: make a new one";

/// No delayed flush.
const NO_FLUSH: u32 = u32::MAX;

/// A thread's unused sequences.
#[derive(Debug, Default)]
pub struct SequenceBlock {
    next: u64,
    end: u64,
    /// The size of the block.
    taken: u64,
    /// The second in which the thread took the block.
    second: u32,
}

/// The next free sequence. In a cache line of its own, because every read loads the fields next to it.
#[derive(Debug)]
#[repr(align(64))]
struct Counter(AtomicU64);

/// What readers look at: the bar, and the flush that will raise it.
#[derive(Debug)]
#[repr(C)]
pub struct Flushes {
    /// Items with a lower sequence are dead (flush_all). Never goes back.
    before: AtomicU64,
    /// The tick before the one at which a delayed flush takes effect; [`NO_FLUSH`] for none, which no moment exceeds,
    /// not even the clock's last.
    after: AtomicU32,
    /// Fills the last word.
    _rest: AtomicU32,
}

impl Default for Flushes {
    fn default() -> Self {
        Self {
            before: AtomicU64::new(0),
            after: AtomicU32::new(NO_FLUSH),
            _rest: AtomicU32::new(0),
        }
    }
}

impl Flushes {
    /// All zero, as memory is at first. Readers would take that for a flush that is due.
    pub(crate) fn zeroed() -> Self {
        Self {
            after: AtomicU32::new(0),
            ..Self::default()
        }
    }

    /// No flush is awaited.
    pub(crate) fn await_none(&self) {
        // Relaxed: nobody reads yet.
        self.after.store(NO_FLUSH, Ordering::Relaxed);
    }

    /// True if an item may still be returned.
    #[inline(always)]
    pub fn is_live(&self, header: &Header, now: Time) -> bool {
        // Relaxed: a reader that starts after a flush has returned sees that flush (a SeqCst operation raises the bar).
        // A request that runs beside the flush may take either side.
        !header.is_expired(now) && header.sequence() >= self.before.load(Ordering::Relaxed)
    }

    /// The same at a moment that is read from a clock only if the item has an expiry.
    #[inline(always)]
    pub fn is_live_by(&self, header: &Header, clock: impl Fn() -> Time) -> bool {
        // Relaxed: as above.
        !(header.is_expiring() && header.is_expired(clock()))
            && header.sequence() >= self.before.load(Ordering::Relaxed)
    }

    /// True if a delayed flush is due at `now`, and has not raised the bar yet.
    #[inline(always)]
    pub fn is_due(&self, now: Time) -> bool {
        // Acquire: pairs with the Release in `take_flush`: a reader that sees that a flush is no longer awaited
        // sees its bar.
        self.after.load(Ordering::Acquire) < now.0
    }

    /// The same at a moment that is read from a clock only if a flush is awaited.
    #[inline(always)]
    pub fn is_due_by(&self, clock: impl Fn() -> Time) -> bool {
        // Acquire: as above.
        self.after.load(Ordering::Acquire) != NO_FLUSH && self.is_due(clock())
    }
}

/// The state that dates an engine's items and decides whether flushes and expiries make them dead.
#[derive(Debug)]
pub struct Timestamps {
    sequence: Counter,
    ages: Ages,
    /// Held during a flush.
    flushing: Mutex<()>,
    /// 1 while a flush raises the bar (invariant 4).
    raising: AtomicU32,
    flushes: Flushes,
    /// 1 once an item with an expiry was stored or a flush happened: there is something to sweep.
    sweeping: AtomicU32,
    /// For processes that read this engine's memory.
    told: Option<Arc<SharedPage>>,
}

impl Default for Timestamps {
    fn default() -> Self {
        Self {
            sequence: Counter(AtomicU64::new(1)),
            ages: Ages::default(),
            flushing: Mutex::new(()),
            raising: AtomicU32::new(0),
            flushes: Flushes::default(),
            sweeping: AtomicU32::new(0),
            told: None,
        }
    }
}

impl Timestamps {
    /// Timestamps whose flushes are told on this page as well.
    pub fn told_on(page: Option<Arc<SharedPage>>) -> Self {
        Self {
            told: page,
            ..Self::default()
        }
    }

    /// The sequence of a store: unique, above `above` (that of the item it replaces), and not below the bar of any
    /// flush that the caller has seen. Sequences of one second are above those of every earlier second.
    ///
    /// Panics if there is none left.
    #[inline]
    pub fn next_sequence(&self, own: &mut SequenceBlock, now: Time, above: u64) -> u64 {
        // Acquire: pairs with the Release in `raise_bar` (invariant 2). A store that runs at the same time as a
        // flush may count as before or after it.
        let flushed = self.flushes.before.load(Ordering::Acquire);
        if own.next == own.end || own.next < flushed || own.second != now.seconds() {
            self.allocate_block(own, now);
        }
        if own.next <= above {
            // The counter is above it: the sequence `above` was taken from it before the item's lock was released.
            return self.take(1);
        }
        own.next += 1;
        own.next - 1
    }

    /// Takes a block: twice as large as the last one if that was used up within this second, else one sequence.
    #[cold]
    fn allocate_block(&self, own: &mut SequenceBlock, now: Time) {
        self.ages.note(now, &self.sequence.0);
        let used_up = own.next == own.end && own.second == now.seconds();
        own.taken = if used_up {
            (2 * own.taken).clamp(1, BLOCK_MAX)
        } else {
            1
        };
        own.next = self.take(own.taken);
        own.end = own.next + own.taken;
        own.second = now.seconds();
    }

    /// Makes the counter give out sequences from there on, unless it is further already (invariant 1: it only rises).
    pub fn number_from(&self, least: u64) {
        // Relaxed: no other access depends on this one.
        let least = least.min(SEQUENCE_MAX);
        self.sequence.0.fetch_max(least, Ordering::Relaxed);
    }

    /// The next sequence that no thread has taken.
    pub fn next_number(&self) -> u64 {
        // Relaxed: who has seen a store has seen that its sequence was taken.
        self.sequence.0.load(Ordering::Relaxed)
    }

    /// Takes so many sequences, and returns the first.
    fn take(&self, count: u64) -> u64 {
        // Acquire: pairs with the Release of the addition in `raise_bar`: a thread that takes a sequence that a flush
        // has not seen sees that the flush raises the bar (invariant 4).
        let first = self.sequence.0.fetch_add(count, Ordering::Acquire);
        assert!(first + count <= SEQUENCE_MAX, "{SPENT}");
        first
    }

    /// Time since the item was stored, to the second. Takes no lock.
    pub fn age(&self, header: &Header, now: Time) -> Duration {
        now.since(self.stored_at(header.sequence()))
    }

    /// When a sequence was taken, to the second.
    pub fn stored_at(&self, sequence: u64) -> Time {
        self.ages.time_of(sequence)
    }

    /// Items with a lower sequence are dead.
    pub fn bar(&self) -> u64 {
        // Acquire: pairs with the Release in `raise_bar`.
        self.flushes.before.load(Ordering::Acquire)
    }

    /// What readers look at.
    #[inline(always)]
    pub fn flushes(&self) -> &Flushes {
        &self.flushes
    }

    /// True if an item may still be returned.
    #[inline(always)]
    pub fn is_live(&self, header: &Header, now: Time) -> bool {
        self.flushes.is_live(header, now)
    }

    /// True if a flush has taken the item, from which another is being made (invariant 4). The thread that has taken
    /// the sequence for the other calls this under the item's lock, before it stores the other.
    #[inline(always)]
    pub fn was_flushed(&self, header: &Header) -> bool {
        // Acquire: pairs with the Release that ends `raise_bar`: its bar is seen.
        if self.raising.load(Ordering::Acquire) != 0 {
            self.await_bar();
        }
        // Relaxed: what the caller has seen of a flush includes its bar, by one of the two ways above.
        header.sequence() < self.flushes.before.load(Ordering::Relaxed)
    }

    /// Waits until the flush that was raising the bar has raised it.
    #[cold]
    #[inline(never)]
    fn await_bar(&self) {
        drop(self.lock());
    }

    /// See [`Engine::flush`](nuthatch_engine::Engine::flush).
    pub fn flush(&self, now: Time, at: Time) {
        // A delayed flush that is due, but that no request has met yet, is not replaced.
        self.apply_flush(now);
        let flushing = self.lock();
        if at <= now {
            self.raise_bar(&flushing);
        }
        let awaited = if at <= now { NO_FLUSH } else { at.0 - 1 };
        self.await_flush(awaited);
    }

    /// Puts a delayed flush into effect once its time has come. To be called before each batch: a reader that returns
    /// from it finds the items stored before that time dead, and new sequences above the bar.
    #[inline(always)]
    pub fn apply_flush(&self, now: Time) {
        if self.flushes.is_due(now) {
            self.take_flush(now);
        }
    }

    /// The same at a moment that is read from a clock only if a flush is awaited.
    #[inline(always)]
    pub fn apply_flush_by(&self, clock: impl Fn() -> Time) {
        if self.flushes.is_due_by(&clock) {
            self.take_flush(clock());
        }
    }

    /// One thread raises the bar, and only once; the others wait for it.
    #[cold]
    #[inline(never)]
    fn take_flush(&self, now: Time) {
        let flushing = self.lock();
        // Relaxed: only changed under the lock.
        if self.flushes.after.load(Ordering::Relaxed) < now.0 {
            self.raise_bar(&flushing);
            self.await_flush(NO_FLUSH);
        }
    }

    fn await_flush(&self, after: u32) {
        // Release: pairs with the Acquire in `is_due`.
        for flushes in self.all_flushes() {
            flushes.after.store(after, Ordering::Release);
        }
    }

    /// This engine's, and what other processes see of it.
    fn all_flushes(&self) -> impl Iterator<Item = &Flushes> {
        let told = self.told.as_ref().map(|page| &page.flushes);
        [&self.flushes].into_iter().chain(told)
    }

    /// Raises the bar above all sequences that were taken.
    fn raise_bar(&self, _: &MutexGuard<'_, ()>) {
        // Relaxed: the next addition releases it.
        self.raising.store(1, Ordering::Relaxed);
        // A read-modify-write, not a load, because it returns the last value: every sequence that was taken is below
        // it. Release: pairs with the Acquire in `take`.
        let next = self.sequence.0.fetch_add(0, Ordering::AcqRel);
        // SeqCst: no later read of this thread passes it; pairs with the loads in `is_live`. It includes a Release,
        // which pairs with the Acquire in `next_sequence`.
        for flushes in self.all_flushes() {
            flushes.before.fetch_max(next, Ordering::SeqCst);
        }
        // Release: pairs with the Acquire in `was_flushed`.
        self.raising.store(0, Ordering::Release);
        self.sweeping.store(1, Ordering::Relaxed);
    }

    /// Notes that there may be something for a sweep to find.
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

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.flushing.lock()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NOW: Time = Time(16);

    /// How many sequences have been taken.
    fn taken(timestamps: &Timestamps) -> u64 {
        timestamps.sequence.0.load(Ordering::Relaxed) - 1
    }

    #[test]
    fn threads_that_store_one_key_in_turn_use_up_one_sequence_a_store() {
        const STORES: u64 = 100_000;
        let timestamps = Timestamps::default();
        let mut threads = [SequenceBlock::default(), SequenceBlock::default()];
        let mut last = 0;
        for store in 0..STORES {
            let own = &mut threads[store as usize % 2];
            let sequence = timestamps.next_sequence(own, NOW, last);
            assert!(sequence > last);
            last = sequence;
        }
        assert!(taken(&timestamps) <= STORES + 2 * BLOCK_MAX);
    }

    #[test]
    fn fewer_than_two_sequences_are_used_up_for_a_store() {
        let timestamps = Timestamps::default();
        let mut stores = 0;
        for second in 1..200_u32 {
            // Threads that come and go, and threads that stay a while, with few stores and with many.
            let mut threads: Vec<_> = (0..10).map(|_| SequenceBlock::default()).collect();
            for own in &mut threads {
                for part in 0..3 {
                    for _ in 0..(second * 7919) % 5000 {
                        timestamps.next_sequence(own, Time(16 * second + 8 * part), 0);
                        stores += 1;
                    }
                }
            }
        }
        assert!(taken(&timestamps) < 2 * stores);
    }

    #[test]
    fn a_flush_divides_what_was_stored_before_it_from_what_is_stored_after_it() {
        let timestamps = Timestamps::default();
        let mut threads = [SequenceBlock::default(), SequenceBlock::default()];
        for _ in 0..100 {
            let before = threads
                .each_mut()
                .map(|own| timestamps.next_sequence(own, NOW, 0));
            timestamps.flush(NOW, NOW);
            let bar = timestamps.flushes.before.load(Ordering::Relaxed);
            assert!(before.iter().all(|&sequence| sequence < bar));
            for own in &mut threads {
                assert!(timestamps.next_sequence(own, NOW, 0) >= bar);
            }
        }
    }

    #[test]
    #[should_panic(expected = "numbered all the stores")]
    fn the_last_sequence_is_not_followed_by_the_first() {
        let timestamps = Timestamps::default();
        timestamps
            .sequence
            .0
            .store(SEQUENCE_MAX - 10, Ordering::Relaxed);
        let mut own = SequenceBlock::default();
        for _ in 0..20 {
            timestamps.next_sequence(&mut own, NOW, 0);
        }
    }
}
