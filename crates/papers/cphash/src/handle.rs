//! A thread's handle to the engine.

use std::sync::Arc;

use nuthatch_base::hash::split;
use nuthatch_base::sync::clock::Time;

use super::batch::{ATTEMPTS, Batch, COPY_MAX};
use super::client::Client;
use super::lane::Scratch;
use super::room::Reclaimed;
use super::{CpHash, CpValue, Rings};
use nuthatch_engine::reply::{LastReply, Replies, Reply};
use nuthatch_engine::request::{Key, Op, Request, Store, StoreMode};
use nuthatch_engine::{Cursor, Handle, Reservation, Visit, assert_commits};
use nuthatch_partition::visit::visit_all;
use nuthatch_partition::{Partition, ReservedElement};

/// A thread's handle to a CPHash engine: its rings to all partitions.
pub struct CpHashHandle<D: Rings> {
    // Dropped before the engine, so that the server threads still run.
    client: Client<D>,
    scratch: Scratch,
    engine: Arc<CpHash<D>>,
}

impl<D: Rings> CpHashHandle<D> {
    pub(super) fn new(engine: &Arc<CpHash<D>>) -> Self {
        Self {
            client: Client::join(&engine.shared),
            scratch: Scratch::default(),
            engine: Arc::clone(engine),
        }
    }

    /// The engine behind the handle.
    pub fn engine(&self) -> &Arc<CpHash<D>> {
        &self.engine
    }

    fn partition_of(&self, hash: u64) -> usize {
        split::partition(hash, self.client.channels.len() as u32) as usize
    }
}

impl<D: Rings> Handle for CpHashHandle<D> {
    type Value = CpValue<D>;
    type Reservation = CpHashReservation<D>;
    const COPY_MAX: usize = COPY_MAX;

    #[inline]
    fn execute<R: Replies<Self::Value>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        Batch::run(&mut self.client, &mut self.scratch, now, batch, replies);
    }

    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<Self::Reservation, Reply> {
        let partition = self.partition_of(key.hash());
        let (hash, key_len) = (key.hash(), key.bytes().len());
        let mut attempts = 0;
        let element = loop {
            let made = self.client.run(partition, now, |partition| {
                partition.insert(now, hash, key_len, value_len)
            });
            match made {
                Err(Reply::OutOfMemory) if attempts < ATTEMPTS => attempts += 1,
                Err(Reply::OutOfMemory) => {
                    self.client
                        .run(partition, now, Partition::count_out_of_memory);
                    return Err(Reply::OutOfMemory);
                }
                made => break made?,
            }
            match self.client.reclaim(partition, now) {
                Reclaimed::Some => {}
                Reclaimed::Nothing if !self.client.shared.evicts => attempts = ATTEMPTS,
                Reclaimed::Nothing | Reclaimed::NotWanted => std::thread::yield_now(),
            }
        };
        let memory = &self.client.shared.memory;
        Ok(CpHashReservation {
            engine: Arc::clone(&self.engine),
            partition,
            reserved: ReservedElement::new(memory, element, key.bytes(), value_len),
        })
    }

    fn commit(
        &mut self,
        now: Time,
        mut reservation: Self::Reservation,
        store: &Store<'_>,
    ) -> Reply {
        assert_commits(&reservation, Arc::ptr_eq(&reservation.engine, &self.engine));
        if !matches!(store.mode, StoreMode::Append | StoreMode::Prepend) {
            let Some(element) = reservation.reserved.take() else {
                return Reply::OutOfMemory;
            };
            return self.client.run(reservation.partition, now, |partition| {
                partition.publish(now, element, store)
            });
        }
        // The present value must be copied in any case, so the new bytes are copied out of their place once.
        let Some(data) = reservation.reserved.to_vec(&self.engine.shared.memory) else {
            return Reply::OutOfMemory;
        };
        let (key, value) = data.split_at(reservation.reserved.key_len());
        drop(reservation);
        let key = Key::new(key, &self.engine.hasher);
        let op = Op::Store(Store { value, ..*store });
        let mut reply = LastReply(Reply::OutOfMemory);
        self.execute(now, &[Request { key, op }], &mut reply);
        reply.0
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        let shrinking = self.client.shrink(now, budget.max(1));
        self.client.sweep(now, budget);
        self.client.balance(now, budget);
        shrinking
    }

    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        let count = self.client.channels.len();
        let copies = |number, position, step| {
            self.client.run(number, now, |partition| {
                partition.copies(now, position, step, COPY_MAX)
            })
        };
        visit_all(count, from, budget, copies, visit)
    }
}

/// An element whose value is still on its way.
pub struct CpHashReservation<D: Rings> {
    engine: Arc<CpHash<D>>,
    partition: usize,
    reserved: ReservedElement,
}

impl<D: Rings> Reservation for CpHashReservation<D> {
    fn write(&mut self, bytes: &[u8]) {
        self.reserved.write(&self.engine.shared.memory, bytes);
    }

    fn missing(&self) -> usize {
        self.reserved.missing()
    }
}

impl<D: Rings> Drop for CpHashReservation<D> {
    fn drop(&mut self) {
        if let Some(element) = self.reserved.take() {
            self.engine.shared.partitions[self.partition].give_back(element);
        }
    }
}
