//! A thread's handle to the engine, and the batch.
//!
//! A batch runs in groups: the buckets of a group are prefetched, then the first items of their chains, then the
//! requests take effect, strictly in order. That overlaps the first two misses of each request, but not the misses
//! further down a chain. A single request has no prefetches, as in memcached.

use std::sync::Arc;

use nuthatch_base::sync::clock::Time;

use super::Chained;
use super::local::Local;
use nuthatch_engine::reply::{Replies, Reply};
use nuthatch_engine::request::{Key, Op, Request, Store};
use nuthatch_engine::{Cursor, Handle, Visit};
use nuthatch_store::count::ThreadCounters;
use nuthatch_store::growth::Growing;
use nuthatch_store::item::fresh::Reserved;
use nuthatch_store::item::pinned::Pinned;
use nuthatch_store::memory::pins::UNPINNED_MAX;
use nuthatch_store::prefetch;
use nuthatch_store::reclaim::Reclaim;
use nuthatch_store::table::{self, Lookup, Table};

/// Longer values are read in place instead of being copied.
pub const COPY_MAX: usize = UNPINNED_MAX;

/// Requests whose memory misses overlap.
const GROUP: usize = 8;

/// Buckets moved in one call of `maintain`, for each item of its budget.
const SPLITS_A_BUDGET: usize = 8;

/// Pages backed with memory in one call of `maintain`.
const WARM_PAGES_A_CALL: usize = 8;

/// A large value, pinned in place.
pub type ChainedValue = Pinned<Chained>;

/// An item whose value is still on its way.
pub type ChainedReservation = Reserved<Chained>;

/// A thread's handle to a chained engine.
pub struct ChainedHandle {
    engine: Arc<Chained>,
    local: Local,
}

impl ChainedHandle {
    pub(super) fn new(engine: &Arc<Chained>) -> Self {
        Self {
            engine: Arc::clone(engine),
            local: Local::new(ThreadCounters::register(&engine.counters)),
        }
    }

    fn look_ahead(&self, group: &[Request<'_>]) {
        for request in group {
            self.engine.index.prefetch(request.key.hash());
        }
        for request in group {
            if let Some(address) = self.engine.index.peek(request.key.hash()) {
                prefetch::soon(self.engine.store.arena.pointer(address));
            }
        }
    }

    fn carry_out<R: Replies<ChainedValue>>(
        &mut self,
        lookup: &Lookup<'_>,
        op: &Op<'_>,
        replies: &mut R,
    ) {
        match op {
            Op::Get => self.engine.get(&self.local, lookup, replies),
            _ => self.change(lookup, op, replies),
        }
    }

    /// Any request, in general: compiled once, not for each receiver of replies.
    fn change(
        &mut self,
        lookup: &Lookup<'_>,
        op: &Op<'_>,
        replies: &mut dyn Replies<ChainedValue>,
    ) {
        let Self { engine, local } = self;
        let reply = match op {
            Op::Get => return engine.get(local, lookup, replies),
            Op::Read(read) => return engine.read(local, lookup, read, replies),
            Op::Store(store) => engine.write(local, lookup, store),
            Op::Remove(removal) => engine.remove(local, lookup, removal),
            Op::Delta(delta) => table::delta(&**engine, local, lookup, delta),
        };
        replies.done(lookup.index, reply);
    }
}

impl Handle for ChainedHandle {
    type Value = ChainedValue;
    type Reservation = ChainedReservation;
    const COPY_MAX: usize = COPY_MAX;

    fn execute<R: Replies<Self::Value>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        self.engine.timestamps.apply_flush(now);
        let mut index = 0;
        for group in batch.chunks(GROUP) {
            if group.len() > 1 {
                self.look_ahead(group);
            }
            for &Request { key, ref op } in group {
                self.carry_out(&Lookup { now, key, index }, op, replies);
                index += 1;
            }
        }
    }

    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<Self::Reservation, Reply> {
        let Self { engine, local } = self;
        let fresh = engine.allocate_unfilled(local, now, &key, value_len)?;
        Ok(Reserved::new(Arc::clone(engine), key.bytes(), fresh))
    }

    fn commit(&mut self, now: Time, reservation: Self::Reservation, store: &Store<'_>) -> Reply {
        let Self { engine, local } = self;
        engine.timestamps.apply_flush(now);
        engine.commit(local, now, reservation, store)
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        let Self { engine, local } = self;
        let warming = engine.store.warm(WARM_PAGES_A_CALL);
        engine.timestamps.apply_flush(now);
        let growing =
            engine.index.geometry().growing && engine.split((budget / SPLITS_A_BUDGET).max(1));
        let shrinking = engine.shrink(local, now, budget);
        engine.sweep(local, now, budget);
        growing || shrinking || warming
    }

    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        self.engine.visit_from(now, from, budget, visit)
    }
}

impl Drop for ChainedHandle {
    fn drop(&mut self) {
        self.local.tell(&self.engine.population);
        self.local.counters.unregister(&self.engine.counters);
    }
}
