//! Walks over the records of a log.
//!
//! A record stays in its place until its page is cleaned, and then it goes to a page that was opened after all walks
//! under way began. So a walk in the order in which pages were opened meets each item that stays in the cache at least
//! once, as long as it is faster than the cleaning; [`Log::walk`] says what it may miss.

use nuthatch_base::sync::shim::{Ordering, fence};
use nuthatch_engine::Cursor;

use super::Log;
use crate::item::Header;
use crate::memory::arena::Address;
use crate::store::Store;

/// Bits of a [`Cursor`] that tell the word within a page.
const WORD_BITS: u32 = 18;

/// So many bytes of a long key count for another record: who walks copies the keys.
const KEY_COST: usize = 256;

/// Where a walk over one page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageWalk {
    /// It looked at the budgeted number of records; the next begins at this word of the page.
    At(usize),
    /// There are no more.
    End,
}

impl Log {
    /// Looks at up to `budget` records of a page, from a word of it on. Ends if the page leaves the log.
    pub fn records(
        &self,
        store: &Store<Log>,
        page: u32,
        sequence: u64,
        from: usize,
        budget: usize,
        mut look: impl FnMut(Address, &Header),
    ) -> PageWalk {
        let start = u64::from(page) * self.page_words as u64;
        let mut at = from;
        let mut left = budget;
        while left > 0 {
            if at >= self.pages.end(page) {
                return PageWalk::End;
            }
            let address = Address(start + at as u64);
            let header = Header::load(&store.arena, address);
            if !self.pages.is_still(page, sequence) {
                return PageWalk::End;
            }
            // The length of a record is never 0 (log 1), but a walk must end in any case.
            at += header.record_words(store.cut()).max(1);
            left = left.saturating_sub(1 + header.key_len() / KEY_COST);
            look(address, &header);
        }
        PageWalk::At(at)
    }

    /// Looks at about `budget` records from where the last call stopped, page by page. Returns how many there were.
    pub fn sweep_in_turn(
        &self,
        store: &Store<Log>,
        budget: usize,
        look: &mut impl FnMut(Address),
    ) -> usize {
        let mut looked = 0;
        while looked < budget {
            let place = {
                let mut place = self.turn.lock();
                let (page, word) = match ((*place >> 32) as u32, *place as u32) {
                    (page, word) if page < store.pages_taken() => (page, word),
                    _ => (0, 0),
                };
                // Other threads that sweep meanwhile go on with the next page.
                *place = u64::from(page + 1) << 32;
                (page, word)
            };
            let mut seen = 1;
            let next = self.sweep_page(store, place, budget - looked, &mut |address| {
                seen += 1;
                look(address);
            });
            looked += seen;
            if next.0 == place.0 {
                *self.turn.lock() = u64::from(next.0) << 32 | u64::from(next.1);
            }
        }
        looked
    }

    /// Looks at up to `budget` records of a page, from a word in it. Returns the next place.
    fn sweep_page(
        &self,
        store: &Store<Log>,
        place: (u32, u32),
        budget: usize,
        look: &mut impl FnMut(Address),
    ) -> (u32, u32) {
        let (page, from) = place;
        let next = (page + 1, 0);
        let sequence = self.pages.sequence(page);
        if sequence == 0 {
            return next;
        }
        match self.records(
            store,
            page,
            sequence,
            from as usize,
            budget,
            |address, _| {
                look(address);
            },
        ) {
            PageWalk::At(word) => (page, word as u32),
            PageWalk::End => next,
        }
    }

    /// Shows about `budget` records, and returns where to go on, or `None` at the end.
    ///
    /// A walk passes the pages that existed when it began, and then the pages opened since, up to the last one to which
    /// a record was moved: no more than the memory's limit allows, so that it also ends beside writers that are faster.
    /// Meanwhile a walk misses an item only if the item is moved more than once, each time just before the walk meets
    /// it, or if it is being moved at the moment at which the walk begins, and until the walk has passed its new place.
    /// Beside writers that make pages be cleaned faster than the walk passes them, this may happen to many items. Where
    /// nothing is moved, no item is met twice.
    pub fn walk(
        &self,
        store: &Store<Log>,
        from: Cursor,
        budget: usize,
        mut show: impl FnMut(Address),
    ) -> Option<Cursor> {
        let mut cursor = from;
        if cursor.end == 0 {
            let newest = self.queues().sequence;
            // Of several walks that begin at once, the one that looked last counts.
            self.walked.fetch_max(newest, Ordering::Relaxed);
            cursor.end = newest + store.pool().pages_allowed() as u64;
        }
        let word_mask = (1 << WORD_BITS) - 1;
        let (sequence, from) = (
            cursor.place >> WORD_BITS,
            (cursor.place & word_mask) as usize,
        );
        let (found, page) = self.next_page(store, sequence.max(1))?;
        // Acquire: a record that the walk did not find in its old place is covered by the value read below; pairs with
        // the fence behind `moved_to`.
        fence(Ordering::Acquire);
        let walked = self.walked.load(Ordering::Relaxed);
        if found > cursor.end || found > walked.max(self.moved_to.load(Ordering::Relaxed)) {
            return None;
        }
        let from = if found == sequence { from } else { 0 };
        let shown = self.records(
            store,
            page,
            found,
            from,
            budget.max(1),
            |address, header| {
                if header.is_item() {
                    show(address);
                }
            },
        );
        cursor.place = match shown {
            PageWalk::At(word) => found << WORD_BITS | word as u64,
            PageWalk::End => (found + 1) << WORD_BITS,
        };
        Some(cursor)
    }

    /// The first page with this sequence or a higher one, in the order of opening, and its sequence.
    fn next_page(&self, store: &Store<Log>, sequence: u64) -> Option<(u64, u32)> {
        loop {
            // The search below sees all pages up to this one, if they are still there.
            let newest = self.queues().sequence;
            let pages = (0..store.pages_taken()).map(|page| (self.pages.sequence(page), page));
            let next = pages.filter(|&(found, _)| found >= sequence).min();
            // Of the pages opened meanwhile it may see one and miss an earlier one, to which something was moved.
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
