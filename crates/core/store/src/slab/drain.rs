//! Draining: it empties pages that go from one class to another, or back to the system.

use nuthatch_base::sync::shim::{Ordering, spin};

use super::class::ANY;
use super::{Full, Slab};
use crate::memory::arena::Address;
use crate::store::Store;

/// The page on its way back to the pool, and whether a thread empties it.
#[derive(Default)]
pub(super) struct Draining {
    work: Option<Drain>,
    /// A thread unlinks its items right now, without the lock.
    at_work: bool,
}

/// How a call of [`Store::drain`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// A page is in the pool.
    Page,
    /// There is more to do.
    More,
    /// No page can be emptied.
    Nothing,
    /// Another thread empties the page: that is as good.
    Elsewhere,
}

/// A page being emptied.
#[derive(Clone, Copy)]
pub(super) struct Drain {
    page: u32,
    class: usize,
    next: u32,
    /// Passes over the page that left something in use.
    passes: u32,
}

/// Passes after which a drain is given up: what is left is pinned by slow readers.
const DRAIN_PASSES_MAX: u32 = 64;

/// Classes that are looked at if a page must move, before the coldest page is taken in any case.
const LOOKS_MAX: usize = 4;

impl Store<Slab> {
    /// True if a class has no page to allocate or evict in.
    pub fn has_no_pages(&self, class: usize) -> bool {
        self.slab().classes[class]
            .lock()
            .has_no_pages(&self.slab().pages)
    }

    /// A class should get a page, rather than evict its own items for ever, if it has none; or if it has evicted a
    /// page's worth, and another class's coldest page went unvisited more than twice as long as its own. Returns the
    /// moment, by the store's eviction clock, before which such a page must have been visited last; `None` if the class
    /// needs no page.
    fn wants_page(&self, class: usize) -> Option<u64> {
        let mut inner = self.slab().classes[class].lock();
        if inner.has_no_pages(&self.slab().pages) {
            return Some(ANY);
        }
        if inner.evicted_since_move < inner.per_page {
            return None;
        }
        inner.evicted_since_move = 0;
        let now = self.slab().eviction_clock.load(Ordering::Relaxed);
        let own = inner.last_visit(&self.slab().pages).unwrap_or(now);
        Some(now.saturating_sub(2 * now.saturating_sub(own)))
    }

    /// A page that was visited before `before` and is hardly used; if `before` is [`ANY`], else the coldest.
    fn page_to_drain(&self, except: Option<usize>, before: u64) -> Option<(usize, u32)> {
        let now = self.slab().eviction_clock.load(Ordering::Relaxed);
        // A page that may move, but need not, gets one look for each page's worth of evictions.
        let looks = if before == ANY { LOOKS_MAX } else { 1 };
        for _ in 0..looks {
            let class = self.coldest_class(except, before)?;
            let inner = self.slab().classes[class].lock();
            if let Some(page) = inner.idlest(&self.slab().pages, &self.recency, before, now) {
                return Some((class, page));
            }
        }
        let any = self
            .coldest_class(except, before)
            .filter(|_| before == ANY)?;
        let page = self.slab().classes[any]
            .lock()
            .coldest_page(&self.slab().pages)?;
        Some((any, page))
    }

    /// The class with the page that went longest without a visit of its hand.
    fn coldest_class(&self, except: Option<usize>, before: u64) -> Option<usize> {
        let others = (0..self.slab().classes.len()).filter(|&class| Some(class) != except);
        let coldest = others
            .filter_map(|class| {
                Some((
                    self.slab().classes[class]
                        .lock()
                        .coldest(&self.slab().pages)?,
                    class,
                ))
            })
            .filter(|(cold, _)| cold.is_before(before));
        coldest.min().map(|(_, class)| class)
    }

    /// Empties about `budget` chunks of a page on its way back to the pool, choosing a page visited before
    /// `before` first if none is on its way. `unlink` takes an item out of the index and frees it.
    fn drain(
        &self,
        except: Option<usize>,
        before: u64,
        budget: usize,
        mut unlink: impl FnMut(Address),
    ) -> Drained {
        let mut work = match self.start_drain(except, before) {
            Ok(work) => work,
            Err(outcome) => return outcome,
        };
        // Also after a panic: the same chunks are looked at again then.
        let at_work = AtWork(self);
        let end = self.slab().classes[work.class]
            .lock()
            .drain_end(&self.slab().pages, work.page);
        for _ in 0..budget {
            if work.next >= end {
                break;
            }
            let chunk = self.slab().classes[work.class]
                .lock()
                .chunk(work.page, work.next);
            work.next += 1;
            unlink(chunk);
        }
        let outcome = if work.next >= end {
            self.finish_drain(&mut work)
        } else {
            Drained::More
        };
        self.slab().drain.lock().work = (outcome == Drained::More).then_some(work);
        drop(at_work);
        outcome
    }

    /// Makes this thread the one that empties a page.
    fn start_drain(&self, except: Option<usize>, before: u64) -> Result<Drain, Drained> {
        let mut drain = self.slab().drain.lock();
        if drain.at_work {
            return Err(Drained::Elsewhere);
        }
        let work = match drain.work {
            Some(work) => work,
            None => {
                let Some((class, page)) = self.page_to_drain(except, before) else {
                    if before == ANY {
                        for class in &self.slab().classes {
                            class.lock().retry_stuck(&self.slab().pages);
                        }
                    }
                    return Err(Drained::Nothing);
                };
                self.slab().classes[class]
                    .lock()
                    .start_drain(&self.slab().pages, page);
                Drain {
                    page,
                    class,
                    next: 0,
                    passes: 0,
                }
            }
        };
        drain.work = Some(work);
        drain.at_work = true;
        Ok(work)
    }

    /// Ends a pass over the page: gives the page to the pool if nothing in it is in use any more.
    fn finish_drain(&self, work: &mut Drain) -> Drained {
        let mut class = self.slab().classes[work.class].lock();
        if class.finish_drain(&self.slab().pages, work.page) {
            drop(class);
            self.leave_class(work.page);
            return Drained::Page;
        }
        work.next = 0;
        work.passes += 1;
        if work.passes > DRAIN_PASSES_MAX {
            class.cancel_drain(&self.slab().pages, work.page);
            return Drained::Nothing;
        }
        Drained::More
    }

    /// Gives a page that no class has any more to the pool.
    fn leave_class(&self, page: u32) {
        // The next class has chunks of another size.
        self.recency.pass_page(page, self.sizes.page_words());
        // Relaxed: a statistic.
        self.slab().pages_moved.fetch_add(1, Ordering::Relaxed);
        drop(self.return_page(page));
    }

    /// Gives an empty page of any class to the pool. False if there is none.
    ///
    /// For stores that may not evict: where items leave for others, a class with few items would lose its only page
    /// whenever the last of them goes, and take one with many items for the next.
    fn return_empty_page(&self) -> bool {
        while let Some(class) = self.slab().pages.class_with_empty() {
            // A page that was chosen to be drained stays in its class until that is done.
            let drain = self.slab().drain.lock();
            let empty = self.slab().classes[class]
                .lock()
                .take_empty(&self.slab().pages);
            drop(drain);
            if let Some(page) = empty {
                self.leave_class(page);
                return true;
            }
        }
        false
    }

    /// A chunk of a class for which an empty page of another may be used.
    pub fn allocate_from_any(&self, class: usize) -> Result<Address, Full> {
        loop {
            // Again after each page: others may take it, or the limit may have been lowered below what is in use.
            let allocated = self.allocate(class);
            if allocated.is_ok() || !self.return_empty_page() {
                return allocated;
            }
        }
    }

    /// Gives empty pages to the pool until it has room for `bytes` bytes for the index. False if there are too few.
    pub fn return_empty_pages(&self, bytes: usize) -> bool {
        loop {
            if self.pool().has_room_for(bytes) {
                return true;
            }
            if !self.return_empty_page() {
                return false;
            }
        }
    }

    /// True while a page is being emptied.
    pub fn is_draining(&self) -> bool {
        self.slab().drain.lock().work.is_some()
    }

    /// Moves pages towards a class that has too few. The work of one call is bounded, except that a class must wait for
    /// a page if it can do nothing else (it has no page, or is `starving`: no item in its pages can leave). `unlink` as
    /// for [`Store::drain`].
    pub fn move_pages(&self, class: usize, starving: bool, mut unlink: impl FnMut(Address)) {
        let wanted = if starving {
            Some(ANY)
        } else {
            self.wants_page(class)
        };
        if wanted.is_none() && !self.is_draining() {
            return;
        }
        let without_pages = starving || self.has_no_pages(class);
        // In proportion to the bytes wanted, so that a page arrives about when the class has evicted
        // another page's worth by itself.
        let budget = (self.sizes.chunk(class) / 64).clamp(16, 1024);
        let mut turn = 0;
        loop {
            match self.drain(Some(class), wanted.unwrap_or(0), budget, &mut unlink) {
                Drained::More if without_pages => {}
                Drained::Elsewhere if without_pages => {
                    spin(turn);
                    turn += 1;
                }
                _ => break,
            }
        }
    }

    /// Gives pages back while the limit is exceeded. True if there is more to do.
    pub fn shrink(&self, budget: usize, unlink: impl FnMut(Address)) -> bool {
        if !self.pool().is_over() && !self.is_draining() {
            return false;
        }
        self.drain(None, ANY, budget, unlink);
        self.pool().is_over()
    }
}

/// Lets the next thread empty the page when it is dropped.
struct AtWork<'a>(&'a Store<Slab>);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.slab().drain.lock().at_work = false;
    }
}
