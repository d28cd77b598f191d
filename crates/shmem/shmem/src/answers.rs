//! Owned answers of a batch.

use std::mem::MaybeUninit;

use nuthatch_engine::{Item, Replies, Reply, Value};

/// The answer to a request.
pub enum Answer {
    /// The value of a hit, and its unique number.
    Value(Vec<u8>, u64),
    /// Anything else.
    Done(Reply),
}

/// Collects answers, in the order of the batch.
#[derive(Default)]
pub struct Answers {
    answers: Vec<Answer>,
    /// The buffer of the reply that was begun.
    room: Vec<u8>,
    len: usize,
    unique: u64,
}

impl Answers {
    pub fn into_vec(self) -> Vec<Answer> {
        self.answers
    }
}

impl<V: Value> Replies<V> for Answers {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.room = Vec::with_capacity(item.value_len);
        (self.len, self.unique) = (item.value_len, item.cas);
        &mut self.room.spare_capacity_mut()[..item.value_len]
    }

    fn commit(&mut self, _: usize) {
        let mut value = std::mem::take(&mut self.room);
        // SAFETY: `begin` made room for so many bytes, and an engine writes all of them before it commits.
        unsafe { value.set_len(self.len) };
        self.answers.push(Answer::Value(value, self.unique));
    }

    fn retract(&mut self, _: usize) {
        self.room.clear();
    }

    fn large(&mut self, _: usize, item: &Item, value: V) {
        let mut bytes = Vec::with_capacity(value.len());
        while bytes.len() < value.len() {
            bytes.extend_from_slice(value.chunk(bytes.len()));
        }
        self.answers.push(Answer::Value(bytes, item.cas));
    }

    fn done(&mut self, _: usize, reply: Reply) {
        self.answers.push(Answer::Done(reply));
    }
}
