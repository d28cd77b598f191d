//! How an answer is written, and what it may depend on.

use nuthatch_engine::{Clock, Footprint, Item, Op, Reply, Request, Time};
use nuthatch_state::telemetry::counters::WorkerCounters;
use nuthatch_state::telemetry::prefixes::{Event, Recorder};
use nuthatch_state::telemetry::sizes::Lens;

use super::meta::MetaTicket;

/// How a protocol answers a request. `index` is the request's place in the batch.
pub trait Answers: Copy {
    /// Writes the bytes that precede a value.
    fn value_begins(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        item: &Item,
    );

    /// Writes the bytes that follow a value of `value_len` bytes.
    fn value_ends(
        self,
        out: &mut Vec<u8>,
        context: &mut AnswerContext<'_, '_>,
        index: usize,
        value_len: usize,
    );

    /// Writes the answer of a request that got no value.
    fn reply(
        self,
        out: &mut Vec<u8>,
        context: &mut AnswerContext<'_, '_>,
        index: usize,
        reply: &Reply,
    ) -> OldValue;
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
    pub(crate) requests: &'w [Request<'a>],
    pub(crate) metas: &'w [MetaTicket<'a>],
    pub(crate) counters: &'w WorkerCounters,
    /// When.
    pub now: Time,
    /// For what has to be told exactly.
    pub clock: &'w Clock,
    /// The counters by prefix, if they are switched on.
    pub(crate) prefixes: Option<Recorder<'w>>,
    /// The footprint of an item, by the lengths of key and value. `me` shows it.
    pub footprint: &'w dyn Fn(usize, usize) -> Footprint,
}

impl<'a> AnswerContext<'_, 'a> {
    /// The key of a request.
    #[inline]
    pub fn key(&self, index: usize) -> &'a [u8] {
        self.requests[index].key.bytes()
    }

    /// The lengths of a request's key and of a value of this many bytes.
    #[inline]
    pub fn lens(&self, index: usize, value: usize) -> Lens {
        Lens {
            key: self.key(index).len(),
            value,
        }
    }

    /// The lengths of a reply's item, if it found one.
    #[inline]
    pub fn found(&self, index: usize, reply: &Reply) -> Option<Lens> {
        match reply {
            Reply::Found(item) => Some(self.lens(index, item.value_len)),
            _ => None,
        }
    }

    /// The lengths of the key and the value that a request is to store.
    pub fn offered(&self, index: usize) -> Lens {
        let value = match &self.requests[index].op {
            Op::Store(store) => store.value.len(),
            _ => 0,
        };
        self.lens(index, value)
    }

    /// Counts by prefix what a text command did.
    #[inline(always)]
    pub fn record(&mut self, index: usize, event: Event) {
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.record(self.requests[index].key.bytes(), event);
        }
    }
}
