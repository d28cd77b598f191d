//! Answers in memcached's text protocol.

use nuthatch_engine::{Footprint, Item, Reply, Time};
use nuthatch_protocol::encode::{self, MetaItem, MetaStatus};
use nuthatch_protocol::{Error, MetaFlags, MetaMode, MetaVerb};

use super::context::{AnswerContext, Answers, OldValue};
use super::meta::{AnsweredVerb, MetaFormat};
use crate::counting::{Counted, Counts, Kind, Request};

/// A plain get in the statistics.
const GET: Counted = Counted::with_prefix(Kind::Get);

/// What an answer depends on besides its outcome.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub verb: Verb,
    /// The client said noreply.
    pub noreply: bool,
    pub after: Trailer,
}

/// The kind of command.
#[derive(Clone, Copy, Debug)]
pub enum Verb {
    /// A key of get, gets, gat, gats.
    Value {
        with_cas: bool,
        touched: bool,
    },
    /// set, add, replace, append, prepend, cas.
    Store(StoreKind),
    Delete,
    /// incr, decr.
    Delta {
        down: bool,
    },
    Touch,
    /// A meta command: an index into the batch's metas.
    Meta(u32),
}

/// What the answer to a store depends on besides its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    Set,
    Cas,
    Other,
}

/// What follows the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trailer {
    Nothing,
    /// `END`: it was the last key of a get.
    End,
    /// `MN`: a mn follows the request.
    Noop,
}

impl Answers for Format {
    #[inline(always)]
    fn counted(self, context: &AnswerContext<'_, '_>, _: usize) -> Counted {
        match self.verb {
            Verb::Value { touched: false, .. } => GET,
            Verb::Value { touched: true, .. } => Counted::with_prefix(Kind::Touch),
            Verb::Touch => Counted::only(Kind::Touch),
            Verb::Store(format) => count_of_store(format),
            Verb::Delete => Counted::with_prefix(Kind::Delete),
            Verb::Delta { down } => Counted::only(Kind::Delta { is_down: down }),
            Verb::Meta(meta) => count_of_meta(&context.metas[meta as usize]),
        }
    }

    #[inline]
    fn value_begins(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        item: &Item,
    ) {
        if let Verb::Meta(meta) = self.verb {
            let MetaFormat { key, flags, .. } = &context.metas[meta as usize];
            let item = meta_item(item, context.now);
            return encode::meta_item(
                out,
                MetaStatus::Value,
                encode::Answers::GET,
                key,
                flags,
                &item,
            );
        }
        let with_cas = matches!(self.verb, Verb::Value { with_cas: true, .. });
        let cas = with_cas.then_some(item.cas);
        encode::value(out, context.key(index), item.flags, item.value_len, cas);
    }

    #[inline]
    fn value_ends(self, out: &mut Vec<u8>) {
        out.extend_from_slice(encode::CRLF);
        self.say_after(out);
    }

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
        match self.verb {
            // Apart, so that a plain get pays for no other command.
            Verb::Value { touched: false, .. } => counts.count(GET, request),
            _ => counts.count(self.counted(context, index), request),
        }
        self.value_ends(out);
    }

    fn reply(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        reply: &Reply,
    ) -> OldValue {
        let mut old = OldValue::AsReplied;
        match self.verb {
            Verb::Value { .. } => {}
            Verb::Meta(meta) => {
                let metas = context.metas;
                return self.meta_done(out, context, index, &metas[meta as usize], reply);
            }
            Verb::Touch => answer_plain(out, self.noreply, reply, encode::TOUCHED),
            Verb::Store(format) => {
                answer_store(out, self.noreply, reply);
                if format == StoreKind::Set && is_refused(reply) {
                    old = OldValue::Goes;
                }
            }
            Verb::Delete => answer_plain(out, self.noreply, reply, encode::DELETED),
            Verb::Delta { .. } => answer_delta(out, self.noreply, reply),
        }
        self.say_after(out);
        old
    }
}

impl Format {
    /// True for a meta command.
    pub fn is_meta(self) -> bool {
        matches!(self.verb, Verb::Meta(_))
    }

    /// Appends what follows an answer.
    #[inline]
    fn say_after(self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.after {
            Trailer::Nothing => return,
            Trailer::End => encode::END,
            Trailer::Noop => encode::MN,
        });
    }

    /// Answers a meta command that got no value.
    fn meta_done(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        meta: &MetaFormat<'_>,
        reply: &Reply,
    ) -> OldValue {
        let mut old = OldValue::AsReplied;
        match (meta.verb, reply) {
            (AnsweredVerb::Other(MetaVerb::Get), Reply::Miss) => {
                if !meta.flags.quiet {
                    encode::meta_status(out, MetaStatus::Miss, meta.key, &meta.flags);
                }
            }
            (AnsweredVerb::Other(MetaVerb::Get), Reply::Found(item)) => {
                let item = meta_item(item, context.now);
                let (key, flags) = (meta.key, &meta.flags);
                encode::meta_item(
                    out,
                    MetaStatus::Done,
                    encode::Answers::GET,
                    key,
                    flags,
                    &item,
                );
            }
            (AnsweredVerb::Other(MetaVerb::Debug), Reply::Found(item)) => {
                let key_len = context.stored_key(index).len();
                let Footprint { class, size } = (context.footprint)(key_len, item.value_len);
                let item = meta_item(item, context.now);
                encode::meta_debug(out, meta.key, &item, class, size);
            }
            (AnsweredVerb::Other(MetaVerb::Debug), _) => out.extend_from_slice(b"EN\r\n"),
            _ => answer_meta(
                out,
                MetaAnswer {
                    format: meta,
                    now: context.now,
                    offered: context.offered(index),
                },
                reply,
            ),
        }
        if meta.verb == (AnsweredVerb::Store { plain_set: true }) && is_refused(reply) {
            old = OldValue::Goes;
        }
        self.say_after(out);
        old
    }
}

/// True if a store failed for its size or for want of memory: the old value goes.
fn is_refused(reply: &Reply) -> bool {
    matches!(reply, Reply::TooLarge | Reply::OutOfMemory)
}

/// Answers touch and delete, by these words if the item was found.
fn answer_plain(out: &mut Vec<u8>, noreply: bool, reply: &Reply, done: &[u8]) {
    match reply {
        _ if noreply => {}
        Reply::Found(_) | Reply::Removed => out.extend_from_slice(done),
        Reply::Unavailable => encode::error(out, Error::UNAVAILABLE),
        _ => out.extend_from_slice(encode::NOT_FOUND),
    }
}

/// The error of a failed store.
pub fn failure(reply: &Reply) -> Error {
    match reply {
        Reply::TooLarge => Error::TOO_LARGE,
        Reply::Unavailable => Error::UNAVAILABLE,
        _ => Error::OUT_OF_MEMORY,
    }
}

/// Answers set, add, replace, append, prepend and cas.
pub fn answer_store(out: &mut Vec<u8>, noreply: bool, reply: &Reply) {
    let words = match reply {
        Reply::Stored(_) => encode::STORED,
        Reply::Exists => encode::EXISTS,
        Reply::NotFound => encode::NOT_FOUND,
        reply if reply.is_failure() => {
            let error = failure(reply);
            if !noreply {
                encode::error(out, error);
            }
            return;
        }
        _ => encode::NOT_STORED,
    };
    if !noreply {
        out.extend_from_slice(words);
    }
}

/// Answers incr and decr.
fn answer_delta(out: &mut Vec<u8>, noreply: bool, reply: &Reply) {
    if noreply {
        return;
    }
    match reply {
        Reply::Number(number, _) => encode::number_line(out, *number),
        Reply::NotNumeric => encode::error(out, Error::NON_NUMERIC),
        Reply::TooLarge | Reply::OutOfMemory => {
            encode::error(out, Error::Server("out of memory"));
        }
        Reply::Unavailable => encode::error(out, Error::UNAVAILABLE),
        _ => out.extend_from_slice(encode::NOT_FOUND),
    }
}

/// What the answer to a meta command needs besides the engine's reply.
pub struct MetaAnswer<'w, 'a> {
    pub format: &'w MetaFormat<'a>,
    pub now: Time,
    /// For an ms the bytes of the value to store.
    pub offered: usize,
}

/// Answers ms, md and ma.
pub fn answer_meta(out: &mut Vec<u8>, answer: MetaAnswer<'_, '_>, reply: &Reply) {
    let MetaFormat { verb, key, flags } = answer.format;
    let (status, item) = match reply {
        Reply::Stored(item)
        | Reply::Number(_, item)
        | Reply::Created(_, item)
        | Reply::Found(item) => (MetaStatus::Done, meta_item(item, answer.now)),
        Reply::Removed => (MetaStatus::Done, MetaItem::default()),
        Reply::NotFound | Reply::Miss => (MetaStatus::NotFound, MetaItem::default()),
        Reply::Exists => (MetaStatus::Exists, MetaItem::default()),
        Reply::NotStored => (MetaStatus::NotStored, MetaItem::default()),
        Reply::NotNumeric => return encode::error(out, Error::NON_NUMERIC),
        Reply::TooLarge | Reply::OutOfMemory | Reply::Unavailable => {
            return encode::error(out, failure(reply));
        }
    };
    // q suppresses success only: a client that changes an item must learn that the item does not exist.
    if flags.quiet && status == MetaStatus::Done {
        return;
    }
    match (verb, reply) {
        (AnsweredVerb::Store { .. }, _) => {
            // The numbers in the answer to an ms are those of the stored item. If the item is not stored, the size is
            // that of the value sent.
            let item = match status {
                MetaStatus::Done => item,
                _ => MetaItem {
                    value_len: answer.offered,
                    ..item
                },
            };
            encode::meta_item(out, status, encode::Answers::STORE, key, flags, &item);
        }
        (
            AnsweredVerb::Other(MetaVerb::Arithmetic),
            Reply::Number(number, _) | Reply::Created(number, _),
        ) => {
            if !flags.value {
                return encode::meta_item(
                    out,
                    status,
                    encode::Answers::ARITHMETIC,
                    key,
                    flags,
                    &item,
                );
            }
            let (status, answers) = (MetaStatus::Value, encode::Answers::ARITHMETIC);
            encode::meta_item(out, status, answers, key, flags, &item);
            encode::number_line(out, *number);
        }
        _ => encode::meta_status(out, status, key, flags),
    }
}

/// What a storage command is in the statistics.
#[inline]
pub fn count_of_store(format: StoreKind) -> Counted {
    Counted::with_prefix(Kind::Store {
        is_cas: format == StoreKind::Cas,
    })
}

/// What a meta command is in the statistics.
pub fn count_of_meta(meta: &MetaFormat<'_>) -> Counted {
    let flags = &meta.flags;
    Counted::meta(match meta.verb {
        AnsweredVerb::Store { .. } => Kind::Store {
            is_cas: is_cas(flags),
        },
        AnsweredVerb::Other(MetaVerb::Get) if flags.ttl.is_some() => Kind::GetOrTouch,
        AnsweredVerb::Other(MetaVerb::Get) => Kind::Get,
        AnsweredVerb::Other(MetaVerb::Delete) => Kind::MetaDelete {
            marks: flags.invalidate,
        },
        AnsweredVerb::Other(MetaVerb::Arithmetic) => Kind::MetaDelta {
            is_down: flags.mode == Some(MetaMode::Decrement),
        },
        AnsweredVerb::Other(MetaVerb::Debug | MetaVerb::Noop) => Kind::Nothing,
    })
}

/// True if an ms has the effect of the text command cas.
fn is_cas(flags: &MetaFlags<'_>) -> bool {
    let replaces = matches!(
        flags.mode,
        None | Some(MetaMode::Set) | Some(MetaMode::Replace)
    );
    replaces && flags.compare_cas.is_some()
}

/// An item as meta answers show it.
fn meta_item(item: &Item, now: Time) -> MetaItem {
    MetaItem {
        flags: item.flags,
        value_len: item.value_len,
        ttl: item.expiry.seconds_left(now),
        cas: item.cas,
        last_access: item.idle.as_secs(),
        fetched: item.fetched,
        won: item.won,
        stale: item.stale,
        won_before: item.won_before,
    }
}
