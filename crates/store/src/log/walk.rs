//! Walks over the records of a log.
//!
//! A record stays where it is until its page is cleaned, and then it goes to a page that was opened after all walks under
//! way began. So a walk in the order in which pages were opened meets each item that stays in the cache at least once, as
//! long as it goes faster than pages are cleaned; what it may miss is said at [`Log::walk`].

use nuthatch_engine::Cursor;
use nuthatch_sync::shim::{Ordering, fence};

use super::Log;
use crate::item::Header;
use crate::slab::Store;
use crate::slab::arena::Chunk;

/// Bits of a [`Cursor`] that tell the word within a page.
const WORD_BITS: u32 = 18;

/// Where a walk over one page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageWalk {
    /// The number of records has been looked at; the next begins at this word of the page.
    At(usize),
    /// There are no more.
    End,
}

impl Log {
    /// Looks at up to `budget` records of a page, from a word of it on. Ends if the page leaves the log.
    pub fn records(
        &self,
        store: &Store,
        page: u32,
        sequence: u64,
        from: usize,
        budget: usize,
        mut look: impl FnMut(Chunk, &Header),
    ) -> PageWalk {
        let start = u64::from(page) * self.page_words as u64;
        let mut at = from;
        for _ in 0..budget {
            if at >= self.pages.end(page) {
                return PageWalk::End;
            }
            let chunk = Chunk(start + at as u64);
            let header = Header::load(&store.arena, chunk);
            if !self.pages.is_still(page, sequence) {
                return PageWalk::End;
            }
            // Of no record it is 0 (log 1), but a walk must end in any case.
            at += header.record_words(store.chunk_max()).max(1);
            look(chunk, &header);
        }
        PageWalk::At(at)
    }

    /// Looks at about `budget` records from where the last call stopped: the page, and the word in it.
    pub fn sweep(
        &self,
        store: &Store,
        place: (u32, u32),
        budget: usize,
        look: &mut impl FnMut(Chunk),
    ) -> (u32, u32) {
        let (page, from) = place;
        let next = (page + 1, 0);
        let sequence = self.pages.sequence(page);
        if sequence == 0 {
            return next;
        }
        match self.records(store, page, sequence, from as usize, budget, |chunk, _| {
            look(chunk);
        }) {
            PageWalk::At(word) => (page, word as u32),
            PageWalk::End => next,
        }
    }

    /// Shows about `budget` records, and tells where to go on, or `None` at the end.
    ///
    /// A walk passes the pages that there were when it began, and then, up to the last one to which something was moved, those
    /// that were opened since: as many as the memory's limit allows, so that it ends also beside those who write faster.
    /// Meanwhile an item would have to be moved more than once, always just before it is met, not to be seen; or to be on
    /// its way at the moment at which the walk begins, and until that has passed its new place. Beside writers who have pages
    /// cleaned faster than the walk passes them many items may be so. Where nothing is moved, none is met twice.
    pub fn walk(
        &self,
        store: &Store,
        from: Cursor,
        budget: usize,
        mut show: impl FnMut(Chunk),
    ) -> Option<Cursor> {
        let mut cursor = from;
        if cursor.end == 0 {
            let newest = self.queues().sequence;
            // Of several walks that begin at once the last one to have looked counts.
            self.walked.fetch_max(newest, Ordering::Relaxed);
            cursor.end = newest + store.pool().pages_allowed() as u64;
        }
        let word_mask = (1 << WORD_BITS) - 1;
        let (sequence, from) = (
            cursor.place >> WORD_BITS,
            (cursor.place & word_mask) as usize,
        );
        let (found, page) = self.next_page(store, sequence.max(1))?;
        // Acquire: what was met no more where it had been is where this tells of; pairs with the fence behind `moved_to`.
        fence(Ordering::Acquire);
        let walked = self.walked.load(Ordering::Relaxed);
        if found > cursor.end || found > walked.max(self.moved_to.load(Ordering::Relaxed)) {
            return None;
        }
        let from = if found == sequence { from } else { 0 };
        let shown = self.records(store, page, found, from, budget.max(1), |chunk, header| {
            if header.is_item() {
                show(chunk);
            }
        });
        cursor.place = match shown {
            PageWalk::At(word) => found << WORD_BITS | word as u64,
            PageWalk::End => (found + 1) << WORD_BITS,
        };
        Some(cursor)
    }

    /// The page that was opened first of those with this sequence or a higher one, and its sequence.
    fn next_page(&self, store: &Store, sequence: u64) -> Option<(u64, u32)> {
        loop {
            // All pages up to this one are seen below, if they are still there.
            let newest = self.queues().sequence;
            let pages = (0..store.pages_taken()).map(|page| (self.pages.sequence(page), page));
            let next = pages.filter(|&(found, _)| found >= sequence).min();
            // Of those that are opened meanwhile one may be seen, and not one before it, to which something was moved.
            let is_next = match next {
                Some((found, _)) => found <= newest,
                None => self.queues().sequence == newest,
            };
            if is_next {
                return next;
            }
        }
    }
}
