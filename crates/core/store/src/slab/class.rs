//! One size class: its pages, their free chunks, and its clock hand.
//!
//! Every field of a [`PageState`] is guarded by the lock of the class that has the page. The fields
//! are atomics only so that pages can change their class without unsafe code; all accesses under the
//! lock are relaxed.

use std::io;

use nuthatch_base::sync::shim::{AtomicU64, Ordering};
use nuthatch_engine::AuditError;

use crate::item::Header;
use crate::memory::arena::{Address, Arena, WORD};
use crate::memory::recency::Recency;
use crate::memory::sizes::CLASSES_MAX;
use crate::memory::words::Words;

/// Chunks the hand passes at most before it takes what it finds (MemC3's code: 640).
const HAND_MAX: usize = 640;

/// Pages of a class that are looked at, at most, before one of them is emptied.
const LOOKS_MAX: usize = 8;

/// The state of all pages: zeroed, and touched only when needed, because there are as many pages as the limit may ever
/// be raised to.
pub struct Pages {
    states: Words,
    /// A bit for each class that has an empty page, one of which nothing is given out. Changed under the class's lock.
    with_empty: AtomicU64,
}

const _: () = assert!(CLASSES_MAX <= u64::BITS as usize);

/// The state of a page, by field.
pub type PageState = [AtomicU64; FIELDS];

/// The class that has it and 1 more; 0 for none. An owner of a chunk of the page may read this without the lock.
const CLASS: usize = 0;
/// Address number + 1 of the first free chunk; they are chained through word 1.
const FREE_HEAD: usize = 1;
/// Chunks in that chain.
const FREE: usize = 2;
/// Chunks from here on were never used.
const FRESH: usize = 3;
/// 1 if it stands in the class's list of pages with room.
const LISTED: usize = 4;
/// 1 while it is being emptied for another class: nothing is allocated in it.
const DRAINING: usize = 5;
/// 1 if the page could not be emptied, because a chunk in it is private: another page is to be tried first.
const STUCK: usize = 6;
/// The store's eviction clock when the hand last came to this page.
const VISITED: usize = 7;
/// How many heads of large values are in it. Their pieces, which take far more memory, are in other pages.
const HEADS: usize = 8;
const FIELDS: usize = 9;

impl Pages {
    /// The state of so many pages that no class has.
    pub fn reserve(count: usize) -> io::Result<Self> {
        Ok(Self {
            states: Words::reserve(count * FIELDS)?,
            with_empty: AtomicU64::new(0),
        })
    }

    /// A class that has an empty page, for [`Class::take_empty`]. Takes no lock: a store that is full asks before it
    /// refuses.
    pub fn class_with_empty(&self) -> Option<usize> {
        // Relaxed, here and where the bits change: the page itself is looked at under its class's lock. A request that
        // follows the answer to the removal that emptied a page sees the bit, or a later change.
        let classes = self.with_empty.load(Ordering::Relaxed);
        (classes != 0).then(|| classes.trailing_zeros() as usize)
    }

    /// The class that has a page; none if there is no such page.
    #[inline(always)]
    pub fn class_of(&self, page: u32) -> Option<usize> {
        let state = self.all().get(page as usize)?;
        (get(&state[CLASS]) as usize).checked_sub(1)
    }

    /// Notes that the hand, or the policy that replaces it, came to a page.
    pub fn visit(&self, page: u32, eviction_clock: u64) {
        self.of(page)[VISITED].store(eviction_clock, Ordering::Relaxed);
    }

    /// Counts the head of a large value that comes into a page. Relaxed, here and where it leaves: a hint for the
    /// choice of a page to empty.
    pub fn head_in(&self, page: u32) {
        self.of(page)[HEADS].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a head that leaves.
    pub fn head_out(&self, page: u32) {
        self.of(page)[HEADS].fetch_sub(1, Ordering::Relaxed);
    }

    #[inline(always)]
    fn of(&self, page: u32) -> &PageState {
        &self.all()[page as usize]
    }

    #[inline(always)]
    fn all(&self) -> &[PageState] {
        self.states.as_chunks().0
    }
}

/// How cold a page is, the coldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Coldness {
    /// It holds heads of large values: to empty it would evict far more than a page. The hands of their pieces'
    /// classes show when the values were last used, not this page's.
    heads: bool,
    /// The store's eviction clock when the hand last came to it.
    visited: u64,
}

/// A moment for [`Coldness::is_before`] that any page satisfies.
pub const ANY: u64 = u64::MAX;

impl Coldness {
    /// True if the page may be emptied because it was visited before a moment.
    pub fn is_before(self, moment: u64) -> bool {
        moment == ANY || (self.visited < moment && !self.heads)
    }

    /// The same for a page of a class that has enough chunks without it.
    fn free(self) -> Self {
        Self { visited: 0, ..self }
    }

    fn of(state: &PageState) -> Self {
        Self {
            heads: get(&state[HEADS]) != 0,
            visited: state[VISITED].load(Ordering::Relaxed),
        }
    }
}

/// A class's pages. Guarded by a lock of its own, which is a leaf: nothing is locked under it.
#[derive(Default)]
pub struct Class {
    /// Words of a page: a power of two.
    page_words: usize,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// Words of each chunk that lie in front of where a [`Address`] points.
    front: usize,
    /// Chunks in a page.
    pub per_page: u32,
    /// Its pages, in the order in which the hand passes.
    pub pages: Vec<u32>,
    /// Pages with a free or fresh chunk.
    with_room: Vec<u32>,
    /// How many of them are empty: nothing of them is given out.
    empty: usize,
    /// Where the hand stands: index into `pages`, chunk number.
    hand_page: usize,
    hand_chunk: u32,
    /// Chunks given out.
    pub used: usize,
    /// Evictions since it last got a page from another class.
    pub evicted_since_move: u32,
}

#[inline(always)]
fn get(field: &AtomicU64) -> u32 {
    field.load(Ordering::Relaxed) as u32
}

#[inline(always)]
fn set(field: &AtomicU64, value: u32) {
    field.store(value.into(), Ordering::Relaxed);
}

/// True if nothing of the page is given out. A page on its way to another class does not count.
#[inline(always)]
fn is_empty(state: &PageState) -> bool {
    get(&state[FRESH]) == get(&state[FREE]) && get(&state[DRAINING]) == 0
}

impl Class {
    /// A class without pages. `front` words of each chunk are the engine's.
    pub fn new(page_words: usize, chunk_bytes: usize, front: usize) -> Self {
        let per_page = (page_words * WORD / chunk_bytes) as u32;
        Self {
            page_words,
            chunk_bytes,
            front,
            per_page,
            ..Self::default()
        }
    }

    /// The start of chunk `number` of a page.
    pub fn chunk(&self, page: u32, number: u32) -> Address {
        let start =
            u64::from(page) * self.page_words as u64 + u64::from(number) * self.chunk_words();
        Address(start + self.front as u64)
    }

    fn chunk_words(&self) -> u64 {
        (self.chunk_bytes / WORD) as u64
    }

    fn number(&self, chunk: Address) -> u32 {
        ((chunk.0 & (self.page_words as u64 - 1)) / self.chunk_words()) as u32
    }

    /// Adds an empty page.
    pub fn add_page(&mut self, states: &Pages, page: u32, class: u32, visited: u64) {
        let state = states.of(page);
        set(&state[CLASS], class + 1);
        set(&state[FREE_HEAD], 0);
        set(&state[FREE], 0);
        set(&state[FRESH], 0);
        set(&state[LISTED], 1);
        set(&state[DRAINING], 0);
        set(&state[STUCK], 0);
        states.visit(page, visited);
        self.pages.push(page);
        self.with_room.push(page);
        self.count_empty(states, state);
    }

    /// Counts a page that is empty from now on.
    #[cold]
    fn count_empty(&mut self, states: &Pages, state: &PageState) {
        self.empty += 1;
        if self.empty == 1 {
            let class = get(&state[CLASS]) - 1;
            states.with_empty.fetch_or(1 << class, Ordering::Relaxed);
        }
    }

    /// The reverse.
    #[cold]
    fn uncount_empty(&mut self, states: &Pages, state: &PageState) {
        self.empty -= 1;
        if self.empty == 0 {
            let class = get(&state[CLASS]) - 1;
            states
                .with_empty
                .fetch_and(!(1 << class), Ordering::Relaxed);
        }
    }

    /// Removes an empty page from the class, if there is one.
    pub fn take_empty(&mut self, states: &Pages) -> Option<u32> {
        if self.empty == 0 {
            return None;
        }
        let mut pages = self.with_room.iter().copied();
        let page = pages.find(|&page| is_empty(states.of(page)))?;
        self.start_drain(states, page);
        self.finish_drain(states, page).then_some(page)
    }

    /// A free chunk, if a page has one.
    #[inline]
    pub fn allocate(&mut self, states: &Pages, arena: &Arena) -> Option<Address> {
        while let Some(&page) = self.with_room.last() {
            let state = states.of(page);
            let was_empty = is_empty(state);
            if get(&state[DRAINING]) == 0
                && let Some(chunk) = self.allocate_in(page, state, arena)
            {
                self.used += 1;
                if was_empty {
                    self.uncount_empty(states, state);
                }
                return Some(chunk);
            }
            set(&state[LISTED], 0);
            self.with_room.pop();
        }
        None
    }

    fn allocate_in(&self, page: u32, state: &PageState, arena: &Arena) -> Option<Address> {
        let head = get(&state[FREE_HEAD]);
        if head != 0 {
            let chunk = self.chunk(page, head - 1);
            set(&state[FREE_HEAD], arena.load(chunk, 1) as u32);
            set(&state[FREE], get(&state[FREE]) - 1);
            return Some(chunk);
        }
        let fresh = get(&state[FRESH]);
        if fresh < self.per_page {
            set(&state[FRESH], fresh + 1);
            return Some(self.chunk(page, fresh));
        }
        None
    }

    /// Takes a chunk back.
    #[inline]
    pub fn free(&mut self, states: &Pages, arena: &Arena, page: u32, chunk: Address) {
        let state = states.of(page);
        Header::store_free(arena, chunk, u64::from(get(&state[FREE_HEAD])));
        set(&state[FREE_HEAD], self.number(chunk) + 1);
        set(&state[FREE], get(&state[FREE]) + 1);
        set(&state[STUCK], 0);
        self.used -= 1;
        if get(&state[LISTED]) == 0 && get(&state[DRAINING]) == 0 {
            set(&state[LISTED], 1);
            self.with_room.push(page);
        }
        if is_empty(state) {
            self.count_empty(states, state);
        }
    }

    /// Moves the hand to the next chunk that was not used since the hand last passed it, or takes the chunk that the
    /// hand has reached after [`HAND_MAX`] chunks. `None` only without pages. The chunk may hold anything by the time
    /// the caller looks: an item, a piece, or nothing.
    pub fn victim(
        &mut self,
        states: &Pages,
        recency: &Recency,
        eviction_clock: u64,
    ) -> Option<Address> {
        let mut passed = 0;
        // Every turn moves the hand on, over a chunk or to the next page; pages without chunks in
        // use are passed at most twice a round.
        for _ in 0..HAND_MAX + 2 * self.pages.len() {
            let page = *self.pages.get(self.hand_page)?;
            let state = states.of(page);
            if self.hand_chunk >= get(&state[FRESH]) || get(&state[DRAINING]) != 0 {
                self.hand_page = (self.hand_page + 1) % self.pages.len();
                self.hand_chunk = 0;
                states.visit(self.pages[self.hand_page], eviction_clock);
                continue;
            }
            let chunk = self.chunk(page, self.hand_chunk);
            self.hand_chunk += 1;
            passed += 1;
            if !recency.pass(chunk) || passed >= HAND_MAX {
                return Some(chunk);
            }
        }
        None
    }

    /// The chunk `by` chunks ahead of the hand, for prefetching.
    pub fn ahead(&self, states: &Pages, by: u32) -> Option<Address> {
        let page = *self.pages.get(self.hand_page)?;
        let number = self.hand_chunk + by;
        (number < get(&states.of(page)[FRESH])).then(|| self.chunk(page, number))
    }

    /// The pages that can be emptied, in the order in which the hand will come to them.
    fn ahead_of_hand<'s>(
        &'s self,
        states: &'s Pages,
    ) -> impl Iterator<Item = (u32, Coldness)> + 's {
        let (before, after) = self
            .pages
            .split_at(self.pages.len().min(self.hand_page + 1));
        let tried = after
            .iter()
            .chain(before)
            .map(|&page| (page, states.of(page)));
        tried
            .filter(|(_, state)| get(&state[STUCK]) == 0)
            .map(|(page, state)| (page, Coldness::of(state)))
    }

    /// The coldness of its coldest page, of the pages that can be emptied.
    pub fn coldest(&self, states: &Pages) -> Option<Coldness> {
        let coldest = self.ahead_of_hand(states).map(|(_, cold)| cold).min()?;
        Some(if self.has_spare_page() {
            coldest.free()
        } else {
            coldest
        })
    }

    /// Its coldest page, of the pages that can be emptied.
    pub fn coldest_page(&self, states: &Pages) -> Option<u32> {
        let coldest = self.ahead_of_hand(states).min_by_key(|&(_, cold)| cold);
        coldest.map(|(page, _)| page)
    }

    /// When the hand came to the page that it has not visited for longest, by the store's eviction clock.
    pub fn last_visit(&self, states: &Pages) -> Option<u64> {
        let visits = self.ahead_of_hand(states).map(|(_, cold)| cold.visited);
        visits.min()
    }

    /// True if a page's worth of chunks is free. Free chunks are as good as cold ones, see [`Coldness::free`].
    fn has_spare_page(&self) -> bool {
        self.free_chunks() >= self.per_page as usize
    }

    /// The page to empty: among the coldest that were visited before `before`, the one with the smallest share of
    /// chunks used since then. If that share is an eighth or more, all these pages are spared, as the hand spares an
    /// item: they count as visited `now`, and must be used again before the next look.
    ///
    /// In a class that has room for all its items the hand never moves, so without this its pages would look the
    /// coldest, however much they are used. Why an eighth: the items that one page more would save from eviction
    /// were not used for a whole round of a hand, so fewer of them than that will be used in the next.
    pub fn idlest(&self, states: &Pages, recency: &Recency, before: u64, now: u64) -> Option<u32> {
        let spare = self.has_spare_page();
        let tried = self.ahead_of_hand(states);
        let mut pages: Vec<_> = tried
            .map(|(page, cold)| (page, if spare { cold.free() } else { cold }))
            .filter(|(_, cold)| cold.is_before(before))
            .collect();
        if pages.len() > LOOKS_MAX {
            pages.select_nth_unstable_by_key(LOOKS_MAX, |&(_, cold)| cold);
            pages.truncate(LOOKS_MAX);
        }
        // In eightieths. The bits of free chunks may still be set.
        let used = |page| {
            let chunks = self.given_out(states, page);
            80 * recency.used_in(page, self.page_words).min(chunks) / chunks.max(1)
        };
        let used = pages
            .iter()
            .map(|&(page, cold)| (cold.heads, used(page), cold, page));
        let (_, used, _, page) = used.min()?;
        if used < 80 / 8 {
            return Some(page);
        }
        for (page, _) in pages {
            recency.pass_page(page, self.page_words);
            states.visit(page, now);
        }
        None
    }

    /// Allows another try for pages that could not be emptied.
    pub fn retry_stuck(&mut self, states: &Pages) {
        for &page in &self.pages {
            set(&states.of(page)[STUCK], 0);
        }
    }

    /// Starts emptying a page: nothing is allocated in it from now on.
    pub fn start_drain(&mut self, states: &Pages, page: u32) {
        let state = states.of(page);
        if is_empty(state) {
            self.uncount_empty(states, state);
        }
        set(&state[DRAINING], 1);
    }

    /// Keeps a page after all, because a chunk in it stays in use.
    pub fn cancel_drain(&mut self, states: &Pages, page: u32) {
        let state = states.of(page);
        set(&state[DRAINING], 0);
        set(&state[STUCK], 1);
        let room = get(&state[FREE]) > 0 || get(&state[FRESH]) < self.per_page;
        if room && get(&state[LISTED]) == 0 {
            set(&state[LISTED], 1);
            self.with_room.push(page);
        }
        if is_empty(state) {
            self.count_empty(states, state);
        }
    }

    /// True if it has no page to allocate or evict in: none at all, or only one that is being
    /// emptied for another class.
    pub fn has_no_pages(&self, states: &Pages) -> bool {
        let mut pages = self.pages.iter();
        pages.all(|&page| get(&states.of(page)[DRAINING]) != 0)
    }

    /// Chunks of a page that are given out.
    fn given_out(&self, states: &Pages, page: u32) -> u32 {
        get(&states.of(page)[FRESH]) - get(&states.of(page)[FREE])
    }

    /// Chunks of a page that were ever given out: where a drain must look.
    pub fn drain_end(&self, states: &Pages, page: u32) -> u32 {
        get(&states.of(page)[FRESH])
    }

    /// Removes a drained page from the class if no chunk of it is in use any more.
    pub fn finish_drain(&mut self, states: &Pages, page: u32) -> bool {
        let state = states.of(page);
        if get(&state[FRESH]) != get(&state[FREE]) {
            return false;
        }
        if let Some(index) = self.pages.iter().position(|&other| other == page) {
            self.pages.remove(index);
            if index < self.hand_page {
                self.hand_page -= 1;
            } else if index == self.hand_page {
                self.hand_chunk = 0;
            }
            if self.hand_page >= self.pages.len() {
                self.hand_page = 0;
                self.hand_chunk = 0;
            }
        }
        self.with_room.retain(|&other| other != page);
        set(&state[CLASS], 0);
        true
    }

    /// Chunks free or never used.
    pub fn free_chunks(&self) -> usize {
        self.pages.len() * self.per_page as usize - self.used
    }

    /// Recounts from the pages; an error names what is wrong.
    pub fn audit(&self, states: &Pages, arena: &Arena, class: u32) -> Result<(), AuditError> {
        let mut used = 0;
        for &page in &self.pages {
            let state = states.of(page);
            if get(&state[CLASS]) != class + 1 {
                return Err(
                    format!("page {page} is listed by class {class} but not its own").into(),
                );
            }
            let mut free = 0;
            let mut next = get(&state[FREE_HEAD]);
            while next != 0 {
                free += 1;
                if free > get(&state[FRESH]) {
                    return Err(
                        format!("page {page}: the chain of free chunks has a circle").into(),
                    );
                }
                next = arena.load(self.chunk(page, next - 1), 1) as u32;
            }
            if free != get(&state[FREE]) {
                return Err(format!(
                    "page {page}: {free} chunks chained, {} counted",
                    get(&state[FREE])
                )
                .into());
            }
            used += (get(&state[FRESH]) - free) as usize;
        }
        self.audit_empty(states, class)?;
        if used != self.used {
            return Err(format!("class {class}: {used} chunks used, {} counted", self.used).into());
        }
        Ok(())
    }

    /// Recounts the empty pages. Each must be among the pages with room, where [`Class::take_empty`] looks.
    fn audit_empty(&self, states: &Pages, class: u32) -> Result<(), AuditError> {
        let count = |pages: &[u32]| {
            let empty = pages.iter().filter(|&&page| is_empty(states.of(page)));
            empty.count()
        };
        let (empty, listed) = (count(&self.pages), count(&self.with_room));
        let told = states.with_empty.load(Ordering::Relaxed) >> class & 1 != 0;
        if empty != self.empty || empty != listed || told != (empty > 0) {
            return Err(format!(
                "class {class}: {empty} pages are empty, {} counted, {listed} listed, told: {told}",
                self.empty
            )
            .into());
        }
        Ok(())
    }
}
