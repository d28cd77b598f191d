//! Answers in memcached's text protocol.

use nuthatch_engine::{Footprint, Item, Reply, Time};
use nuthatch_protocol::encode::{self, MetaItem, MetaStatus};
use nuthatch_protocol::{Error, MetaFlags, MetaMode, MetaVerb};
use nuthatch_state::telemetry::counters::WorkerCounters;
use nuthatch_state::telemetry::prefixes::Event;
use nuthatch_state::telemetry::sizes::Lens;

use super::context::{AnswerContext, Answers, OldValue};
use super::meta::{AnsweredVerb, MetaTicket};
use crate::expiry::memcached::seconds_left;

/// What an answer depends on besides its outcome.
#[derive(Clone, Copy, Debug)]
pub struct Style {
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
    Store(StoreStyle),
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
pub enum StoreStyle {
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

impl Answers for Style {
    #[inline]
    fn value_begins(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        item: &Item,
    ) {
        if let Verb::Meta(meta) = self.verb {
            let MetaTicket { key, flags, .. } = &context.metas[meta as usize];
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
    fn value_ends(
        self,
        out: &mut Vec<u8>,
        context: &mut AnswerContext<'_, '_>,
        index: usize,
        value_len: usize,
    ) {
        out.extend_from_slice(encode::CRLF);
        self.read_done(out, context, index, Some(context.lens(index, value_len)));
    }

    fn reply(
        self,
        out: &mut Vec<u8>,
        context: &mut AnswerContext<'_, '_>,
        index: usize,
        reply: &Reply,
    ) -> OldValue {
        let counters = context.counters;
        let mut old = OldValue::AsReplied;
        match self.verb {
            Verb::Value { .. } => {
                self.read_done(out, context, index, None);
                return old;
            }
            Verb::Meta(meta) => {
                let metas = context.metas;
                return self.meta_done(out, context, index, &metas[meta as usize], reply);
            }
            Verb::Touch => {
                let hit = context.found(index, reply);
                if !self.noreply {
                    out.extend_from_slice(if hit.is_some() {
                        b"TOUCHED\r\n"
                    } else {
                        encode::NOT_FOUND
                    });
                }
                self.read_done(out, context, index, hit);
                return old;
            }
            Verb::Store(style) => {
                let offered = context.offered(index);
                counters.count_set(offered);
                if style == StoreStyle::Cas {
                    counters.count_cas(offered, reply);
                }
                answer_store(out, counters, self.noreply, reply);
                if style == StoreStyle::Set && is_failure(reply) {
                    old = OldValue::Goes;
                }
                context.record(index, Event::Set);
            }
            Verb::Delete => {
                let hit = matches!(reply, Reply::Removed);
                counters.count_delete(hit);
                if !self.noreply {
                    out.extend_from_slice(if hit {
                        encode::DELETED
                    } else {
                        encode::NOT_FOUND
                    });
                }
                context.record(index, Event::Delete);
            }
            Verb::Delta { down } => {
                counters.count_delta_reply(down, context.key(index).len(), reply);
                answer_delta(out, self.noreply, reply);
            }
        }
        self.say_after(out);
        old
    }
}

impl Style {
    /// True for a meta command.
    pub fn is_meta(self) -> bool {
        matches!(self.verb, Verb::Meta(_))
    }

    /// Counts a read's outcome and ends its answer.
    #[inline]
    fn read_done(
        self,
        out: &mut Vec<u8>,
        context: &mut AnswerContext<'_, '_>,
        index: usize,
        hit: Option<Lens>,
    ) {
        let counters = context.counters;
        let touched = match self.verb {
            Verb::Value { touched, .. } => touched,
            Verb::Touch => true,
            Verb::Meta(meta) => {
                counters.cmd_meta.bump();
                // As in memcached, a touching mg that misses is counted as a get.
                hit.is_some() && context.metas[meta as usize].flags.ttl.is_some()
            }
            _ => false,
        };
        match touched {
            true => counters.count_touch(hit),
            false => counters.count_get(hit),
        }
        if let Verb::Value { .. } = self.verb {
            let event = match hit {
                Some(_) => Event::Hit,
                None => Event::Miss,
            };
            context.record(index, event);
        }
        self.say_after(out);
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
        context: &mut AnswerContext<'_, '_>,
        index: usize,
        meta: &MetaTicket<'_>,
        reply: &Reply,
    ) -> OldValue {
        let mut old = OldValue::AsReplied;
        match (meta.verb, reply) {
            (AnsweredVerb::Other(MetaVerb::Get), Reply::Miss) => {
                if !meta.flags.quiet {
                    encode::meta_status(out, MetaStatus::Miss, meta.key, &meta.flags);
                }
                self.read_done(out, context, index, None);
                return old;
            }
            (AnsweredVerb::Other(MetaVerb::Get), Reply::Found(item)) => {
                let lens = context.lens(index, item.value_len);
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
                self.read_done(out, context, index, Some(lens));
                return old;
            }
            (AnsweredVerb::Other(MetaVerb::Debug), Reply::Found(item)) => {
                let key_len = context.key(index).len();
                let Footprint { class, size } = (context.footprint)(key_len, item.value_len);
                let item = meta_item(item, context.now);
                encode::meta_debug(out, meta.key, &item, class, size);
            }
            (AnsweredVerb::Other(MetaVerb::Debug), _) => out.extend_from_slice(b"EN\r\n"),
            _ => answer_meta(
                out,
                MetaAnswer {
                    ticket: meta,
                    counters: context.counters,
                    now: context.now,
                    offered: context.offered(index),
                },
                reply,
            ),
        }
        context.counters.cmd_meta.bump();
        if let AnsweredVerb::Store { plain_set } = meta.verb {
            context.counters.count_set(context.offered(index));
            if plain_set && is_failure(reply) {
                old = OldValue::Goes;
            }
        }
        self.say_after(out);
        old
    }
}

/// True if a store failed for its size or for want of memory.
fn is_failure(reply: &Reply) -> bool {
    matches!(reply, Reply::TooLarge | Reply::OutOfMemory)
}

/// Counts a failed store, and returns its error.
fn failure(counters: &WorkerCounters, reply: &Reply) -> Error {
    counters.count_failure(reply);
    match reply {
        Reply::TooLarge => Error::TOO_LARGE,
        _ => Error::OUT_OF_MEMORY,
    }
}

/// Answers set, add, replace, append, prepend and cas.
pub fn answer_store(out: &mut Vec<u8>, counters: &WorkerCounters, noreply: bool, reply: &Reply) {
    let words = match reply {
        Reply::Stored(_) => encode::STORED,
        Reply::Exists => encode::EXISTS,
        Reply::NotFound => encode::NOT_FOUND,
        Reply::TooLarge | Reply::OutOfMemory => {
            let error = failure(counters, reply);
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
        _ => out.extend_from_slice(encode::NOT_FOUND),
    }
}

/// What the answer to a meta command needs besides the engine's reply.
pub struct MetaAnswer<'w, 'a> {
    pub ticket: &'w MetaTicket<'a>,
    pub counters: &'w WorkerCounters,
    pub now: Time,
    /// For an ms the lengths of the key and of the value to store. For the others that of the key.
    pub offered: Lens,
}

/// Answers ms, md and ma.
pub fn answer_meta(out: &mut Vec<u8>, answer: MetaAnswer<'_, '_>, reply: &Reply) {
    let MetaTicket { verb, key, flags } = answer.ticket;
    let counters = answer.counters;
    match verb {
        // A delete that only makes the item stale is neither a hit nor a miss.
        AnsweredVerb::Other(MetaVerb::Delete) if flags.invalidate && *reply == Reply::Removed => {}
        AnsweredVerb::Other(MetaVerb::Delete) => {
            counters.count_delete(matches!(reply, Reply::Removed));
        }
        AnsweredVerb::Other(MetaVerb::Arithmetic) => {
            let down = flags.mode == Some(MetaMode::Decrement);
            counters.count_delta_reply(down, answer.offered.key, reply);
        }
        AnsweredVerb::Store { .. } if is_cas(flags) => {
            counters.count_cas(answer.offered, reply);
        }
        _ => {}
    }
    let (status, item) = match reply {
        Reply::Stored(item) | Reply::Number(_, item) | Reply::Found(item) => {
            (MetaStatus::Done, meta_item(item, answer.now))
        }
        Reply::Removed => (MetaStatus::Done, MetaItem::default()),
        Reply::NotFound | Reply::Miss => (MetaStatus::NotFound, MetaItem::default()),
        Reply::Exists => (MetaStatus::Exists, MetaItem::default()),
        Reply::NotStored => (MetaStatus::NotStored, MetaItem::default()),
        Reply::NotNumeric => return encode::error(out, Error::NON_NUMERIC),
        Reply::TooLarge | Reply::OutOfMemory => {
            return encode::error(out, failure(counters, reply));
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
                    value_len: answer.offered.value,
                    ..item
                },
            };
            encode::meta_item(out, status, encode::Answers::STORE, key, flags, &item);
        }
        (AnsweredVerb::Other(MetaVerb::Arithmetic), Reply::Number(number, _)) => {
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
        ttl: seconds_left(item.expiry, now),
        cas: item.cas,
        last_access: item.idle.as_secs(),
        fetched: item.fetched,
        won: item.won,
        stale: item.stale,
        won_before: item.won_before,
    }
}
