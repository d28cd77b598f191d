//! CPServer's requests. LOOKUP and INSERT are a get and a set of the batch, like memcached's, and differ in their
//! answers only. The items are the same: the key is 8 bytes.

pub mod log;

use nuthatch_engine::{Op, Reply, Store};
use nuthatch_protocol::Awaited;
use nuthatch_protocol::cpserver::{self, Dialect, HEADER, Parsed, StoreHeader, parse};

use crate::answers::Style;
use crate::answers::cpserver::{self as answers, insert_status};
use crate::partial::PartialValue;
use crate::slice::{Flow, Slice};
use crate::stage::Stage;
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
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    match phase {
        Phase::Requests => request(stage, slice, phase, input),
        Phase::Swallow(left) => {
            let flow = slice.skip(left, input);
            if *left == 0 {
                *phase = Phase::Requests;
            }
            flow
        }
        Phase::Value(_) => go_on(stage, slice, phase, input),
    }
}

/// Parses the front of the unused input and takes the request.
#[inline]
fn request<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    let parsed = parse(&input[slice.position..], &stage.limits);
    match parsed {
        Parsed::Incomplete => {
            slice.awaited = cpserver::awaited(&input[slice.position..]);
            return Flow::Starved;
        }
        Parsed::Lookup { key, dialect } => {
            let style = Style::CpServer(answers::Style::Lookup(dialect));
            stage.push(slice, key, Op::Get, style);
        }
        Parsed::Insert {
            key,
            value,
            dialect,
        } => {
            let alone = stage.may_refuse(key, value);
            if alone && slice.in_batch > 0 {
                return Flow::Barrier;
            }
            let op = Op::Store(Store::set(value));
            let style = Style::CpServer(answers::Style::Insert(dialect));
            stage.push(slice, key, op, style);
            slice.position += value.len();
            if alone {
                slice.position += HEADER;
                slice.spend(Work::COMMAND);
                return Flow::Barrier;
            }
        }
        Parsed::Body(announced) if announced.value_len <= slice.terms.awaited_max => {
            slice.awaited = Awaited::bytes(HEADER + announced.value_len);
            return Flow::Starved;
        }
        // What is executed at once must follow the requests before it.
        _ if slice.in_batch > 0 => return Flow::Barrier,
        Parsed::Body(announced) => begin(stage, slice, phase, &announced),
        Parsed::TooLarge(announced) => {
            stage.counters.count_failure(&Reply::TooLarge);
            refuse(stage, slice, phase, &announced, &Reply::TooLarge);
        }
        Parsed::Unknown { op } => {
            tracing::debug!(op, "no operation of CPServer's");
            cpserver::unknown(slice.output.text());
            slice.position = input.len();
            slice.closing = true;
            return Flow::Next;
        }
    }
    slice.position += HEADER;
    slice.spend(Work::COMMAND);
    Flow::Next
}

/// Begins a store whose value is too long to await in a buffer.
fn begin(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    announced: &StoreHeader<'_>,
) {
    match stage.reserve(announced.key, announced.value_len) {
        Ok(value) => {
            *phase = Phase::Value(Box::new(Incoming {
                value,
                key: announced.key.into(),
                dialect: announced.dialect,
            }));
        }
        Err(reply) => refuse(stage, slice, phase, announced, &reply),
    }
    stage.charge(slice);
}

/// Drops a value that cannot be stored, and removes the old value that it was to replace.
#[cold]
fn refuse(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    announced: &StoreHeader<'_>,
    reply: &Reply,
) {
    stage.forget(announced.key);
    let status = insert_status(reply);
    cpserver::stored(slice.output.text(), announced.dialect, status);
    *phase = Phase::Swallow(announced.value_len as u64);
}

/// Passes the bytes of a large value that have arrived to the engine, and stores the item when all have.
fn go_on(stage: &mut Stage<'_, '_>, slice: &mut Slice, phase: &mut Phase, input: &[u8]) -> Flow {
    let Phase::Value(incoming) = phase else {
        return Flow::Next;
    };
    if !slice.receive(&mut incoming.value, input) {
        return Flow::Starved;
    }
    if let Phase::Value(incoming) = std::mem::replace(phase, Phase::Requests) {
        let Incoming {
            value,
            key,
            dialect,
        } = *incoming;
        let reply = stage.commit(&key, value, &Store::set(&[]), answers::STORE);
        let status = insert_status(&reply);
        cpserver::stored(slice.output.text(), dialect, status);
        stage.charge(slice);
    }
    Flow::Next
}
