//! A thread's handle to the engine, and the batch.
//!
//! A batch is carried out strictly in order, with a lock for each request. The stages that run ahead of it only load
//! caches: first the partition with its lock, then, under the lock for a moment, the bucket, its first element, and
//! that element's neighbours in the order of use. So the misses of different requests overlap. Where partitions have
//! descriptors, a batch runs in another way: see [`read`](super::read).

use std::sync::Arc;

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::spinlock::SpinLock;

use super::{Lock, LockHash, LockHashValue, PartitionLock};
use crate::memory::LINE;
use crate::visit::visit_all;
use crate::{Element, Outcome, Partition, ReservedElement, Searches};
use nuthatch_engine::counters::Counters;
use nuthatch_engine::reply::{Item, LastReply, Replies, Reply};
use nuthatch_engine::request::{Key, Op, Request, Store, StoreMode};
use nuthatch_engine::{Cursor, Handle, Reservation, Visit, assert_commits};

/// Longer values are read in place instead of being copied.
pub const COPY_MAX: usize = if cfg!(loom) { 32 } else { 8192 };

/// How often memory is taken from other partitions for one store before the store is refused.
const RECLAIMS_MAX: usize = 8;

/// How many requests each stage of looking ahead is before the next.
pub(super) const STAGE: usize = 3;

/// Starts loading what an operation on a hash will need of its partition.
type Load = fn(&Partition, u64);
/// The loads ahead of a request, each with its number of stages, under the partition's lock for a moment.
const LOADS: [(usize, Load); 3] = [
    (3, Partition::prefetch_bucket),
    (2, Partition::prefetch_header),
    (1, Partition::prefetch_neighbours),
];

/// A thread's handle to a LockHash engine.
pub struct LockHashHandle<L: Lock<Partition> = SpinLock<Partition>> {
    pub(super) engine: Arc<LockHash<L>>,
    /// Searches by the descriptors that have not been handed in yet.
    pub(super) searches: Searches,
    pub(super) counters: Arc<Counters<{ Searches::COUNTS }>>,
}

impl<L: Lock<Partition>> Drop for LockHashHandle<L> {
    fn drop(&mut self) {
        self.engine.searches.unregister(&self.counters);
    }
}

impl<L: Lock<Partition>> LockHashHandle<L> {
    pub(super) fn new(engine: &Arc<LockHash<L>>) -> Self {
        Self {
            engine: Arc::clone(engine),
            searches: Searches::default(),
            counters: engine.searches.register(),
        }
    }

    /// The engine behind the handle.
    pub fn engine(&self) -> &Arc<LockHash<L>> {
        &self.engine
    }

    /// Carries out one request. The caller holds the partition.
    #[inline(always)]
    pub(super) fn run(
        &mut self,
        now: Time,
        index: usize,
        request: &Request<'_>,
        replies: &mut impl Replies<LockHashValue<L>>,
    ) {
        let Request { key, op } = request;
        let partition = self.engine.partition_of(key.hash());
        let mut locked = self.engine.lock(partition);
        match locked.execute(now, key, op) {
            Outcome::Value(element, item) => {
                self.hand_out(locked, partition, element, item, index, replies);
            }
            Outcome::Done(reply) if reply != Reply::OutOfMemory => {
                drop(locked);
                replies.done(index, reply);
            }
            unfinished => {
                drop(locked);
                self.go_on(now, index, request, unfinished, replies);
            }
        }
    }

    /// Answers with the value of an element, and releases its partition.
    #[inline(always)]
    fn hand_out(
        &self,
        mut locked: L::Guard<'_>,
        partition: usize,
        element: Element,
        item: Item,
        index: usize,
        replies: &mut impl Replies<LockHashValue<L>>,
    ) {
        if item.value_len <= COPY_MAX {
            let into = replies.begin(index, &item);
            let memory = locked.memory();
            memory.read(element, memory.key_len(element), into);
            drop(locked);
            replies.commit(index);
        } else if locked.pin(element) {
            drop(locked);
            let value = LockHashValue::new(Arc::clone(&self.engine), partition, element);
            replies.large(index, &item, value);
        } else {
            // There are sixteen million readers of one value already.
            drop(locked);
            replies.done(index, Reply::OutOfMemory);
        }
    }

    /// Goes on with a request that is not done: it found no memory in its partition, or a long value is to be copied
    /// without the lock.
    #[cold]
    fn go_on(
        &mut self,
        now: Time,
        index: usize,
        Request { key, op }: &Request<'_>,
        mut outcome: Outcome,
        replies: &mut dyn Replies<LockHashValue<L>>,
    ) {
        let engine = &*self.engine;
        let partition = engine.partition_of(key.hash());
        let mut shortages = 0;
        loop {
            outcome = match outcome {
                Outcome::Draft(draft) => {
                    draft.fill(&engine.memory, key, op);
                    engine.at(partition, |locked| locked.finish(now, key, op, draft))
                }
                Outcome::Done(Reply::OutOfMemory) if shortages < RECLAIMS_MAX => {
                    shortages += 1;
                    let found = engine.with_room(now, partition, |locked| {
                        match locked.execute(now, key, op) {
                            Outcome::Done(Reply::OutOfMemory) => None,
                            outcome => Some(locked.pin_value(outcome)),
                        }
                    });
                    match found {
                        Some(outcome) => outcome,
                        None => return replies.done(index, Reply::OutOfMemory),
                    }
                }
                Outcome::Done(reply) => return replies.done(index, reply),
                // An item made here, which is empty; or one that another thread has stored while there was no memory.
                Outcome::Value(element, item) => {
                    let value = LockHashValue::new(Arc::clone(&self.engine), partition, element);
                    if item.value_len > COPY_MAX {
                        return replies.large(index, &item, value);
                    }
                    value.read(replies.begin(index, &item));
                    return replies.commit(index);
                }
            }
        }
    }
}

impl<L: Lock<Partition>> LockHash<L> {
    /// Starts loading a key's partition and lock.
    #[inline]
    pub(super) fn prefetch(&self, key: &Key<'_>) {
        let slot: *const PartitionLock<L> = &self.partitions[self.partition_of(key.hash())];
        nuthatch_store::prefetch::soon(slot);
        nuthatch_store::prefetch::soon(slot.cast::<u8>().wrapping_add(LINE));
    }

    /// Prefetches from a key's partition what its operation will need, if no thread holds the partition.
    #[inline]
    fn look_ahead(&self, key: &Key<'_>, load: Load) {
        let slot = &self.partitions[self.partition_of(key.hash())];
        if let Some(locked) = slot.0.try_lock() {
            load(&locked, key.hash());
        }
    }

    /// Retries an operation that found no memory, each time with more blocks for its partition.
    fn with_room<T>(
        &self,
        now: Time,
        partition: usize,
        mut attempt: impl FnMut(&mut Partition) -> Option<T>,
    ) -> Option<T> {
        for _ in 0..RECLAIMS_MAX {
            let wanted = self.at(partition, Partition::take_wanted);
            // Zero: another thread whose store failed in this partition too has taken the number, and gets the blocks.
            // So this thread only retries.
            if wanted > 0 && !self.reclaim(now, partition, wanted) {
                break;
            }
            if let Some(done) = self.at(partition, &mut attempt) {
                return Some(done);
            }
        }
        self.at(partition, Partition::count_out_of_memory);
        None
    }
}

impl<L: Lock<Partition>> Handle for LockHashHandle<L> {
    type Value = LockHashValue<L>;
    type Reservation = LockHashReservation<L>;
    const COPY_MAX: usize = COPY_MAX;

    #[inline]
    fn execute<R: Replies<Self::Value>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        if !self.engine.descriptors.is_empty() {
            return self.execute_by_descriptors(now, batch, replies);
        }
        for request in batch.iter().take(4 * STAGE) {
            self.engine.prefetch(&request.key);
        }
        for (index, request) in batch.iter().enumerate() {
            if let Some(ahead) = batch.get(index + 4 * STAGE) {
                self.engine.prefetch(&ahead.key);
            }
            for (stages, load) in LOADS {
                if let Some(ahead) = batch.get(index + stages * STAGE) {
                    self.engine.look_ahead(&ahead.key, load);
                }
            }
            self.run(now, index, request, replies);
        }
    }

    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<Self::Reservation, Reply> {
        let engine = Arc::clone(&self.engine);
        let partition = engine.partition_of(key.hash());
        let key_len = key.bytes().len();
        let insert = |locked: &mut Partition| locked.insert(now, key.hash(), key_len, value_len);
        let made = match engine.at(partition, insert) {
            Err(Reply::OutOfMemory) => engine
                .with_room(now, partition, |locked| insert(locked).ok())
                .ok_or(Reply::OutOfMemory),
            made => made,
        };
        let reserved = ReservedElement::new(&engine.memory, made?, key.bytes(), value_len);
        Ok(LockHashReservation {
            engine,
            partition,
            reserved,
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
            let publish = |locked: &mut Partition| locked.publish(now, element, store);
            return self.engine.at(reservation.partition, publish);
        }
        // The present value must be copied in any case, so the new bytes are copied out of their place once.
        let Some(data) = reservation.reserved.to_vec(&self.engine.memory) else {
            return Reply::OutOfMemory;
        };
        let (key, value) = data.split_at(reservation.reserved.key_len());
        drop(reservation);
        let key = Key::new(key, &self.engine.hasher);
        let op = Op::Store(Store { value, ..*store });
        let mut reply = LastReply(Reply::OutOfMemory);
        self.run(now, 0, &Request { key, op }, &mut reply);
        reply.0
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        let shrinking = self.engine.shrink(now, budget.max(1));
        self.engine.sweep(now, budget);
        self.engine.balance(now, budget);
        shrinking
    }

    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        let engine = &*self.engine;
        let copies = |number, position, step| {
            engine.at(number, |locked| {
                locked.copies(now, position, step, COPY_MAX)
            })
        };
        visit_all(engine.partitions.len(), from, budget, copies, visit)
    }
}

/// An element whose value is still on its way.
pub struct LockHashReservation<L: Lock<Partition> = SpinLock<Partition>> {
    engine: Arc<LockHash<L>>,
    partition: usize,
    reserved: ReservedElement,
}

impl<L: Lock<Partition>> Reservation for LockHashReservation<L> {
    fn write(&mut self, bytes: &[u8]) {
        self.reserved.write(&self.engine.memory, bytes);
    }

    fn missing(&self) -> usize {
        self.reserved.missing()
    }
}

impl<L: Lock<Partition>> Drop for LockHashReservation<L> {
    fn drop(&mut self) {
        if let Some(element) = self.reserved.take() {
            self.engine
                .at(self.partition, |locked| locked.decref(element));
        }
    }
}
