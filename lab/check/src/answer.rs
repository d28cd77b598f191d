//! Owned replies, for tests that check them after the batch.

use std::mem::MaybeUninit;

use nuthatch_engine::{Handle, Item, Key, KeyHasher, Op, Replies, Reply, Request, Time, Value};

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A read that returned the value.
    Value(Item, Vec<u8>),
    /// Any other answer.
    Done(Reply),
}

impl Answer {
    /// The item's metadata, if the answer has it.
    pub fn item(&self) -> Option<&Item> {
        match self {
            Answer::Value(item, _)
            | Answer::Done(
                Reply::Found(item)
                | Reply::Stored(item)
                | Reply::Number(_, item)
                | Reply::Created(_, item),
            ) => Some(item),
            Answer::Done(_) => None,
        }
    }

    /// The value's bytes, if it was returned.
    pub fn value(&self) -> Option<&[u8]> {
        match self {
            Answer::Value(_, value) => Some(value),
            Answer::Done(_) => None,
        }
    }
}

/// Collects an engine's replies as [`Answer`]s. Panics if the engine breaks the order of calls that [`Replies`]
/// promises.
#[derive(Debug, Default)]
pub struct Collector {
    answers: Vec<Answer>,
    room: Option<Room>,
}

/// A reply between `begin` and `commit`.
#[derive(Debug)]
struct Room {
    item: Item,
    bytes: Box<[MaybeUninit<u8>]>,
}

/// The bytes of room before the engine writes a value.
const UNWRITTEN: u8 = 0xEE;

impl Collector {
    /// The answers, once the batch is done.
    pub fn into_answers(self) -> Vec<Answer> {
        assert!(self.room.is_none(), "a begun reply was left open");
        self.answers
    }

    fn push(&mut self, index: usize, answer: Answer) {
        assert_eq!(index, self.answers.len(), "replies come in request order");
        assert!(self.room.is_none(), "a begun reply was left open");
        self.answers.push(answer);
    }
}

impl<V: Value> Replies<V> for Collector {
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        assert_eq!(index, self.answers.len(), "replies come in request order");
        assert!(self.room.is_none(), "a reply begun twice");
        let mut bytes = Box::new_uninit_slice(item.value_len);
        bytes.fill(MaybeUninit::new(UNWRITTEN));
        let room = self.room.insert(Room { item: *item, bytes });
        &mut room.bytes
    }

    fn commit(&mut self, index: usize) {
        let room = self.room.take().expect("commit follows begin");
        // SAFETY: `begin` wrote every byte, and an engine stores only bytes that it has read.
        let bytes = unsafe { room.bytes.assume_init() };
        self.push(index, Answer::Value(room.item, bytes.into_vec()));
    }

    fn retract(&mut self, index: usize) {
        assert_eq!(index, self.answers.len(), "replies come in request order");
        self.room.take().expect("retract follows begin");
    }

    fn large(&mut self, index: usize, item: &Item, value: V) {
        assert_eq!(item.value_len, value.len(), "a value has its item's length");
        self.push(index, Answer::Value(*item, to_vec(&value)));
    }

    fn done(&mut self, index: usize, reply: Reply) {
        self.push(index, Answer::Done(reply));
    }
}

/// All bytes of a value held in place.
pub fn to_vec(value: &impl Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.len());
    while bytes.len() < value.len() {
        let chunk = value.chunk(bytes.len());
        assert!(!chunk.is_empty(), "a chunk is empty only at the end");
        bytes.extend_from_slice(chunk);
    }
    assert!(
        value.chunk(bytes.len()).is_empty(),
        "a value ends where its length says"
    );
    bytes
}

/// Carries out a batch and returns its answers.
///
/// Before the batch, none, some or all of its keys are announced to the engine, or more keys than it has. The answers
/// must not depend on that.
pub fn ask<H: Handle>(handle: &mut H, now: Time, batch: &[Request<'_>]) -> Vec<Answer> {
    let hash = batch.last().map_or(0, |last| last.key.hash() as usize);
    for request in batch.iter().cycle().take(hash % (2 * batch.len() + 1)) {
        handle.prefetch(&request.key);
    }
    let mut collector = Collector::default();
    handle.execute(now, batch, &mut collector);
    let answers = collector.into_answers();
    assert_eq!(answers.len(), batch.len(), "every request is answered");
    answers
}

/// Carries out one operation: a batch of one.
pub fn ask_one<H: Handle>(
    handle: &mut H,
    hasher: &KeyHasher,
    now: Time,
    key: &[u8],
    op: Op<'_>,
) -> Answer {
    let key = Key::new(key, hasher);
    ask(handle, now, &[Request { key, op }]).remove(0)
}
