//! The log: items of all sizes one behind the other, without size classes.
//!
//! Items are appended to pages. A page that is full is closed, and some time later it is *cleaned*: items that are to
//! stay are appended to another page, the others leave, and the page is empty. The [policy](crate::eviction::log)
//! decides which page is cleaned and which items stay; [`clean`] moves a record while it is
//! read.
//!
//! ```text
//!  a page:  | item | item | gap | piece | item ... | item |        |
//!                                                           end      a page's last words may stay unused
//!
//!            probation queue                       main queue
//!  new ---> | open | .. | .. | oldest | --used--> | open | .. | .. | .. | .. | oldest | --used--> main again
//!                                 |                                             |
//!                                 +--> ghosts                                   +--> gone
//! ```
//!
//! Three streams append: new items, items that arrive in pieces, and items that are kept. So a client that sends slowly
//! only holds up the pages of clients that send in pieces. Threads that store new items side by side take [`runs`] of the
//! stream's page, in which each appends by itself.
//!
//! Invariants:
//! 1. A record is *private* to one thread, *linked* (as store 1 says), or a gap. Its first word gives its length (for a
//!    wide item, the fourth word as well) from the moment at which the page's end lies behind it, and the length never
//!    changes; but from the rest of a run, a gap, its thread cuts records.
//! 2. A page's count of held words is the sum of its private and linked records. The thread that appends counts it up,
//!    and the owner of a record that leaves counts it down. A run counts as one private record, and all of its words
//!    from the moment at which it is taken.
//! 3. Only a closed page without private records is cleaned, by one thread at a time; so nothing becomes private in
//!    it any more, and its records are complete.
//! 4. A page is used again only when nothing in it is held. Before that its sequence is taken from it.
//! 5. A record that is kept is in the index at every moment at which its stripes are even: the slot is changed from the
//!    old place to the new one under the lock of its buckets, after the copy is complete. Pinned items do not move.
//! 6. Where nothing may leave, there is [room] for all records still to be moved out of each page whose cleaning has
//!    begun.
//!
//! Order of locks: a stream's, then the pool's or the queues'. A cleaning's lock, or a sweep's, comes before all of
//! them and before those of buckets. No listener is called under any.

mod ahead;
mod audit;
pub mod clean;
pub mod depths;
pub mod due;
pub mod ghosts;
pub mod history;
mod pace;
pub mod pages;
mod placement;
mod room;
pub mod runs;
mod statistics;
mod sweep;
pub mod walk;

use std::collections::VecDeque;
use std::io;

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_base::sync::shim::{AtomicU64, AtomicUsize, Ordering};

use crate::eviction::log::{LogPolicy, LogPolicyKind, Memory, Next, Queues as Lengths, UNIT};
use crate::item::{Header, Shape, record_words};
use crate::memory::arena::{Address, Arena, WORD};
use crate::memory::pool::Pool;
use crate::store::Store;
use ahead::Ahead;
use history::History;
use pages::Pages;

pub use crate::eviction::log::Queue;

/// Which stream an item is appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// New items whose value is there.
    New = 0,
    /// New items whose value is on its way.
    Arriving = 1,
    /// Items that a cleaning keeps, and new items that were missed.
    Kept = 2,
}

const STREAMS: usize = 3;

/// The purpose for which a record is appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A new item.
    New,
    /// A new item where nothing may leave: records that are still to be moved keep their [room].
    Sparing,
    /// A record of a page that is being cleaned. It may take the last pages.
    Moved {
        /// Where the record is.
        from: Address,
        /// False: nothing may leave.
        evicts: bool,
    },
}

impl Stream {
    fn queue(self) -> Queue {
        match self {
            Self::New | Self::Arriving => Queue::Probation,
            Self::Kept => Queue::Main,
        }
    }
}

/// Threads that clean at the same time at most.
const CLEANERS: usize = if cfg!(loom) { 2 } else { 4 };

/// Pages that only a cleaning may take, so that it can go on.
pub const RESERVE: usize = 1;

/// Free pages, beyond the reserve, below which threads that append also clean.
const FREE_MIN: usize = 1;

/// A log of fewer pages than this may have any number of gaps.
const GAPPY_MIN: usize = if cfg!(loom) { usize::MAX >> 8 } else { 16 };

/// A thread that appends cleans when this many words were appended to its stream since a thread last did. With four
/// times as many, one set in a thousand takes twice as long (docs/notebook.md).
const QUANTUM: usize = if cfg!(loom) { 1 } else { 16 };

/// The rest of an almost full page is filled by records of at least one part in `LONG` of the longest.
const LONG: usize = 8;

/// Records of a page from which its age is estimated.
const FIRST: usize = 32;

/// No page is free, or the record that was to be moved has left.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// A record's memory.
#[derive(Debug)]
pub struct Appended {
    /// Where it is.
    pub address: Address,
    /// Words that were appended since a thread was last told to clean.
    pub due: usize,
    /// Words that can be appended before new items need a page.
    pub room: usize,
}

/// Pages, the streams that fill them, and the queues in which they are cleaned.
pub struct Log {
    pub(crate) pages: Pages,
    page_words: usize,
    streams: [Mutex<Open>; STREAMS],
    runs: runs::Runs,
    pace: pace::Pace,
    queues: Mutex<Queues>,
    cleanings: [Mutex<Option<Cleaning>>; CLEANERS],
    /// The sequence of the newest page when the last walk began: records that are moved since go to newer ones.
    walked: AtomicU64,
    /// The highest sequence of a page to which a record was moved.
    moved_to: AtomicU64,
    /// Pages that can be taken without cleaning, the reserve included, at the last look.
    free: AtomicUsize,
    /// 1 if half of the words are gaps, at the moment when the last page was opened.
    gappy: AtomicUsize,
    /// Pages that are owed [room].
    unfinished: AtomicUsize,
    /// Words of the longest record so far of those that are longer than a value's pieces: heads with a long key, or with
    /// a long table.
    longest_head: AtomicUsize,
    /// The place of the background sweep that looks at all records in turn: a page, and a word in it.
    turn: Mutex<u64>,
    /// When items die.
    pub(crate) due: due::Due,
    /// What is known of items that have left, and of sizes.
    pub history: History,
    /// Which page is cleaned, and which of its items stay.
    pub policy: Box<dyn LogPolicy>,
}

/// The pages to which a stream appends.
#[derive(Default)]
struct Open {
    /// The one taken last, and the one before it, which still has room for small records.
    pages: [Option<OpenPage>; 2],
    due: usize,
    /// Words of the shortest record, of those that the older page takes, since the newer one was taken; 0: there was
    /// none.
    shortest: usize,
}

impl Open {
    /// Notes a record that the older page may take.
    fn note_long(&mut self, words: usize) {
        self.shortest = match self.shortest {
            0 => words,
            shortest => shortest.min(words),
        };
    }
}

#[derive(Clone, Copy)]
struct OpenPage {
    page: u32,
    end: usize,
}

/// The queues of pages.
#[derive(Default)]
struct Queues {
    /// [`Queue::Probation`] and [`Queue::Main`], the oldest page first.
    pages: [VecDeque<u32>; 2],
    sequence: u64,
    /// False until memory was short for the first time: then the oldest pages become the main queue.
    divided: bool,
    /// Pages that are owed [room].
    unfinished: room::Unfinished,
}

impl Queues {
    /// How many pages each has.
    fn lengths(&self) -> [usize; 2] {
        self.pages.each_ref().map(VecDeque::len)
    }
}

/// What a page is cleaned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Memory is not short; the page has many gaps. Nothing alive leaves.
    Order,
    /// Nothing alive may leave, so there is no other way to make room than to fill each gap.
    EveryGap,
    /// Memory is short, and pages in which items have died are being swept: nothing alive leaves before the sweep is
    /// through.
    Dead,
    /// Memory is short, and items leave.
    Room,
    /// Memory is short, and the usual cleaning finds no page: nothing is moved any more, and pages that a cleaning has
    /// left are tried again.
    AnyRoom,
}

/// A page is cleaned for its gaps if no more than this part of it is in use, of [`UNIT`].
const COMPACT_AT: usize = 48;

/// The same while memory is not short: then pages are cleaned only if half of all words are unused, so that items that
/// are written over and over do not spread over the whole memory.
const COMPACT_AT_EASE: usize = 32;

impl Need {
    /// The part of a page, of [`UNIT`], that may be in use if the page is cleaned for its gaps.
    fn compact_at(self) -> usize {
        match self {
            Self::Order => COMPACT_AT_EASE,
            Self::EveryGap => UNIT,
            Self::Room | Self::Dead => COMPACT_AT,
            Self::AnyRoom => 0,
        }
    }
}

/// How a page to clean is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What it is cleaned for.
    pub need: Need,
    /// False: nothing alive may leave, whatever the need.
    pub evicts: bool,
}

/// Why a thread has no page to clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Other threads clean all pages that can be cleaned.
    Elsewhere,
    /// No page can be cleaned.
    Nothing,
}

/// A page that is being cleaned.
#[derive(Clone, Copy, Debug)]
pub struct Cleaning {
    /// The page.
    pub page: u32,
    /// Its queue.
    pub queue: Queue,
    /// True if all live items stay: the page is cleaned for the sake of its gaps.
    pub compacts: bool,
    /// True if a cleaning has tried it before, and something could not be moved.
    pub again: bool,
    /// True if something was moved out of it by that cleaning or by this one.
    pub begun: bool,
    /// Words up to which it was cleaned.
    pub at: usize,
    /// What is known of the records behind them.
    pub ahead: Ahead,
    /// Words that were too few for a run so far.
    owed: usize,
    /// Words that were kept.
    kept: usize,
    /// Items met since sizes were noted.
    met: history::Met,
}

impl Log {
    /// An empty log of up to `pages` pages, in a store with a memory limit of `limit` bytes at the start.
    pub fn new(
        limit: usize,
        pages: usize,
        page_words: usize,
        eviction: &LogPolicyKind,
    ) -> io::Result<Self> {
        Ok(Self {
            pages: Pages::reserve(pages)?,
            page_words,
            streams: Default::default(),
            runs: runs::Runs::new(page_words),
            pace: pace::Pace::default(),
            queues: Mutex::default(),
            cleanings: Default::default(),
            walked: AtomicU64::new(0),
            moved_to: AtomicU64::new(0),
            free: AtomicUsize::new(usize::MAX),
            gappy: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(0),
            longest_head: AtomicUsize::new(0),
            turn: Mutex::default(),
            due: due::Due::default(),
            history: History::new(limit, pages * page_words * WORD, eviction.ghosts)?,
            policy: (eviction.build)(),
        })
    }

    /// The page that a record lies in.
    #[inline(always)]
    pub(crate) fn page_of(&self, address: Address) -> u32 {
        (address.0 / self.page_words as u64) as u32
    }

    /// The queue of the page that a record lies in.
    pub fn queue_of(&self, address: Address) -> Queue {
        self.pages.queue(self.page_of(address))
    }

    /// True if uses of an item count where it lies.
    pub fn counts_uses(&self, address: Address) -> bool {
        self.pages.counts(self.page_of(address))
    }

    /// True if the page of one record came into the log after that of another.
    pub fn is_newer(&self, one: Address, other: Address) -> bool {
        let sequence = |address| self.pages.sequence(self.page_of(address));
        sequence(one) > sequence(other)
    }

    /// True if threads that append are to clean.
    #[inline]
    pub fn is_short(&self) -> bool {
        // Relaxed, here and below: a hint.
        self.free.load(Ordering::Relaxed) < RESERVE + FREE_MIN
    }

    /// True if a new item's record of so many bytes among those that are kept leaves room for those that a cleaning under way
    /// may still move: it can take another page, or what is left of the last one is enough for both. A record that has to stay
    /// and finds no room is lost, and its item with it. (A hint: of several cleanings, that of the last step.)
    #[inline]
    pub fn leaves_room_to_move(&self, bytes: usize) -> bool {
        self.free.load(Ordering::Relaxed) >= RESERVE
            || self.pace.moving().is_none_or(|page| {
                self.pace.kept_room() >= record_words(bytes) + self.pages.held(page).words()
            })
    }

    /// True if less than half of the words in the pages are in use, and there are more than a few pages.
    #[inline]
    pub fn is_gappy(&self) -> bool {
        self.gappy.load(Ordering::Relaxed) != 0
    }

    /// Takes note of whether half of the words are gaps.
    fn note_gaps(&self, queues: &Queues) {
        let pages = queues.pages.iter().flatten();
        let held: usize = pages
            .clone()
            .map(|&page| self.pages.held(page).words())
            .sum();
        let words = pages.count() * self.page_words;
        let gappy = words >= GAPPY_MIN * self.page_words && 2 * held < words;
        self.gappy.store(usize::from(gappy), Ordering::Relaxed);
    }

    /// Other users of the memory wait for more than there is. False if none waits.
    pub fn give_up_waiting(&self, store: &Store<Self>) -> bool {
        let mut pool = store.pool();
        let waited = pool.give_up_earmark();
        self.note_free(&pool);
        waited
    }

    /// Takes note of how many pages are free.
    pub fn note_free(&self, pool: &Pool) {
        self.free.store(pool.free_pages(), Ordering::Relaxed);
    }

    /// Appends a gap of `bytes` bytes for an item, or a piece of one. The caller owns it. `whole` is the item's shape
    /// if the gap is for its header.
    pub fn append(
        &self,
        store: &Store<Self>,
        stream: Stream,
        bytes: usize,
        whole: Option<&Shape>,
        purpose: Purpose,
    ) -> Result<Appended, Full> {
        let words = record_words(bytes);
        debug_assert!(words <= self.page_words);
        let mut open = self.streams[stream as usize].lock();
        let met_from = match purpose {
            // Any page will do.
            Purpose::New | Purpose::Sparing => 0,
            Purpose::Moved { from, evicts } => {
                // Under the lock: the thread that counted the record among the gaps may have given its room away.
                if Header::load(&store.arena, from).is_gap() {
                    return Err(Full);
                }
                self.met_from(from, evicts)
            }
        };
        let room = |open: &Option<OpenPage>| {
            open.is_some_and(|open| {
                open.end + words <= self.page_words
                    && (met_from == 0 || self.pages.sequence(open.page) > met_from)
            })
        };
        // A long record goes to the older page, if it fits: that page gets no other chance. A short record does not, or
        // the heads of many large values would gather there, and leave together.
        let long = words * LONG >= store.piece_max() / WORD;
        if long {
            open.note_long(words);
        }
        if words > store.piece_max() / WORD {
            // Relaxed: read under this lock where it matters.
            self.longest_head.fetch_max(words, Ordering::Relaxed);
        }
        let [newer, older] = open.pages.each_ref().map(room);
        let number = usize::from(older && long);
        if number == 0 {
            if purpose == Purpose::Sparing && !self.leaves_room(store, &open, !newer, words) {
                return Err(Full);
            }
            if !newer {
                self.open_page(store, stream, &mut open, purpose)?;
            }
        }
        open.due += words;
        let due = if open.due >= QUANTUM {
            std::mem::take(&mut open.due)
        } else {
            0
        };
        let Some(place) = &mut open.pages[number] else {
            return Err(Full);
        };
        let address = Address(u64::from(place.page) * self.page_words as u64 + place.end as u64);
        place.end += words;
        if matches!(purpose, Purpose::Moved { .. }) {
            // Relaxed: the record is moved under its bucket's lock, and a Release fence comes before its old place is
            // written over; pairs with the Acquire fence of a walk that did not find it there.
            let sequence = self.pages.sequence(place.page);
            self.moved_to.fetch_max(sequence, Ordering::Relaxed);
        }
        // Before an owner writes (store 3).
        store.begin_fill();
        Header::store_gap(&store.arena, address, words);
        if let Some(shape) = whole {
            Header::store_length(&store.arena, address, shape);
        }
        self.pages.append(place.page, words, place.end);
        let room = self.pace.note_room(stream, self.rest(&open));
        Ok(Appended { address, due, room })
    }

    /// A walk that has not met the record yet meets it in a page with a higher sequence than this one: a walk goes from
    /// page to page in the order of sequences. Where items are evicted, a record on probation may move to a page that
    /// is older than its own, if that page was opened after the last walk began. (So a walk may miss a record that
    /// moves twice.)
    fn met_from(&self, from: Address, evicts: bool) -> u64 {
        let sequence = self.pages.sequence(self.page_of(from));
        // Relaxed: a walk that begins at this moment may miss a record that is being moved, see `walk`.
        let walked = self.walked.load(Ordering::Relaxed);
        if evicts {
            sequence.min(walked)
        } else {
            sequence
        }
    }

    /// Opens a new page for a stream, which also keeps the one of its two pages that has more room; but not if no record
    /// of lately would fit: then the page would stay open, and no item in it could leave.
    fn open_page(
        &self,
        store: &Store<Self>,
        stream: Stream,
        open: &mut Open,
        purpose: Purpose,
    ) -> Result<(), Full> {
        let page = {
            let mut pool = store.pool();
            let page = match purpose {
                Purpose::Moved { .. } => pool.take_last(),
                Purpose::New => pool.take_for_new(RESERVE),
                Purpose::Sparing => pool.take_sparing(RESERVE),
            };
            self.note_free(&pool);
            page.ok_or(Full)?
        };
        let queue = stream.queue();
        store.recency.start_page(page, self.page_words);
        {
            let mut queues = self.queues();
            queues.sequence += 1;
            let ghosts = self.history.ghosts.inserted();
            self.pages.open(page, queues.sequence, queue, ghosts);
            queues.pages[queue as usize].push_back(page);
            if queue == Queue::Probation && queues.divided {
                self.count_uses(store, &queues);
            }
            self.note_gaps(&queues);
            self.note_lengths(&queues);
        }
        let fresh = Some(OpenPage { page, end: 0 });
        let [newer, older] = std::mem::replace(&mut open.pages, [fresh, None]);
        // The page with more room stays open, the other is closed.
        let (kept, closed) = match (newer, older) {
            (Some(newer), Some(older)) if newer.end > older.end => (Some(older), Some(newer)),
            (newer, older) => (newer, older),
        };
        let shortest = std::mem::take(&mut open.shortest);
        let fits = |kept: &mut OpenPage| (1..=self.page_words - kept.end).contains(&shortest);
        open.pages[1] = kept;
        let useless = open.pages[1].take_if(|kept| !fits(kept));
        for full in [closed, useless].into_iter().flatten() {
            self.pages.close(full.page);
        }
        Ok(())
    }

    /// Tells the policy how long the queues are.
    fn note_lengths(&self, queues: &Queues) {
        let [probation, main] = &queues.pages;
        let ghosts = self.history.ghosts.inserted();
        // An open page may be older than all pages that can be cleaned.
        let oldest = main.iter().find(|&&page| self.pages.is_closed(page));
        let since = oldest.map_or(ghosts, |&page| self.pages.ghosts(page));
        let lengths = Lengths {
            pages: [probation.len(), main.len()],
            // Another thread may have counted a ghost less.
            turnover: ghosts.saturating_sub(since),
            // An item that left in the present epoch has an age of nothing up to half of it.
            grain: self.history.ghosts.epoch_len() / 2,
        };
        self.policy.note_queues(&lengths, &self.memory());
    }

    /// The memory, as the policy is told of it.
    pub fn memory(&self) -> Memory {
        Memory {
            limit: self.history.depths.limit(),
            page: self.page_bytes(),
            mean: self.history.mean_bytes(),
        }
    }

    /// Lets the uses of items count from now on in the pages of the probation queue that are no longer among its
    /// newest.
    fn count_uses(&self, store: &Store<Self>, queues: &Queues) {
        let probation = &queues.pages[Queue::Probation as usize];
        let newest = self.policy.uncounted(probation.len());
        let older = probation.iter().rev().skip(newest);
        for &page in older.take_while(|&&page| self.pages.start_counting(page)) {
            store.recency.forget_uses(page, self.page_words);
        }
    }

    /// Closes the pages that streams append to, so that they can be cleaned. False if there are none.
    pub fn close_open(&self) -> bool {
        let mut closed = false;
        for stream in &self.streams {
            for open in std::mem::take(&mut stream.lock().pages)
                .into_iter()
                .flatten()
            {
                self.pages.close(open.page);
                closed = true;
            }
        }
        for stream in [Stream::New, Stream::Kept] {
            self.pace.note_room(stream, 0);
        }
        closed
    }

    /// Where nothing may leave, closes the open pages that have gaps, unless pages are owed room.
    pub fn close_gappy(&self) {
        let mut open = self.streams[Stream::Kept as usize].lock();
        // Relaxed: raised under the stream's lock.
        if self.unfinished.load(Ordering::Relaxed) != 0 {
            return;
        }
        for place in &mut open.pages {
            let gappy = |open: &mut OpenPage| self.pages.held(open.page).words() < open.end;
            if let Some(gappy) = place.take_if(gappy) {
                self.pages.close(gappy.page);
            }
        }
    }

    /// A private record is now in the index.
    #[inline]
    pub fn link(&self, address: Address) {
        self.pages.link(self.page_of(address));
    }

    /// A record of the caller's, private or just unlinked, becomes a gap.
    #[inline]
    pub fn free(&self, arena: &Arena, address: Address, words: usize, private: bool) {
        Header::store_gap(arena, address, words);
        self.pages.free(self.page_of(address), words, private);
    }

    /// Makes one of the cleanings this thread's: one under way, or a new one.
    pub fn start_cleaning(
        &self,
        store: &Store<Self>,
        plan: &Plan,
    ) -> Result<MutexGuard<'_, Option<Cleaning>>, Idle> {
        let mut idle = None;
        let mut busy = 0;
        for cleaning in &self.cleanings {
            match cleaning.try_lock() {
                Some(cleaning) if cleaning.is_some() => return Ok(cleaning),
                free @ Some(_) => idle = idle.or(free),
                None => busy += 1,
            }
        }
        if let Some(mut idle) = idle {
            *idle = self.choose(store, plan);
            if let Some(cleaning) = &*idle {
                self.pace.note_begun();
                self.pages.note_tried(cleaning.page);
                return Ok(idle);
            }
        }
        Err(if busy > 0 {
            Idle::Elsewhere
        } else {
            Idle::Nothing
        })
    }

    /// The page to clean next, by the policy. It is out of its queue until the cleaning has finished.
    fn choose(&self, store: &Store<Self>, plan: &Plan) -> Option<Cleaning> {
        if !plan.evicts {
            return self.choose_within_room(store, plan);
        }
        self.close_runs();
        let mut queues = self.queues();
        if plan.need == Need::Room && !queues.divided {
            queues.divided = true;
            self.divide(&mut queues);
        }
        if let Some(cleaning) = self.emptiest(&mut queues, plan, usize::MAX, None) {
            return Some(cleaning);
        }
        match plan.need {
            Need::Order | Need::Dead | Need::EveryGap => None,
            Need::Room | Need::AnyRoom => self.oldest(store, &mut queues, plan),
        }
    }

    /// The same where nothing may leave: only a page for whose records there is room.
    fn choose_within_room(&self, store: &Store<Self>, plan: &Plan) -> Option<Cleaning> {
        // Held until the page is owed its room.
        let open = self.streams[Stream::Kept as usize].lock();
        let room = self.room_to_clean(store, &open);
        let mut queues = self.queues();
        // A page that was closed early has a gap at its end.
        let early = self.page_words - self.longest(store);
        let emptiest = self.emptiest(&mut queues, plan, room, Some(early));
        let mut cleaning = emptiest.or_else(|| {
            if plan.need != Need::EveryGap {
                return None;
            }
            // A page that is stuck, because something in it was read in place, is tried again only if there is no
            // other.
            let pays = |page: &u32| {
                let held = self.pages.held(*page).words();
                held < self.pages.end(*page) && held <= room
            };
            let stuck = self.take_oldest(&mut queues, Queue::Main, true, pays)?;
            Some(Cleaning {
                compacts: true,
                again: true,
                ..stuck
            })
        })?;
        cleaning.begun = queues.unfinished.begin(cleaning.page);
        self.note_unfinished(&queues);
        Some(cleaning)
    }

    /// The oldest page of the queue that the policy names, or else of the other queue.
    fn oldest(&self, store: &Store<Self>, queues: &mut Queues, plan: &Plan) -> Option<Cleaning> {
        let memory = self.memory();
        let next = loop {
            let next = self.policy.next(queues.lengths(), &memory);
            // Where nothing else has given room, no page stays.
            if plan.need == Need::AnyRoom || !self.stays(store, queues, &next) {
                break next.queue;
            }
            self.policy.note_stay(next.queue);
        };
        let first = match next {
            Queue::Probation => [Queue::Probation, Queue::Main],
            Queue::Main => [Queue::Main, Queue::Probation],
        };
        let retries = plan.need == Need::AnyRoom;
        let tries = [false, true].into_iter().take(1 + usize::from(retries));
        let mut tries = tries.flat_map(|stuck| first.map(|queue| (queue, stuck)));
        let cleaning =
            tries.find_map(|(queue, stuck)| self.take_oldest(queues, queue, stuck, |_| true))?;
        let left = queues.lengths();
        self.policy.note_emptying(cleaning.queue, left, &memory);
        Some(cleaning)
    }

    /// If enough items of the page that comes next were used, each pays a use, and the page goes to the back of its
    /// queue.
    fn stays(&self, store: &Store<Self>, queues: &mut Queues, next: &Next) -> bool {
        let Some(stays_at) = next.stays_at else {
            return false;
        };
        let Some(at) = self.position_of_oldest(queues, next.queue, false, |_| true) else {
            return false;
        };
        let pages = &mut queues.pages[next.queue as usize];
        let page = pages[at];
        let used = store.recency.used_in(page, self.page_words) as usize;
        if used < stays_at {
            return false;
        }
        store.recency.pay_in(page, self.page_words);
        pages.remove(at);
        pages.push_back(page);
        self.pages.note_passed(page, self.history.ghosts.inserted());
        true
    }

    /// The page with the fewest words in use, if they are so few that to move them pays, and no more than there is room
    /// for. The page has gaps, or no more than `early` words in use.
    fn emptiest(
        &self,
        queues: &mut Queues,
        plan: &Plan,
        room: usize,
        early: Option<usize>,
    ) -> Option<Cleaning> {
        let limit = room.min(self.page_words * plan.need.compact_at() / UNIT);
        let mut best: Option<(usize, usize, usize)> = None;
        for (queue, pages) in queues.pages.iter().enumerate() {
            for (at, &page) in pages.iter().enumerate() {
                // Checked before the page's records are counted: a private record is appended to an open page, and so
                // is counted by then (log 3).
                if !self.pages.is_closed(page) {
                    continue;
                }
                let held = self.pages.held(page);
                if held.words() <= limit
                    && (held.words() < self.pages.end(page)
                        || early.is_some_and(|early| held.words() <= early))
                    && !self.pages.is_stuck(page)
                    && best.is_none_or(|(least, ..)| held.words() < least)
                    && held.private() == 0
                {
                    best = Some((held.words(), queue, at));
                }
            }
        }
        let (words, queue, at) = best?;
        let page = queues.pages[queue].remove(at)?;
        Some(Cleaning {
            page,
            queue: self.pages.queue(page),
            compacts: true,
            again: false,
            begun: false,
            // A page with nothing but gaps needs no look.
            at: if words == 0 { self.pages.end(page) } else { 0 },
            ahead: Ahead::default(),
            owed: 0,
            kept: 0,
            met: history::Met::default(),
        })
    }

    /// The oldest page of a queue that can be cleaned, and pays; a stuck page only if `stuck`.
    fn take_oldest(
        &self,
        queues: &mut Queues,
        queue: Queue,
        stuck: bool,
        pays: impl Fn(&u32) -> bool,
    ) -> Option<Cleaning> {
        let at = self.position_of_oldest(queues, queue, stuck, pays)?;
        let page = queues.pages[queue as usize].remove(at)?;
        Some(Cleaning {
            page,
            queue,
            compacts: false,
            again: stuck,
            begun: false,
            at: 0,
            ahead: Ahead::default(),
            owed: 0,
            kept: 0,
            met: history::Met::default(),
        })
    }

    /// Its position in the queue.
    fn position_of_oldest(
        &self,
        queues: &Queues,
        queue: Queue,
        stuck: bool,
        pays: impl Fn(&u32) -> bool,
    ) -> Option<usize> {
        let ready = |&page: &u32| {
            self.pages.is_closed(page)
                && self.pages.held(page).private() == 0
                && (stuck || !self.pages.is_stuck(page))
                && pays(&page)
        };
        queues.pages[queue as usize].iter().position(ready)
    }

    /// Memory is short for the first time: all pages but the newest become the main queue, as if all items had been
    /// used.
    fn divide(&self, queues: &mut Queues) {
        let total = queues.pages[0].len();
        let mut old = total - total * self.policy.probation(&self.memory()) / UNIT;
        let pages = std::mem::take(&mut queues.pages[0]);
        let (main, probation): (VecDeque<_>, _) = pages.into_iter().partition(|&page| {
            let goes = old > 0 && self.pages.is_closed(page);
            old -= usize::from(goes);
            goes
        });
        for &page in &main {
            self.pages.promote(page);
        }
        queues.pages[0] = probation;
        queues.pages[1].extend(main);
    }

    /// An item of which a record lies at this place has lost its last pin.
    pub fn note_unpinned(&self, address: Address) {
        self.pages.note_unpinned(self.page_of(address));
    }

    /// Ends a cleaning that has come to the end of its page: the page goes back to the pool if nothing in it is in use.
    /// If something could not be moved, it stays, as the newest of its queue. True if the page is free.
    pub fn finish_cleaning(&self, store: &Store<Self>, cleaning: &Cleaning) -> bool {
        self.pace.note_ended();
        let page = cleaning.page;
        let held = self.pages.held(page);
        if held.words() > 0 {
            let mut queues = self.queues();
            self.pages.note_stuck(page, held);
            queues.unfinished.end(page, cleaning.begun);
            self.note_unfinished(&queues);
            queues.pages[cleaning.queue as usize].push_back(page);
            return false;
        }
        if self.unfinished.load(Ordering::Relaxed) != 0 {
            let mut queues = self.queues();
            queues.unfinished.end(page, false);
            self.note_unfinished(&queues);
        }
        self.pages.leave(page);
        let pool = store.return_page(page);
        self.note_free(&pool);
        true
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock()
    }

    /// Words of a page.
    pub fn page_words(&self) -> usize {
        self.page_words
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_words * WORD
    }

    /// Words of all records in use.
    pub fn held_words(&self) -> usize {
        let queues = self.queues();
        let cleaned = self
            .cleanings
            .iter()
            .filter_map(|cleaning| cleaning.try_lock()?.map(|cleaning| cleaning.page));
        let pages = queues.pages.iter().flatten().copied().chain(cleaned);
        pages.map(|page| self.pages.held(page).words()).sum()
    }

    /// The least sequence of the first items in a queue's oldest page.
    pub fn first_stored(&self, store: &Store<Self>, queue: Queue) -> Option<u64> {
        let page = *self.queues().pages[queue as usize].front()?;
        let mut oldest = None;
        let sequence = self.pages.sequence(page);
        self.records(store, page, sequence, 0, FIRST, |_, header| {
            if header.is_item() {
                let sequence = header.sequence();
                oldest = Some(oldest.map_or(sequence, |oldest: u64| oldest.min(sequence)));
            }
        });
        oldest
    }

    /// How many pages each queue has: probation, main.
    pub fn queue_lengths(&self) -> [usize; 2] {
        self.queues().lengths()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::sizes::Sizes;

    /// Where readers hold something in every page, a store looks at each page once, and not again before a reader has
    /// finished there.
    #[test]
    fn a_page_that_a_reader_holds_is_tried_once() {
        const LIMIT: usize = 4 << 20;
        const BYTES: usize = 4000;
        let sizes = Sizes::for_log(LIMIT, 48, 1.25);
        let store = Store::<Log>::new(LIMIT, LIMIT, sizes, LogPolicyKind::default_kind()).unwrap();
        let log = store.log();
        let mut chunks = Vec::new();
        while let Ok(appended) = log.append(&store, Stream::New, BYTES, None, Purpose::New) {
            log.link(appended.address);
            chunks.push(appended.address);
        }
        assert!(log.close_open());
        assert!(!log.close_open());
        let plan = Plan {
            need: Need::Room,
            evicts: true,
        };
        let next = |plan: &Plan| {
            let cleaning = log.start_cleaning(&store, plan).ok()?.take()?;
            assert!(!log.finish_cleaning(&store, &cleaning));
            Some(cleaning.page)
        };
        let mut met: Vec<u32> = std::iter::from_fn(|| next(&plan)).collect();
        assert_eq!(next(&plan), None);
        let held = chunks[chunks.len() / 2];
        log.note_unpinned(held);
        assert_eq!(next(&plan), Some(log.page_of(held)));
        assert_eq!(next(&plan), None);
        // A thread that has found nothing tries all of them again.
        let need = Need::AnyRoom;
        assert!(next(&Plan { need, ..plan }).is_some());
        met.sort_unstable();
        let mut pages: Vec<u32> = chunks.iter().map(|&address| log.page_of(address)).collect();
        pages.dedup();
        pages.sort_unstable();
        assert_eq!(met, pages);
    }

    /// A page that is almost full stays open only as long as it has room for records like those of lately.
    #[test]
    fn a_page_without_room_does_not_stay_open() {
        const LIMIT: usize = 1 << 20;
        let sizes = Sizes::for_log(LIMIT, 48, 1.25);
        let store = Store::<Log>::new(LIMIT, LIMIT, sizes, LogPolicyKind::default_kind()).unwrap();
        let log = store.log();
        let page_of = |words: usize| {
            let appended = log.append(&store, Stream::New, words * WORD, None, Purpose::New);
            log.page_of(appended.unwrap().address)
        };
        let fill = |words: usize| {
            let pages: Vec<u32> = (0..log.page_words() / words)
                .map(|_| page_of(words))
                .collect();
            pages[0]
        };
        // 23 words are left in the first page, and none in the others.
        let first = fill(27);
        let second = fill(32);
        assert!(log.pages.is_closed(first));
        // In the second page are 48 left.
        let third = fill(50);
        assert_eq!(page_of(64), third + 1);
        assert!(log.pages.is_closed(second) && log.pages.is_closed(third));
        for _ in 0..31 {
            page_of(64);
        }
        for _ in 0..39 {
            page_of(50);
        }
        let fourth = page_of(40);
        assert_ne!(page_of(64), fourth);
        assert!(!log.pages.is_closed(fourth), "58 words are left");
        assert_eq!(page_of(58), fourth);
    }
}
