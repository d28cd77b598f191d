//! memcached's text and meta commands.
//!
//! * [`requests`]: commands about keys, which join the batch.
//! * [`large`]: stores whose value arrives piece by piece.
//! * [`immediate`]: everything that is executed at once: flush_all, version, stats, refusals...
//! * [`admin`]: commands about memcached's internals: slabs, lru, lru_crawler, watch.
//! * [`stats`]: the statistics of the server.
//! * [`dump`]: metadump, mgdump, cachedump: replies longer than a slice.
//! * [`expiry`]: how clients write an item's expiry.
//! * [`answers`]: its answers.
//! * [`login`]: how clients log in.
//! * [`log`]: its lines in the log of commands.

pub mod admin;
mod answers;
pub mod dump;
pub mod expiry;
mod immediate;
mod large;
pub mod log;
mod login;
mod requests;
mod stats;

use nuthatch_protocol::{
    Command, Exptime, KEY_ROOM, Parsed, awaited, awaited_block, decode_key, parse,
};
use nuthatch_security::login::Login;
use nuthatch_state::refreshes::Waiting;
use nuthatch_state::telemetry::watch::Watching;

use self::dump::Dump;
use crate::partial::PartialValue;
use crate::slice::Slice;
use crate::stage::{Flow, Stage};
use crate::work::Work;
pub use answers::{MetaTicket, Style};

/// The refusal of a connection above the limit.
pub fn too_many(crowd: super::Crowd) -> &'static [u8] {
    match crowd {
        super::Crowd::OfServer => b"ERROR Too many open connections\r\n",
        super::Crowd::OfAddress => b"ERROR Too many open connections of this address\r\n",
    }
}

/// The refusal of a datagram, instead of its answer.
pub fn too_much(what: super::TooMuch) -> &'static [u8] {
    match what {
        super::TooMuch::Commands => b"SERVER_ERROR too many commands for a datagram\r\n",
        super::TooMuch::Answer => b"SERVER_ERROR the answer is too large for UDP\r\n",
    }
}

/// The last reply to a client whose connection is closed because it holds too much.
pub const OUT_OF_MEMORY: &[u8] = b"SERVER_ERROR out of memory reading request\r\n";

/// The reply to a client that uses TLS on a port without it.
pub const NO_TLS: &[u8] = b"CLIENT_ERROR this port does not speak TLS\r\n";

/// What the next byte of input means.
pub enum Phase {
    /// It begins a command.
    Commands,
    /// It is dropped: this many bytes are left to drop.
    Swallow(u64),
    /// It is among the keys of a get that is longer than a batch, or than a line of another command may be.
    Keys(Keys),
    /// It is dropped, up to the end of the line.
    SkipLine,
    /// It belongs to a large value.
    Value(Box<Incoming>),
    /// It has to wait: a dump is in progress.
    Dump(Box<Dump>),
    /// It has to wait: certificates are being read.
    Refresh(Waiting),
    /// It is dropped: the client watches, and only receives events.
    Watch(Watching),
    /// It comes from a client that has not logged in.
    Login(Login),
}

/// A get whose keys are taken one by one, however long its line is.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    with_cas: bool,
    touch: Option<Exptime>,
    /// A key was taken.
    any: bool,
}

/// A large value that arrives piece by piece.
pub struct Incoming {
    value: PartialValue,
    /// Its command's line, parsed again when the value is complete.
    line: Box<[u8]>,
    /// Bytes of the `\r\n` behind the value that have arrived.
    end_seen: usize,
    /// True if these bytes were the right ones.
    end_good: bool,
}

impl Phase {
    /// Bytes still to come of a value that goes straight to the engine.
    #[inline]
    pub fn missing(&self) -> usize {
        match self {
            Self::Value(incoming) => incoming.value.missing(),
            _ => 0,
        }
    }

    /// The value under way that goes straight to the engine, if there is one.
    pub fn partial(&mut self) -> Option<&mut PartialValue> {
        match self {
            Self::Value(incoming) => Some(&mut incoming.value),
            _ => None,
        }
    }

    /// Bytes of memory that it holds, without those of the value, which are the engine's.
    #[inline]
    pub fn memory(&self) -> usize {
        match self {
            Self::Value(incoming) => incoming.line.len(),
            _ => 0,
        }
    }
}

/// Takes a command, or a piece of one.
#[inline(always)]
pub fn step<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    match phase {
        Phase::Commands => command(stage, slice, phase, input),
        Phase::Swallow(left) => {
            let flow = super::swallow(slice, left, input);
            if *left == 0 {
                *phase = Phase::Commands;
            }
            flow
        }
        Phase::Keys(keys) => {
            let keys = *keys;
            requests::next_keys(stage, slice, phase, input, keys)
        }
        Phase::SkipLine => skip_line(slice, phase, input),
        Phase::Value(_) => {
            let flow = large::go_on(stage, slice, phase, input);
            stage.charge(slice);
            flow
        }
        Phase::Login(login) => {
            let login = *login;
            login::step(stage, slice, phase, login, input)
        }
        Phase::Watch(watching) => {
            watching.take(slice.output.text());
            slice.position = input.len();
            Flow::Starved
        }
        Phase::Refresh(waiting) => match waiting.outcome() {
            None => Flow::Called,
            Some(outcome) => {
                let words = immediate::refreshed(outcome);
                slice.output.text().extend_from_slice(words);
                *phase = Phase::Commands;
                Flow::Next
            }
        },
        Phase::Dump(dump) => {
            // This connection runs no other command during a dump.
            if dump.go_on(stage, slice) {
                *phase = Phase::Commands;
            }
            stage.charge(slice);
            Flow::Next
        }
    }
}

/// Parses the front of the unused input and takes the command.
#[inline]
fn command<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    let front = &input[slice.position..];
    if front.is_empty() {
        return Flow::Starved;
    }
    match parse(front, &stage.limits) {
        // Apart, so that the whole of a command is not moved for it.
        Parsed::Command {
            command: Command::Get(get),
            consumed,
        } => requests::begin_get(stage, slice, phase, input, &get, consumed),
        Parsed::Incomplete if slice.in_batch == 0 && super::speaks_tls(front) => {
            super::refuse_tls(slice, NO_TLS);
            slice.position = input.len();
            Flow::Next
        }
        Parsed::Incomplete => {
            slice.awaited = awaited(front);
            Flow::Starved
        }
        Parsed::Command { command, consumed } => {
            requests::command(stage, slice, phase, input, command, consumed)
        }
        Parsed::Body {
            line, value_len, ..
        } if value_len <= slice.terms.awaited_max => {
            slice.awaited = awaited_block(line, value_len);
            Flow::Starved
        }
        Parsed::Body {
            store,
            line,
            value_len,
        } => {
            let flow = large::begin(stage, slice, phase, &front[..line], &store, value_len);
            stage.charge(slice);
            flow
        }
        Parsed::LongGet { get, consumed } => {
            *phase = Phase::Keys(Keys {
                with_cas: get.with_cas,
                touch: get.touch,
                any: false,
            });
            slice.position += consumed;
            Flow::Next
        }
        Parsed::Refused(_) | Parsed::Binary(_) if slice.in_batch > 0 => Flow::Barrier,
        Parsed::Refused(_) if super::speaks_tls(front) => {
            super::refuse_tls(slice, NO_TLS);
            slice.position = input.len();
            Flow::Next
        }
        Parsed::Refused(refusal) => {
            slice.spend(Work::COMMAND);
            immediate::refuse(stage, slice, phase, front, &refusal);
            Flow::Next
        }
        Parsed::Binary(request) => {
            slice.spend(Work::COMMAND);
            immediate::refuse_binary(slice, front, &request);
            Flow::Next
        }
    }
}

/// Drops input up to the end of a line.
#[cold]
fn skip_line(slice: &mut Slice, phase: &mut Phase, input: &[u8]) -> Flow {
    let rest = &input[slice.position..];
    match rest.iter().position(|&byte| byte == b'\n') {
        Some(end) => {
            slice.position += end + 1;
            *phase = Phase::Commands;
            Flow::Next
        }
        None => {
            slice.position = input.len();
            Flow::Starved
        }
    }
}

/// The bytes of a key that may be written in base64. The parser has checked the key, so `None` does not happen. A
/// caller that gets it anyway answers as if there were no such item.
fn key_bytes<'a>(stage: &mut Stage<'_, 'a>, written: &'a [u8], base64: bool) -> Option<&'a [u8]> {
    if !base64 {
        return Some(written);
    }
    let mut room = [0; KEY_ROOM];
    let key: &[u8] = stage
        .decoded
        .alloc_slice_copy(decode_key(written, &mut room)?);
    Some(key)
}
