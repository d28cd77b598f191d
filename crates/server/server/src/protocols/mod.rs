//! The protocols of clients, and which of them a connection speaks. The worker reads bytes, executes batches, orders
//! replies and writes bytes. A protocol does the rest:
//!
//! * its phases: what the next byte of input means, and the state between two turns ([`Phase`]);
//! * its requests to the engine, and the commands that it executes at once ([`step`]);
//! * how the log shows a request.
//!
//! Redis' is the crate `nuthatch-redis`, the others have a folder each in `nuthatch-commands`. The answers of all are in
//! [`answers`](nuthatch_commands::answers).
//!
//! To add one: its parser in `nuthatch-protocol` or a crate beside it; a crate, or a folder of `nuthatch-commands`; a
//! variant of [`Protocol`], [`Phase`] and [`ReplyFormat`](nuthatch_commands::answers::ReplyFormat), and a line in each
//! `match` of this file.

pub mod run;

use std::os::fd::RawFd;
use std::sync::Arc;

use nuthatch_commands::context::Context;
use nuthatch_commands::output::Output;
use nuthatch_commands::partial::PartialValue;
use nuthatch_commands::tls;
use nuthatch_commands::turn::{Flow, Turn};
use nuthatch_commands::{binary, cpserver, memcached};
use nuthatch_engine::AnyValue;
use nuthatch_protocol::binary::MAGIC;
use nuthatch_protocol::encode::{self, Crowd, TooMuch};
use nuthatch_redis as redis;
use nuthatch_resp::{OUT_OF_MEMORY_READING, too_many_connections};
use nuthatch_security::login::Login;
use nuthatch_settings::config::Protocol;
use nuthatch_state::server_state::ServerState;
use nuthatch_state::telemetry::connections::Info;
use nuthatch_state::worker::SharedWorker;

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
    Resp(redis::Phase),
}

impl Phase {
    /// The phase before the first byte. `login` is true if the client has to log in first.
    pub fn begin(protocol: Protocol, login: bool) -> Self {
        match protocol {
            Protocol::Memcached => Self::Undecided { redis: false },
            Protocol::Any => Self::Undecided { redis: true },
            Protocol::Redis => Self::Resp(redis::Phase::new(login)),
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

    /// True if its client speaks Redis' protocol, or may yet turn out to.
    pub fn may_be_redis(&self) -> bool {
        matches!(self, Self::Resp(_) | Self::Undecided { redis: true })
    }

    /// True if its client waits for what it is sent unasked: it watches the server (see
    /// [`watch`](nuthatch_state::telemetry::watch)), or has subscribed to channels.
    pub fn is_watching(&self) -> bool {
        match self {
            Self::Memcached(phase) => matches!(phase, memcached::Phase::Watch(_)),
            Self::Resp(phase) => phase.is_subscriber(),
            Self::Undecided { .. } | Self::Binary(_) | Self::CpServer(_) => false,
        }
    }

    /// True if other threads call its worker when there is something to do.
    pub fn is_called(&self) -> bool {
        match self {
            Self::Memcached(phase) => matches!(
                phase,
                memcached::Phase::Refresh(_) | memcached::Phase::Watch(_)
            ),
            Self::Resp(phase) => phase.is_called(),
            Self::Undecided { .. } | Self::Binary(_) | Self::CpServer(_) => false,
        }
    }

    /// Opens the mailbox of a connection with this id at this worker, if it has none: another redirects to it what it is
    /// told. One that does not speak Redis' protocol, or not yet, is told nothing: it is open all the same.
    pub fn open_mail(
        &mut self,
        shared: &ServerState,
        worker: &Arc<SharedWorker>,
        id: usize,
        info: &Info,
    ) {
        match self {
            Self::Resp(phase) => {
                phase.open_mail(shared, worker, id, info);
            }
            Self::Undecided { .. } | Self::Memcached(_) | Self::Binary(_) | Self::CpServer(_) => {}
        }
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
            Self::Memcached(_) => out.extend_from_slice(encode::OUT_OF_MEMORY_READING),
            // These protocols have answers to requests only, or no answer for this.
            Self::Undecided { .. } | Self::Binary(_) | Self::CpServer(_) => {}
            Self::Resp(_) => out.extend_from_slice(OUT_OF_MEMORY_READING),
        }
    }

    /// Tells a client that its connection is closed because a script runs for long.
    pub fn say_busy(&self, out: &mut Vec<u8>) {
        match self {
            Self::Memcached(_) => out.extend_from_slice(encode::SCRIPT_BUSY),
            // As above. Redis' protocol has an answer, and is not closed.
            Self::Undecided { .. } | Self::Binary(_) | Self::CpServer(_) | Self::Resp(_) => {}
        }
    }

    /// Tells the sender of a datagram which limit it exceeds.
    pub fn say_too_much(&self, what: TooMuch, out: &mut Vec<u8>) {
        match self {
            Self::Undecided { .. } | Self::Memcached(_) => {
                out.extend_from_slice(encode::too_much(what));
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
            Self::Resp(_) => redis::log::request(input, fd),
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
            Self::Resp(_) => redis::log::answers(output, from, fd),
            Self::Undecided { .. } | Self::CpServer(_) => {}
        }
    }
}

/// The refusal of a connection above the limit, if its protocol has one.
pub fn too_many(protocol: Protocol, crowd: Crowd) -> Option<&'static [u8]> {
    match protocol {
        Protocol::Memcached | Protocol::Text | Protocol::Any => {
            Some(encode::too_many_connections(crowd))
        }
        Protocol::Redis => Some(too_many_connections(crowd)),
        Protocol::Binary | Protocol::CpServer => None,
    }
}

/// Parses the front of the unused input and takes a request, or a piece of one.
#[inline(always)]
pub fn step<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    match phase {
        Phase::Memcached(phase) => memcached::step(cx, turn, phase, input),
        Phase::Binary(phase) => binary::step(cx, turn, phase, input),
        Phase::CpServer(phase) => cpserver::step(cx, turn, phase, input),
        Phase::Resp(phase) => redis::step(cx, turn, phase, input),
        Phase::Undecided { redis } => {
            let redis = *redis;
            decide(cx, turn, phase, redis, input)
        }
    }
}

/// Tells a protocol by its first byte.
#[cold]
fn decide(
    cx: &Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    redis: bool,
    input: &[u8],
) -> Flow {
    // CLIENT PAUSE WRITE: of memcached's clients all requests wait. It is decided again when the pause ends.
    let waits = redis && cx.holds_writes;
    let login = cx.shared.security.has_passwords();
    *phase = match input.get(turn.position) {
        None => return Flow::Starved,
        Some(&redis::MARK) if redis => Phase::begin(Protocol::Redis, login),
        Some(_) if waits => return Flow::Called,
        Some(&MAGIC) => Phase::begin(Protocol::Binary, login),
        Some(&tls::HANDSHAKE) => {
            tls::refuse(turn, encode::NO_TLS);
            turn.position = input.len();
            return Flow::Next;
        }
        Some(_) => Phase::begin(Protocol::Text, login),
    };
    if redis && cx.shared.tracking.is_expected(cx.info.serial()) {
        phase.open_mail(cx.shared, cx.worker, turn.id, cx.info);
    }
    Flow::Next
}
