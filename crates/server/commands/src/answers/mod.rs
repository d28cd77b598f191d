//! The answers of each protocol: what an answer depends on besides the engine's reply ([`ReplyFormat`], which the batch
//! keeps with each request), and how it is written ([`Answers`]).

pub(crate) mod binary;
mod context;
pub(crate) mod cpserver;
pub(crate) mod memcached;
pub(crate) mod meta;
pub mod resp;

use nuthatch_engine::{Item, Reply};

use crate::counting::Counts;
pub use context::{AnswerContext, Answers, OldValue};

/// The protocol of an answer, and what the answer depends on.
#[derive(Clone, Copy, Debug)]
pub enum ReplyFormat {
    /// memcached's text protocol.
    Memcached(memcached::Format),
    /// memcached's binary protocol.
    Binary(binary::Format),
    /// CPServer's protocol.
    CpServer(cpserver::Format),
    /// Redis' protocol.
    Resp(resp::Format),
}

/// The name of a removal for watchers.
pub const REMOVAL: &str = "delete";

impl ReplyFormat {
    /// The name of a removal in this format for watchers.
    pub fn removal(self) -> &'static str {
        match self {
            Self::Memcached(format) if format.is_meta() => "md",
            _ => REMOVAL,
        }
    }
}

/// Pending replies are written and read once a request.
const _: () = assert!(size_of::<ReplyFormat>() <= 16);

/// See [`Answers`].
impl ReplyFormat {
    /// Writes the bytes that precede a value.
    #[inline]
    pub fn value_begins(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        item: &Item,
    ) {
        match self {
            Self::Memcached(format) => format.value_begins(out, context, index, item),
            Self::Binary(format) => format.value_begins(out, context, index, item),
            Self::CpServer(format) => format.value_begins(out, context, index, item),
            Self::Resp(format) => format.value_begins(out, context, index, item),
        }
    }

    /// Writes the bytes that follow a value of this many bytes, and counts the request.
    #[inline]
    pub fn value_done(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        value_len: usize,
        counts: &mut Counts<'_>,
    ) {
        match self {
            Self::Memcached(format) => format.value_done(out, context, index, value_len, counts),
            Self::Binary(format) => format.value_done(out, context, index, value_len, counts),
            Self::CpServer(format) => format.value_done(out, context, index, value_len, counts),
            Self::Resp(format) => format.value_done(out, context, index, value_len, counts),
        }
    }

    /// Writes the answer of a request that got no value, and counts it.
    #[inline]
    pub fn reply_done(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        reply: &Reply,
        counts: &mut Counts<'_>,
    ) -> OldValue {
        match self {
            Self::Memcached(format) => format.reply_done(out, context, index, reply, counts),
            Self::Binary(format) => format.reply_done(out, context, index, reply, counts),
            Self::CpServer(format) => format.reply_done(out, context, index, reply, counts),
            Self::Resp(format) => format.reply_done(out, context, index, reply, counts),
        }
    }
}
