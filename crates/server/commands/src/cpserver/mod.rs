//! CPServer's requests. LOOKUP and INSERT are a get and a set of the batch, like memcached's, and differ in their
//! answers only. The items are the same: the key is 8 bytes.

pub mod log;

use nuthatch_engine::{Op, Reply, Store};
use nuthatch_protocol::Awaited;
use nuthatch_protocol::cpserver::{self, Dialect, HEADER, Parsed, StoreHeader, parse};

use crate::answers::ReplyFormat;
use crate::answers::cpserver::{self as answers, insert_status};
use crate::context::Context;
use crate::partial::PartialValue;
use crate::turn::{Flow, Turn};
use crate::work::Work;

/// What the next byte of input means.
pub enum Phase {
    /// It begins a request.
    Requests,
    /// It is dropped: this many bytes are left to drop.
    Swallow(u64),
    /// It belongs to a large value.
    Value(Box<Incoming>),
}

/// A large value that arrives piece by piece.
pub struct Incoming {
    value: PartialValue,
    key: Box<[u8]>,
    dialect: Dialect,
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
}

/// Takes a request, or a piece of one.
#[inline(always)]
pub fn step<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    match phase {
        Phase::Requests => request(cx, turn, phase, input),
        Phase::Swallow(left) => {
            let flow = turn.skip(left, input);
            if *left == 0 {
                *phase = Phase::Requests;
            }
            flow
        }
        Phase::Value(_) => go_on(cx, turn, phase, input),
    }
}

/// Parses the front of the unused input and takes the request.
#[inline]
fn request<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    let parsed = parse(&input[turn.position..], &cx.limits);
    match parsed {
        Parsed::Incomplete => {
            turn.awaited = cpserver::awaited(&input[turn.position..]);
            return Flow::Starved;
        }
        Parsed::Lookup { key, dialect } => {
            let format = ReplyFormat::CpServer(answers::Format::Lookup(dialect));
            cx.push(turn, key, Op::Get, format);
        }
        Parsed::Insert {
            key,
            value,
            dialect,
        } => {
            let alone = cx.may_refuse(key, value);
            if alone && turn.in_batch > 0 {
                return Flow::Barrier;
            }
            let op = Op::Store(Store::set(value));
            let format = ReplyFormat::CpServer(answers::Format::Insert(dialect));
            cx.push(turn, key, op, format);
            turn.position += value.len();
            if alone {
                turn.position += HEADER;
                turn.spend(Work::COMMAND);
                return Flow::Barrier;
            }
        }
        Parsed::Body(announced) if announced.value_len <= turn.limits.awaited_max => {
            turn.awaited = Awaited::bytes(HEADER + announced.value_len);
            return Flow::Starved;
        }
        // What is executed at once must follow the requests before it.
        _ if turn.in_batch > 0 => return Flow::Barrier,
        Parsed::Body(announced) => begin(cx, turn, phase, &announced),
        Parsed::TooLarge(announced) => {
            cx.counters.count_failure(&Reply::TooLarge);
            refuse(cx, turn, phase, &announced, &Reply::TooLarge);
        }
        Parsed::Unknown { op } => {
            tracing::debug!(op, "no operation of CPServer's");
            cpserver::unknown(turn.output.text());
            turn.position = input.len();
            turn.closing = true;
            return Flow::Next;
        }
    }
    turn.position += HEADER;
    turn.spend(Work::COMMAND);
    Flow::Next
}

/// Begins a store whose value is too long to await in a buffer.
fn begin(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    announced: &StoreHeader<'_>,
) {
    match cx.reserve(announced.key, announced.value_len) {
        Ok(value) => {
            *phase = Phase::Value(Box::new(Incoming {
                value,
                key: announced.key.into(),
                dialect: announced.dialect,
            }));
        }
        Err(reply) => refuse(cx, turn, phase, announced, &reply),
    }
    cx.charge(turn);
}

/// Drops a value that cannot be stored, and removes the old value that it was to replace.
#[cold]
fn refuse(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    announced: &StoreHeader<'_>,
    reply: &Reply,
) {
    cx.forget(announced.key);
    let status = insert_status(reply);
    cpserver::stored(turn.output.text(), announced.dialect, status);
    *phase = Phase::Swallow(announced.value_len as u64);
}

/// Passes the bytes of a large value that have arrived to the engine, and stores the item when all have.
fn go_on(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, input: &[u8]) -> Flow {
    let Phase::Value(incoming) = phase else {
        return Flow::Next;
    };
    if !turn.receive(&mut incoming.value, input) {
        return Flow::Starved;
    }
    if let Phase::Value(incoming) = std::mem::replace(phase, Phase::Requests) {
        let Incoming {
            value,
            key,
            dialect,
        } = *incoming;
        let reply = cx.commit(&key, value, &Store::set(&[]), answers::STORE);
        let status = insert_status(&reply);
        cpserver::stored(turn.output.text(), dialect, status);
        cx.charge(turn);
    }
    Flow::Next
}
