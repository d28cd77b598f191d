//! The protocols that clients speak, a folder each. The worker knows bytes in, requests into the batch, replies in
//! order, bytes out; a protocol knows the rest:
//!
//! * its phases: what the next byte of input means, and what is kept between two slices ([`Phase`]);
//! * what it asks of the engine, and what it does on the spot ([`step`]);
//! * its words, and what of a request they depend on ([`Style`], which the batch keeps);
//! * what it tells those who are turned away, and how the log shows a request.
//!
//! To add one: its parser in `nuthatch-protocol`, a folder here, a variant of [`Protocol`], [`Phase`] and [`Style`],
//! and a line in each `match` of this file.

pub(crate) mod binary;
pub(crate) mod cpserver;
pub(crate) mod memcached;
pub(crate) mod resp;

use std::os::fd::RawFd;

use nuthatch_context::config::Protocol;
use nuthatch_engine::{AnyReservation, AnyValue, Item, Reply, Reservation};
use nuthatch_protocol::binary::MAGIC;
use nuthatch_security::login::Login;

use crate::answering::{AnswerContext, Answers, OldValue};
use crate::output::Output;
use crate::slice::Slice;
use crate::stage::{Flow, Stage};

/// Where a connection is in its protocol: what the next byte of its input means.
pub enum Phase {
    /// The first byte tells which of memcached's it is, or that it is Redis', if that may be.
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
    /// What the first byte means; `login` if a client has to say first who it is.
    pub fn begin(protocol: Protocol, login: bool) -> Self {
        match protocol {
            Protocol::Memcached => Self::Undecided { redis: false },
            Protocol::Any => Self::Undecided { redis: true },
            Protocol::Redis => Self::Resp(resp::Phase::new(login)),
            Protocol::Text if login => Self::Memcached(memcached::Phase::Login(Login::default())),
            Protocol::Text => Self::Memcached(memcached::Phase::Commands),
            Protocol::Binary if login => Self::Binary(binary::Phase::Login(Login::default())),
            Protocol::Binary => Self::Binary(binary::Phase::Requests),
            // It has no words for a password: a server that has some does not listen for it.
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

    /// True if its client is told what happens: see [`watch`](nuthatch_telemetry::watch).
    pub fn is_watching(&self) -> bool {
        matches!(self, Self::Memcached(memcached::Phase::Watch(_)))
    }

    /// True if its client has said who it is, or need not.
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

    /// Bytes of memory that it holds and that follow a client's input; those of a value are the engine's.
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
            // An answer belongs to a request, or there is no word for it.
            Self::Undecided { .. } | Self::Binary(_) | Self::CpServer(_) => {}
            Self::Resp(_) => out.extend_from_slice(resp::OUT_OF_MEMORY),
        }
    }

    /// Tells who sent a datagram what was too much of it.
    pub fn say_too_much(&self, what: TooMuch, out: &mut Vec<u8>) {
        match self {
            Self::Undecided { .. } | Self::Memcached(_) => {
                out.extend_from_slice(memcached::too_much(what));
            }
            // An answer belongs to a request; no datagram is one of the others'.
            Self::Binary(_) | Self::CpServer(_) | Self::Resp(_) => {}
        }
    }

    /// Nothing more comes: a reservation for a value that has not come whole is given back.
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

    /// Logs the answers that an output holds from that byte of text on.
    pub fn log_answers(&self, output: &Output<AnyValue>, from: usize, fd: RawFd) {
        match self {
            Self::Memcached(_) => memcached::log::answers(output, from, fd),
            Self::Binary(_) => binary::log::answers(output, from, fd),
            Self::Resp(_) => resp::log::answers(output, from, fd),
            Self::Undecided { .. } | Self::CpServer(_) => {}
        }
    }
}

/// What a datagram has too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// More commands than a slice may have (`-R`): a connection would have to wait there.
    Commands,
    /// Its answer is longer than one may be.
    Answer,
}

/// What a client is told that is one too many, if its protocol has a word for it.
pub fn too_many(protocol: Protocol) -> Option<&'static [u8]> {
    match protocol {
        Protocol::Memcached | Protocol::Text | Protocol::Any => Some(memcached::TOO_MANY),
        Protocol::Redis => Some(resp::TOO_MANY),
        Protocol::Binary | Protocol::CpServer => None,
    }
}

/// Understands what stands at the front of the unused input: a request, or a piece of what belongs to one.
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

/// The first byte of a client that speaks TLS: no text command begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// True for what a client begins with that speaks TLS: a handshake, and the first byte of its version.
#[cold]
fn speaks_tls(front: &[u8]) -> bool {
    front.starts_with(&[TLS_HANDSHAKE, 3])
}

/// Tells a client in these words that nobody here speaks TLS, and ends its connection: it would wait for an answer of its
/// own kind, and a parser of text for the end of a line.
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

/// Hands on to the engine what has come of a large value. True if that is all of it.
fn receive(reservation: &mut AnyReservation, slice: &mut Slice, input: &[u8]) -> bool {
    let here = &input[slice.position..];
    let of_value = here.len().min(reservation.missing());
    reservation.write(&here[..of_value]);
    slice.position += of_value;
    reservation.missing() == 0
}

/// Whose words an answer has, and what they depend on.
#[derive(Clone, Copy, Debug)]
pub enum Style {
    /// In memcached's words.
    Memcached(memcached::Style),
    /// In those of its binary protocol.
    Binary(binary::Style),
    /// In CPServer's.
    CpServer(cpserver::Style),
    /// In Redis'.
    Resp(resp::Style),
}

/// What watchers are told that a removal is.
pub const REMOVAL: &str = "delete";

impl Style {
    /// What watchers are told that a removal in this style is.
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
