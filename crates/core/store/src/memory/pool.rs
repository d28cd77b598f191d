//! The pool: pages that no class has, and the account of all memory that grows with the data.
//!
//! A lowered limit is reached step by step. New items of a log go on meanwhile: for each page that they take, two have
//! come back before. So no store waits for more than a few pages, and less and less is in use, whatever is stored.

use nuthatch_engine::LimitError;

/// While a lowered limit is not reached yet, new items may use this many pages again of those that came back.
const RISE: usize = 4;

/// Pages and bytes. One lock guards it; a thread takes it once a page, not once an item.
pub struct Pool {
    /// The limit in bytes, for pages, their recency bits and the index together.
    limit: usize,
    /// The highest limit that may be set.
    limit_max: usize,
    /// Bytes that a page costs: itself and its recency bits.
    page_cost: usize,
    /// Bytes taken by users other than pages (the index).
    charged: usize,
    /// Bytes that the index waits for: classes get no page before it has got them.
    earmarked: usize,
    /// Pages that may still be taken before bytes are earmarked again: others waited for bytes, and nothing made room.
    grace: usize,
    /// Bytes that only [`Pool::take_last`] may take.
    spare: usize,
    /// The limit was lowered below what was in use, and has not been reached yet.
    shrinking: bool,
    /// Bytes up to which memory may be in use meanwhile, so that what stays can be moved together, and new items can be
    /// stored. It falls with each page that new items take.
    ceiling: usize,
    /// Pages that classes have.
    used_pages: usize,
    /// Pages that came back. The last is taken first.
    returned: Vec<u32>,
    /// How many of them, from the first on, have no memory any more.
    released: usize,
    /// The first page never used; the arena ends at `pages_max`.
    fresh: u32,
    /// Pages below this one have been backed with memory ahead of their use.
    warm: u32,
    pages_max: u32,
}

impl Pool {
    /// All pages free. The limit may be raised to `limit_max`.
    pub fn new(limit: usize, limit_max: usize, pages_max: u32, page_cost: usize) -> Self {
        Self {
            limit,
            limit_max,
            page_cost,
            charged: 0,
            earmarked: 0,
            grace: 0,
            spare: 0,
            shrinking: false,
            ceiling: 0,
            used_pages: 0,
            returned: Vec::new(),
            released: 0,
            fresh: 0,
            warm: 0,
            pages_max,
        }
    }

    /// Keeps `pages` pages for [`Pool::take_last`], so that a thread that moves records can always begin.
    pub fn keep_spare(&mut self, pages: usize) {
        self.spare = pages * self.page_cost;
    }

    /// A page for a class, unless that would pass the limit.
    pub fn take(&mut self) -> Option<u32> {
        self.take_sparing(0)
    }

    /// A page for a log, unless fewer than `reserve` pages would be left.
    pub fn take_sparing(&mut self, reserve: usize) -> Option<u32> {
        let wanted = (1 + reserve) * self.page_cost;
        if self.used() + self.earmarked + wanted > self.limit {
            return None;
        }
        self.take_any()
    }

    /// The same for new items of a log from which items may leave, also while a lowered limit is not reached: then it
    /// lowers the ceiling by a page, so that one more has to come back than is taken. Other users that wait for memory
    /// get none before the limit is reached.
    pub fn take_for_new(&mut self, reserve: usize) -> Option<u32> {
        if !self.shrinking {
            return self.take_sparing(reserve);
        }
        let near = self.used() + self.spare + RISE * self.page_cost;
        let ceiling = self.ceiling.min(near).saturating_sub(self.page_cost);
        if self.used() + (1 + reserve) * self.page_cost > ceiling {
            return None;
        }
        let page = self.take_any()?;
        self.ceiling = ceiling;
        Some(page)
    }

    /// Takes a page for records that a log moves, also while other users wait for memory: the move gives pages back.
    pub fn take_last(&mut self) -> Option<u32> {
        if self.used() + self.page_cost > self.most_moved() {
            return None;
        }
        self.take_any()
    }

    /// Bytes that may be in use while records are moved.
    fn most_moved(&self) -> usize {
        if self.shrinking {
            self.limit.max(self.ceiling)
        } else {
            self.limit
        }
    }

    fn take_any(&mut self) -> Option<u32> {
        let page = self.returned.pop().or_else(|| {
            (self.fresh < self.pages_max).then(|| {
                self.fresh += 1;
                self.fresh - 1
            })
        })?;
        self.released = self.released.min(self.returned.len());
        self.used_pages += 1;
        self.grace = self.grace.saturating_sub(1);
        Some(page)
    }

    /// A page that came back and that no class may use: the limit was lowered since, or other users took the bytes. The
    /// caller gives its memory back to the system before it releases the pool's lock.
    pub fn next_to_release(&mut self) -> Option<u32> {
        let usable = self.limit.saturating_sub(self.used()) / self.page_cost;
        let page = *self.returned.get(self.released)?;
        let unusable = self.returned.len() - self.released > usable;
        self.released += usize::from(unusable);
        unusable.then_some(page)
    }

    /// Pages that could be taken now.
    pub fn free_pages(&self) -> usize {
        let room = self.limit.saturating_sub(self.used() + self.earmarked) / self.page_cost;
        room.min(self.free())
    }

    /// Pages that [`Pool::take_last`] could take now.
    pub fn last_pages(&self) -> usize {
        let room = self.most_moved().saturating_sub(self.used()) / self.page_cost;
        room.min(self.free())
    }

    /// Pages that the limit allows, beside the bytes that other users have taken.
    pub fn pages_allowed(&self) -> usize {
        (self.limit.saturating_sub(self.charged) / self.page_cost).max(self.used_pages)
    }

    /// Pages that no class has.
    fn free(&self) -> usize {
        self.returned.len() + (self.pages_max - self.fresh) as usize
    }

    /// The next page that should be backed with memory before a store needs it: one of the `ahead`
    /// pages that would be taken next, if the limit allows them. None before the first is taken.
    pub fn next_to_warm(&mut self, ahead: u32) -> Option<u32> {
        let room = self.limit.saturating_sub(self.used() + self.earmarked) / self.page_cost;
        let end = self
            .fresh
            .saturating_add(ahead.min(room as u32))
            .min(self.pages_max);
        self.warm = self.warm.max(self.fresh);
        if self.fresh == 0 || self.warm >= end {
            return None;
        }
        self.warm += 1;
        Some(self.warm - 1)
    }

    /// Takes back a page without a chunk in use.
    pub fn give_back(&mut self, page: u32) {
        self.used_pages -= 1;
        self.returned.push(page);
        self.shrinking &= self.used() > self.limit;
    }

    /// True if `bytes` bytes can be taken for something other than pages.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        self.used() + bytes + self.spare <= self.limit
    }

    /// Takes bytes for something other than pages, unless that would pass the limit.
    pub fn charge(&mut self, bytes: usize) -> bool {
        let fits = self.has_room_for(bytes);
        if fits {
            self.charged += bytes;
            self.earmarked = 0;
        }
        fits
    }

    /// Gives bytes back that were charged.
    pub fn uncharge(&mut self, bytes: usize) {
        self.charged -= bytes;
        self.shrinking &= self.used() > self.limit;
    }

    fn note_excess(&mut self) {
        self.shrinking = self.used() > self.limit;
        self.ceiling = self.used() + self.spare;
    }

    /// Notes that the index, or another user, waits for `bytes` bytes: pages that come back are kept for it.
    pub fn earmark(&mut self, bytes: usize) {
        if self.grace == 0 {
            self.earmarked = bytes + self.spare;
        }
    }

    /// Ends the waiting of the index, or of another user, for bytes that nothing makes free: or else no page could be
    /// taken any more. It begins again when as many pages were taken as the limit allows, at the earliest. False if
    /// none waits.
    pub fn give_up_earmark(&mut self) -> bool {
        let waited = self.earmarked > 0;
        if waited {
            self.earmarked = 0;
            self.grace = self.pages_allowed();
        }
        waited
    }

    /// Pages that were ever given out.
    pub fn taken(&self) -> u32 {
        self.fresh
    }

    /// Bytes taken.
    pub fn used(&self) -> usize {
        self.charged + self.pages_cost()
    }

    /// Bytes taken by users other than pages.
    pub fn charged(&self) -> usize {
        self.charged
    }

    /// Bytes of the pages in use, with their bookkeeping.
    pub fn pages_cost(&self) -> usize {
        self.used_pages * self.page_cost
    }

    /// The limit in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The highest limit that may be set, in bytes.
    pub fn limit_max(&self) -> usize {
        self.limit_max
    }

    /// Pages that classes have.
    pub fn used_pages(&self) -> usize {
        self.used_pages
    }

    /// True if pages must be taken from classes: the limit was lowered, or the index waits.
    pub fn is_over(&self) -> bool {
        self.used() + self.earmarked > self.limit
    }

    /// True if pages that come back are kept for a user that waits for them, within the limit. With each such page
    /// fewer are still wanted.
    pub fn keeps_for_others(&self) -> bool {
        self.used() <= self.limit && self.is_over()
    }

    /// False if more is in use than the limit allows, although the limit was not just lowered.
    pub fn keeps_limit(&self) -> bool {
        self.shrinking || self.used() <= self.limit
    }

    /// Changes the limit. The least is `floor`; the configured maximum and the arena bound it.
    pub fn set_limit(&mut self, limit: usize, floor: usize) -> Result<(), LimitError> {
        let least = floor.max(self.charged + 2 * self.page_cost);
        let usable = self.charged + self.pages_max as usize * self.page_cost;
        LimitError::check(limit, least, usable.min(self.limit_max))?;
        self.limit = limit;
        self.note_excess();
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::sizes::PAGE;

    #[test]
    fn pages_are_warmed_once_and_only_within_the_limit() {
        let mut pool = Pool::new(4 * PAGE, 10 * PAGE, 10, PAGE);
        assert_eq!(pool.next_to_warm(2), None);
        assert_eq!(pool.take(), Some(0));
        assert_eq!(
            (pool.next_to_warm(2), pool.next_to_warm(2)),
            (Some(1), Some(2))
        );
        assert_eq!(pool.next_to_warm(2), None);
        assert_eq!(pool.take(), Some(1));
        assert_eq!(
            (pool.next_to_warm(9), pool.next_to_warm(9)),
            (Some(3), None)
        );
    }

    #[test]
    fn the_spare_page_is_for_what_is_moved() {
        let mut pool = Pool::new(4 * PAGE, 10 * PAGE, 10, PAGE);
        pool.keep_spare(1);
        assert!((0..3).all(|page| pool.take_sparing(1) == Some(page)));
        assert_eq!(pool.take_sparing(1), None);
        assert!(!pool.charge(1));
        assert_eq!((pool.take_last(), pool.take_last()), (Some(3), None));
        // Also while a lower limit is not reached yet.
        assert!(pool.set_limit(2 * PAGE, 0).is_ok());
        assert_eq!((pool.take_last(), pool.take_last()), (Some(4), None));
        (0..3).for_each(|page| pool.give_back(page));
        assert!(pool.keeps_limit());
        assert_eq!(pool.take_last(), None);
    }

    /// 99 of 100 pages are in use, and ten are allowed from now on.
    fn lowered() -> Pool {
        let mut pool = Pool::new(100 * PAGE, 100 * PAGE, 100, PAGE);
        pool.keep_spare(1);
        (0..99).for_each(|page| assert_eq!(pool.take_for_new(1), Some(page)));
        assert_eq!(pool.take_for_new(1), None);
        assert!(pool.set_limit(10 * PAGE, 0).is_ok());
        pool
    }

    /// Class of bug: a store waits until a lowered limit is reached, however far that is.
    #[test]
    fn a_page_is_taken_for_two_that_came_back_while_a_lower_limit_is_approached() {
        let mut pool = lowered();
        pool.earmark(PAGE);
        for used in (13..=99).rev() {
            assert_eq!(pool.used(), used * PAGE);
            for page in [0, 1] {
                assert_eq!(pool.take_for_new(1), None);
                assert_eq!(pool.take_sparing(1), None, "where nothing may leave");
                pool.give_back(page);
            }
            assert!(pool.take_for_new(1).is_some(), "{used} pages");
        }
        (0..2).for_each(|page| pool.give_back(page));
        assert_eq!(pool.take_for_new(1), None, "it is reached");
        assert!(pool.give_up_earmark());
        (0..2).for_each(|page| pool.give_back(page));
        assert!(pool.take_for_new(1).is_some());
        assert_eq!(pool.take_for_new(1), None);
    }

    #[test]
    fn what_came_back_below_a_lower_limit_is_not_all_taken_again() {
        let mut pool = lowered();
        (0..50).for_each(|page| pool.give_back(page));
        let taken = std::iter::from_fn(|| pool.take_for_new(1)).count();
        assert_eq!(taken, RISE / 2);
        let moved = std::iter::from_fn(|| pool.take_last()).count();
        assert_eq!(moved, 1, "the reserve");
    }

    #[test]
    fn pages_that_the_limit_allows_to_nobody_are_released_once() {
        let mut pool = Pool::new(8 * PAGE, 10 * PAGE, 10, PAGE);
        (0..6).for_each(|page| assert_eq!(pool.take(), Some(page)));
        (1..6).for_each(|page| pool.give_back(page));
        assert_eq!(pool.next_to_release(), None);
        assert!(pool.set_limit(4 * PAGE, 0).is_ok());
        let released = std::array::from_fn(|_| pool.next_to_release());
        assert_eq!(released, [Some(1), Some(2), None]);
        // Pages with memory are taken first.
        assert!(pool.set_limit(9 * PAGE, 0).is_ok());
        (0..4).for_each(|_| assert!(pool.take().is_some()));
        pool.give_back(0);
        assert!(pool.set_limit(3 * PAGE, 0).is_ok());
        assert_eq!(pool.next_to_release(), Some(0), "page 1 has none");
    }

    #[test]
    fn others_that_wait_in_vain_give_way_for_a_while() {
        let mut pool = Pool::new(4 * PAGE, 10 * PAGE, 10, PAGE);
        pool.earmark(4 * PAGE);
        assert_eq!(pool.take(), None);
        assert!(pool.give_up_earmark());
        assert!(!pool.give_up_earmark(), "none waits any more");
        for _ in 0..4 {
            pool.earmark(PAGE);
            assert!(pool.take().is_some());
        }
        pool.give_back(0);
        pool.earmark(PAGE);
        assert_eq!(pool.take(), None);
    }

    #[test]
    fn the_limit_holds_pages_and_index_together() {
        let mut pool = Pool::new(4 * PAGE, 10 * PAGE, 10, PAGE + 100);
        assert!(pool.charge(PAGE));
        assert!(!pool.charge(3 * PAGE + 1));
        assert_eq!(
            (pool.take(), pool.take(), pool.take()),
            (Some(0), Some(1), None)
        );
        assert!(!pool.is_over());
        pool.give_back(0);
        assert_eq!(pool.take(), Some(0));
        assert!(pool.set_limit(PAGE, 0).is_err());
        assert!(pool.set_limit(10 * PAGE + 1, 0).is_err());
        assert!(pool.set_limit(6 * PAGE, 7 * PAGE).is_err());
        assert!(pool.set_limit(6 * PAGE, 6 * PAGE).is_ok());
        assert_eq!((pool.take(), pool.take()), (Some(2), Some(3)));
    }
}
