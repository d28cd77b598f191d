//! Pages on their way from one class to another, or back to the system.

use std::thread::ThreadId;

use nuthatch_sync::shim::{Ordering, spin};

use super::arena::Chunk;
use super::sizes::PAGE_WORDS;
use super::{Store, lock};

/// The page on its way back to the pool, and who is at it.
#[derive(Default)]
pub(super) struct Draining {
    work: Option<Drain>,
    /// The thread that unlinks its items right now, without the lock.
    worker: Option<ThreadId>,
}

/// How a call of [`Store::drain`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// A page is in the pool.
    Page,
    /// There is more to do.
    More,
    /// There is no page to be had.
    Nothing,
    /// Another thread is at it: that is as good.
    Elsewhere,
    /// This very thread is at it, and has called back from a listener.
    Within,
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

impl Store {
    /// True if a class has no page to allocate or evict in.
    pub fn is_homeless(&self, class: usize) -> bool {
        lock(&self.classes[class]).is_homeless(&self.pages)
    }

    /// True if a page should move to this class rather than that it evicts its own items for ever:
    /// it has none, or it has evicted a page's worth and another class's coldest page went
    /// unvisited more than twice as long as its own.
    pub fn wants_page(&self, class: usize) -> bool {
        let now = self.eviction_clock.load(Ordering::Relaxed);
        let own_age = {
            let mut inner = lock(&self.classes[class]);
            if inner.is_homeless(&self.pages) {
                return true;
            }
            if inner.evicted_since_move < inner.per_page {
                return false;
            }
            inner.evicted_since_move = 0;
            inner
                .coldest(&self.pages)
                .map_or(0, |(_, visited)| now.saturating_sub(visited))
        };
        self.coldest_page(Some(class))
            .is_some_and(|(_, _, visited)| now.saturating_sub(visited) > 2 * own_age)
    }

    /// The page that went longest without a visit of its class's hand: class, page, visit.
    fn coldest_page(&self, except: Option<usize>) -> Option<(usize, u32, u64)> {
        (0..self.classes.len())
            .filter(|&class| Some(class) != except)
            .filter_map(|class| {
                let inner = lock(&self.classes[class]);
                let (page, visited) = inner.coldest(&self.pages)?;
                // Free chunks are as good as cold ones.
                let idle = inner.free_chunks() >= inner.per_page as usize;
                Some((class, page, if idle { 0 } else { visited }))
            })
            .min_by_key(|&(_, _, visited)| visited)
    }

    /// Empties about `budget` chunks of a page on its way back to the pool, choosing a page first
    /// if none is on its way. `unlink` takes an item out of the index and frees it.
    pub fn drain(
        &self,
        except: Option<usize>,
        budget: usize,
        mut unlink: impl FnMut(Chunk),
    ) -> Drained {
        let mut work = match self.start_drain(except) {
            Ok(work) => work,
            Err(outcome) => return outcome,
        };
        // Also if a listener panics: then the same chunks are looked at again.
        let at_work = AtWork(self);
        let end = lock(&self.classes[work.class]).drain_end(&self.pages, work.page);
        for _ in 0..budget {
            if work.next >= end {
                break;
            }
            let chunk = lock(&self.classes[work.class]).chunk(work.page, work.next);
            work.next += 1;
            unlink(chunk);
        }
        let outcome = if work.next >= end {
            self.finish_drain(&mut work)
        } else {
            Drained::More
        };
        lock(&self.drain).work = (outcome == Drained::More).then_some(work);
        drop(at_work);
        outcome
    }

    /// Makes this thread the one that empties a page.
    fn start_drain(&self, except: Option<usize>) -> Result<Drain, Drained> {
        let mut drain = lock(&self.drain);
        let me = std::thread::current().id();
        match drain.worker {
            Some(worker) if worker == me => return Err(Drained::Within),
            Some(_) => return Err(Drained::Elsewhere),
            None => {}
        }
        let work = match drain.work {
            Some(work) => work,
            None => {
                let Some((class, page, _)) = self.coldest_page(except) else {
                    for class in &self.classes {
                        lock(class).retry_stuck(&self.pages);
                    }
                    return Err(Drained::Nothing);
                };
                lock(&self.classes[class]).start_drain(&self.pages, page);
                Drain {
                    page,
                    class,
                    next: 0,
                    passes: 0,
                }
            }
        };
        drain.work = Some(work);
        drain.worker = Some(me);
        Ok(work)
    }

    /// A pass over the page is over: gives it to the pool if nothing in it is in use any more.
    fn finish_drain(&self, work: &mut Drain) -> Drained {
        let mut class = lock(&self.classes[work.class]);
        if class.finish_drain(&self.pages, work.page) {
            drop(class);
            self.pages_moved.fetch_add(1, Ordering::Relaxed);
            let mut pool = lock(&self.pool);
            pool.give_back(work.page);
            if pool.is_over() {
                // Under the lock: nobody may take the page, and write to it, before it is released.
                self.release_page(work.page);
            }
            return Drained::Page;
        }
        work.next = 0;
        work.passes += 1;
        if work.passes > DRAIN_PASSES_MAX {
            class.cancel_drain(&self.pages, work.page);
            return Drained::Nothing;
        }
        Drained::More
    }

    /// True while a page is being emptied.
    pub fn is_draining(&self) -> bool {
        lock(&self.drain).work.is_some()
    }

    fn release_page(&self, page: u32) {
        let start = page as usize * PAGE_WORDS;
        self.arena.release(start, PAGE_WORDS);
    }

    /// Moves pages towards a class that has too few. Work of one call is bounded, except that a
    /// class that can do nothing else (it has no page, or is `starving`: nothing in its pages can
    /// go) must wait for one. `unlink` as for [`Store::drain`].
    pub fn move_pages(&self, class: usize, starving: bool, mut unlink: impl FnMut(Chunk)) {
        let wanted = starving || self.wants_page(class);
        if !wanted && !self.is_draining() {
            return;
        }
        let homeless = starving || self.is_homeless(class);
        // In proportion to the bytes wanted, so that a page arrives about when the class has evicted
        // another page's worth by itself.
        let budget = (self.sizes.chunk(class) / 64).clamp(16, 1024);
        let mut turn = 0;
        loop {
            match self.drain(Some(class), budget, &mut unlink) {
                Drained::More if homeless => {}
                Drained::Elsewhere if homeless => {
                    spin(turn);
                    turn += 1;
                }
                _ => break,
            }
        }
    }

    /// Gives pages back while the limit is exceeded. True if there is more to do.
    pub fn shrink(&self, budget: usize, unlink: impl FnMut(Chunk)) -> bool {
        if !self.pool().is_over() && !self.is_draining() {
            return false;
        }
        self.drain(None, budget, unlink);
        self.pool().is_over()
    }
}

/// Lets the next thread empty the page.
struct AtWork<'a>(&'a Store);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        lock(&self.0.drain).worker = None;
    }
}
