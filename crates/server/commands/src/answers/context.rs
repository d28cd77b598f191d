//! How an answer is written, and what it may depend on.

use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{self as engine, Clock, Footprint, Item, Op, Reply, Time};

use super::meta::MetaFormat;
use crate::counting::{Counted, Counts, Request};

/// How a protocol answers a request, and counts it. `index` is the request's place in the batch.
pub trait Answers: Copy {
    /// What the request is in the statistics.
    fn counted(self, context: &AnswerContext<'_, '_>, index: usize) -> Counted;

    /// Writes the bytes that precede a value.
    fn value_begins(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        item: &Item,
    );

    /// Writes the bytes that follow a value.
    fn value_ends(self, out: &mut Vec<u8>);

    /// The same, and counts the request, whose value has this many bytes.
    #[inline(always)]
    fn value_done(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        value_len: usize,
        counts: &mut Counts<'_>,
    ) {
        let request = Request::found(context.key(index), value_len);
        counts.count(self.counted(context, index), request);
        self.value_ends(out);
    }

    /// Writes the answer of a request that got no value.
    fn reply(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        reply: &Reply,
    ) -> OldValue;

    /// The same, and counts the request.
    #[inline(always)]
    fn reply_done(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        reply: &Reply,
        counts: &mut Counts<'_>,
    ) -> OldValue {
        let request = Request::replied(context.key(index), context.offered(index), reply);
        counts.count(self.counted(context, index), request);
        self.reply(out, context, index, reply)
    }
}

/// What happens to a value that was to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum OldValue {
    /// The engine has dealt with it, as the reply says.
    AsReplied,
    /// It must be removed: readers must not take it for the new value, which could not be stored.
    Goes,
}

/// What answers may depend on besides the engine's reply.
pub struct AnswerContext<'w, 'a> {
    pub(crate) requests: &'w [engine::Request<'a>],
    pub(crate) metas: &'w [MetaFormat<'a>],
    /// When.
    pub now: Time,
    /// For what has to be told exactly.
    pub clock: &'w Clock,
    /// The footprint of an item, by the lengths of key and value. `me` shows it.
    pub footprint: &'w dyn Fn(usize, usize) -> Footprint,
}

impl<'a> AnswerContext<'_, 'a> {
    /// The key of a request, as its client has it.
    #[inline]
    pub fn key(&self, index: usize) -> &'a [u8] {
        Namespace::split(self.stored_key(index)).1
    }

    /// The same as the engine has it.
    #[inline]
    pub fn stored_key(&self, index: usize) -> &'a [u8] {
        self.requests[index].key.bytes()
    }

    /// Bytes of the value that a request is to store.
    #[inline(always)]
    pub fn offered(&self, index: usize) -> usize {
        match &self.requests[index].op {
            Op::Store(store) => store.value.len(),
            _ => 0,
        }
    }
}
