//! Walks over the arena, not over an index: whatever an index does to its slots or chains, an item stays in its place.
//! So an item that is neither rewritten nor evicted is met exactly once. (In a log it may move: see
//! [`Log::walk`](crate::log::Log::walk).)

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};

use super::Slab;
use crate::memory::arena::{Address, WORD};
use crate::prefetch;
use crate::store::Store;
use nuthatch_engine::Cursor;

/// Chunks that a sweep claims at a time.
const RUN: usize = 64;

/// Looks that a page costs a store without room if some of it could be freed, and something stays.
const PARTLY_FREED_COST: usize = 32;

/// The places of sweeps, each a page and a chunk in the page.
#[derive(Default)]
pub struct Sweep {
    /// That of the background sweep.
    place: Mutex<u64>,
    /// That of stores that find no room.
    clearing: Mutex<u64>,
}

/// What became of a chunk that was to be cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleared {
    /// Its item was dead. It is freed now, or by its last reader.
    Freed,
    /// Nothing lay in it.
    Free,
    /// An item stays.
    Stays,
}

impl Sweep {
    fn lock(&self) -> MutexGuard<'_, u64> {
        self.place.lock()
    }
}

impl Store<Slab> {
    /// Looks at about `budget` chunks from where the last call stopped. Returns how many there were.
    pub(super) fn sweep_classes(&self, budget: usize, mut look: impl FnMut(Address)) -> usize {
        let mut looked = 0;
        while looked < budget {
            // Locked only to share out the work: a listener that is told of an expired item may call back.
            let mut place = self.slab().sweep.lock();
            let (page, number) = ((*place >> 32) as u32, *place as u32);
            let Some((class, chunk)) = self.chunk_of_page(page, number) else {
                // The end of a page, or a page of no class, which costs one look, too.
                let next = u64::from(page) + 1;
                *place = if next < u64::from(self.pages_taken()) {
                    next << 32
                } else {
                    0
                };
                looked += 1;
                continue;
            };
            let words = (self.sizes.chunk(class) / WORD) as u64;
            let run = (budget - looked).min(RUN);
            looked += run;
            *place += run as u64;
            drop(place);
            self.sweep_run(page, chunk, words, run, &mut look);
        }
        looked
    }

    /// Shows the chunks of the next page to `clear`, up to the first one that stays: the page cannot become empty then.
    ///
    /// A page costs one of `looks`, and so does each chunk in it that is free already; what is freed costs nothing. If
    /// no look is left, the next call goes on at this chunk.
    pub fn clear_page(&self, looks: &mut usize, mut clear: impl FnMut(Address) -> Cleared) {
        let (page, mut number) = {
            let mut place = self.slab().sweep.clearing.lock();
            let (page, number) = match ((*place >> 32) as u32, *place as u32) {
                (page, number) if page < self.pages_taken() => (page, number),
                _ => (0, 0),
            };
            // Other threads go on with the next page meanwhile.
            *place = u64::from(page + 1) << 32;
            (page, number)
        };
        *looks = looks.saturating_sub(1);
        let mut freed = false;
        while let Some((_, chunk)) = self.chunk_of_page(page, number) {
            if *looks == 0 {
                *self.slab().sweep.clearing.lock() = u64::from(page) << 32 | u64::from(number);
                return;
            }
            match clear(chunk) {
                Cleared::Freed => freed = true,
                Cleared::Free => *looks -= 1,
                Cleared::Stays => {
                    let cost = if freed { PARTLY_FREED_COST } else { 0 };
                    *looks = looks.saturating_sub(cost);
                    return;
                }
            }
            number += 1;
        }
    }

    /// Looks at up to `run` neighbouring chunks of a page.
    fn sweep_run(
        &self,
        page: u32,
        first: Address,
        words: u64,
        run: usize,
        look: &mut impl FnMut(Address),
    ) {
        for number in 0..run as u64 {
            let chunk = Address(first.0 + number * words);
            if self.page_of(Address(
                chunk.0 + words - 1 - (self.front_bytes() / WORD) as u64,
            )) != page
            {
                return;
            }
            prefetch::soon(self.arena.pointer(Address(chunk.0 + 8 * words)));
            look(chunk);
        }
    }

    /// Shows about `budget` chunks, and returns where to go on, or `None` at the end. See
    /// [`Handle::visit`](nuthatch_engine::Handle::visit).
    pub(super) fn walk_classes(
        &self,
        from: Cursor,
        budget: usize,
        mut show: impl FnMut(Address),
    ) -> Option<Cursor> {
        let (mut page, mut number) = ((from.place >> 32) as u32, from.place as u32);
        let end = self.pages_taken();
        for _ in 0..budget.max(1) {
            if page >= end {
                return None;
            }
            match self.chunk_of_page(page, number) {
                Some((_, chunk)) => {
                    show(chunk);
                    number += 1;
                }
                None => {
                    page += 1;
                    number = 0;
                }
            }
        }
        Some(Cursor::at(u64::from(page) << 32 | u64::from(number)))
    }
}
