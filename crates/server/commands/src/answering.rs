//! Writes the engine's replies into the connections' outputs, each in the format of its protocol, and counts them.

use std::mem::MaybeUninit;

use nuthatch_engine::{AnyValue, Clock, Footprint, Item, Replies, Reply, Time};

use crate::answers::{AnswerContext, OldValue};
use crate::batch::{Batch, Ticket};
use crate::counting::Counts;
use crate::output::Output;
use crate::slice::Slice;

/// Takes the answers of one batch.
pub struct Answering<'w, 'a> {
    slices: &'w mut [Slice],
    tickets: &'w [Ticket],
    context: AnswerContext<'w, 'a>,
    counts: Counts<'w>,
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
        counts: Counts<'w>,
        (now, clock): (Time, &'w Clock),
        footprint: &'w dyn Fn(usize, usize) -> Footprint,
    ) -> Self {
        Self {
            slices,
            tickets: &batch.tickets,
            context: AnswerContext {
                requests: &batch.requests,
                metas: &batch.metas,
                now,
                clock,
                footprint,
            },
            counts,
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
    fn value_done(&mut self, index: usize, value_len: usize) {
        let ticket = self.tickets[index];
        let out = self.slices[ticket.slice as usize].output.text();
        let (context, counts) = (&self.context, &mut self.counts);
        ticket
            .style
            .value_done(out, context, index, value_len, counts);
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
        self.value_done(index, self.value_len);
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
        self.value_done(index, item.value_len);
    }

    fn done(&mut self, index: usize, reply: Reply) {
        let ticket = self.tickets[index];
        let out = self.slices[ticket.slice as usize].output.text();
        let (context, counts) = (&self.context, &mut self.counts);
        let old = ticket.style.reply_done(out, context, index, &reply, counts);
        if old == OldValue::Goes {
            self.failed_sets.push(index);
        }
    }
}
