//! A thread's door to the engine, and the batch.
//!
//! A batch is carried out in windows. In the first stage each request's two buckets are asked for;
//! in the second the tags are compared and the item is asked for; in the third the requests take
//! effect, strictly in order. The first two stages only load caches and remember versions: a get
//! whose versions have moved by the third (because a request before it in the batch changed the
//! key, or anybody did) simply starts over. So misses of different requests overlap, and order is
//! kept without any bookkeeping.

use std::sync::Arc;

use nuthatch_sync::clock::Time;
use nuthatch_sync::shim::Ordering;

use super::Cuckoo;
use super::index::Place;
use super::layout::{Design, EightWay};
use super::local::Local;
use super::matching::{Matcher, Scalar, Vector};
use super::read::Probe;
use super::value::CuckooValue;
use super::write::Fresh;
use crate::engine::{Cursor, Handle, Reservation, Visit};
use crate::item::Shape;
use crate::reply::{Replies, Reply};
use crate::request::{Key, Op, Request, Store, StoreMode};

/// Longer values are read in place instead of being copied.
pub const COPY_MAX: usize = if cfg!(loom) { 32 } else { 8192 };

/// Requests whose misses overlap. This machine keeps 16 lines in flight and more; larger windows gain
/// nothing and push each other's lines out of the first cache.
const WINDOW: usize = 32;

/// Buckets split in one call of `maintain`, for each item of its budget.
const SPLITS_A_BUDGET: usize = 8;

/// Pages backed with memory in one call of `maintain`.
const WARM_PAGES_A_CALL: usize = 8;

/// A thread's door to a cuckoo engine.
pub struct CuckooHandle<D: Design = EightWay> {
    engine: Arc<Cuckoo<D>>,
    local: Local,
}

impl<D: Design> CuckooHandle<D> {
    pub(super) fn new(engine: &Arc<Cuckoo<D>>) -> Self {
        let counters = engine.counters.register();
        // Any seed will do that differs between threads.
        let seed = Arc::as_ptr(&counters) as u64;
        Self {
            engine: Arc::clone(engine),
            local: Local::new(counters, seed),
        }
    }

    /// The engine behind the door.
    pub fn engine(&self) -> &Arc<Cuckoo<D>> {
        &self.engine
    }

    #[inline]
    fn run<M: Matcher, R: Replies<CuckooValue<D>>>(
        &mut self,
        matcher: M,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        let mut index = 0;
        for window in batch.chunks(WINDOW) {
            if let [request] = window {
                self.run_one(matcher, now, request, index, replies);
            } else {
                self.run_window(matcher, now, window, index, replies);
            }
            index += window.len();
        }
    }

    /// One request alone: there is nothing to overlap but its own two buckets.
    #[inline]
    fn run_one<M: Matcher, R: Replies<CuckooValue<D>>>(
        &mut self,
        matcher: M,
        now: Time,
        request: &Request<'_>,
        index: usize,
        replies: &mut R,
    ) {
        let place = self.engine.index.place(request.key.hash());
        match &request.op {
            Op::Get => {
                self.engine.get(
                    &self.local,
                    matcher,
                    now,
                    &request.key,
                    &place,
                    index,
                    replies,
                );
            }
            _ => self.change(now, request, &place, index, replies),
        }
    }

    #[inline]
    fn run_window<M: Matcher, R: Replies<CuckooValue<D>>>(
        &mut self,
        matcher: M,
        now: Time,
        window: &[Request<'_>],
        first: usize,
        replies: &mut R,
    ) {
        let engine = &self.engine;
        let mut places = [const { std::mem::MaybeUninit::<Place>::uninit() }; WINDOW];
        let places = fill(
            &mut places,
            window.iter().map(|request| {
                let place = engine.index.place(request.key.hash());
                engine.index.prefetch(&place);
                place
            }),
        );
        let mut probes = [const { std::mem::MaybeUninit::<Probe>::uninit() }; WINDOW];
        let probes = fill(
            &mut probes,
            places.iter().map(|place| engine.probe(matcher, place)),
        );
        for (number, request) in window.iter().enumerate() {
            let (place, probe, index) = (&places[number], &probes[number], first + number);
            match &request.op {
                Op::Get => self.engine.get_probed(
                    &self.local,
                    matcher,
                    now,
                    &request.key,
                    place,
                    probe,
                    index,
                    replies,
                ),
                _ => self.change(now, request, place, index, replies),
            }
        }
    }

    /// Everything but a plain get.
    fn change<R: Replies<CuckooValue<D>>>(
        &mut self,
        now: Time,
        request: &Request<'_>,
        place: &Place,
        index: usize,
        replies: &mut R,
    ) {
        let Self { engine, local } = self;
        let _writer = engine.one_writer();
        let key = &request.key;
        let reply = match &request.op {
            Op::Get => {
                return engine.get(local, Scalar, now, key, place, index, replies);
            }
            Op::Read(read) => {
                return engine.read(local, now, key, place, read, index, replies);
            }
            Op::Store(store) => engine.store(local, now, key, place, store),
            Op::Remove(removal) => engine.remove(local, now, key, place, removal),
            Op::Delta(delta) => engine.delta(local, now, key, place, delta),
        };
        replies.done(index, reply);
    }
}

/// Fills the front of an array and returns that part.
#[inline(always)]
fn fill<T: Copy, const N: usize>(
    array: &mut [std::mem::MaybeUninit<T>; N],
    items: impl Iterator<Item = T>,
) -> &[T] {
    let mut count = 0;
    for (place, item) in array.iter_mut().zip(items) {
        place.write(item);
        count += 1;
    }
    // SAFETY: the loop has written the first `count` elements.
    unsafe { array[..count].assume_init_ref() }
}

impl<D: Design> Handle for CuckooHandle<D> {
    type Value = CuckooValue<D>;
    type Reservation = CuckooReservation<D>;
    const COPY_MAX: usize = COPY_MAX;

    fn execute<R: Replies<Self::Value>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        self.engine.apply_flush(now);
        match self.engine.vector {
            Vector::Scalar => self.run(Scalar, now, batch, replies),
            #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
            Vector::Sse2 => self.run(super::matching::Sse2, now, batch, replies),
            #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
            Vector::Avx2 => self.run(super::matching::Avx2, now, batch, replies),
            #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
            Vector::Sse2 | Vector::Avx2 => self.run(Scalar, now, batch, replies),
        }
    }

    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<Self::Reservation, Reply> {
        let Self { engine, local } = self;
        let _writer = engine.one_writer();
        // Flags and cas are not known yet: the wide header has room for any.
        let fresh = engine.allocate(local, now, &key, value_len, true)?;
        // Relaxed: a statistic.
        engine.reserved.fetch_add(1, Ordering::Relaxed);
        Ok(CuckooReservation {
            engine: Arc::clone(engine),
            key: key.bytes().into(),
            shape: fresh.shape,
            fresh: Some(fresh),
            written: 0,
        })
    }

    fn commit(
        &mut self,
        now: Time,
        mut reservation: Self::Reservation,
        store: &Store<'_>,
    ) -> Reply {
        assert_eq!(
            reservation.missing(),
            0,
            "a reservation is committed when it is complete"
        );
        let Self { engine, local } = self;
        engine.apply_flush(now);
        let bytes = std::mem::take(&mut reservation.key);
        let key = Key::new(&bytes, &engine.hasher);
        let place = engine.index.place(key.hash());
        if matches!(store.mode, StoreMode::Append | StoreMode::Prepend) {
            // What is there must be copied in any case, so the bytes come out of their place once.
            let value = reservation.take_bytes();
            let request = Request {
                key,
                op: Op::Store(Store {
                    value: &value,
                    ..*store
                }),
            };
            let mut reply = OneReply(Reply::NotStored);
            self.change(now, &request, &place, 0, &mut reply);
            return reply.0;
        }
        let _writer = engine.one_writer();
        match reservation.fresh.take() {
            Some(fresh) => {
                let reply = engine.publish(local, now, &key, &place, fresh, store);
                engine.help_growth();
                reply
            }
            None => Reply::OutOfMemory,
        }
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        let Self { engine, local } = self;
        let warming = engine.store.warm(WARM_PAGES_A_CALL);
        engine.warm_growth();
        let _writer = engine.one_writer();
        engine.apply_flush(now);
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

/// Keeps the one answer of a store.
struct OneReply(Reply);

impl<V> Replies<V> for OneReply {
    fn begin(&mut self, _: usize, _: &crate::Item) -> &mut [std::mem::MaybeUninit<u8>] {
        &mut []
    }
    fn commit(&mut self, _: usize) {}
    fn retract(&mut self, _: usize) {}
    fn large(&mut self, _: usize, _: &crate::Item, _: V) {}
    fn done(&mut self, _: usize, reply: Reply) {
        self.0 = reply;
    }
}

/// An item whose value is still on its way.
pub struct CuckooReservation<D: Design = EightWay> {
    engine: Arc<Cuckoo<D>>,
    key: Box<[u8]>,
    shape: Shape,
    fresh: Option<Fresh>,
    written: usize,
}

impl<D: Design> CuckooReservation<D> {
    fn take_bytes(&self) -> Vec<u8> {
        let mut value = vec![std::mem::MaybeUninit::new(0); self.shape.value_len];
        if let Some(fresh) = &self.fresh {
            self.engine
                .store
                .read_value(fresh.chunk, &fresh.shape, 0, &mut value);
        }
        // SAFETY: made initialised, written over since.
        unsafe { value.assume_init_ref() }.to_vec()
    }
}

impl<D: Design> Reservation for CuckooReservation<D> {
    fn write(&mut self, bytes: &[u8]) {
        assert!(
            bytes.len() <= self.missing(),
            "more bytes than were reserved"
        );
        if let Some(fresh) = &self.fresh {
            // Again: this may be another thread than the one that reserved.
            self.engine.store.begin_fill();
            self.engine
                .store
                .write_value(fresh.chunk, &fresh.shape, self.written, bytes);
        }
        self.written += bytes.len();
    }

    fn missing(&self) -> usize {
        self.shape.value_len - self.written
    }
}

impl<D: Design> Drop for CuckooReservation<D> {
    fn drop(&mut self) {
        self.engine.reserved.fetch_sub(1, Ordering::Relaxed);
        if let Some(fresh) = self.fresh.take() {
            self.engine.discard(fresh);
        }
    }
}
