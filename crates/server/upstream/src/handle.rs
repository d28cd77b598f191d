//! A thread's handle: a batch goes to the copies, what they lack to the servers as one pipeline, and the answers back in order.

use std::sync::Arc;

use nuthatch_engine::reply::LastReply;
use nuthatch_engine::{
    Cursor, Engine, Handle, Key, Op, Replies, Reply, Request, Store, Time, TouchIf, Visit,
    assert_commits,
};

use crate::conditional;
use crate::engine::Upstream;
use crate::exchange::Exchange;
use crate::value::{UpstreamReservation, UpstreamValue};

/// A thread's handle to a near cache of other servers.
pub struct UpstreamHandle<E: Engine> {
    near: E::Handle,
    engine: Arc<Upstream<E>>,
    /// The moment of the caller's turn.
    turn: Time,
    /// When the first request came that had this moment, by the engine's clock.
    begun: Time,
}

/// Two times of a request.
#[derive(Clone, Copy)]
pub struct Times {
    /// The moment of the caller's turn, by which the ends of items are told.
    pub turn: Time,
    /// The present, by which copies end. A caller reads its clock once a turn, and its thread may have waited for servers since,
    /// again and again: copies would live on for all that time.
    pub present: Time,
}

impl<E: Engine> UpstreamHandle<E> {
    pub(crate) fn new(engine: &Arc<Upstream<E>>) -> Self {
        Self {
            near: engine.near.handle(),
            engine: Arc::clone(engine),
            turn: Time::default(),
            begun: Time::default(),
        }
    }

    fn times(&mut self, turn: Time) -> Times {
        let here = self.engine.clock.now();
        if self.turn != turn {
            (self.turn, self.begun) = (turn, here);
        }
        let present = turn.after(here.since(self.begun));
        Times { turn, present }
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.engine).addr()
    }
}

/// True if the request is carried out by itself: a touch under a condition, which no command has.
fn is_conditional(op: &Op<'_>) -> bool {
    matches!(op, Op::Read(read) if read.touch.is_some() && read.touch_if != TouchIf::Always)
}

impl<E: Engine> Handle for UpstreamHandle<E> {
    type Value = UpstreamValue<<E::Handle as Handle>::Value>;
    type Reservation = UpstreamReservation;
    const COPY_MAX: usize = E::Handle::COPY_MAX;

    #[inline]
    fn prefetch(&mut self, key: &Key<'_>) {
        self.near.prefetch(key);
    }

    /// A thread waits for the servers' answers meanwhile.
    fn execute<R: Replies<Self::Value>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        let mut first = 0;
        while first < batch.len() {
            let rest = &batch[first..];
            let times = self.times(now);
            if is_conditional(&rest[0].op) {
                let reply = conditional::touch(&self.engine, &mut self.near, times, &rest[0]);
                replies.done(first, reply);
                first += 1;
                continue;
            }
            let end = rest.iter().position(|request| is_conditional(&request.op));
            let part = &rest[..end.unwrap_or(rest.len())];
            Exchange::run(&self.engine, &mut self.near, times, part, first, replies);
            first += part.len();
        }
    }

    fn reserve(
        &mut self,
        _: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<Self::Reservation, Reply> {
        if value_len > self.engine.item_size_max() {
            return Err(Reply::TooLarge);
        }
        let mut value = Vec::new();
        let room = value.try_reserve_exact(value_len);
        room.map_err(|_| Reply::OutOfMemory)?;
        Ok(UpstreamReservation {
            engine: self.address(),
            key: key.bytes().to_vec(),
            hash: key.hash(),
            value,
            missing: value_len,
        })
    }

    fn commit(&mut self, now: Time, reservation: Self::Reservation, store: &Store<'_>) -> Reply {
        assert_commits(&reservation, reservation.engine == self.address());
        let key = Key::hashed(&reservation.key, reservation.hash);
        let op = Op::Store(Store {
            value: &reservation.value,
            ..*store
        });
        let mut last = LastReply(Reply::Unavailable);
        self.execute(now, &[Request { key, op }], &mut last);
        last.0
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        self.near.maintain(now, budget)
    }

    /// Nothing: copies are nobody's items.
    fn visit(
        &mut self,
        _: Time,
        _: Cursor,
        _: usize,
        _: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        None
    }
}
