//! The oracle with a fault, which the checks must detect.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_check::answer::{Answer, ask};
use nuthatch_check::conformance::Setup;
use nuthatch_check::naive::{Naive, NaiveHandle, NaiveReservation, Options};
use nuthatch_engine::stats::EngineStats;
use nuthatch_engine::{
    AnyEngine, Audit, AuditError, Condition, Cursor, Delta, Engine, Footprint, Handle, Inspect,
    Item, Key, KeyHasher, LimitError, Op, Read, Removal, Replies, Reply, Request, Store, StoreMode,
    Time, Value, Visit,
};

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// A get returns now and then the result of an earlier one.
    ServesStale,
    /// A set is acknowledged now and then, and lost.
    LosesUpdates,
    /// A removed item comes back now and then.
    Resurrects,
    /// Now and then the second of two requests of a batch on one key is carried out first.
    Reorders,
    /// It counts in two steps, between which other threads run.
    CountsInTwoSteps,
    /// It has forgotten each item before a request for it.
    Forgets,
    /// It stores nothing, ever.
    Refuses,
    /// It never changes its first memory limit.
    KeepsItsLimit,
}

/// One in this many chances to be wrong is taken.
const NOW_AND_THEN: usize = 40;

/// The oracle with a fault.
pub struct Faulty {
    inner: Arc<Naive>,
    fault: Fault,
    chances: AtomicUsize,
    /// For each key a value that it had.
    old: Mutex<HashMap<Vec<u8>, Answer>>,
}

impl Faulty {
    /// A function that makes such engines for a suite.
    pub fn maker(fault: Fault) -> impl Fn(Setup) -> Arc<AnyEngine> {
        move |setup| {
            let inner = Naive::new(Options {
                memory_limit: setup.memory_limit,
                memory_limit_max: setup.memory_limit,
                item_size_max: setup.item_size_max,
                evicts: setup.evicts,
                ..Options::default()
            });
            Arc::new(Self {
                inner,
                fault,
                chances: AtomicUsize::new(0),
                old: Mutex::default(),
            })
            .any()
        }
    }

    /// True now and then, from an engine with this fault.
    fn does(&self, fault: Fault) -> bool {
        let chance = || self.chances.fetch_add(1, Ordering::Relaxed);
        self.fault == fault && chance().is_multiple_of(NOW_AND_THEN)
    }

    /// Keeps a value of the key, and now and then returns the one that was kept.
    fn remember(&self, key: &[u8], now: Answer) -> Answer {
        let mut old = self.old.lock();
        let kept = old.entry(key.to_vec()).or_insert_with(|| now.clone());
        match self.does(Fault::ServesStale) {
            true => std::mem::replace(kept, now),
            false => now,
        }
    }
}

impl Engine for Faulty {
    type Handle = FaultyHandle;

    fn handle(self: &Arc<Self>) -> FaultyHandle {
        FaultyHandle {
            inner: self.inner.handle(),
            engine: Arc::clone(self),
        }
    }

    fn hasher(&self) -> &KeyHasher {
        self.inner.hasher()
    }

    fn name(&self) -> &'static str {
        "faulty"
    }

    fn stats(&self) -> EngineStats {
        self.inner.stats()
    }

    fn reset_stats(&self) {
        self.inner.reset_stats();
    }

    fn flush(&self, now: Time, at: Time) {
        self.inner.flush(now, at);
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        match self.fault {
            Fault::KeepsItsLimit | Fault::Refuses => LimitError::check(bytes, 0, 0),
            _ => self.inner.set_memory_limit(bytes),
        }
    }

    fn item_size_max(&self) -> usize {
        self.inner.item_size_max()
    }

    fn key_len_max(&self) -> usize {
        self.inner.key_len_max()
    }

    fn evicts(&self) -> bool {
        self.inner.evicts()
    }
}

impl Inspect for Faulty {
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint {
        self.inner.footprint(key_len, value_len)
    }
}

impl Audit for Faulty {
    fn audit(&self) -> Result<(), AuditError> {
        self.inner.audit()
    }
}

/// A thread's handle to it.
pub struct FaultyHandle {
    inner: NaiveHandle,
    engine: Arc<Faulty>,
}

impl FaultyHandle {
    /// The answer to one request.
    fn answer(&mut self, now: Time, request: &Request<'_>) -> Answer {
        let Request { key, op } = *request;
        match (self.engine.fault, op) {
            (Fault::Forgets, _) => {
                self.one(now, key, Op::Remove(Removal::default()));
                self.one(now, key, op)
            }
            (Fault::Refuses, Op::Get | Op::Read(_)) => Answer::Done(Reply::Miss),
            (Fault::Refuses, Op::Remove(_) | Op::Delta(_)) => Answer::Done(Reply::NotFound),
            (Fault::Refuses, Op::Store(_)) => Answer::Done(Reply::OutOfMemory),
            (Fault::ServesStale, Op::Get) => self.get(now, key),
            (Fault::LosesUpdates, Op::Store(store)) => self.store(now, key, store),
            (Fault::Resurrects, Op::Remove(removal)) => self.remove(now, key, removal),
            (Fault::CountsInTwoSteps, Op::Delta(delta)) => self.count(now, key, delta),
            _ => self.one(now, key, op),
        }
    }

    fn get(&mut self, now: Time, key: Key<'_>) -> Answer {
        let answer = self.one(now, key, Op::Get);
        let Answer::Value(current, _) = answer else {
            return answer;
        };
        match self.engine.remember(key.bytes(), answer) {
            // Only with a life that is not over: an expired item would be detected at once.
            Answer::Value(item, value) => {
                let expiry = current.expiry;
                Answer::Value(Item { expiry, ..item }, value)
            }
            other => other,
        }
    }

    fn store(&mut self, now: Time, key: Key<'_>, store: Store<'_>) -> Answer {
        let plain = store.mode == StoreMode::Set && store.condition == Condition::None;
        if plain && self.engine.does(Fault::LosesUpdates) {
            let elsewhere = Key::new(b"elsewhere", self.engine.inner.hasher());
            return self.one(now, elsewhere, Op::Store(Store::set(store.value)));
        }
        self.one(now, key, Op::Store(store))
    }

    fn remove(&mut self, now: Time, key: Key<'_>, removal: Removal) -> Answer {
        let before = self.one(now, key, Op::Read(Read::default()));
        let answer = self.one(now, key, Op::Remove(removal));
        if let Answer::Value(item, value) = before
            && answer == Answer::Done(Reply::Removed)
            && self.engine.does(Fault::Resurrects)
        {
            let again = Store {
                new_cas: Some(item.cas),
                expiry: item.expiry,
                ..Store::set(&value)
            };
            self.one(now, key, Op::Store(again));
        }
        answer
    }

    fn count(&mut self, now: Time, key: Key<'_>, delta: Delta) -> Answer {
        let number = match self.one(now, key, Op::Get) {
            Answer::Value(_, value) => String::from_utf8_lossy(&value).parse::<u64>().ok(),
            Answer::Done(_) => None,
        };
        // Only plain numbers are counted wrongly; all else is done right.
        let Some(number) = number else {
            return self.one(now, key, Op::Delta(delta));
        };
        std::thread::yield_now();
        let number = number.wrapping_add(delta.by);
        let value = number.to_string();
        match self.one(now, key, Op::Store(Store::set(value.as_bytes()))) {
            Answer::Done(Reply::Stored(item)) => Answer::Done(Reply::Number(number, item)),
            other => other,
        }
    }

    fn one(&mut self, now: Time, key: Key<'_>, op: Op<'_>) -> Answer {
        ask(&mut self.inner, now, &[Request { key, op }]).remove(0)
    }

    /// The order in which a batch is carried out.
    fn order(&self, batch: &[Request<'_>]) -> Vec<usize> {
        let mut order: Vec<_> = (0..batch.len()).collect();
        for index in 1..batch.len() {
            let alike = batch[index - 1].key.bytes() == batch[index].key.bytes();
            if alike && self.engine.does(Fault::Reorders) {
                order.swap(index - 1, index);
            }
        }
        order
    }
}

/// A value of its own.
pub struct Bytes(Vec<u8>);

impl Value for Bytes {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn chunk(&self, offset: usize) -> &[u8] {
        &self.0[offset..]
    }
}

impl Handle for FaultyHandle {
    type Value = Bytes;
    type Reservation = NaiveReservation;
    const COPY_MAX: usize = NaiveHandle::COPY_MAX;

    fn execute<R: Replies<Bytes>>(&mut self, now: Time, batch: &[Request<'_>], replies: &mut R) {
        let mut answers = vec![Answer::Done(Reply::Miss); batch.len()];
        for index in self.order(batch) {
            answers[index] = self.answer(now, &batch[index]);
        }
        for (index, answer) in answers.into_iter().enumerate() {
            reply(index, answer, replies);
        }
    }

    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<NaiveReservation, Reply> {
        match self.engine.fault {
            Fault::Refuses => Err(Reply::OutOfMemory),
            _ => self.inner.reserve(now, key, value_len),
        }
    }

    fn commit(&mut self, now: Time, reservation: NaiveReservation, store: &Store<'_>) -> Reply {
        self.inner.commit(now, reservation, store)
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        self.inner.maintain(now, budget)
    }

    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        match self.engine.fault {
            Fault::Forgets | Fault::Refuses => None,
            _ => self.inner.visit(now, from, budget, visit),
        }
    }
}

fn reply<R: Replies<Bytes>>(index: usize, answer: Answer, replies: &mut R) {
    match answer {
        Answer::Done(done) => replies.done(index, done),
        Answer::Value(item, value) if value.len() > FaultyHandle::COPY_MAX => {
            replies.large(index, &item, Bytes(value));
        }
        Answer::Value(item, value) => copy(index, &item, &value, replies),
    }
}

fn copy<R: Replies<Bytes>>(index: usize, item: &Item, value: &[u8], replies: &mut R) {
    let room: &mut [MaybeUninit<u8>] = replies.begin(index, item);
    for (room, &byte) in room.iter_mut().zip(value) {
        room.write(byte);
    }
    replies.commit(index);
}
