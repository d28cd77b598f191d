//! Writes the engine's replies into the connections' outputs, each in the format of its protocol.

use std::mem::MaybeUninit;

use nuthatch_engine::{AnyValue, Clock, Footprint, Item, Op, Replies, Reply, Request, Time};
use nuthatch_state::telemetry::counters::WorkerCounters;
use nuthatch_state::telemetry::prefixes::{Event, Recorder};
use nuthatch_state::telemetry::sizes::Lens;

use crate::batch::{Batch, Ticket};
use crate::output::Output;
use crate::protocols::memcached::MetaTicket;
use crate::slice::Slice;

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
    prefixes: Option<Recorder<'w>>,
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

/// Takes the answers of one batch.
pub struct Answering<'w, 'a> {
    slices: &'w mut [Slice],
    tickets: &'w [Ticket],
    context: AnswerContext<'w, 'a>,
    /// Bytes of the value that the engine is writing.
    value_len: usize,
    /// Requests whose old values must be removed.
    pub failed_sets: Vec<usize>,
}

impl<'w, 'a> Answering<'w, 'a> {
    /// The receiver of the answers to a batch of these slices.
    pub fn new(
        slices: &'w mut [Slice],
        batch: &'w Batch<'a>,
        counters: &'w WorkerCounters,
        (now, clock): (Time, &'w Clock),
        prefixes: Option<Recorder<'w>>,
        footprint: &'w dyn Fn(usize, usize) -> Footprint,
    ) -> Self {
        Self {
            slices,
            tickets: &batch.tickets,
            context: AnswerContext {
                requests: &batch.requests,
                metas: &batch.metas,
                counters,
                now,
                clock,
                prefixes,
                footprint,
            },
            value_len: 0,
            failed_sets: Vec::new(),
        }
    }

    /// The output of the connection that made a request.
    #[inline]
    fn output(&mut self, ticket: Ticket) -> &mut Output<AnyValue> {
        &mut self.slices[ticket.slice as usize].output
    }

    /// Ends a value of this many bytes.
    #[inline]
    fn value_ends(&mut self, index: usize, value_len: usize) {
        let ticket = self.tickets[index];
        let out = self.slices[ticket.slice as usize].output.text();
        ticket
            .style
            .value_ends(out, &mut self.context, index, value_len);
    }
}

impl Replies<AnyValue> for Answering<'_, '_> {
    #[inline]
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        let Self {
            slices,
            tickets,
            context,
            value_len,
            ..
        } = self;
        *value_len = item.value_len;
        let ticket = tickets[index];
        let output = &mut slices[ticket.slice as usize].output;
        output.begin(item.value_len, |out| {
            ticket.style.value_begins(out, context, index, item);
        })
    }

    #[inline]
    fn commit(&mut self, index: usize) {
        let output = self.output(self.tickets[index]);
        // SAFETY: the engine calls this for the request it called `begin` for last, after it wrote
        // all of the room it got then: that is its side of `Replies`.
        unsafe { output.commit() };
        self.value_ends(index, self.value_len);
    }

    fn retract(&mut self, index: usize) {
        self.output(self.tickets[index]).retract();
    }

    fn large(&mut self, index: usize, item: &Item, value: AnyValue) {
        let ticket = self.tickets[index];
        let output = &mut self.slices[ticket.slice as usize].output;
        let out = output.text();
        ticket.style.value_begins(out, &self.context, index, item);
        output.pin(value);
        self.value_ends(index, item.value_len);
    }

    fn done(&mut self, index: usize, reply: Reply) {
        let ticket = self.tickets[index];
        let out = self.slices[ticket.slice as usize].output.text();
        let old = ticket.style.reply(out, &mut self.context, index, &reply);
        if old == OldValue::Goes {
            self.failed_sets.push(index);
        }
    }
}
