//! Answers in CPServer's protocol.

use nuthatch_engine::{Item, Reply};
use nuthatch_protocol::cpserver::{self, Dialect, Status};
use nuthatch_state::telemetry::counters::WorkerCounters;

use super::context::{AnswerContext, Answers, OldValue};

/// The kind of request, and its dialect.
#[derive(Clone, Copy, Debug)]
pub enum Style {
    /// LOOKUP or FIND.
    Lookup(Dialect),
    /// INSERT or STORE.
    Insert(Dialect),
}

impl Answers for Style {
    #[inline]
    fn value_begins(self, out: &mut Vec<u8>, _: &AnswerContext<'_, '_>, _: usize, item: &Item) {
        let (Self::Lookup(dialect) | Self::Insert(dialect)) = self;
        cpserver::value(out, dialect, item.value_len);
    }

    #[inline]
    fn value_ends(
        self,
        _: &mut Vec<u8>,
        context: &mut AnswerContext<'_, '_>,
        index: usize,
        value_len: usize,
    ) {
        context
            .counters
            .count_get(Some(context.lens(index, value_len)));
    }

    fn reply(
        self,
        out: &mut Vec<u8>,
        context: &mut AnswerContext<'_, '_>,
        index: usize,
        reply: &Reply,
    ) -> OldValue {
        match self {
            Self::Lookup(dialect) => {
                cpserver::miss(out, dialect);
                context.counters.count_get(None);
                OldValue::AsReplied
            }
            Self::Insert(dialect) => {
                context.counters.count_set(context.offered(index));
                let status = insert_status(context.counters, reply);
                cpserver::stored(out, dialect, status);
                match status {
                    Status::Done => OldValue::AsReplied,
                    _ => OldValue::Goes,
                }
            }
        }
    }
}

/// The status that a STORE is answered with. A failure is counted.
pub fn insert_status(counters: &WorkerCounters, reply: &Reply) -> Status {
    counters.count_failure(reply);
    match reply {
        Reply::TooLarge => Status::TooLarge,
        Reply::OutOfMemory => Status::OutOfMemory,
        // A set without conditions has no other outcome.
        _ => Status::Done,
    }
}
