//! The log as the [`Placement`] of a store.

use std::io;

use nuthatch_base::memory::Source;
use nuthatch_engine::request::Expiry;
use nuthatch_engine::{AuditError, Cursor};

use super::pages::PAGE_STATE;
use super::runs::RunNumber;
use super::{Log, Queue, RESERVE, Stream};
use crate::eviction::log::LogPolicyKind;
use crate::item::fresh::Fresh;
use crate::item::{Header, Shape, record_words};
use crate::memory::arena::{Address, WORD};
use crate::memory::pool::Pool;
use crate::memory::sizes::Sizes;
use crate::store::{Placement, Plan, Store};

impl Store<Log> {
    /// A store of `limit` bytes, which can be raised to `limit_max` while it runs.
    pub fn new(
        limit: usize,
        limit_max: usize,
        sizes: Sizes,
        eviction: &LogPolicyKind,
    ) -> io::Result<Self> {
        Self::new_in(Source::Private, limit, limit_max, sizes, eviction)
    }

    /// The same, whose items lie in memory from `source`.
    pub fn new_in(
        source: Source,
        limit: usize,
        limit_max: usize,
        sizes: Sizes,
        eviction: &LogPolicyKind,
    ) -> io::Result<Self> {
        let plan = Plan {
            source,
            limit,
            limit_max,
            front: 0,
            page_state: PAGE_STATE,
            spare: RESERVE,
            sizes,
        };
        let log = Log::new(limit, plan.pages(), plan.sizes.page_words(), eviction)?;
        Self::reserve(plan, log)
    }

    /// The log.
    #[inline(always)]
    pub fn log(&self) -> &Log {
        self.placement()
    }

    /// Words of the record of an item, a piece or a gap.
    fn words_of(&self, address: Address) -> usize {
        Header::load(&self.arena, address).record_words(self.cut())
    }

    /// Uses that an item keeps when another value takes the place of its own: at least 1 in the main queue. Where uses
    /// do not count yet, only those that were granted.
    fn uses_kept(&self, address: Address) -> u8 {
        let (log, uses) = (self.log(), self.recency.uses(address));
        match log.queue_of(address) {
            Queue::Main => uses.max(1),
            Queue::Probation if log.counts_uses(address) => uses,
            Queue::Probation if self.recency.was_fetched(address) => 0,
            Queue::Probation => uses,
        }
    }
}

impl Placement for Log {
    type Destination = Stream;

    const COUNTS_USES: bool = true;
    const MARKS_PIECES: bool = false;
    const OVERWRITES: bool = true;
    const CUTS_EVENLY: bool = true;

    fn is_same_room(_: &Store<Self>, one: usize, other: usize) -> bool {
        record_words(one) == record_words(other)
    }

    #[inline]
    fn free(store: &Store<Self>, address: Address, linked: bool) {
        let words = store.words_of(address);
        store.log().free(&store.arena, address, words, !linked);
    }

    fn room_of(store: &Store<Self>, address: Address) -> Option<usize> {
        let words = store.words_of(address);
        store.arena.contains(address).then_some(words * WORD)
    }

    fn head_enters(_: &Store<Self>, _: Address) {}

    fn head_leaves(_: &Store<Self>, _: Address) {}

    #[inline]
    fn note_linked(store: &Store<Self>, fresh: &Fresh, expiry: Expiry) {
        let log = store.log();
        log.note_expiry(fresh.address, expiry);
        // The head last: a page with a private record is neither cleaned nor used again, so until then neither a
        // piece that is still to be linked nor the head's table moves.
        if fresh.shape.piece.is_some() {
            store.each_piece(fresh.address, &fresh.shape, |piece| log.link(piece));
        }
        match fresh.run {
            Some(run) => log.settle(run),
            None => log.link(fresh.address),
        }
    }

    #[inline]
    fn free_cut(store: &Store<Self>, address: Address, run: RunNumber) {
        // As if it had been linked: not the record is counted as private, but its run.
        <Self as Placement>::free(store, address, true);
        store.log().settle(run);
    }

    #[inline]
    fn note_expiry(store: &Store<Self>, address: Address, expiry: Expiry) {
        store.log().note_expiry(address, expiry);
    }

    /// To be replaced counts as a use if the item has been used before.
    #[inline]
    fn note_replaced(store: &Store<Self>, old: Address, fresh: &mut Fresh) {
        fresh.uses = fresh.uses.max(store.uses_kept(old));
    }

    /// The item stays in its place in the queue, whereas an appended item begins anew: so to be overwritten counts as a
    /// use where uses count.
    #[inline]
    fn note_overwritten(store: &Store<Self>, address: Address) {
        let uses = match store.log().counts_uses(address) {
            true => store.recency.uses(address) + 1,
            false => store.uses_kept(address),
        };
        store.recency.start(address);
        store.recency.grant(address, uses);
    }

    /// Pages in which a cleaning left a part of the item may be tried again.
    fn note_unpinned(store: &Store<Self>, address: Address, shape: &Shape) {
        let log = store.log();
        log.note_unpinned(address);
        for index in 0..shape.pieces() {
            log.note_unpinned(store.piece(address, shape, index));
        }
    }

    fn note_limit(store: &Store<Self>, pool: &mut Pool, bytes: usize) {
        let log = store.log();
        pool.uncharge(log.history.note_limit(bytes));
        log.note_free(pool);
    }

    fn sweep(store: &Store<Self>, budget: usize, mut look: impl FnMut(Address)) -> usize {
        store.log().sweep_in_turn(store, budget, &mut look)
    }

    fn walk(
        store: &Store<Self>,
        from: Cursor,
        budget: usize,
        show: impl FnMut(Address),
    ) -> Option<Cursor> {
        store.log().walk(store, from, budget, show)
    }

    fn audit(store: &Store<Self>) -> Result<(), AuditError> {
        store.log().audit(store)
    }

    fn given_out(store: &Store<Self>) -> usize {
        store.log().records_held(store)
    }

    fn ghost_bytes(store: &Store<Self>) -> usize {
        store.log().history.ghosts.bytes()
    }
}
