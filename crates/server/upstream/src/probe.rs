//! Looking for copies: hits go on to the caller until the first miss, and those behind it wait for their turn.

use std::mem::MaybeUninit;

use nuthatch_engine::{Item, Replies, Reply};

use crate::value::UpstreamValue;

/// An answer that waits for its turn.
#[derive(Debug)]
pub enum Waiting<V> {
    /// A value.
    Value(Item, Box<[MaybeUninit<u8>]>),
    /// A large one.
    Large(Item, V),
    /// There is no copy.
    Miss,
}

/// The replies to a look for copies.
#[derive(Debug)]
pub struct Probe<'r, R, V> {
    /// The caller's replies.
    pub replies: &'r mut R,
    /// The number of the look's first request in the caller's batch.
    pub first: usize,
    /// Answers from the first miss on.
    pub waiting: Vec<Waiting<V>>,
    /// All of them wait, because earlier requests do.
    pub all_wait: bool,
}

impl<R, V> Probe<'_, R, V> {
    fn waits(&self) -> bool {
        self.all_wait || !self.waiting.is_empty()
    }
}

impl<R, V> Replies<V> for Probe<'_, R, V>
where
    R: Replies<UpstreamValue<V>>,
{
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        if !self.waits() {
            return self.replies.begin(self.first + index, item);
        }
        let room = Box::new_uninit_slice(item.value_len);
        self.waiting.push(Waiting::Value(*item, room));
        match self.waiting.last_mut() {
            Some(Waiting::Value(_, room)) => room,
            _ => &mut [],
        }
    }

    fn commit(&mut self, index: usize) {
        if !self.waits() {
            self.replies.commit(self.first + index);
        }
    }

    fn retract(&mut self, index: usize) {
        match self.waits() {
            true => drop(self.waiting.pop()),
            false => self.replies.retract(self.first + index),
        }
    }

    fn large(&mut self, index: usize, item: &Item, value: V) {
        match self.waits() {
            true => self.waiting.push(Waiting::Large(*item, value)),
            false => {
                let value = UpstreamValue::Near(value);
                self.replies.large(self.first + index, item, value);
            }
        }
    }

    fn done(&mut self, _: usize, _: Reply) {
        self.waiting.push(Waiting::Miss);
    }
}
