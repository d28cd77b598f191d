//! A thread's door to the engine, and the batch.
//!
//! A batch goes through three stages, each some requests behind the one before. In the first a request's two
//! buckets are asked for; in the second the tags are compared and the item is asked for; in the third the
//! requests take effect, strictly in order. The first two stages only load caches and remember versions: a get
//! whose versions have moved by the third (because a request before it in the batch changed the key, or
//! anybody did) simply starts over. So misses of different requests overlap, and order is kept without any
//! bookkeeping.
//!
//! The first stage takes its time, since memory gives so many lines at once and no more. Whoever announces keys
//! as he meets them ([`Handle::prefetch`]) has it go by while he meets the others.

use std::sync::Arc;

use nuthatch_sync::clock::Time;

use super::Cuckoo;
use super::get::{Probe, Usual};
use super::layout::{Design, EightWay};
use super::local::Local;
use crate::engine::{Cursor, Handle, Visit};
use crate::reply::{Replies, Reply};
use crate::request::{Key, Op, Request, Store};
use crate::slab::fresh::Reserved;
use crate::slab::pinned::Pinned;
use crate::table::{self, Asked, Table};

/// Longer values are read in place instead of being copied.
pub const COPY_MAX: usize = if cfg!(loom) { 32 } else { 8192 };

/// How many requests the first stage is ahead of the second, and how many may be announced.
const ANNOUNCED_MAX: usize = 32;

/// How many requests the second stage is ahead of the third. With 4 a batch of 32 gets over 10 million items
/// took 1.3 times as long, with 8 1.05 times, with 24 as long as with 16.
const AHEAD: usize = 16;

/// Buckets split in one call of `maintain`, for each item of its budget.
const SPLITS_A_BUDGET: usize = 8;

/// Pages backed with memory in one call of `maintain`.
const WARM_PAGES_A_CALL: usize = 8;

/// A large value, held in place.
pub type CuckooValue<D = EightWay> = Pinned<Cuckoo<D>>;

/// An item whose value is still on its way.
pub type CuckooReservation<D = EightWay> = Reserved<Cuckoo<D>>;

/// A thread's door to a cuckoo engine.
pub struct CuckooHandle<D: Design = EightWay> {
    engine: Arc<Cuckoo<D>>,
    local: Local,
    /// Requests of the next batch that have been through the first stage. Should they be others, that costs
    /// time and nothing else.
    announced: usize,
}

impl<D: Design> CuckooHandle<D> {
    pub(super) fn new(engine: &Arc<Cuckoo<D>>) -> Self {
        let counters = engine.counters.register();
        // Any seed will do that differs between threads.
        let seed = Arc::as_ptr(&counters) as u64;
        Self {
            engine: Arc::clone(engine),
            local: Local::new(counters, seed),
            announced: 0,
        }
    }

    /// The engine behind the door.
    pub fn engine(&self) -> &Arc<Cuckoo<D>> {
        &self.engine
    }

    /// One plain get alone, the shortest way: with nothing to overlap but what the processor finds by
    /// running ahead into the caller's next get.
    #[inline(always)]
    fn get_alone(&mut self, now: Time, key: &Key<'_>, replies: &mut impl Replies<CuckooValue<D>>) {
        let asked = Asked {
            now,
            key: *key,
            index: 0,
        };
        self.engine.get(&self.local, &asked, replies);
    }

    /// Any batch.
    #[inline(never)]
    fn run<R: Replies<CuckooValue<D>>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        announced: usize,
        replies: &mut R,
    ) {
        if let [request] = batch {
            let asked = Asked {
                now,
                key: request.key,
                index: 0,
            };
            return self.change(&asked, &request.op, replies);
        }
        for request in batch.iter().take(ANNOUNCED_MAX).skip(announced) {
            self.announce(&request.key);
        }
        // What the second stage leaves for the third.
        let mut ring = [Probe::default(); AHEAD];
        let (mut hits, mut misses) = (0, 0);
        let ahead = AHEAD.min(batch.len());
        for turn in 0..batch.len() + ahead {
            // The last stage first: it reads the place of the ring that the one before it then fills.
            let third = turn.wrapping_sub(ahead);
            if let Some(request) = batch.get(third) {
                match self.carry_out(now, request, third, &ring[third % AHEAD], replies) {
                    Usual::Hit => hits += 1,
                    Usual::Miss => misses += 1,
                    Usual::Not => {}
                }
            }
            if let Some(request) = batch.get(turn) {
                let place = self.engine.index.place(request.key.hash());
                ring[turn % AHEAD] = self.engine.probe(&place);
            }
            if let Some(request) = batch.get(turn + ANNOUNCED_MAX) {
                self.announce(&request.key);
            }
        }
        self.local.count_usual(hits, misses);
    }

    /// First stage: asks for a key's two buckets.
    #[inline(always)]
    fn announce(&self, key: &Key<'_>) {
        let index = &self.engine.index;
        index.prefetch(&index.place(key.hash()));
    }

    /// Third stage: a request takes effect, and if that took the usual way, it is still to be counted.
    #[inline(always)]
    fn carry_out<R: Replies<CuckooValue<D>>>(
        &mut self,
        now: Time,
        request: &Request<'_>,
        index: usize,
        probe: &Probe,
        replies: &mut R,
    ) -> Usual {
        let asked = Asked {
            now,
            key: request.key,
            index,
        };
        let Op::Get = request.op else {
            self.change(&asked, &request.op, replies);
            return Usual::Not;
        };
        let usual = self.engine.get_probed(&asked, probe, replies);
        if usual == Usual::Not {
            self.engine.get_any(&self.local, asked, replies);
        }
        usual
    }

    /// Everything but a plain get.
    fn change<R: Replies<CuckooValue<D>>>(
        &mut self,
        asked: &Asked<'_>,
        op: &Op<'_>,
        replies: &mut R,
    ) {
        let Self { engine, local, .. } = self;
        let _writer = engine.one_writer();
        let reply = match op {
            Op::Get => return engine.get(local, asked, replies),
            Op::Read(read) => return engine.read(local, asked, read, replies),
            Op::Store(store) => {
                let reply = engine.write(local, asked, store);
                engine.help_growth();
                reply
            }
            Op::Remove(removal) => engine.remove(local, asked, removal),
            Op::Delta(delta) => table::delta(&**engine, local, asked, delta),
        };
        replies.done(asked.index, reply);
    }
}

impl<D: Design> Handle for CuckooHandle<D> {
    type Value = CuckooValue<D>;
    type Reservation = CuckooReservation<D>;
    const COPY_MAX: usize = COPY_MAX;

    #[inline]
    fn prefetch(&mut self, key: &Key<'_>) {
        if self.announced < ANNOUNCED_MAX {
            self.announced += 1;
            self.announce(key);
        }
    }

    // Always inlined: one plain get goes no further, and its caller has the parts of the request in
    // registers. Everything else is a call.
    #[inline(always)]
    fn execute<R: Replies<Self::Value>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        self.engine.lifetimes.apply_flush(now);
        let announced = std::mem::take(&mut self.announced);
        match batch {
            [Request { key, op: Op::Get }] => self.get_alone(now, key, replies),
            _ => self.run(now, batch, announced, replies),
        }
    }

    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<Self::Reservation, Reply> {
        let Self { engine, local, .. } = self;
        let _writer = engine.one_writer();
        // Flags and cas are not known yet: the wide header has room for any.
        let shape = engine.shape(key.bytes().len(), value_len, true);
        let fresh = engine.allocate(local, now, &key, shape)?;
        Ok(Reserved::new(Arc::clone(engine), key.bytes(), fresh))
    }

    fn commit(&mut self, now: Time, reservation: Self::Reservation, store: &Store<'_>) -> Reply {
        let Self { engine, local, .. } = self;
        engine.lifetimes.apply_flush(now);
        let _writer = engine.one_writer();
        let reply = engine.commit(local, now, reservation, store);
        engine.help_growth();
        reply
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        let Self { engine, local, .. } = self;
        let warming = engine.store.warm(WARM_PAGES_A_CALL);
        engine.warm_growth();
        let _writer = engine.one_writer();
        engine.lifetimes.apply_flush(now);
        let growing = engine.split_if_growing((budget / SPLITS_A_BUDGET).max(1));
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

impl<D: Design> Drop for CuckooHandle<D> {
    fn drop(&mut self) {
        self.engine.counters.unregister(&self.local.counters);
    }
}
