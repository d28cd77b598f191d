//! One size class: its pages, their free chunks, and its clock hand.
//!
//! Every field of a [`PageState`] is guarded by the lock of the class that has the page. The fields
//! are atomics only so that pages can change their class without unsafe code; all accesses under the
//! lock are relaxed.

use nuthatch_sync::shim::{AtomicU32, AtomicU64, Ordering};

use super::arena::{Arena, Chunk, WORD};
use super::sizes::PAGE_WORDS;
use crate::eviction::clock::Recency;
use crate::item::Header;

/// The class of a page that none has.
pub const NO_CLASS: u32 = u32::MAX;

/// Chunks the hand passes at most before it takes what it finds (MemC3's code: 640).
const HAND_MAX: usize = 640;

/// What is known of a page.
pub struct PageState {
    /// Which class has it. Whoever owns a chunk of the page may read this without the lock.
    pub class: AtomicU32,
    /// Chunk number + 1 of the first free chunk; they are chained through word 1.
    free_head: AtomicU32,
    free: AtomicU32,
    /// Chunks from here on were never used.
    fresh: AtomicU32,
    /// 1 if it stands in the class's list of pages with room.
    listed: AtomicU32,
    /// 1 while it is being emptied for another class: nothing is allocated in it.
    draining: AtomicU32,
    /// 1 since something in it that is nobody's item yet kept it from being emptied: another page
    /// is to be tried first.
    stuck: AtomicU32,
    /// The store's eviction clock when the hand last came to this page.
    pub visited: AtomicU64,
}

impl Default for PageState {
    fn default() -> Self {
        Self {
            class: AtomicU32::new(NO_CLASS),
            free_head: AtomicU32::new(0),
            free: AtomicU32::new(0),
            fresh: AtomicU32::new(0),
            listed: AtomicU32::new(0),
            draining: AtomicU32::new(0),
            stuck: AtomicU32::new(0),
            visited: AtomicU64::new(0),
        }
    }
}

/// A class's pages. Guarded by a lock of its own, which is a leaf: nothing is locked under it.
#[derive(Default)]
pub struct Class {
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// Words of each chunk that lie in front of where a [`Chunk`] points.
    front: usize,
    /// Chunks in a page.
    pub per_page: u32,
    /// Its pages, in the order in which the hand passes.
    pub pages: Vec<u32>,
    /// Pages with a free or fresh chunk.
    with_room: Vec<u32>,
    /// Where the hand stands: index into `pages`, chunk number.
    hand_page: usize,
    hand_chunk: u32,
    /// Chunks given out.
    pub used: usize,
    /// Evictions since it last got a page from another class.
    pub evicted_since_move: u32,
}

fn get(field: &AtomicU32) -> u32 {
    field.load(Ordering::Relaxed)
}

fn set(field: &AtomicU32, value: u32) {
    field.store(value, Ordering::Relaxed);
}

impl Class {
    /// A class without pages. `front` words of each chunk are the engine's.
    pub fn new(chunk_bytes: usize, front: usize) -> Self {
        let per_page = (PAGE_WORDS * WORD / chunk_bytes) as u32;
        Self {
            chunk_bytes,
            front,
            per_page,
            ..Self::default()
        }
    }

    /// The start of chunk `number` of a page.
    pub fn chunk(&self, page: u32, number: u32) -> Chunk {
        let start = u64::from(page) * PAGE_WORDS as u64 + u64::from(number) * self.chunk_words();
        Chunk(start + self.front as u64)
    }

    fn chunk_words(&self) -> u64 {
        (self.chunk_bytes / WORD) as u64
    }

    fn number(&self, chunk: Chunk) -> u32 {
        (chunk.0 % PAGE_WORDS as u64 / self.chunk_words()) as u32
    }

    /// Takes an empty page in.
    pub fn add_page(&mut self, states: &[PageState], page: u32, class: u32, visited: u64) {
        let state = &states[page as usize];
        set(&state.class, class);
        set(&state.free_head, 0);
        set(&state.free, 0);
        set(&state.fresh, 0);
        set(&state.listed, 1);
        set(&state.draining, 0);
        set(&state.stuck, 0);
        state.visited.store(visited, Ordering::Relaxed);
        self.pages.push(page);
        self.with_room.push(page);
    }

    /// A free chunk, if a page has one.
    #[inline]
    pub fn allocate(&mut self, states: &[PageState], arena: &Arena) -> Option<Chunk> {
        while let Some(&page) = self.with_room.last() {
            let state = &states[page as usize];
            if get(&state.draining) == 0
                && let Some(chunk) = self.allocate_in(page, state, arena)
            {
                self.used += 1;
                return Some(chunk);
            }
            set(&state.listed, 0);
            self.with_room.pop();
        }
        None
    }

    fn allocate_in(&self, page: u32, state: &PageState, arena: &Arena) -> Option<Chunk> {
        let head = get(&state.free_head);
        if head != 0 {
            let chunk = self.chunk(page, head - 1);
            set(&state.free_head, arena.load(chunk, 1) as u32);
            set(&state.free, get(&state.free) - 1);
            return Some(chunk);
        }
        let fresh = get(&state.fresh);
        if fresh < self.per_page {
            set(&state.fresh, fresh + 1);
            return Some(self.chunk(page, fresh));
        }
        None
    }

    /// Takes a chunk back.
    #[inline]
    pub fn free(&mut self, states: &[PageState], arena: &Arena, page: u32, chunk: Chunk) {
        let state = &states[page as usize];
        Header::store_free(arena, chunk, u64::from(get(&state.free_head)));
        set(&state.free_head, self.number(chunk) + 1);
        set(&state.free, get(&state.free) + 1);
        set(&state.stuck, 0);
        self.used -= 1;
        if get(&state.listed) == 0 && get(&state.draining) == 0 {
            set(&state.listed, 1);
            self.with_room.push(page);
        }
    }

    /// Moves the hand to the next chunk that was not used since it last came by, or takes what it
    /// finds after [`HAND_MAX`] chunks. `None` only without pages. The chunk may hold anything by
    /// the time the caller looks: an item, a segment, or nothing.
    pub fn victim(
        &mut self,
        states: &[PageState],
        recency: &Recency,
        eviction_clock: u64,
    ) -> Option<Chunk> {
        let mut passed = 0;
        // Every turn moves the hand on, over a chunk or to the next page; pages without chunks in
        // use are passed at most twice a round.
        for _ in 0..HAND_MAX + 2 * self.pages.len() {
            let page = *self.pages.get(self.hand_page)?;
            let state = &states[page as usize];
            if self.hand_chunk >= get(&state.fresh) || get(&state.draining) != 0 {
                self.hand_page = (self.hand_page + 1) % self.pages.len();
                self.hand_chunk = 0;
                let next = &states[self.pages[self.hand_page] as usize];
                next.visited.store(eviction_clock, Ordering::Relaxed);
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

    /// The chunk after the next one that the hand will look at, for prefetching.
    pub fn ahead(&self, states: &[PageState], by: u32) -> Option<Chunk> {
        let page = *self.pages.get(self.hand_page)?;
        let number = self.hand_chunk + by;
        (number < get(&states[page as usize].fresh)).then(|| self.chunk(page, number))
    }

    /// The page that went longest without a visit, of those that can be emptied, and the eviction
    /// clock at that visit. Of equals the one that the hand will come to first.
    pub fn coldest(&self, states: &[PageState]) -> Option<(u32, u64)> {
        let (before, after) = self
            .pages
            .split_at(self.pages.len().min(self.hand_page + 1));
        let ahead = after.iter().chain(before);
        let tried = ahead.filter(|&&page| get(&states[page as usize].stuck) == 0);
        tried
            .map(|&page| (page, states[page as usize].visited.load(Ordering::Relaxed)))
            .min_by_key(|&(_, visited)| visited)
    }

    /// Lets pages that could not be emptied be tried again.
    pub fn retry_stuck(&mut self, states: &[PageState]) {
        for &page in &self.pages {
            set(&states[page as usize].stuck, 0);
        }
    }

    /// Starts emptying a page: nothing is allocated in it from now on.
    pub fn start_drain(&mut self, states: &[PageState], page: u32) {
        set(&states[page as usize].draining, 1);
    }

    /// Keeps a page after all, because something in it does not go away.
    pub fn cancel_drain(&mut self, states: &[PageState], page: u32) {
        let state = &states[page as usize];
        set(&state.draining, 0);
        set(&state.stuck, 1);
        let room = get(&state.free) > 0 || get(&state.fresh) < self.per_page;
        if room && get(&state.listed) == 0 {
            set(&state.listed, 1);
            self.with_room.push(page);
        }
    }

    /// True if it has no page to allocate or evict in: none at all, or only one that is being
    /// emptied for another class.
    pub fn is_homeless(&self, states: &[PageState]) -> bool {
        let mut pages = self.pages.iter();
        pages.all(|&page| get(&states[page as usize].draining) != 0)
    }

    /// Chunks of a page that were ever given out: where a drain must look.
    pub fn drain_end(&self, states: &[PageState], page: u32) -> u32 {
        get(&states[page as usize].fresh)
    }

    /// Gives a drained page up if no chunk of it is in use any more.
    pub fn finish_drain(&mut self, states: &[PageState], page: u32) -> bool {
        let state = &states[page as usize];
        if get(&state.fresh) != get(&state.free) {
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
        set(&state.class, NO_CLASS);
        true
    }

    /// Chunks free or never used.
    pub fn free_chunks(&self) -> usize {
        self.pages.len() * self.per_page as usize - self.used
    }

    /// Recounts from the pages; an error names what is wrong.
    pub fn audit(&self, states: &[PageState], arena: &Arena, class: u32) -> Result<(), String> {
        let mut used = 0;
        for &page in &self.pages {
            let state = &states[page as usize];
            if get(&state.class) != class {
                return Err(format!(
                    "page {page} is listed by class {class} but not its own"
                ));
            }
            let mut free = 0;
            let mut next = get(&state.free_head);
            while next != 0 {
                free += 1;
                if free > get(&state.fresh) {
                    return Err(format!(
                        "page {page}: the chain of free chunks has a circle"
                    ));
                }
                next = arena.load(self.chunk(page, next - 1), 1) as u32;
            }
            if free != get(&state.free) {
                return Err(format!(
                    "page {page}: {free} chunks chained, {} counted",
                    get(&state.free)
                ));
            }
            used += (get(&state.fresh) - free) as usize;
        }
        if used != self.used {
            return Err(format!(
                "class {class}: {used} chunks used, {} counted",
                self.used
            ));
        }
        Ok(())
    }
}
