//! Our engines under measurement, through the interface that the server uses.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;

use nuthatch_engine::{
    Clock, Engine, Handle, Item, Key, KeyHasher, Op, Replies, Reply, Request, Store, Time, Value,
};

use crate::engine::operations::Operations;
use crate::engine::subject::{Subject, Tally, Worker};

/// Places that the engine's background work looks at between two pieces of a list.
const MAINTENANCE: usize = 64;

/// What the compiler knows of the sizes of keys and values. In a cache for any keys it knows nothing ([`Any`]). A
/// program whose items all have the same sizes can state them, as a table of arrays does ([`Known`]).
pub trait Form: Send + Sync + 'static {
    /// Room for one value.
    type Room: AsMut<[MaybeUninit<u8>]>;
    /// The key, with its size as far as it is known.
    fn key(key: &[u8]) -> &[u8];
    /// The size of a value that the list says has `size` bytes.
    fn value_size(size: usize) -> usize;
    /// Room for a value of `size` bytes.
    fn room(size: usize) -> Self::Room;
}

/// Sizes that are known only at run time.
pub struct Any;

impl Form for Any {
    type Room = Vec<MaybeUninit<u8>>;

    #[inline(always)]
    fn key(key: &[u8]) -> &[u8] {
        key
    }

    #[inline(always)]
    fn value_size(size: usize) -> usize {
        size
    }

    fn room(size: usize) -> Self::Room {
        vec![MaybeUninit::new(0); size]
    }
}

/// Keys of `K` bytes and values of `V`, for lists that have no others.
pub struct Known<const K: usize, const V: usize>;

impl<const K: usize, const V: usize> Form for Known<K, V> {
    type Room = [MaybeUninit<u8>; V];

    #[inline(always)]
    fn key(key: &[u8]) -> &[u8] {
        let known: &[u8; K] = key.first_chunk().expect("the size was looked at before");
        known
    }

    #[inline(always)]
    fn value_size(_size: usize) -> usize {
        V
    }

    fn room(_size: usize) -> Self::Room {
        [MaybeUninit::new(0); V]
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
        let mut operations = list.range(from, to);
        loop {
            batch.clear();
            for one in operations.by_ref().take(self.batch) {
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
            self.answers.start(batch.len(), list.value_size());
            self.handle.execute(now, &batch, &mut self.answers);
            self.answers.judge(&batch, &mut tally);
        }
    }

    /// As a program with one key at a time does: each request is built, executed and checked alone.
    fn ask_singly(&mut self, now: Time, list: &Operations, from: usize, to: usize) -> Tally {
        let mut tally = Tally::default();
        let mut lone = Lone {
            answer: Answer::None,
            room: F::room(list.value_size()),
            odd: Vec::new(),
        };
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
                    judge_get(lone.answer, lone.room.as_mut(), F::key(one.key), &mut tally);
                }
            }
        }
        tally
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
    fn run(&mut self, list: &Operations, from: usize, to: usize) -> Tally {
        let now = self.now();
        let tally = self.ask(now, list, from, to);
        self.maintain(now);
        tally
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

/// A batch's answers: a place of the expected size for each value.
struct Answers<F> {
    form: PhantomData<F>,
    value_size: usize,
    values: Vec<MaybeUninit<u8>>,
    answers: Vec<Answer>,
    /// Room for a value of another size: a wrong one, or one that moves while it is read.
    odd: Vec<MaybeUninit<u8>>,
}

impl<F: Form> Answers<F> {
    fn new() -> Self {
        Self {
            form: PhantomData,
            value_size: 0,
            values: Vec::new(),
            answers: Vec::new(),
            odd: Vec::new(),
        }
    }

    /// Bytes of a value that is as expected.
    #[inline(always)]
    fn value_size(&self) -> usize {
        F::value_size(self.value_size)
    }

    fn start(&mut self, requests: usize, value_size: usize) {
        self.value_size = value_size;
        // Only ever grows: the bytes of earlier batches are overwritten.
        if self.values.len() < requests * value_size {
            self.values
                .resize(requests * value_size, MaybeUninit::new(0));
        }
        self.answers.clear();
        self.answers.resize(requests, Answer::None);
    }

    /// Counts the answers, and checks each value against its key.
    #[inline]
    fn judge(&self, batch: &[Request<'_>], tally: &mut Tally) {
        let values = self.values.chunks_exact(self.value_size());
        for ((request, answer), value) in batch.iter().zip(&self.answers).zip(values) {
            if matches!(request.op, Op::Get) {
                judge_get(*answer, value, F::key(request.key.bytes()), tally);
            } else {
                tally.operations += 1;
                tally.wrong += u64::from(*answer != Answer::Stored);
            }
        }
    }
}

/// Counts the answer to a get, and checks the value against its key.
#[inline(always)]
fn judge_get(answer: Answer, value: &[MaybeUninit<u8>], key: &[u8], tally: &mut Tally) {
    tally.operations += 1;
    tally.gets += 1;
    match answer {
        Answer::Hit => {
            // SAFETY: each byte was initialised when the room was made, and every write there since (see
            // `Replies::begin`) stored initialised bytes.
            let value = unsafe { value.assume_init_ref() };
            tally.hit(value, key, value.len());
        }
        Answer::Miss => {}
        _ => tally.wrong += 1,
    }
}

/// The answer to a request alone.
struct Lone<R> {
    answer: Answer,
    /// Room for a value of the expected size.
    room: R,
    odd: Vec<MaybeUninit<u8>>,
}

impl<V: Value, R: AsMut<[MaybeUninit<u8>]>> Replies<V> for Lone<R> {
    #[inline(always)]
    fn begin(&mut self, _index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        let room = self.room.as_mut();
        if item.value_len == room.len() {
            self.answer = Answer::Hit;
            room
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
        self.answer = take_large(&value, self.room.as_mut());
    }

    #[inline(always)]
    fn done(&mut self, _index: usize, reply: Reply) {
        self.answer = Answer::from(reply);
    }
}

/// Copies a value held in place, if it has the expected size.
fn take_large(value: &impl Value, room: &mut [MaybeUninit<u8>]) -> Answer {
    if value.len() != room.len() {
        return Answer::Wrong;
    }
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
        let size = self.value_size();
        if item.value_len == size {
            self.answers[index] = Answer::Hit;
            &mut self.values[index * size..][..size]
        } else {
            self.answers[index] = Answer::Wrong;
            self.odd.resize(item.value_len, MaybeUninit::new(0));
            &mut self.odd
        }
    }

    #[inline(always)]
    fn commit(&mut self, _index: usize) {}

    fn retract(&mut self, index: usize) {
        self.answers[index] = Answer::None;
    }

    fn large(&mut self, index: usize, _item: &Item, value: V) {
        let size = self.value_size();
        let room = &mut self.values[index * size..][..size];
        self.answers[index] = take_large(&value, room);
    }

    #[inline(always)]
    fn done(&mut self, index: usize, reply: Reply) {
        self.answers[index] = Answer::from(reply);
    }
}
