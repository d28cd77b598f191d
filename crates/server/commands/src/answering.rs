//! Writes the engine's replies into the connections' outputs, each in the format of its protocol, and counts them.

use std::mem::MaybeUninit;

use nuthatch_engine::{AnyValue, Clock, Footprint, Item, Replies, Reply, Time};

use crate::answers::{AnswerContext, OldValue};
use crate::batch::{Batch, PendingReply};
use crate::counting::Counts;
use crate::output::Output;
use crate::turn::Turn;
use crate::work::Work;

/// Takes the answers of one batch.
pub struct Answering<'w, 'a> {
    turns: &'w mut [Turn],
    pending: &'w [PendingReply],
    context: AnswerContext<'w, 'a>,
    counts: Counts<'w>,
    /// Bytes of the value that the engine is writing.
    value_len: usize,
    /// Requests whose old values must be removed.
    pub failed_sets: Vec<usize>,
}

impl<'w, 'a> Answering<'w, 'a> {
    /// So many clients were told that a request has changed its key: its turn has less left for others.
    #[cold]
    pub fn told(&mut self, index: usize, count: usize) {
        let turn = &mut self.turns[self.pending[index].turn as usize];
        turn.spend_behind(Work::of_places(count));
    }

    /// The receiver of the answers to a batch of these turns.
    pub fn new(
        turns: &'w mut [Turn],
        batch: &'w Batch<'a>,
        counts: Counts<'w>,
        (now, clock): (Time, &'w Clock),
        footprint: &'w dyn Fn(usize, usize) -> Footprint,
    ) -> Self {
        Self {
            turns,
            pending: &batch.pending,
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
    fn output(&mut self, pending: PendingReply) -> &mut Output<AnyValue> {
        &mut self.turns[pending.turn as usize].output
    }

    /// Ends a value of this many bytes.
    #[inline]
    fn value_done(&mut self, index: usize, value_len: usize) {
        let pending = self.pending[index];
        let out = self.turns[pending.turn as usize].output.text();
        let (context, counts) = (&self.context, &mut self.counts);
        pending
            .format
            .value_done(out, context, index, value_len, counts);
    }
}

impl Replies<AnyValue> for Answering<'_, '_> {
    #[inline]
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        let Self {
            turns,
            pending,
            context,
            value_len,
            ..
        } = self;
        *value_len = item.value_len;
        let pending = pending[index];
        let output = &mut turns[pending.turn as usize].output;
        output.begin(item.value_len, |out| {
            pending.format.value_begins(out, context, index, item);
        })
    }

    #[inline]
    fn commit(&mut self, index: usize) {
        let output = self.output(self.pending[index]);
        // SAFETY: the engine calls this for the request it called `begin` for last, after it wrote
        // all of the room it got then: that is its side of `Replies`.
        unsafe { output.commit() };
        self.value_done(index, self.value_len);
    }

    fn retract(&mut self, index: usize) {
        self.output(self.pending[index]).retract();
    }

    fn large(&mut self, index: usize, item: &Item, value: AnyValue) {
        let pending = self.pending[index];
        let output = &mut self.turns[pending.turn as usize].output;
        let out = output.text();
        pending.format.value_begins(out, &self.context, index, item);
        output.pin(value);
        self.value_done(index, item.value_len);
    }

    fn done(&mut self, index: usize, reply: Reply) {
        let pending = self.pending[index];
        let out = self.turns[pending.turn as usize].output.text();
        let (context, counts) = (&self.context, &mut self.counts);
        let old = pending
            .format
            .reply_done(out, context, index, &reply, counts);
        if old == OldValue::Goes {
            self.failed_sets.push(index);
        }
    }
}
