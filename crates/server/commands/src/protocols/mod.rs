//! The protocols of clients, a folder each. The worker reads bytes, executes batches, orders replies and writes bytes.
//! A protocol does the rest:
//!
//! * its phases: what the next byte of input means, and the state between two slices ([`Phase`]);
//! * its requests to the engine, and the commands that it executes at once ([`step`]);
//! * its answers, and the parts of a request that they depend on ([`Style`], which the batch keeps);
//! * its refusals of connections, and how the log shows a request.
//!
//! To add one: its parser in `nuthatch-protocol`, a folder here, a variant of [`Protocol`], [`Phase`] and [`Style`],
//! and a line in each `match` of this file.

pub(crate) mod binary;
pub(crate) mod cpserver;
pub(crate) mod memcached;
pub(crate) mod resp;

use std::os::fd::RawFd;

use nuthatch_engine::{AnyValue, Item, Reply};
use nuthatch_protocol::binary::MAGIC;
use nuthatch_security::login::Login;
use nuthatch_state::config::Protocol;

use crate::answering::{AnswerContext, Answers, OldValue};
use crate::output::Output;
use crate::partial::PartialValue;
use crate::slice::Slice;
use crate::stage::{Flow, Stage};

/// A connection's state in its protocol: what the next byte of its input means.
pub enum Phase {
    /// The first byte will tell which of memcached's two protocols it is, or that it is Redis', if that is allowed.
    Undecided {
        /// It may be Redis'.
        redis: bool,
    },
    /// memcached's text and meta commands.
    Memcached(memcached::Phase),
    /// memcached's binary protocol.
    Binary(binary::Phase),
    /// CPServer's requests.
    CpServer(cpserver::Phase),
    /// Redis' requests.
    Resp(resp::Phase),
}

impl Phase {
    /// The phase before the first byte. `login` is true if the client has to log in first.
    pub fn begin(protocol: Protocol, login: bool) -> Self {
        match protocol {
            Protocol::Memcached => Self::Undecided { redis: false },
            Protocol::Any => Self::Undecided { redis: true },
            Protocol::Redis => Self::Resp(resp::Phase::new(login)),
            Protocol::Text if login => Self::Memcached(memcached::Phase::Login(Login::default())),
            Protocol::Text => Self::Memcached(memcached::Phase::Commands),
            Protocol::Binary if login => Self::Binary(binary::Phase::Login(Login::default())),
            Protocol::Binary => Self::Binary(binary::Phase::Requests),
            // The protocol has no password: a server with passwords does not listen for it.
            Protocol::CpServer => Self::CpServer(cpserver::Phase::Requests),
        }
    }

    /// True if the next byte begins a request.
    pub fn is_at_request(&self) -> bool {
        match self {
            Self::Undecided { .. } => false,
            Self::Resp(phase) => phase.is_at_request(),
            Self::Memcached(phase) => matches!(phase, memcached::Phase::Commands),
            Self::Binary(phase) => matches!(phase, binary::Phase::Requests),
            Self::CpServer(phase) => matches!(phase, cpserver::Phase::Requests),
        }
    }

    /// True if its client watches the server: see [`watch`](nuthatch_state::telemetry::watch).
    pub fn is_watching(&self) -> bool {
        matches!(self, Self::Memcached(memcached::Phase::Watch(_)))
    }

    /// True if other threads call its worker when there is something to do.
    pub fn is_called(&self) -> bool {
        let waits = matches!(self, Self::Memcached(memcached::Phase::Refresh(_)));
        waits || self.is_watching()
    }

    /// True if its client has logged in, or need not.
    pub fn is_admitted(&self) -> bool {
        match self {
            Self::Undecided { .. } | Self::CpServer(_) => true,
            Self::Resp(phase) => phase.is_admitted(),
            Self::Memcached(phase) => !matches!(phase, memcached::Phase::Login(_)),
            Self::Binary(phase) => !matches!(phase, binary::Phase::Login(_)),
        }
    }

    /// Bytes still to come of a value that goes straight to the engine.
    #[inline]
    pub fn missing(&self) -> usize {
        match self {
            Self::Undecided { .. } => 0,
            Self::Resp(phase) => phase.missing(),
            Self::Memcached(phase) => phase.missing(),
            Self::Binary(phase) => phase.missing(),
            Self::CpServer(phase) => phase.missing(),
        }
    }

    /// The value under way that goes straight to the engine, if there is one.
    pub fn partial(&mut self) -> Option<&mut PartialValue> {
        match self {
            Self::Undecided { .. } => None,
            Self::Resp(phase) => phase.partial(),
            Self::Memcached(phase) => phase.partial(),
            Self::Binary(phase) => phase.partial(),
            Self::CpServer(phase) => phase.partial(),
        }
    }

    /// Bytes of memory that it holds and that depend on a client's input, without those of a value, which are the
    /// engine's.
    #[inline]
    pub fn memory(&self) -> usize {
        match self {
            Self::Memcached(phase) => phase.memory(),
            Self::Binary(phase) => phase.memory(),
            Self::Resp(phase) => phase.memory(),
            Self::Undecided { .. } | Self::CpServer(_) => 0,
        }
    }

    /// Tells a client that its connection is closed for what it holds.
    pub fn say_out_of_memory(&self, out: &mut Vec<u8>) {
        match self {
            Self::Memcached(_) => out.extend_from_slice(memcached::OUT_OF_MEMORY),
            // These protocols have answers to requests only, or no answer for this.
            Self::Undecided { .. } | Self::Binary(_) | Self::CpServer(_) => {}
            Self::Resp(_) => out.extend_from_slice(resp::OUT_OF_MEMORY),
        }
    }

    /// Tells the sender of a datagram which limit it exceeds.
    pub fn say_too_much(&self, what: TooMuch, out: &mut Vec<u8>) {
        match self {
            Self::Undecided { .. } | Self::Memcached(_) => {
                out.extend_from_slice(memcached::too_much(what));
            }
            // The binary protocol has answers to requests only. The other two have no datagrams.
            Self::Binary(_) | Self::CpServer(_) | Self::Resp(_) => {}
        }
    }

    /// No more input comes: drops the reservation of a value that has not arrived completely.
    pub fn forget(&mut self) {
        *self = Self::Undecided { redis: false };
    }

    /// Logs a request, which `input` begins with.
    pub fn log_request(&self, input: &[u8], fd: RawFd) {
        match self {
            Self::Undecided { .. } => {}
            Self::Resp(_) => resp::log::request(input, fd),
            Self::Memcached(_) => memcached::log::request(input, fd),
            Self::Binary(_) => binary::log::request(input, fd),
            Self::CpServer(_) => cpserver::log::request(input, fd),
        }
    }

    /// Logs the answers in an output from position `from` on.
    pub fn log_answers(&self, output: &Output<AnyValue>, from: usize, fd: RawFd) {
        match self {
            Self::Memcached(_) => memcached::log::answers(output, from, fd),
            Self::Binary(_) => binary::log::answers(output, from, fd),
            Self::Resp(_) => resp::log::answers(output, from, fd),
            Self::Undecided { .. } | Self::CpServer(_) => {}
        }
    }
}

/// The limit that a datagram exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// More commands than a slice may have (`-R`). A connection would wait for its next slice, a datagram has none.
    Commands,
    /// Its answer is longer than allowed.
    Answer,
}

/// Those who are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// All connections.
    OfServer,
    /// Those of an address.
    OfAddress,
}

/// The refusal of a connection above the limit, if its protocol has one.
pub fn too_many(protocol: Protocol, crowd: Crowd) -> Option<&'static [u8]> {
    match protocol {
        Protocol::Memcached | Protocol::Text | Protocol::Any => Some(memcached::too_many(crowd)),
        Protocol::Redis => Some(resp::too_many(crowd)),
        Protocol::Binary | Protocol::CpServer => None,
    }
}

/// Parses the front of the unused input and takes a request, or a piece of one.
#[inline(always)]
pub fn step<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    match phase {
        Phase::Memcached(phase) => memcached::step(stage, slice, phase, input),
        Phase::Binary(phase) => binary::step(stage, slice, phase, input),
        Phase::CpServer(phase) => cpserver::step(stage, slice, phase, input),
        Phase::Resp(phase) => resp::step(stage, slice, phase, input),
        Phase::Undecided { redis } => {
            let redis = *redis;
            decide(stage, slice, phase, redis, input)
        }
    }
}

/// Tells a protocol by its first byte.
#[cold]
fn decide(
    stage: &Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    redis: bool,
    input: &[u8],
) -> Flow {
    let login = stage.shared.has_passwords();
    *phase = match input.get(slice.position) {
        None => return Flow::Starved,
        Some(&MAGIC) => Phase::begin(Protocol::Binary, login),
        Some(&resp::MARK) if redis => Phase::begin(Protocol::Redis, login),
        Some(&TLS_HANDSHAKE) => {
            refuse_tls(slice, memcached::NO_TLS);
            slice.position = input.len();
            return Flow::Next;
        }
        Some(_) => Phase::begin(Protocol::Text, login),
    };
    Flow::Next
}

/// The first byte of a client that uses TLS. No text command begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// True if the input is the beginning of TLS: a handshake, and the first byte of its version.
#[cold]
fn speaks_tls(front: &[u8]) -> bool {
    front.starts_with(&[TLS_HANDSHAKE, 3])
}

/// Tells a client with this text that the port has no TLS, and ends its connection: otherwise the client would wait for
/// an answer by TLS, and a text parser for the end of a line.
#[cold]
fn refuse_tls(slice: &mut Slice, words: &[u8]) {
    slice.output.text().extend_from_slice(words);
    slice.closing = true;
}

/// Drops input, `left` more bytes of it.
fn swallow(slice: &mut Slice, left: &mut u64, input: &[u8]) -> Flow {
    let here = (input.len() - slice.position) as u64;
    let dropped = here.min(*left);
    *left -= dropped;
    slice.position += dropped as usize;
    match dropped == here {
        true => Flow::Starved,
        false => Flow::Next,
    }
}

/// Passes the bytes of a large value that have arrived to the engine. True if the value is complete.
fn receive(value: &mut PartialValue, slice: &mut Slice, input: &[u8]) -> bool {
    let here = &input[slice.position..];
    let of_value = here.len().min(value.missing());
    value.write(&here[..of_value]);
    slice.position += of_value;
    value.missing() == 0
}

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

impl Answers for Style {
    #[inline]
    fn value_begins(
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

    #[inline]
    fn value_ends(
        self,
        out: &mut Vec<u8>,
        context: &mut AnswerContext<'_, '_>,
        index: usize,
        value_len: usize,
    ) {
        match self {
            Self::Memcached(style) => style.value_ends(out, context, index, value_len),
            Self::Binary(style) => style.value_ends(out, context, index, value_len),
            Self::CpServer(style) => style.value_ends(out, context, index, value_len),
            Self::Resp(style) => style.value_ends(out, context, index, value_len),
        }
    }

    fn reply(
        self,
        out: &mut Vec<u8>,
        context: &mut AnswerContext<'_, '_>,
        index: usize,
        reply: &Reply,
    ) -> OldValue {
        match self {
            Self::Memcached(style) => style.reply(out, context, index, reply),
            Self::Binary(style) => style.reply(out, context, index, reply),
            Self::CpServer(style) => style.reply(out, context, index, reply),
            Self::Resp(style) => style.reply(out, context, index, reply),
        }
    }
}
