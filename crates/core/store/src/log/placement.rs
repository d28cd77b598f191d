//! The log as the [`Placement`] of a store.

use std::io;

use nuthatch_engine::request::Expiry;
use nuthatch_engine::{AuditError, Cursor};

use super::pages::PAGE_STATE;
use super::{Log, Queue, RESERVE, Stream};
use crate::eviction::log::LogPolicyKind;
use crate::item::fresh::Fresh;
use crate::item::{Header, Shape, record_words};
use crate::memory::arena::{Chunk, WORD};
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
        let plan = Plan {
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
    fn words_of(&self, chunk: Chunk) -> usize {
        Header::load(&self.arena, chunk).record_words(self.chunk_max())
    }

    /// 1 for an item of the main queue: it keeps a use when another value takes the place of its own.
    fn uses_of_main(&self, chunk: Chunk) -> u8 {
        u8::from(self.log().queue_of(chunk) == Queue::Main)
    }
}

impl Placement for Log {
    type Destination = Stream;

    const COUNTS_USES: bool = true;
    const MARKS_PIECES: bool = false;
    const OVERWRITES: bool = true;

    fn is_same_room(_: &Store<Self>, one: usize, other: usize) -> bool {
        record_words(one) == record_words(other)
    }

    #[inline]
    fn free(store: &Store<Self>, chunk: Chunk, linked: bool) {
        let words = store.words_of(chunk);
        store.log().free(&store.arena, chunk, words, !linked);
    }

    fn room_of(store: &Store<Self>, chunk: Chunk) -> Option<usize> {
        let words = store.words_of(chunk);
        store.arena.contains(chunk).then_some(words * WORD)
    }

    fn head_enters(_: &Store<Self>, _: Chunk) {}

    fn head_leaves(_: &Store<Self>, _: Chunk) {}

    #[inline]
    fn note_linked(store: &Store<Self>, fresh: &Fresh, expiry: Expiry) {
        let log = store.log();
        log.note_expiry(fresh.chunk, expiry);
        // The head last: a page with a private record is neither cleaned nor used again, so until then neither a
        // segment that is still to be linked nor the head's table moves.
        if fresh.shape.segment.is_some() {
            store.each_segment(fresh.chunk, &fresh.shape, |segment| log.link(segment));
        }
        log.link(fresh.chunk);
    }

    #[inline]
    fn note_expiry(store: &Store<Self>, chunk: Chunk, expiry: Expiry) {
        store.log().note_expiry(chunk, expiry);
    }

    /// To be replaced counts as a use if the item has been used before.
    #[inline]
    fn note_replaced(store: &Store<Self>, old: Chunk, fresh: &mut Fresh) {
        let kept = store.uses_of_main(old);
        fresh.uses = fresh.uses.max(store.recency.uses(old)).max(kept);
    }

    /// The item stays in its place in the queue, whereas an appended item begins anew: so to be overwritten counts as a
    /// use in any case.
    #[inline]
    fn note_overwritten(store: &Store<Self>, chunk: Chunk) {
        let uses = (store.recency.uses(chunk) + 1).max(store.uses_of_main(chunk));
        store.recency.start(chunk);
        store.recency.grant(chunk, uses);
    }

    /// Pages in which a cleaning left a part of the item may be tried again.
    fn note_unpinned(store: &Store<Self>, chunk: Chunk, shape: &Shape) {
        let log = store.log();
        log.note_unpinned(chunk);
        for index in 0..shape.segments() {
            log.note_unpinned(store.segment(chunk, shape, index));
        }
    }

    fn note_limit(store: &Store<Self>, pool: &mut Pool, bytes: usize) {
        let log = store.log();
        pool.uncharge(log.history.note_limit(bytes));
        log.note_free(pool);
    }

    fn sweep(store: &Store<Self>, budget: usize, mut look: impl FnMut(Chunk)) -> usize {
        store.log().sweep_in_turn(store, budget, &mut look)
    }

    fn walk(
        store: &Store<Self>,
        from: Cursor,
        budget: usize,
        show: impl FnMut(Chunk),
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
