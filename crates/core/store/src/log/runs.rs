//! Runs: parts of a page in which one thread appends new items without the stream's lock.
//!
//! A thread that finds that another one has appended since it did takes a run of a few KiB at the end of the page, under
//! the stream's lock. Then it cuts its next records off the run, with no other lock and without a write to the state of
//! the page, which all threads share. A thread that is alone takes none: its lock is free, and costs it nothing.
//!
//! ```text
//!   | record | record | record | gap: the rest of the run | the records of other threads |
//!                              ^ state: where, how long, and whether the last record is still private
//! ```
//!
//! Runs are closed when their page is to be cleaned, by any thread: so one of an idle thread keeps no page from that.
//! The rest of a run is a gap from the beginning. All runs together take an eighth of a page at most, so a log of small
//! pages has few runs or none.
//!
//! Invariants:
//! 1. A run counts as a private record of its page until it is closed and its last record is linked or freed. All its
//!    words count as held from the moment at which it was taken; those that were never used are freed when it is closed.
//! 2. At most one record of a run is private. So only one thread at a time writes in a run.
//! 3. A walk finds records behind each other at every moment: the header of the rest is written before that of the
//!    record that was cut off.

use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use super::{Log, QUANTUM, Stream};
use crate::fault::{self, Fault};
use crate::item::{Header, Shape, record_words};
use crate::memory::arena::Address;
use crate::store::Store;

/// Words of a run.
const RUN: usize = if cfg!(loom) { 8 } else { 512 };

/// A record of more than this part of a run is appended by itself.
const SHORT: usize = if cfg!(loom) { 2 } else { 8 };

/// All runs take one part in `SHARE` of a page at most.
const SHARE: usize = if cfg!(loom) { 4 } else { 8 };

/// The runs of all threads.
pub(super) struct Runs {
    runs: Box<[Run]>,
    /// The thread that appended last to the stream of new items, plus 1.
    last: AtomicU64,
}

/// A run has cache lines of its own: only its thread writes to it, mostly.
#[derive(Default)]
#[repr(align(128))]
struct Run(AtomicU64);

/// The run from which a record was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunNumber(u32);

/// A run's rest: its address in the upper bits, its length, and [`BUSY`]. 0: there is no run.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rest(u64);

/// The record cut off last is still private.
const BUSY: u64 = 1;
const LEN_SHIFT: u32 = 1;
const LEN_BITS: u32 = 15;
const ADDRESS_SHIFT: u32 = LEN_SHIFT + LEN_BITS;

const _: () = assert!(RUN < 1 << LEN_BITS);

impl Rest {
    const NONE: Self = Self(0);

    fn new(address: Address, words: usize, busy: bool) -> Self {
        Self(address.0 << ADDRESS_SHIFT | (words as u64) << LEN_SHIFT | u64::from(busy))
    }

    fn address(self) -> Address {
        Address(self.0 >> ADDRESS_SHIFT)
    }

    fn words(self) -> usize {
        (self.0 >> LEN_SHIFT) as usize & ((1 << LEN_BITS) - 1)
    }

    fn is_busy(self) -> bool {
        self.0 & BUSY != 0
    }

    /// The last word of the page part that was cut, or is left: a word of the run's page.
    fn within(self) -> Address {
        match self.words() {
            0 => Address(self.address().0 - 1),
            _ => self.address(),
        }
    }

    /// Without `words` words for a record.
    fn cut(self, words: usize) -> Self {
        let address = Address(self.address().0 + words as u64);
        Self::new(address, self.words() - words, true)
    }

    /// Its record is linked or freed.
    fn settled(self) -> Self {
        match self.words() {
            0 => Self::NONE,
            words => Self::new(self.address(), words, false),
        }
    }

    /// Without the words that are left.
    fn closed(self) -> Self {
        match self.is_busy() {
            true => Self::new(self.address(), 0, true),
            false => Self::NONE,
        }
    }
}

impl Runs {
    /// None yet, in a log with pages of so many words.
    pub(super) fn new(page_words: usize) -> Self {
        let count = page_words / (SHARE * RUN);
        Self {
            runs: (0..count).map(|_| Run::default()).collect(),
            last: AtomicU64::new(0),
        }
    }
}

impl Log {
    /// A record of a run for a new item, which the caller owns: of the thread's own run, or of a new one, if another
    /// thread has appended since this one did. `None`: it is to be [appended](Log::append) by itself.
    #[inline]
    pub fn cut(
        &self,
        store: &Store<Self>,
        thread: usize,
        shape: &Shape,
    ) -> Option<(Address, RunNumber)> {
        let words = record_words(shape.head_bytes());
        let count = self.runs.runs.len();
        // A wide header tells its length by two words, which a walk could find in different states.
        if count == 0 || words > RUN / SHORT || shape.wide {
            return None;
        }
        let number = RunNumber((thread % count) as u32);
        let rest = match self.cut_present(number, words) {
            Some(rest) => rest,
            None if self.is_alone(thread) => return None,
            None => self.take_run(store, number, words)?,
        };
        Self::write_cut(store, rest, words);
        Some((rest.address(), number))
    }

    /// Words of which a thread is told to clean that has cut this record: as many as if all had been appended by one,
    /// which is told once in [`QUANTUM`] words.
    pub(super) fn due_by(&self, address: Address, shape: &Shape) -> usize {
        let start = address.0 as usize;
        let end = start + record_words(shape.head_bytes());
        (end / QUANTUM - start / QUANTUM) * QUANTUM
    }

    fn run(&self, number: RunNumber) -> &AtomicU64 {
        &self.runs.runs[number.0 as usize].0
    }

    /// Cuts a record off a run that is there. Returns what was left of it before.
    #[inline]
    fn cut_present(&self, number: RunNumber, words: usize) -> Option<Rest> {
        let run = self.run(number);
        let rest = Rest(run.load(Ordering::Relaxed));
        let busy = rest.is_busy() && !fault::is(Fault::CutsBesideAnother);
        if rest.words() < words || busy {
            return None;
        }
        // Acquire: pairs with the Release in `take_run` and `settle`, where threads share a run: the page and the headers
        // are as the other thread left them. If it fails, another thread has closed the run.
        let cut = rest.cut(words).0;
        run.compare_exchange(rest.0, cut, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        Some(rest)
    }

    /// Writes the headers of a record that was just cut off, and of what is left of the run.
    #[inline]
    fn write_cut(store: &Store<Self>, before: Rest, words: usize) {
        let (address, left) = (before.address(), before.words() - words);
        if left > 0 {
            // Before an owner writes (store 3).
            store.begin_fill();
            let next = Address(address.0 + words as u64);
            Header::store_gap(&store.arena, next, left);
        }
        // Release fence: pairs with the Acquire fence in `Pages::is_still`: a walk that reads the record's header goes on
        // to one that is written (runs 3).
        if !fault::is(Fault::CutsWithoutFence) {
            store.begin_fill();
        }
        Header::store_gap(&store.arena, address, words);
    }

    /// True if no other thread has appended a new item since this one did, as far as is known.
    fn is_alone(&self, thread: usize) -> bool {
        // Relaxed, here and below: a hint.
        let last = self.runs.last.load(Ordering::Relaxed);
        let own = thread as u64 + 1;
        if last != own {
            self.runs.last.store(own, Ordering::Relaxed);
        }
        last == own || last == 0
    }

    /// Takes a run at the end of the open page, for some records of `words` words, and cuts off the first. `None` if
    /// the page has too little room left.
    #[cold]
    fn take_run(&self, store: &Store<Self>, number: RunNumber, words: usize) -> Option<Rest> {
        self.close_run(number);
        let mut open = self.streams[Stream::New as usize].lock();
        let run = self.run(number);
        // Relaxed: a run is only begun under the lock. A record that is still private keeps the one before.
        if run.load(Ordering::Relaxed) != Rest::NONE.0 {
            return None;
        }
        let place = open.pages[0].as_mut()?;
        let records = RUN.min(self.page_words - place.end) / words;
        if records < 2 {
            return None;
        }
        let start = u64::from(place.page) * self.page_words as u64 + place.end as u64;
        let whole = Rest::new(Address(start), records * words, false);
        place.end += whole.words();
        self.pace
            .note_room(Stream::New, self.page_words - place.end);
        // Before an owner writes (store 3).
        store.begin_fill();
        Header::store_gap(&store.arena, whole.address(), whole.words());
        self.pages.append(place.page, whole.words(), place.end);
        // Release: pairs with the Acquire in `cut_present` and in `close_run`. Last: who closes it gives its words back.
        run.store(whole.cut(words).0, Ordering::Release);
        Some(whole)
    }

    /// The record that was cut off last is now in the index, or free.
    #[inline]
    pub(super) fn settle(&self, number: RunNumber) {
        let run = self.run(number);
        let mut rest = Rest(run.load(Ordering::Relaxed));
        // Another turn takes another thread that closes the run, which it does once.
        loop {
            debug_assert!(rest.is_busy(), "runs 2: a record is settled twice");
            let after = rest.settled();
            // Release: pairs with the Acquire in `close_run` and in `cut_present`.
            let release = fault::or_relaxed(Ordering::Release, Fault::SettlesUnpublished);
            match run.compare_exchange(rest.0, after.0, release, Ordering::Relaxed) {
                Ok(_) if after == Rest::NONE => return self.link(rest.within()),
                Ok(_) => return,
                Err(now) => rest = Rest(now),
            }
        }
    }

    /// Closes a run: nothing more is cut off. Its page may be cleaned as soon as the last record is not private.
    fn close_run(&self, number: RunNumber) {
        let run = self.run(number);
        let mut rest = Rest(run.load(Ordering::Relaxed));
        while rest.words() > 0 {
            // Acquire: pairs with the Release in `settle` and in `take_run`: who sees by the page's count that no run is
            // left there sees the headers in it.
            match run.compare_exchange(
                rest.0,
                rest.closed().0,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    let page = self.page_of(rest.within());
                    let settled = !rest.is_busy() || fault::is(Fault::ClosesTheBusy);
                    return self.pages.free(page, rest.words(), settled);
                }
                Err(now) => rest = Rest(now),
            }
        }
    }

    /// Closes the runs in pages that are closed: these may be cleaned.
    pub(super) fn close_runs(&self) {
        for number in self.run_numbers() {
            // Acquire: pairs with the Release in `take_run`, so that the page is one of the log.
            let rest = Rest(self.run(number).load(Ordering::Acquire));
            if rest.words() > 0 && self.pages.is_closed(self.page_of(rest.within())) {
                self.close_run(number);
            }
        }
    }

    /// Closes all runs, in open pages too.
    pub(super) fn close_all_runs(&self) {
        self.run_numbers().for_each(|number| self.close_run(number));
    }

    fn run_numbers(&self) -> impl Iterator<Item = RunNumber> + use<> {
        (0..self.runs.runs.len() as u32).map(RunNumber)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::eviction::log::LogPolicyKind;
    use crate::item::fresh::Fresh;
    use crate::log::{Need, Plan, Purpose};
    use crate::memory::sizes::Sizes;

    fn store(limit: usize) -> Store<Log> {
        let sizes = Sizes::for_log(limit, 48, 1.25);
        Store::<Log>::new(limit, limit, sizes, LogPolicyKind::default_kind()).unwrap()
    }

    /// A new item's memory, as a store obtains it.
    fn obtain(store: &Store<Log>, thread: usize, value_len: usize) -> Option<Fresh> {
        let (log, shape) = (store.log(), Shape::new(8, value_len, false, store.cut()));
        let cut = log.cut(store, thread, &shape);
        let (address, run) = match cut {
            Some((address, run)) => (address, Some(run)),
            None => {
                let (bytes, new) = (shape.head_bytes(), Purpose::New);
                let appended = log.append(store, Stream::New, bytes, Some(&shape), new);
                (appended.ok()?.address, None)
            }
        };
        Some(Fresh {
            address,
            shape,
            uses: 0,
            run,
        })
    }

    #[test]
    fn a_thread_that_is_alone_takes_no_run() {
        let store = store(64 << 20);
        for _ in 0..1000 {
            let fresh = obtain(&store, 0, 100).unwrap();
            assert_eq!(fresh.run, None);
            store.discard(fresh);
        }
        let shared = obtain(&store, 1, 100).unwrap();
        assert!(shared.run.is_some());
        // A record that is private keeps the run: one that is needed meanwhile is appended.
        assert_eq!(obtain(&store, 1, 100).unwrap().run, None);
    }

    /// Class of bug: a thread cleans as if nobody else appended to the page in which its run lies.
    #[test]
    fn what_others_appended_is_not_room() {
        let store = store(64 << 20);
        let (log, words) = (store.log(), record_words(100));
        for thread in [0, 1] {
            obtain(&store, thread, 100).unwrap();
        }
        let own = obtain(&store, 0, 100).unwrap();
        assert!(own.run.is_some());
        let first = own.address.0 as usize;
        store.discard(own);
        while log.pace.new_room() > log.page_words() / 8 {
            let other = obtain(&store, 1, 100).unwrap();
            store.discard(other);
        }
        let own = obtain(&store, 0, 100).unwrap();
        assert!(
            own.run.is_some() && (own.address.0 as usize) < first + 4 * words,
            "of its run"
        );
        let open = log.streams[Stream::New as usize].lock();
        assert_eq!(log.pace.new_room(), log.rest(&open));
        drop(open);
        store.discard(own);
    }

    #[test]
    fn runs_of_idle_threads_keep_no_page() {
        for limit in [1 << 20, 4 << 20, 64 << 20] {
            let store = store(limit);
            let mut records = Vec::new();
            for turn in 0.. {
                let Some(fresh) = obtain(&store, turn % 40, 30 + turn % 300) else {
                    break;
                };
                let address = fresh.address;
                store.discard(fresh);
                records.push(address);
            }
            let count = records.len();
            records.sort_unstable_by_key(|address| address.0);
            records.dedup();
            assert_eq!(records.len(), count, "given out twice");
            let log = store.log();
            log.close_open();
            let plan = Plan {
                need: Need::Room,
                evicts: true,
            };
            while let Ok(mut work) = log.start_cleaning(&store, &plan) {
                let cleaning = work.take().unwrap();
                assert!(log.finish_cleaning(&store, &cleaning));
            }
            assert_eq!(store.pool().used_pages(), 0);
            log.audit(&store).unwrap();
        }
    }
}
