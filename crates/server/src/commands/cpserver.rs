//! CPServer's requests. LOOKUP and INSERT are a get and a set of the batch, like memcached's; only
//! their answers look different. The items are the same: a key is its 8 bytes.

use nuthatch_engine::{Handle, Op, Reply, Reservation, Store};
use nuthatch_protocol::Awaited;
use nuthatch_protocol::cpserver::{self, HEADER, Parsed, StoreHeader, parse};

use crate::batch::Style;
use crate::commands::requests::{may_be_refused, push};
use crate::commands::{Flow, Stage, immediate};
use crate::connection::{Insertion, Phase};
use crate::replies::insert_status;
use crate::slice::{Slice, key};

/// Understands what stands at the front of the unused input.
#[inline]
pub(crate) fn request<'a>(
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
            push(stage, slice, key, Op::Get, Style::Lookup(dialect), false);
        }
        Parsed::Insert {
            key,
            value,
            dialect,
        } => {
            let alone = may_be_refused(stage, key, value);
            if alone && slice.in_batch > 0 {
                return Flow::Barrier;
            }
            let op = Op::Store(Store::set(value));
            push(stage, slice, key, op, Style::Insert(dialect), false);
            slice.position += value.len();
            if alone {
                slice.position += HEADER;
                slice.commands_left -= 1;
                return Flow::Barrier;
            }
        }
        Parsed::Body(announced) if announced.value_len <= slice.terms.awaited_max => {
            slice.awaited = Awaited::bytes(HEADER + announced.value_len);
            return Flow::Starved;
        }
        // What is done on the spot comes behind what was asked before.
        _ if slice.in_batch > 0 => return Flow::Barrier,
        Parsed::Body(announced) => begin(stage, slice, phase, &announced),
        Parsed::TooLarge(announced) => {
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
    slice.commands_left -= 1;
    Flow::Next
}

/// Begins with a value that is too long to await in a buffer.
fn begin(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    announced: &StoreHeader<'_>,
) {
    let key = key(stage, announced.key);
    match stage.handle.reserve(stage.now, key, announced.value_len) {
        Ok(reservation) => {
            *phase = Phase::Insertion(Box::new(Insertion {
                reservation,
                dialect: announced.dialect,
            }));
        }
        Err(reply) => refuse(stage, slice, phase, announced, &reply),
    }
}

/// Drops a value that cannot be stored, and the one that it was to replace.
#[cold]
fn refuse(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    announced: &StoreHeader<'_>,
    reply: &Reply,
) {
    immediate::forget(stage, announced.key);
    let status = insert_status(stage.counters, reply);
    cpserver::stored(slice.output.text(), announced.dialect, status);
    *phase = Phase::Swallow(announced.value_len as u64);
}

/// Hands on what has come of a large value, and stores it when all has.
pub(crate) fn go_on(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &[u8],
) -> Flow {
    let Phase::Insertion(insertion) = phase else {
        return Flow::Next;
    };
    let here = &input[slice.position..];
    let of_value = here.len().min(insertion.reservation.missing());
    insertion.reservation.write(&here[..of_value]);
    slice.position += of_value;
    if insertion.reservation.missing() > 0 {
        return Flow::Starved;
    }
    if let Phase::Insertion(insertion) = std::mem::replace(phase, Phase::Commands) {
        let Insertion {
            reservation,
            dialect,
        } = *insertion;
        let store = Store::set(&[]);
        let reply = stage.handle.commit(stage.now, reservation, &store);
        stage.counters.cmd_set.bump();
        let status = insert_status(stage.counters, &reply);
        cpserver::stored(slice.output.text(), dialect, status);
    }
    Flow::Next
}
