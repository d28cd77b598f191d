//! A page changes its class: not before nobody can be at its blocks.
//!
//! Clients may hold pointers into a page for as long as they like, and lock by a compare-swap what the pointer says is
//! a tail. In a page of another class a word of somebody's value may lie there. So before a page leaves its class
//! every client is told, and clients in the middle of direct operations are waited for:
//!
//! 1. The page's pairs move or go, so that the table leads nobody there.
//! 2. The page's count of changes is put to each client. A client compares it with that of its pointer once its busy
//!    word is odd, and before it goes there.
//! 3. Each session's busy word is read. If it is even, the session will see the count before it goes anywhere; if it
//!    is odd, the page waits until the word is another.
//!
//! The client stores its busy word and loads the count, the server puts the count and fetches the busy word, each in
//! that order (quiet and a sequentially consistent fence in between): so one of them sees the other.

use nuthatch_engine::Time;
use nuthatch_fabric::Fabric;

use super::shard::Shard;
use crate::config::Fault;

/// A page on its way out of its class.
pub struct Retirement {
    page: usize,
    /// The class that waits for it: no other may have it. `None`: a limit was lowered.
    heir: Option<usize>,
    /// Sessions that may still be there, and their busy words. `None` while it has pairs.
    waiting: Option<Vec<(usize, u64)>>,
}

impl<F: Fabric> Shard<F> {
    /// Begins to take a page from its class, for another. False if another page retires, or this one cannot.
    pub fn retire(&mut self, page: usize, heir: Option<usize>) -> bool {
        if self.retirement.is_some() || !self.pages.retire(page) {
            return false;
        }
        self.retirement = Some(Retirement {
            page,
            heir,
            waiting: None,
        });
        true
    }

    /// True if a page is kept for the class that it came to: for an epoch or two, in which who waits for it asks again.
    pub fn is_promised(&self, page: usize) -> bool {
        self.promised
            .is_some_and(|(promised, epoch)| promised == page && self.epoch <= epoch + 1)
    }

    /// Takes the next step.
    pub fn advance_retirement(&mut self, now: Time) {
        let Some(Retirement {
            page,
            heir,
            waiting,
        }) = self.retirement.take()
        else {
            if self.pages.used > self.pages.limit {
                self.shrink();
            }
            return;
        };
        let waiting = match waiting {
            None => {
                self.empty_page(page, now);
                if self.must_stay(page) {
                    return self.pages.keep(page);
                }
                match self.pages.is_empty(page) {
                    true => Some(self.expel(page)),
                    false => None,
                }
            }
            Some(waiting) => Some(self.still_there(waiting)),
        };
        if waiting.as_ref().is_some_and(Vec::is_empty) {
            self.pages.release(page);
            self.counts.pages_moved += 1;
            if let Some(page) = heir.and_then(|class| self.pages.add(class)) {
                self.make_blocks(page);
                self.promised = Some((page, self.epoch));
            }
            return;
        }
        self.retirement = Some(Retirement {
            page,
            heir,
            waiting,
        });
    }

    /// True if a retiring page cannot be emptied: blocks of it are lost, or nothing may be evicted and others have taken
    /// the room that its pairs were to move to.
    fn must_stay(&self, page: usize) -> bool {
        self.pages.has_lost(page) || (!self.config.evicts && self.pages.pairs(page) > 0)
    }

    /// Tells all clients that pointers to a page are stale; returns the sessions that may not have seen it.
    fn expel(&mut self, page: usize) -> Vec<(usize, u64)> {
        let changes = self.pages.leave(page);
        let at = self.layout.generations(self.server).plus(page);
        for pe in 0..self.fabric.pes() {
            // A PE that is gone has no pointers.
            let _ = self.fabric.put(pe, at, &[changes]);
        }
        // Something lost with a PE that is gone is no loss.
        let _ = self.fabric.quiet();
        match self.config.fault {
            Fault::NoQuiescence => Vec::new(),
            _ => self.busy_sessions(),
        }
    }

    /// Sessions in the middle of direct operations, and their busy words.
    pub fn busy_sessions(&self) -> Vec<(usize, u64)> {
        let sessions = 0..self.layout.all_sessions;
        let words = sessions.filter_map(|session| Some((session, self.busy_word(session)?)));
        words.filter(|(_, word)| word % 2 == 1).collect()
    }

    /// Those of them that still are.
    pub fn still_there(&self, waiting: Vec<(usize, u64)>) -> Vec<(usize, u64)> {
        let mut waiting = waiting;
        waiting.retain(|&(session, word)| self.busy_word(session) == Some(word));
        waiting
    }

    /// A session's busy word; `None` if its PE is gone.
    fn busy_word(&self, session: usize) -> Option<u64> {
        let at = self.layout.busy(session);
        self.fabric.fetch(self.layout.pe(session), at).ok()
    }

    /// There are more pages than a lowered limit allows: one goes.
    fn shrink(&mut self) {
        if !self.config.evicts {
            if let Some(page) = self.pages.movable() {
                self.retire(page, None);
            }
            return;
        }
        if let Some(page) = self.pages.idle_page(usize::MAX) {
            self.retire(page, None);
            return;
        }
        for class in self.pages.others_by_age(usize::MAX) {
            let oldest = self.pages.oldest(class);
            if oldest.is_some_and(|(_, block)| self.retire(block.page(), None)) {
                return;
            }
        }
    }
}
