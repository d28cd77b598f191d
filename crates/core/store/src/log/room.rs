//! Room for records that are moved, in a store that evicts nothing.
//!
//! A page that is cleaned is free when all live records in it have been moved, and not before. If new items or another
//! cleaning took the room for them meanwhile, the page would stay as it is, and so would the next one: all pages with
//! gaps, none of them free, and nothing could be stored any more. So in a store that evicts nothing each page whose
//! cleaning has begun is *owed* room: new items leave as much as is still alive in the page, and a cleaning begins only
//! if there is room for it beside the room that is owed to the others under way.
//!
//! A page may be left half cleaned, because something in it is read in place since the cleaning began. New items still
//! leave it the room that it is owed. Another cleaning may take that room, since that gives a whole page back. A page
//! in which something is read in place already is not begun.
//!
//! One stream appends everything in such a store. The holder of its lock keeps the debt from growing: the debt is
//! raised under that lock alone.

use nuthatch_base::sync::shim::Ordering;

use super::{Log, Open, Queues};
use crate::memory::arena::WORD;
use crate::store::Store;

/// The pages whose cleaning has begun and that are not free yet, in a store that evicts nothing.
#[derive(Default)]
pub(super) struct Unfinished {
    under_way: Vec<u32>,
    left: Vec<u32>,
}

impl Unfinished {
    /// True if a cleaning has left the page before.
    pub(super) fn begin(&mut self, page: u32) -> bool {
        let left = self.left.len();
        self.left.retain(|&other| other != page);
        self.under_way.push(page);
        self.left.len() < left
    }

    /// Notes that the cleaning has ended. `left`: something was moved, and something is still there.
    pub(super) fn end(&mut self, page: u32, left: bool) {
        let under_way = self.under_way.len();
        self.under_way.retain(|&other| other != page);
        if left && self.under_way.len() < under_way {
            self.left.push(page);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.under_way.len() + self.left.len()
    }
}

impl Log {
    /// True if a new record of `words` words leaves the room that is owed to pages under way. `opens`: the record goes
    /// to a page that is to be opened for it, or else to the newest page of its stream, whose lock is held.
    #[inline]
    pub(super) fn leaves_room(
        &self,
        store: &Store<Log>,
        open: &Open,
        opens: bool,
        words: usize,
    ) -> bool {
        // Relaxed: raised under the stream's lock.
        self.unfinished.load(Ordering::Relaxed) == 0 || self.leaves_owed(store, open, opens, words)
    }

    #[cold]
    fn leaves_owed(&self, store: &Store<Log>, open: &Open, opens: bool, words: usize) -> bool {
        let pages = store.pool().last_pages();
        let room = match opens {
            false => self.room(store, self.rest(open).saturating_sub(words), pages),
            true if pages == 0 => return false,
            true => self.room(store, self.page_words - words, pages - 1),
        };
        let queues = self.queues();
        let unfinished = &queues.unfinished;
        let all = unfinished.under_way.iter().chain(&unfinished.left);
        self.words_of(all) <= room
    }

    /// Words that a page may hold for its cleaning to begin. The lock of the stream that appends is held.
    pub(super) fn room_to_clean(&self, store: &Store<Log>, open: &Open) -> usize {
        let pages = store.pool().last_pages();
        let room = self.room(store, self.rest(open), pages);
        let queues = self.queues();
        room.saturating_sub(self.words_of(queues.unfinished.under_way.iter()))
    }

    /// Takes note of how many pages are owed room. The caller holds the queues' lock.
    pub(super) fn note_unfinished(&self, queues: &Queues) {
        self.unfinished
            .store(queues.unfinished.len(), Ordering::Relaxed);
    }

    fn words_of<'a>(&self, pages: impl Iterator<Item = &'a u32>) -> usize {
        pages.map(|&page| self.pages.held(page).words()).sum()
    }

    /// Words that can be appended to the newest page of a stream.
    pub(super) fn rest(&self, open: &Open) -> usize {
        open.pages[0].map_or(0, |open| self.page_words - open.end)
    }

    /// Words of the longest record so far, or of a longer one. In a store that evicts nothing the caller holds the lock
    /// of the stream that appends.
    pub(super) fn longest(&self, store: &Store<Log>) -> usize {
        let head = self.longest_head.load(Ordering::Relaxed);
        (store.piece_max() / WORD).max(head)
    }

    /// Words of records that are sure to find room in the rest of a page and in so many empty ones: at the end of each
    /// page but the last, a little less than the longest record may stay unused.
    fn room(&self, store: &Store<Log>, rest: usize, pages: usize) -> usize {
        let unused = self.longest(store) - 1;
        match pages {
            0 => rest,
            _ => rest.saturating_sub(unused) + pages * self.page_words - (pages - 1) * unused,
        }
    }
}
