//! How much a step of cleaning cleans.
//!
//! While no page is free besides the reserve, each thread that appends cleans. A free page is needed when the open page is
//! full, so the cleaning is spread over the time until then, but for a part: no store waits for many records. How many
//! pages have to be cleaned follows from how much of a page is kept: what is kept may take a page, too.
//!
//! ```text
//!  the open page:   |===============================>             |
//!                    one page is cleaned, or two     |  at full pace, if none is free by then
//! ```
//!
//! Threads side by side each clean a page of their own, and each only for what it appended. If two did so as if they were
//! alone, each page would be half cleaned when one is needed. So each cleans in proportion to what is left of all cleanings
//! under way, as if they were as far as its own.
//!
//! New items whose value is on its way have a page of their own. Each of the two streams pays for its next page, from
//! what is left of its present one.

// Not the shim's: models need not try all values that these hints may have.
use std::sync::atomic::{AtomicUsize, Ordering};

use super::clean::RUN_MIN;
use super::{Cleaning, FREE_MIN, Log, RESERVE, Stream};
use crate::memory::arena::WORD;
use crate::store::Store;

/// Words cleaned for each word appended while no page is free besides the reserve, at most.
const CLEANED_PER_APPENDED: usize = 8;

/// The part of the open page that is left when a page is to be free. (Pages of models have a few records: one step cleans
/// such a page.)
const SPARE: usize = if cfg!(loom) { 1 } else { 16 };

/// Pages over which it is averaged how much is kept.
const KEPT_OF: usize = 8;

/// The part of a page by which it is known how much of it is kept.
const OWN_AT: usize = 8;

/// How much is cleaned in a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Budget {
    /// About so many words.
    Words(usize),
    /// As many as suit the pace.
    Paced {
        /// Words that were appended since the last step.
        appended: usize,
        /// Words that can still be appended before new items need a page.
        room: usize,
    },
}

/// What the pace follows from. All are hints.
#[derive(Default)]
pub(super) struct Pace {
    /// Words that were kept of [`KEPT_OF`] pages.
    kept: AtomicUsize,
    /// Words that can be appended to the page of what is kept, and to the page of new items.
    kept_room: AtomicUsize,
    new_room: AtomicUsize,
    /// Cleanings that have begun and not ended, of all threads.
    under_way: AtomicUsize,
    /// 1 more than the page whose cleaning goes on, as of the last step. 0: none.
    moving: AtomicUsize,
    /// Words that were appended by threads that found all cleanings under way in other threads: the next step cleans for
    /// them, too.
    missed: AtomicUsize,
}

impl Pace {
    /// So many words of a page were kept: its cleaning has ended.
    pub(super) fn note_kept(&self, words: usize) {
        let kept = self.kept.load(Ordering::Relaxed);
        self.kept
            .store(kept - kept / KEPT_OF + words, Ordering::Relaxed);
    }

    /// One more cleaning has begun.
    pub(super) fn note_begun(&self) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
    }

    /// A cleaning has ended.
    pub(super) fn note_ended(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    /// A thread appended so many words, and found all cleanings under way in other threads.
    pub(super) fn note_missed(&self, words: usize) {
        self.missed.fetch_add(words, Ordering::Relaxed);
    }

    /// The words of [`Pace::note_missed`] since the last call.
    fn take_missed(&self) -> usize {
        // A look first: with one thread there are none, and nothing is written.
        match self.missed.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.missed.swap(0, Ordering::Relaxed),
        }
    }

    /// So many words can be appended to the newest page of a stream. Returns how many can be appended to that of the new
    /// items, if what is kept has another page.
    pub(super) fn note_room(&self, stream: Stream, words: usize) -> usize {
        let Some(room) = self.room(stream) else {
            return words;
        };
        room.store(words, Ordering::Relaxed);
        self.new_room()
    }

    /// Words that can be appended before new items need a page.
    pub(super) fn new_room(&self) -> usize {
        self.new_room.load(Ordering::Relaxed)
    }

    /// A step of a cleaning has ended, which goes on in this page.
    pub(super) fn note_moving(&self, page: Option<u32>) {
        let noted = page.map_or(0, |page| page as usize + 1);
        self.moving.store(noted, Ordering::Relaxed);
    }

    /// The page of [`Pace::note_moving`].
    pub(super) fn moving(&self) -> Option<u32> {
        let noted = self.moving.load(Ordering::Relaxed);
        noted.checked_sub(1).map(|page| page as u32)
    }

    /// Words that can be appended to the page of what is kept.
    pub(super) fn kept_room(&self) -> usize {
        self.kept_room.load(Ordering::Relaxed)
    }

    fn room(&self, stream: Stream) -> Option<&AtomicUsize> {
        match stream {
            Stream::New => Some(&self.new_room),
            Stream::Kept => Some(&self.kept_room),
            Stream::Arriving => None,
        }
    }

    /// Words to be cleaned before so many pages more are free.
    fn left(&self, pages: usize, page_words: usize, cleaning: &Cleaning) -> usize {
        // The step's own is one of them.
        let cleanings = self.under_way.load(Ordering::Relaxed).max(1);
        let left = (pages.max(cleanings) * page_words).saturating_sub(cleanings * cleaning.at);
        // Of one page much more is kept than of another: it is better to begin too early than too late.
        let others = self.kept.load(Ordering::Relaxed) / KEPT_OF * 3 / 2;
        let own = match cleaning.at * OWN_AT >= page_words {
            true => cleaning.kept * page_words / cleaning.at,
            false => 0,
        };
        let moved = left * others.max(own) / page_words;
        left + moved.saturating_sub(self.kept_room()).div_ceil(page_words) * page_words
    }
}

impl Log {
    /// Words of a mean record, about: those of an item of the mean size, or of a piece of it. At least 1.
    pub(super) fn mean_words(&self, store: &Store<Self>) -> usize {
        (self.history.mean_bytes().min(store.piece_max()) / WORD).max(1)
    }
}

impl Budget {
    /// The words of the next step. What is too little for a run is owed to a later step: 0.
    pub(super) fn take(self, store: &Store<Log>, cleaning: &mut Cleaning) -> usize {
        let (appended, room) = match self {
            Self::Words(words) => return words,
            Self::Paced { appended, room } => (appended, room),
        };
        let log = store.log();
        let appended = appended + log.pace.take_missed();
        // Relaxed: a hint.
        let free = log.free.load(Ordering::Relaxed);
        let pages = (RESERVE + FREE_MIN).saturating_sub(free).max(1);
        let left = log.pace.left(pages, log.page_words, cleaning);
        let most = CLEANED_PER_APPENDED * appended;
        let words = match room.saturating_sub(log.page_words / SPARE) {
            0 => most,
            room => (appended * left).div_ceil(room).min(most),
        };
        let due = cleaning.owed + words;
        let run = RUN_MIN * log.mean_words(store);
        cleaning.owed = 0;
        // The rest of a page is worth a step.
        if cleaning.at + run >= log.pages.end(cleaning.page) {
            return run;
        }
        if words < most && due < run {
            cleaning.owed = due;
            return 0;
        }
        due
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::eviction::log::LogPolicyKind;
    use crate::log::{CLEANERS, Need, Plan, Purpose, QUANTUM};
    use crate::memory::sizes::Sizes;

    const EVICTS: Plan = Plan {
        need: Need::Room,
        evicts: true,
    };

    /// A log without a free page.
    fn full() -> Store<Log> {
        const LIMIT: usize = 64 << 20;
        let sizes = Sizes::for_log(LIMIT, 48, 1.25);
        let store = Store::<Log>::new(LIMIT, LIMIT, sizes, LogPolicyKind::default_kind()).unwrap();
        let (log, piece) = (store.log(), store.piece_max());
        while log
            .append(&store, Stream::New, piece, None, Purpose::New)
            .map(|made| log.link(made.address))
            .is_ok()
        {}
        log.close_open();
        store
    }

    /// Class of bug: each of several threads cleans as if it cleaned alone, and no page is free when one is needed.
    #[test]
    fn cleanings_side_by_side_are_done_in_time() {
        for count in 1..=CLEANERS {
            let store = full();
            let log = store.log();
            let start = || log.start_cleaning(&store, &EVICTS).unwrap();
            let mut all: Vec<_> = (0..count).map(|_| start()).collect();
            let spare = log.page_words() / SPARE;
            let mut longest = 0;
            // The threads append in turn.
            for (turn, left) in (spare..=log.page_words())
                .rev()
                .step_by(QUANTUM)
                .enumerate()
            {
                let cleaning = all[turn % count].as_mut().unwrap();
                let (appended, room) = (QUANTUM, left);
                let step = Budget::Paced { appended, room }.take(&store, cleaning);
                cleaning.at = (cleaning.at + step).min(log.page_words());
                longest = longest.max(step);
            }
            let at = |work: &Option<Cleaning>| work.as_ref().unwrap().at;
            let least = all.iter().map(|work| at(work)).min().unwrap();
            assert!(
                least + QUANTUM * CLEANED_PER_APPENDED >= log.page_words(),
                "{least} of {count}"
            );
            assert!(longest <= (count + 1) * QUANTUM, "{longest} of {count}");
        }
    }

    /// No step cleans much of a page because items are larger than pages: their pieces are not.
    #[test]
    fn large_items_are_cleaned_a_few_pieces_at_a_time() {
        let store = full();
        let (log, piece) = (store.log(), store.piece_max());
        log.history.note_sizes(&store, 1, 10 * log.page_bytes());
        let mut work = log.start_cleaning(&store, &EVICTS).unwrap();
        let cleaning = work.as_mut().unwrap();
        let mut steps = Vec::new();
        while cleaning.at < log.pages.end(cleaning.page) {
            let (appended, room) = (16, log.page_words());
            let step = Budget::Paced { appended, room }.take(&store, cleaning);
            cleaning.at += step;
            steps.push(step);
        }
        let longest = steps.iter().copied().max().unwrap();
        assert!(longest <= 2 * RUN_MIN * piece / WORD, "{longest}");
        assert!(steps.len() > 100, "{}", steps.len());
    }
}
