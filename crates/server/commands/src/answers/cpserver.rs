//! Answers in CPServer's protocol.

use nuthatch_engine::{Item, Reply};
use nuthatch_protocol::cpserver::{self, Dialect, Status};

use super::context::{AnswerContext, Answers, OldValue};
use crate::counting::{Counted, Kind};

/// INSERT and STORE in the statistics.
pub const STORE: Kind = Kind::Store { is_cas: false };

/// The kind of request, and its dialect.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// LOOKUP or FIND.
    Lookup(Dialect),
    /// INSERT or STORE.
    Insert(Dialect),
}

impl Answers for Format {
    #[inline(always)]
    fn counted(self, _: &AnswerContext<'_, '_>, _: usize) -> Counted {
        Counted::only(match self {
            Self::Lookup(_) => Kind::Get,
            Self::Insert(_) => STORE,
        })
    }

    #[inline]
    fn value_begins(self, out: &mut Vec<u8>, _: &AnswerContext<'_, '_>, _: usize, item: &Item) {
        let (Self::Lookup(dialect) | Self::Insert(dialect)) = self;
        cpserver::value(out, dialect, item.value_len);
    }

    fn value_ends(self, _: &mut Vec<u8>) {}

    fn reply(
        self,
        out: &mut Vec<u8>,
        _: &AnswerContext<'_, '_>,
        _: usize,
        reply: &Reply,
    ) -> OldValue {
        match self {
            Self::Lookup(dialect) => {
                cpserver::miss(out, dialect);
                OldValue::AsReplied
            }
            Self::Insert(dialect) => {
                let status = insert_status(reply);
                cpserver::stored(out, dialect, status);
                match status {
                    Status::Done => OldValue::AsReplied,
                    _ => OldValue::Goes,
                }
            }
        }
    }
}

/// The status that a STORE is answered with.
pub fn insert_status(reply: &Reply) -> Status {
    match reply {
        Reply::TooLarge => Status::TooLarge,
        Reply::OutOfMemory | Reply::Unavailable => Status::OutOfMemory,
        // A set without conditions has no other outcome.
        _ => Status::Done,
    }
}
