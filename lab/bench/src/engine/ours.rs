//! Our engines under measurement, through the interface that the server uses.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;

use nuthatch_engine::{
    Clock, Engine, Handle, Item, Key, KeyHasher, Op, Replies, Reply, Request, Store, Time, Value,
};

use crate::engine::operations::{Operation, Operations};
use crate::engine::subject::{Subject, Tally, Worker};
use nuthatch_workload::proof::write_value;

/// Places that the engine's background work looks at between two pieces of a list.
const MAINTENANCE: usize = 64;

/// What the compiler knows of the sizes of keys and values. In a cache for any keys it knows nothing ([`Any`]). A
/// program whose items all have the same sizes can state them, as a table of arrays does ([`Known`]).
pub trait Form: Send + Sync + 'static {
    /// The size of every value, if it is known.
    const VALUE: Option<usize>;
    /// A get that finds nothing is followed by a set of its key, in the same operation.
    const STORES_MISSES: bool = false;
    /// The key, with its size as far as it is known.
    fn key(key: &[u8]) -> &[u8];
}

/// Sizes that are known only at run time, and may differ.
pub struct Any;

impl Form for Any {
    const VALUE: Option<usize> = None;

    #[inline(always)]
    fn key(key: &[u8]) -> &[u8] {
        key
    }
}

/// The same, by a program that stores what it did not find.
pub struct Storing;

impl Form for Storing {
    const VALUE: Option<usize> = None;
    const STORES_MISSES: bool = true;

    #[inline(always)]
    fn key(key: &[u8]) -> &[u8] {
        key
    }
}

/// Keys of `K` bytes and values of `V`, for lists that have no others.
pub struct Known<const K: usize, const V: usize>;

impl<const K: usize, const V: usize> Form for Known<K, V> {
    const VALUE: Option<usize> = Some(V);

    #[inline(always)]
    fn key(key: &[u8]) -> &[u8] {
        let known: &[u8; K] = key.first_chunk().expect("the size was looked at before");
        known
    }
}

/// An engine, asked in batches.
pub struct Ours<E, F = Any> {
    engine: Arc<E>,
    clock: Clock,
    batch: usize,
    form: PhantomData<F>,
}

impl<E: Engine> Ours<E> {
    /// The engine, called with `batch` operations at a time, with sizes that are known only at run time.
    pub fn new(engine: Arc<E>, batch: usize) -> Self {
        Self::of_form(engine, batch)
    }
}

impl<E: Engine, F: Form> Ours<E, F> {
    /// The engine, called with `batch` operations at a time; the compiler knows as much of their sizes as the form
    /// says.
    pub fn of_form(engine: Arc<E>, batch: usize) -> Self {
        Self {
            engine,
            clock: Clock::start(),
            batch,
            form: PhantomData,
        }
    }
}

impl<E: Engine, F: Form> Subject for Ours<E, F> {
    type Worker<'a> = OurWorker<E::Handle, F>;

    fn worker(&self) -> OurWorker<E::Handle, F> {
        OurWorker {
            handle: self.engine.handle(),
            hasher: self.engine.hasher().clone(),
            clock: self.clock,
            batch: self.batch,
            answers: Answers::new(),
            made: Vec::new(),
        }
    }
}

/// A thread's handle, and room for a batch's answers.
pub struct OurWorker<H, F = Any> {
    handle: H,
    hasher: KeyHasher,
    clock: Clock,
    batch: usize,
    answers: Answers<F>,
    /// A value made for a get that found none.
    made: Vec<u8>,
}

impl<H: Handle, F: Form> OurWorker<H, F> {
    /// The present moment, for [`OurWorker::ask`] and [`OurWorker::maintain`].
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Carries out operations `from` to `to`, in batches, and judges the answers.
    pub fn ask(&mut self, now: Time, list: &Operations, from: usize, to: usize) -> Tally {
        if self.batch == 1 {
            return self.ask_singly(now, list, from, to);
        }
        let mut tally = Tally::default();
        let mut batch = Vec::with_capacity(self.batch);
        let mut at = from;
        loop {
            batch.clear();
            for one in list.range(at, to.min(at + self.batch)) {
                let key = Key::new(F::key(one.key), &self.hasher);
                self.handle.prefetch(&key);
                // Two pushes, so that a get's few words are written and not a whole request moved.
                match one.set {
                    Some(value) => batch.push(Request {
                        key,
                        op: Op::Store(Store::set(value)),
                    }),
                    None => batch.push(Request { key, op: Op::Get }),
                }
            }
            if batch.is_empty() {
                return tally;
            }
            self.answers.start(batch.len());
            self.handle.execute(now, &batch, &mut self.answers);
            let asked = list.range(at, at + batch.len());
            self.answers.judge(asked, &mut tally);
            if F::STORES_MISSES {
                tally.wrong += self.store_missed(now, list, at, batch.len());
            }
            at += batch.len();
        }
    }

    /// As a program with one key at a time does: each request is built, executed and checked alone.
    fn ask_singly(&mut self, now: Time, list: &Operations, from: usize, to: usize) -> Tally {
        let mut tally = Tally::default();
        let mut lone = Lone::<F>::new();
        for one in list.range(from, to) {
            lone.answer = Answer::None;
            match one.set {
                Some(value) => {
                    self.set_alone(now, one.key, value, &mut lone);
                    tally.operations += 1;
                    tally.wrong += u64::from(lone.answer != Answer::Stored);
                }
                None => {
                    let key = Key::new(F::key(one.key), &self.hasher);
                    let request = Request { key, op: Op::Get };
                    self.handle.execute(now, &[request], &mut lone);
                    judge_get(lone.answer, lone.value(), &one, F::key(one.key), &mut tally);
                    if F::STORES_MISSES && lone.answer == Answer::Miss {
                        tally.wrong += self.store_made(now, &one, &mut lone);
                    }
                }
            }
        }
        tally
    }

    /// Stores what the gets of a batch from `at` on did not find. Returns how many stores were refused.
    fn store_missed(&mut self, now: Time, list: &Operations, at: usize, count: usize) -> u64 {
        let mut lone = Lone::<F>::new();
        let mut refused = 0;
        for (number, one) in list.range(at, at + count).enumerate() {
            if self.answers.answers[number].answer == Answer::Miss {
                refused += self.store_made(now, &one, &mut lone);
            }
        }
        refused
    }

    /// Stores the value of a key that was not found, which it makes first. Returns 1 if it was refused.
    fn store_made(&mut self, now: Time, one: &Operation<'_>, lone: &mut Lone<F>) -> u64 {
        let mut value = std::mem::take(&mut self.made);
        value.resize(one.value_size, 0);
        write_value(&mut value, one.key);
        self.set_alone(now, one.key, &value, lone);
        self.made = value;
        u64::from(lone.answer != Answer::Stored)
    }

    /// Not inlined, so that a sequence of gets does not share its registers with this code.
    #[inline(never)]
    fn set_alone(
        &mut self,
        now: Time,
        key: &[u8],
        value: &[u8],
        replies: &mut impl Replies<H::Value>,
    ) {
        let key = Key::new(key, &self.hasher);
        let op = Op::Store(Store::set(value));
        self.handle.execute(now, &[Request { key, op }], replies);
    }

    /// A piece of the engine's background work. True if there is more to do at once.
    pub fn maintain(&mut self, now: Time) -> bool {
        self.handle.maintain(now, MAINTENANCE)
    }
}

impl<H: Handle, F: Form> Worker for OurWorker<H, F> {
    fn requests(&mut self, list: &Operations, from: usize, to: usize) -> Tally {
        self.ask(self.now(), list, from, to)
    }

    fn rest(&mut self) {
        self.maintain(self.now());
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    None,
    Hit,
    Miss,
    Stored,
    Wrong,
}

impl From<Reply> for Answer {
    #[inline(always)]
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Miss => Self::Miss,
            Reply::Stored(_) => Self::Stored,
            _ => Self::Wrong,
        }
    }
}

/// A batch's answers, and the values that were found, one behind the other as in a server's output.
struct Answers<F> {
    form: PhantomData<F>,
    values: Vec<MaybeUninit<u8>>,
    /// Where the next value begins.
    end: usize,
    answers: Vec<Placed>,
    /// Room for a value of another size than the known one: a wrong one, or one that moves while it is read.
    odd: Vec<MaybeUninit<u8>>,
}

/// An answer, and where its value is.
#[derive(Clone, Copy)]
struct Placed {
    answer: Answer,
    at: usize,
    size: usize,
}

impl Placed {
    const NONE: Self = Self {
        answer: Answer::None,
        at: 0,
        size: 0,
    };
}

impl<F: Form> Answers<F> {
    fn new() -> Self {
        Self {
            form: PhantomData,
            values: Vec::new(),
            end: 0,
            answers: Vec::new(),
            odd: Vec::new(),
        }
    }

    fn start(&mut self, requests: usize) {
        self.end = 0;
        self.answers.clear();
        self.answers.resize(requests, Placed::NONE);
    }

    /// Room for a value behind those of earlier requests.
    #[inline(always)]
    fn room(&mut self, size: usize) -> &mut [MaybeUninit<u8>] {
        if self.values.len() - self.end < size {
            grow(&mut self.values, self.end + size);
        }
        &mut self.values[self.end..][..size]
    }

    /// Counts the answers, and checks each value against its key.
    #[inline]
    fn judge<'l>(&self, asked: impl Iterator<Item = Operation<'l>>, tally: &mut Tally) {
        for (one, placed) in asked.zip(&self.answers) {
            if one.set.is_none() {
                let value = match placed.answer {
                    Answer::Hit => &self.values[placed.at..][..F::VALUE.unwrap_or(placed.size)],
                    _ => &[],
                };
                judge_get(placed.answer, value, &one, F::key(one.key), tally);
            } else {
                tally.operations += 1;
                tally.wrong += u64::from(placed.answer != Answer::Stored);
            }
        }
    }
}

/// Makes room for at least so many bytes, all initialised. It only ever grows: the bytes of earlier batches are
/// overwritten.
#[cold]
fn grow(room: &mut Vec<MaybeUninit<u8>>, least: usize) {
    room.resize(least.next_power_of_two(), MaybeUninit::new(0));
}

/// The size of a value as far as it is known; `None` if it should have another.
#[inline(always)]
fn expected<F: Form>(size: usize) -> Option<usize> {
    match F::VALUE {
        Some(known) => (size == known).then_some(known),
        None => Some(size),
    }
}

/// Counts the answer to a get, and checks the value against its key.
#[inline(always)]
fn judge_get(
    answer: Answer,
    value: &[MaybeUninit<u8>],
    one: &Operation<'_>,
    key: &[u8],
    tally: &mut Tally,
) {
    tally.operations += 1;
    tally.gets += 1;
    match answer {
        Answer::Hit => {
            // SAFETY: each byte was initialised when the room was made (see `grow`), and every write there since (see
            // `Replies::begin`) stored initialised bytes.
            let value = unsafe { value.assume_init_ref() };
            tally.hit(value, key, one.value_size);
        }
        Answer::Miss => {}
        _ => tally.wrong += 1,
    }
}

/// The answer to a request alone.
struct Lone<F> {
    form: PhantomData<F>,
    answer: Answer,
    /// Bytes of the value.
    size: usize,
    room: Vec<MaybeUninit<u8>>,
    odd: Vec<MaybeUninit<u8>>,
}

impl<F: Form> Lone<F> {
    fn new() -> Self {
        let mut room = Vec::new();
        grow(&mut room, F::VALUE.unwrap_or(1));
        Self {
            form: PhantomData,
            answer: Answer::None,
            size: 0,
            room,
            odd: Vec::new(),
        }
    }

    /// The value that was found last.
    #[inline(always)]
    fn value(&self) -> &[MaybeUninit<u8>] {
        &self.room[..F::VALUE.unwrap_or(self.size)]
    }

    #[inline(always)]
    fn room(&mut self, size: usize) -> &mut [MaybeUninit<u8>] {
        if self.room.len() < size {
            grow(&mut self.room, size);
        }
        self.size = size;
        &mut self.room[..size]
    }
}

impl<V: Value, F: Form> Replies<V> for Lone<F> {
    #[inline(always)]
    fn begin(&mut self, _index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        if let Some(size) = expected::<F>(item.value_len) {
            self.answer = Answer::Hit;
            self.room(size)
        } else {
            self.answer = Answer::Wrong;
            self.odd.resize(item.value_len, MaybeUninit::new(0));
            &mut self.odd
        }
    }

    #[inline(always)]
    fn commit(&mut self, _index: usize) {}

    fn retract(&mut self, _index: usize) {
        self.answer = Answer::None;
    }

    fn large(&mut self, _index: usize, _item: &Item, value: V) {
        self.answer = match expected::<F>(value.len()) {
            Some(size) => take_large(&value, self.room(size)),
            None => Answer::Wrong,
        };
    }

    #[inline(always)]
    fn done(&mut self, _index: usize, reply: Reply) {
        self.answer = Answer::from(reply);
    }
}

/// Copies a value held in place to a room of its size.
fn take_large(value: &impl Value, room: &mut [MaybeUninit<u8>]) -> Answer {
    let mut copied = 0;
    while copied < room.len() {
        let chunk = value.chunk(copied);
        room[copied..copied + chunk.len()].write_copy_of_slice(chunk);
        copied += chunk.len();
    }
    Answer::Hit
}

impl<V: Value, F: Form> Replies<V> for Answers<F> {
    #[inline(always)]
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        if let Some(size) = expected::<F>(item.value_len) {
            self.answers[index] = Placed {
                answer: Answer::Hit,
                at: self.end,
                size,
            };
            self.room(size)
        } else {
            self.answers[index].answer = Answer::Wrong;
            self.odd.resize(item.value_len, MaybeUninit::new(0));
            &mut self.odd
        }
    }

    #[inline(always)]
    fn commit(&mut self, index: usize) {
        self.end += self.answers[index].size;
    }

    fn retract(&mut self, index: usize) {
        self.answers[index] = Placed::NONE;
    }

    fn large(&mut self, index: usize, _item: &Item, value: V) {
        let at = self.end;
        let Some(size) = expected::<F>(value.len()) else {
            self.answers[index].answer = Answer::Wrong;
            return;
        };
        let answer = take_large(&value, self.room(size));
        self.answers[index] = Placed { answer, at, size };
        self.end += size;
    }

    #[inline(always)]
    fn done(&mut self, index: usize, reply: Reply) {
        self.answers[index].answer = Answer::from(reply);
    }
}
