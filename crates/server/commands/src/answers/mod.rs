//! The answers of each protocol: what an answer depends on besides the engine's reply ([`Style`], which the batch keeps
//! with each request), and how it is written ([`Answers`]).

pub(crate) mod binary;
mod context;
pub(crate) mod cpserver;
pub(crate) mod memcached;
pub(crate) mod meta;
pub(crate) mod resp;

use nuthatch_engine::{Item, Reply};

use crate::counting::Counts;
pub use context::{AnswerContext, Answers, OldValue};

/// The protocol of an answer, and what the answer depends on.
#[derive(Clone, Copy, Debug)]
pub enum Style {
    /// memcached's text protocol.
    Memcached(memcached::Style),
    /// memcached's binary protocol.
    Binary(binary::Style),
    /// CPServer's protocol.
    CpServer(cpserver::Style),
    /// Redis' protocol.
    Resp(resp::Style),
}

/// The name of a removal for watchers.
pub const REMOVAL: &str = "delete";

impl Style {
    /// The name of a removal in this style for watchers.
    pub fn removal(self) -> &'static str {
        match self {
            Self::Memcached(style) if style.is_meta() => "md",
            _ => REMOVAL,
        }
    }
}

/// Tickets are written and read once a request.
const _: () = assert!(size_of::<Style>() <= 16);

/// See [`Answers`].
impl Style {
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
            Self::Memcached(style) => style.value_begins(out, context, index, item),
            Self::Binary(style) => style.value_begins(out, context, index, item),
            Self::CpServer(style) => style.value_begins(out, context, index, item),
            Self::Resp(style) => style.value_begins(out, context, index, item),
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
            Self::Memcached(style) => style.value_done(out, context, index, value_len, counts),
            Self::Binary(style) => style.value_done(out, context, index, value_len, counts),
            Self::CpServer(style) => style.value_done(out, context, index, value_len, counts),
            Self::Resp(style) => style.value_done(out, context, index, value_len, counts),
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
            Self::Memcached(style) => style.reply_done(out, context, index, reply, counts),
            Self::Binary(style) => style.reply_done(out, context, index, reply, counts),
            Self::CpServer(style) => style.reply_done(out, context, index, reply, counts),
            Self::Resp(style) => style.reply_done(out, context, index, reply, counts),
        }
    }
}
