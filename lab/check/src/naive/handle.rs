//! A thread's handle to the oracle.

use std::sync::Arc;

use nuthatch_engine::{
    Cursor, Handle, Key, Op, Replies, Reply, Request, Reservation, Store, Time, Value, Visit,
};

use super::transition::{HEADER, Outcome};
use super::{Naive, footprint};

/// A thread's handle to a [`Naive`].
#[derive(Debug)]
pub struct NaiveHandle {
    engine: Arc<Naive>,
}

impl NaiveHandle {
    pub(super) fn new(engine: Arc<Naive>) -> Self {
        Self { engine }
    }
}

/// A large value, kept alive by its reader.
#[derive(Debug)]
pub struct NaiveValue(Arc<[u8]>);

/// The oracle's large values come in pieces of this many bytes, so that code that is tested against it does not assume
/// contiguous values.
const PIECE: usize = 64 * 1024;

impl Value for NaiveValue {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn chunk(&self, offset: usize) -> &[u8] {
        let end = (offset / PIECE + 1) * PIECE;
        &self.0[offset..end.min(self.0.len())]
    }
}

/// A value that is arriving.
#[derive(Debug)]
pub struct NaiveReservation {
    key: Vec<u8>,
    value: Vec<u8>,
    missing: usize,
}

impl Reservation for NaiveReservation {
    fn write(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.missing, "more bytes than reserved");
        self.missing -= bytes.len();
        self.value.extend_from_slice(bytes);
    }

    fn missing(&self) -> usize {
        self.missing
    }
}

impl Handle for NaiveHandle {
    type Value = NaiveValue;
    type Reservation = NaiveReservation;
    const COPY_MAX: usize = 8192;

    fn execute<R: Replies<NaiveValue>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        for (index, request) in batch.iter().enumerate() {
            match self.engine.transact(now, request.key.bytes(), &request.op) {
                Outcome::Done(reply) => replies.done(index, reply),
                Outcome::Value(item, value) if value.len() > Self::COPY_MAX => {
                    replies.large(index, &item, NaiveValue(value));
                }
                Outcome::Value(item, value) => {
                    let room = replies.begin(index, &item);
                    room[..value.len()].write_copy_of_slice(&value);
                    replies.commit(index);
                }
            }
        }
    }

    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<NaiveReservation, Reply> {
        let size = HEADER + key.bytes().len() + value_len;
        if size > self.engine.item_size_max {
            return Err(Reply::TooLarge);
        }
        let mut table = self.engine.table();
        table.flush_if_due(now);
        if !table.make_room(now, key.bytes(), size, self.engine.evicts) {
            table.counters.out_of_memory += 1;
            return Err(Reply::OutOfMemory);
        }
        Ok(NaiveReservation {
            key: key.bytes().to_vec(),
            value: Vec::with_capacity(value_len),
            missing: value_len,
        })
    }

    fn commit(&mut self, now: Time, reservation: NaiveReservation, store: &Store<'_>) -> Reply {
        assert_eq!(reservation.missing, 0, "a reservation is committed whole");
        let store = Op::Store(Store {
            value: &reservation.value,
            ..*store
        });
        match self.engine.transact(now, &reservation.key, &store) {
            Outcome::Done(reply) => reply,
            Outcome::Value(..) => unreachable!("a store returns no value"),
        }
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        let mut table = self.engine.table();
        table.flush_if_due(now);
        let budget = budget.max(1);
        table.shrink(now, budget) | table.sweep(now, budget)
    }

    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        let budget = budget.max(1);
        let met: Vec<_> = {
            let mut table = self.engine.table();
            table.flush_if_due(now);
            let rest = table.items.range(from.place..);
            let rest = rest.map(|(place, entry)| (*place, entry.clone()));
            rest.take(budget.saturating_add(1)).collect()
        };
        for (index, (place, (key, item))) in met.iter().enumerate() {
            if index == budget {
                return Some(Cursor::at(*place));
            }
            if item.expiry.is_past(now) {
                continue;
            }
            let copied = item.value.len() <= Self::COPY_MAX;
            visit(Visit {
                key,
                item: item.describe(now),
                value: if copied { &item.value } else { &[] },
                footprint: footprint(key.len(), item.value.len()),
            });
        }
        None
    }
}
