//! The engine's answers, put into words in the output of who asked.

use std::mem::MaybeUninit;

use nuthatch_engine::{AnyValue, Footprint, Item, Replies, Reply, Request, Time};
use nuthatch_protocol::cpserver::{self, Status};
use nuthatch_protocol::encode::{self, Answers, MetaItem, MetaStatus};
use nuthatch_protocol::{Error, MetaFlags, MetaMode, MetaVerb};

use crate::batch::{After, AnsweredVerb, Batch, MetaTicket, StoreStyle, Style, Ticket};
use crate::commands::expiry::seconds_left;
use crate::slice::Slice;
use crate::stats::counters::WorkerCounters;
use crate::stats::prefixes::{Event, Prefixes};

/// Takes the answers of one batch.
pub(crate) struct Answering<'w, 'a> {
    slices: &'w mut [Slice],
    requests: &'w [Request<'a>],
    tickets: &'w [Ticket],
    metas: &'w [MetaTicket<'a>],
    counters: &'w WorkerCounters,
    now: Time,
    /// Where to count by prefix, if that was asked for.
    prefixes: Option<&'w Prefixes>,
    /// Of lengths of key and value: what me tells.
    footprint: &'w dyn Fn(usize, usize) -> Footprint,
    /// Requests that failed to set: their old values must not survive.
    pub(crate) failed_sets: Vec<usize>,
}

impl<'w, 'a> Answering<'w, 'a> {
    pub(crate) fn new(
        slices: &'w mut [Slice],
        batch: &'w Batch<'a>,
        counters: &'w WorkerCounters,
        now: Time,
        prefixes: &'w Prefixes,
        footprint: &'w dyn Fn(usize, usize) -> Footprint,
    ) -> Self {
        Self {
            slices,
            requests: &batch.requests,
            tickets: &batch.tickets,
            metas: &batch.metas,
            counters,
            now,
            prefixes: prefixes.is_enabled().then_some(prefixes),
            footprint,
            failed_sets: Vec::new(),
        }
    }

    /// What stands before the value of request `index`, and where it goes.
    #[inline]
    fn header(&mut self, index: usize, item: &Item, room: Option<usize>) -> &mut [MaybeUninit<u8>] {
        let ticket = &self.tickets[index];
        let output = &mut self.slices[ticket.slice as usize].output;
        let key = self.requests[index].key.bytes();
        let now = self.now;
        let metas = self.metas;
        let write = |out: &mut Vec<u8>| match ticket.style {
            Style::Meta(meta) => {
                let MetaTicket { key, flags, .. } = &metas[meta as usize];
                let item = meta_item(item, now);
                encode::meta_item(out, MetaStatus::Value, Answers::GET, key, flags, &item);
            }
            Style::Lookup(dialect) => cpserver::value(out, dialect, item.value_len),
            style => {
                let with_cas = matches!(style, Style::Value { with_cas: true, .. });
                let cas = with_cas.then_some(item.cas);
                encode::value(out, key, item.flags, item.value_len, cas);
            }
        };
        match room {
            Some(len) => output.begin(len, write),
            None => {
                write(output.text());
                &mut []
            }
        }
    }

    /// Appends what stands behind a value.
    #[inline]
    fn value_end(&mut self, index: usize) {
        let ticket = &self.tickets[index];
        if !matches!(ticket.style, Style::Lookup(_)) {
            let output = &mut self.slices[ticket.slice as usize].output;
            output.text().extend_from_slice(encode::CRLF);
        }
    }

    /// Counts a read's outcome and ends its answer.
    #[inline]
    fn read_done(&mut self, index: usize, hit: bool) {
        let ticket = &self.tickets[index];
        let counters = self.counters;
        let touched = match ticket.style {
            Style::Value { touched, .. } => touched,
            Style::Touch => true,
            Style::Meta(meta) => {
                counters.cmd_meta.bump();
                // As in memcached: one that finds nothing to touch is a get.
                hit && self.metas[meta as usize].flags.ttl.is_some()
            }
            _ => false,
        };
        if touched {
            counters.cmd_touch.bump();
            if hit {
                counters.touch_hits.bump();
            } else {
                counters.touch_misses.bump();
            }
        } else {
            counters.cmd_get.bump();
            if hit {
                counters.get_hits.bump();
            } else {
                counters.get_misses.bump();
            }
        }
        if let Style::Value { .. } = ticket.style {
            self.record(index, if hit { Event::Hit } else { Event::Miss });
        }
        self.after(index);
    }

    /// Appends what follows an answer.
    #[inline]
    fn after(&mut self, index: usize) {
        let ticket = &self.tickets[index];
        let text = match ticket.after {
            After::Nothing => return,
            After::End => encode::END,
            After::Noop => encode::MN,
        };
        self.slices[ticket.slice as usize]
            .output
            .text()
            .extend_from_slice(text);
    }

    /// Answers a meta command that got no value.
    fn meta_done(&mut self, index: usize, meta: &'w MetaTicket<'a>, reply: &Reply) {
        let out = self.slices[self.tickets[index].slice as usize]
            .output
            .text();
        match (meta.verb, reply) {
            (AnsweredVerb::Other(MetaVerb::Get), Reply::Miss) => {
                if !meta.flags.quiet {
                    encode::meta_status(out, MetaStatus::Miss, meta.key, &meta.flags);
                }
                return self.read_done(index, false);
            }
            (AnsweredVerb::Other(MetaVerb::Get), Reply::Found(item)) => {
                let item = meta_item(item, self.now);
                let (key, flags) = (meta.key, &meta.flags);
                encode::meta_item(out, MetaStatus::Done, Answers::GET, key, flags, &item);
                return self.read_done(index, true);
            }
            (AnsweredVerb::Other(MetaVerb::Debug), Reply::Found(item)) => {
                let key_len = self.requests[index].key.bytes().len();
                let Footprint { class, size } = (self.footprint)(key_len, item.value_len);
                let item = meta_item(item, self.now);
                encode::meta_debug(out, meta.key, &item, class, size);
            }
            (AnsweredVerb::Other(MetaVerb::Debug), _) => out.extend_from_slice(b"EN\r\n"),
            _ => answer_meta(
                out,
                MetaAnswer {
                    ticket: meta,
                    counters: self.counters,
                    now: self.now,
                },
                reply,
            ),
        }
        self.counters.cmd_meta.bump();
        if let AnsweredVerb::Store { plain_set } = meta.verb {
            self.counters.cmd_set.bump();
            if plain_set && is_failure(reply) {
                self.failed_sets.push(index);
            }
        }
        self.after(index);
    }

    /// Counts by prefix what a text command did.
    #[inline]
    fn record(&self, index: usize, event: Event) {
        if let Some(prefixes) = self.prefixes {
            prefixes.record(self.requests[index].key.bytes(), event);
        }
    }
}

impl Replies<AnyValue> for Answering<'_, '_> {
    #[inline]
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.header(index, item, Some(item.value_len))
    }

    #[inline]
    fn commit(&mut self, index: usize) {
        let output = &mut self.slices[self.tickets[index].slice as usize].output;
        // SAFETY: the engine calls this for the request it called `begin` for last, after it wrote
        // all of the room it got then: that is its side of `Replies`.
        unsafe { output.commit() };
        self.value_end(index);
        self.read_done(index, true);
    }

    fn retract(&mut self, index: usize) {
        self.slices[self.tickets[index].slice as usize]
            .output
            .retract();
    }

    fn large(&mut self, index: usize, item: &Item, value: AnyValue) {
        self.header(index, item, None);
        let output = &mut self.slices[self.tickets[index].slice as usize].output;
        output.pin(value);
        self.value_end(index);
        self.read_done(index, true);
    }

    fn done(&mut self, index: usize, reply: Reply) {
        let ticket = self.tickets[index];
        let counters = self.counters;
        match ticket.style {
            Style::Value { .. } => return self.read_done(index, false),
            Style::Meta(meta) => {
                let metas = self.metas;
                return self.meta_done(index, &metas[meta as usize], &reply);
            }
            _ => {}
        }
        let out = self.slices[ticket.slice as usize].output.text();
        match ticket.style {
            Style::Touch => {
                let hit = matches!(reply, Reply::Found(_));
                if !ticket.noreply {
                    out.extend_from_slice(if hit {
                        b"TOUCHED\r\n"
                    } else {
                        encode::NOT_FOUND
                    });
                }
                return self.read_done(index, hit);
            }
            Style::Store(style) => {
                counters.cmd_set.bump();
                answer_store(out, counters, style, ticket.noreply, &reply);
                if style == StoreStyle::Set && is_failure(&reply) {
                    self.failed_sets.push(index);
                }
                self.record(index, Event::Set);
            }
            Style::Delete => {
                let hit = matches!(reply, Reply::Removed);
                count_delete(counters, hit);
                if !ticket.noreply {
                    out.extend_from_slice(if hit {
                        encode::DELETED
                    } else {
                        encode::NOT_FOUND
                    });
                }
                self.record(index, Event::Delete);
            }
            Style::Delta { down } => {
                answer_delta(out, counters, down, ticket.noreply, &reply);
            }
            Style::Lookup(dialect) => {
                cpserver::miss(out, dialect);
                return self.read_done(index, false);
            }
            Style::Insert(dialect) => {
                counters.cmd_set.bump();
                cpserver::stored(out, dialect, insert_status(counters, &reply));
                if is_failure(&reply) {
                    self.failed_sets.push(index);
                }
            }
            Style::Value { .. } | Style::Meta(_) => {}
        }
        self.after(index);
    }
}

/// The store failed for its size or for want of memory.
fn is_failure(reply: &Reply) -> bool {
    matches!(reply, Reply::TooLarge | Reply::OutOfMemory)
}

fn count_delete(counters: &WorkerCounters, hit: bool) {
    if hit {
        counters.delete_hits.bump();
    } else {
        counters.delete_misses.bump();
    }
}

/// Counts a store that could not be, and says why.
fn failure(counters: &WorkerCounters, reply: &Reply) -> Error {
    if let Reply::TooLarge = reply {
        counters.store_too_large.bump();
        Error::TOO_LARGE
    } else {
        counters.store_no_memory.bump();
        Error::OUT_OF_MEMORY
    }
}

/// What a STORE is told, counted if it could not be.
pub(crate) fn insert_status(counters: &WorkerCounters, reply: &Reply) -> Status {
    match reply {
        Reply::TooLarge => {
            counters.store_too_large.bump();
            Status::TooLarge
        }
        Reply::OutOfMemory => {
            counters.store_no_memory.bump();
            Status::OutOfMemory
        }
        // Nothing else becomes of a set without conditions.
        _ => Status::Done,
    }
}

/// Answers set, add, replace, append, prepend and cas.
pub(crate) fn answer_store(
    out: &mut Vec<u8>,
    counters: &WorkerCounters,
    style: StoreStyle,
    noreply: bool,
    reply: &Reply,
) {
    if style == StoreStyle::Cas {
        count_cas(counters, reply);
    }
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

fn count_cas(counters: &WorkerCounters, reply: &Reply) {
    match reply {
        Reply::Stored(_) => counters.cas_hits.bump(),
        Reply::Exists => counters.cas_badval.bump(),
        _ => counters.cas_misses.bump(),
    }
}

/// Answers incr and decr.
fn answer_delta(
    out: &mut Vec<u8>,
    counters: &WorkerCounters,
    down: bool,
    noreply: bool,
    reply: &Reply,
) {
    count_delta(counters, down, reply);
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

fn count_delta(counters: &WorkerCounters, down: bool, reply: &Reply) {
    let counter = match (reply, down) {
        (Reply::Number(..), false) => &counters.incr_hits,
        (Reply::Number(..), true) => &counters.decr_hits,
        (Reply::NotFound, false) => &counters.incr_misses,
        (Reply::NotFound, true) => &counters.decr_misses,
        _ => return,
    };
    counter.bump();
}

/// What the answer to a meta command needs besides the engine's.
pub(crate) struct MetaAnswer<'w, 'a> {
    pub(crate) ticket: &'w MetaTicket<'a>,
    pub(crate) counters: &'w WorkerCounters,
    pub(crate) now: Time,
}

/// Answers ms, md and ma.
pub(crate) fn answer_meta(out: &mut Vec<u8>, answer: MetaAnswer<'_, '_>, reply: &Reply) {
    let MetaTicket { verb, key, flags } = answer.ticket;
    let counters = answer.counters;
    match verb {
        // What is only made stale is neither a hit nor a miss.
        AnsweredVerb::Other(MetaVerb::Delete) if flags.invalidate && *reply == Reply::Removed => {}
        AnsweredVerb::Other(MetaVerb::Delete) => {
            count_delete(counters, matches!(reply, Reply::Removed));
        }
        AnsweredVerb::Other(MetaVerb::Arithmetic) => {
            let down = flags.mode == Some(MetaMode::Decrement);
            count_delta(counters, down, reply);
        }
        AnsweredVerb::Store { .. } if is_cas(flags) => count_cas(counters, reply),
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
    // q leaves out success, and nothing else: that something was not there is news to who changes it.
    if flags.quiet && status == MetaStatus::Done {
        return;
    }
    match (verb, reply) {
        (AnsweredVerb::Store { .. }, _) => {
            // The numbers of an ms are those of the stored item, in its answer's order.
            encode::meta_item(out, status, Answers::STORE, key, flags, &item);
        }
        (AnsweredVerb::Other(MetaVerb::Arithmetic), Reply::Number(number, _)) => {
            if !flags.value {
                return encode::meta_item(out, status, Answers::ARITHMETIC, key, flags, &item);
            }
            let (status, answers) = (MetaStatus::Value, Answers::ARITHMETIC);
            encode::meta_item(out, status, answers, key, flags, &item);
            encode::number_line(out, *number);
        }
        _ => encode::meta_status(out, status, key, flags),
    }
}

/// True if an ms is what cas is among the text commands.
fn is_cas(flags: &MetaFlags<'_>) -> bool {
    let replaces = matches!(
        flags.mode,
        None | Some(MetaMode::Set) | Some(MetaMode::Replace)
    );
    replaces && flags.compare_cas.is_some()
}

/// An item as meta answers tell it.
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
