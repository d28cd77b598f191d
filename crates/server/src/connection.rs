//! A connection between two turns. Most are idle most of the time, so it owns no buffer unless
//! something is in it.

use std::sync::Arc;

use nuthatch::engine::Reservation;
use nuthatch::{Handle, Time};
use nuthatch_protocol::Exptime;
use nuthatch_protocol::cpserver::Dialect;

use crate::account::{READ_MAX, Terms};
use crate::commands::dump::Dump;
use crate::listen::Protocol;
use crate::output::Output;
use crate::shared::Arrival;
use crate::stats::connections::Info;
use crate::stream::Stream;

/// Requests that a fresh connection may have in a batch.
const IN_BATCH_FIRST: usize = 32;

/// One client.
pub(crate) struct Connection<H: Handle> {
    pub(crate) stream: Stream,
    pub(crate) info: Arc<Info>,
    pub(crate) protocol: Protocol,
    /// Input that was read and not used up, from `input_start` on.
    pub(crate) input: Vec<u8>,
    pub(crate) input_start: usize,
    /// Replies that the socket did not take.
    pub(crate) output: Output<H::Value>,
    pub(crate) phase: Phase<H::Reservation>,
    /// Bytes of buffers that it is down for in the account.
    pub(crate) accounted: usize,
    pub(crate) active: Time,
    /// Requests that it may have in a batch: see [`Turn`](crate::turn::Turn).
    pub(crate) in_batch_max: usize,
    /// There may be bytes to read: an event said so, and no read has come back short since.
    pub(crate) readable: bool,
    /// The client closed its side: reading goes on until its end is seen.
    pub(crate) hung: bool,
    /// The socket may take output.
    pub(crate) writable: bool,
    /// The poll tells when the socket takes output again.
    pub(crate) watched: bool,
    /// `input` may hold complete commands, or the phase has something to say by itself.
    pub(crate) unfinished: bool,
    /// On the list of those whose turn is next.
    pub(crate) queued: bool,
    /// Close when the output is sent.
    pub(crate) closing: bool,
}

/// What the next byte of input means.
pub(crate) enum Phase<R> {
    /// It begins a command.
    Commands,
    /// It is dropped, and so many more.
    Swallow(u64),
    /// It is among the keys of a get that was cut by the end of a batch.
    Keys(Keys),
    /// It belongs to a large value.
    Value(Box<Incoming<R>>),
    /// It belongs to a large value of CPServer's.
    Insertion(Box<Insertion<R>>),
    /// Nothing yet: a dump is on its way out.
    Dump(Box<Dump>),
}

/// The rest of a get.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    /// Bytes of the keys that are left.
    pub(crate) len: usize,
    /// Bytes of the line behind them.
    pub(crate) tail: usize,
    pub(crate) with_cas: bool,
    pub(crate) touch: Option<Exptime>,
}

/// A large value that arrives piece by piece.
pub(crate) struct Incoming<R> {
    pub(crate) reservation: R,
    /// Its command's line, understood again when the value is complete.
    pub(crate) line: Box<[u8]>,
    /// Bytes of the `\r\n` behind the value that have been seen.
    pub(crate) end_seen: usize,
    /// They were the right ones.
    pub(crate) end_good: bool,
}

/// A large value of CPServer's that arrives piece by piece.
pub(crate) struct Insertion<R> {
    pub(crate) reservation: R,
    pub(crate) dialect: Dialect,
}

impl<H: Handle> Connection<H> {
    pub(crate) fn new(arrival: Arrival, now: Time) -> Self {
        Self {
            stream: arrival.stream,
            info: arrival.info,
            protocol: arrival.protocol,
            input: Vec::new(),
            input_start: 0,
            output: Output::default(),
            phase: Phase::Commands,
            accounted: 0,
            active: now,
            in_batch_max: IN_BATCH_FIRST,
            // Should its first bytes be here already, registering it makes an event of them.
            readable: false,
            hung: false,
            writable: true,
            watched: false,
            unfinished: false,
            queued: false,
            closing: false,
        }
    }

    /// Bytes of input that wait.
    pub(crate) fn waiting_input(&self) -> &[u8] {
        &self.input[self.input_start..]
    }

    /// Bytes to read in a turn.
    #[inline]
    pub(crate) fn read_max(&self, terms: &Terms) -> usize {
        match &self.phase {
            // What is of the value goes to the engine, and need not be kept.
            Phase::Value(incoming) => incoming.reservation.missing(),
            Phase::Insertion(insertion) => insertion.reservation.missing(),
            _ => 0,
        }
        .clamp(terms.read_max, READ_MAX)
    }

    /// Bytes of buffers that it holds.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        let line = match &self.phase {
            Phase::Value(incoming) => incoming.line.len(),
            _ => 0,
        };
        self.input.capacity() + self.output.memory() + line
    }

    /// Notes the time of a command.
    #[inline]
    pub(crate) fn touch(&mut self, now: Time) {
        if now.seconds() != self.active.seconds() {
            self.info.set_active(now);
        }
        self.active = now;
    }
}
