//! How a page changes its class: not before it is certain that no client accesses its blocks.
//!
//! Clients may hold pointers into a page for as long as they like, and lock by a compare-swap the word that the pointer
//! says is a tail. In a page of another class that word may be part of a value. So before a page leaves its class the
//! server tells every client, and waits for clients in the middle of direct operations:
//!
//! 1. The page's pairs are moved or removed, so that the table leads no client there.
//! 2. The server tells each PE the page's count of changes (`notices`). A client compares it with its pointer's count
//!    after it has made its busy word odd, and before it accesses the block.
//! 3. The server watches each session until it is out of the operations that it had begun before (`watch`).

use std::sync::atomic::Ordering;

use nuthatch_engine::Time;
use nuthatch_fabric::Fabric;

use super::shard::Shard;
use crate::config::Fault;

/// A page on its way out of its class.
pub struct Retirement {
    page: usize,
    /// The class that waits for it: no other may have it. `None`: a limit was lowered.
    heir: Option<usize>,
    /// It has no pairs, and sessions that may still access it are watched.
    empty: bool,
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
            empty: false,
        });
        true
    }

    /// True if a page is kept for the class that it came to: for an epoch or two, in which the session that waits for
    /// it tries again.
    pub fn is_promised(&self, page: usize) -> bool {
        self.promised
            .is_some_and(|(promised, epoch)| promised == page && self.epoch <= epoch + 1)
    }

    /// Takes the next step.
    pub fn advance_retirement(&mut self, now: Time) {
        let Some(Retirement { page, heir, empty }) = self.retirement.take() else {
            if self.pages.used > self.pages.limit {
                self.shrink();
            }
            return;
        };
        if !empty {
            self.empty_page(page, now);
            if self.must_stay(page) {
                return self.pages.keep(page);
            }
        }
        let mut is_left = empty;
        if !empty && self.pages.is_empty(page) {
            self.expel(page);
            is_left = true;
        }
        let watch = &mut self.page_watch;
        if is_left && watch.advance(&*self.fabric, &self.layout, &self.notices) {
            return self.pass_on(page, heir);
        }
        self.retirement = Some(Retirement {
            page,
            heir,
            empty: is_left,
        });
    }

    /// No session accesses a page any more: it goes to the class that waits for it.
    fn pass_on(&mut self, page: usize, heir: Option<usize>) {
        self.pages.release(page);
        self.counts.pages_moved += 1;
        if let Some(page) = heir.and_then(|class| self.pages.add(class)) {
            self.make_blocks(page);
            self.promised = Some((page, self.epoch));
        }
    }

    /// True if a retiring page cannot be emptied: blocks of it are lost, or nothing may be evicted and others have taken
    /// the room that its pairs were to move to.
    fn must_stay(&self, page: usize) -> bool {
        self.pages.has_lost(page) || (!self.config.evicts && self.pages.pairs(page) > 0)
    }

    /// Tells all clients that pointers to a page are stale, and watches sessions that may not have heard it.
    fn expel(&mut self, page: usize) {
        let changes = self.pages.leave(page);
        let at = self.layout.generations(self.server).plus(page);
        // Release: for clients of this PE. All have heard of the count before this one, so none of it is on its way.
        self.fabric.local(at, 1)[0].store(changes, Ordering::Release);
        self.notices.publish_page(page);
        if self.config.fault != Fault::NoQuiescence {
            self.page_watch
                .begin(self.notices.latest(), self.layout.all_sessions);
        }
    }

    /// There are more pages than a lowered limit allows: one page retires.
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
