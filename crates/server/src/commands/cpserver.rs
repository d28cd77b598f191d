//! CPServer's requests. LOOKUP and INSERT are a get and a set of the batch, like memcached's; only
//! their answers look different. The items are the same: a key is its 8 bytes.

use nuthatch::engine::Reservation;
use nuthatch::{Engine, Handle, Op, Reply, Store};
use nuthatch_protocol::Awaited;
use nuthatch_protocol::cpserver::{self, Announced, HEADER, Parsed, parse};

use crate::batch::Style;
use crate::commands::requests::{may_be_refused, push};
use crate::commands::{Flow, Stage, immediate};
use crate::connection::{Insertion, Phase};
use crate::replies::insert_status;
use crate::turn::{TurnOf, key};

type PhaseOf<E> = Phase<<<E as Engine>::Handle as Handle>::Reservation>;

/// Understands what stands at the front of the unused input.
#[inline]
pub(crate) fn request<'a, E: Engine>(
    stage: &mut Stage<'_, 'a, E>,
    turn: &mut TurnOf<E>,
    phase: &mut PhaseOf<E>,
    input: &'a [u8],
) -> Flow {
    let parsed = parse(&input[turn.position..], &stage.limits);
    match parsed {
        Parsed::Incomplete => {
            turn.awaited = cpserver::awaited(&input[turn.position..]);
            return Flow::Starved;
        }
        Parsed::Lookup { key, dialect } => {
            push(stage, turn, key, Op::Get, Style::Lookup(dialect), false);
        }
        Parsed::Insert {
            key,
            value,
            dialect,
        } => {
            let alone = may_be_refused(stage, key, value);
            if alone && turn.in_batch > 0 {
                return Flow::Barrier;
            }
            let op = Op::Store(Store::set(value));
            push(stage, turn, key, op, Style::Insert(dialect), false);
            turn.position += value.len();
            if alone {
                turn.position += HEADER;
                turn.commands_left -= 1;
                return Flow::Barrier;
            }
        }
        Parsed::Body(announced) if announced.value_len <= turn.terms.awaited_max => {
            turn.awaited = Awaited::bytes(HEADER + announced.value_len);
            return Flow::Starved;
        }
        // What is done on the spot comes behind what was asked before.
        _ if turn.in_batch > 0 => return Flow::Barrier,
        Parsed::Body(announced) => begin(stage, turn, phase, &announced),
        Parsed::TooLarge(announced) => {
            refuse(stage, turn, phase, &announced, &Reply::TooLarge);
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
    turn.commands_left -= 1;
    Flow::Next
}

/// Begins with a value that is too long to await in a buffer.
fn begin<E: Engine>(
    stage: &mut Stage<'_, '_, E>,
    turn: &mut TurnOf<E>,
    phase: &mut PhaseOf<E>,
    announced: &Announced<'_>,
) {
    let key = key(stage, announced.key);
    match stage.handle.reserve(stage.now, key, announced.value_len) {
        Ok(reservation) => {
            *phase = Phase::Insertion(Box::new(Insertion {
                reservation,
                dialect: announced.dialect,
            }));
        }
        Err(reply) => refuse(stage, turn, phase, announced, &reply),
    }
}

/// Drops a value that cannot be stored, and the one that it was to replace.
#[cold]
fn refuse<E: Engine>(
    stage: &mut Stage<'_, '_, E>,
    turn: &mut TurnOf<E>,
    phase: &mut PhaseOf<E>,
    announced: &Announced<'_>,
    reply: &Reply,
) {
    immediate::forget(stage, announced.key);
    let status = insert_status(stage.counters, reply);
    cpserver::stored(turn.output.text(), announced.dialect, status);
    *phase = Phase::Swallow(announced.value_len as u64);
}

/// Hands on what has come of a large value, and stores it when all has.
pub(crate) fn go_on<E: Engine>(
    stage: &mut Stage<'_, '_, E>,
    turn: &mut TurnOf<E>,
    phase: &mut PhaseOf<E>,
    input: &[u8],
) -> Flow {
    let Phase::Insertion(insertion) = phase else {
        return Flow::Next;
    };
    let here = &input[turn.position..];
    let of_value = here.len().min(insertion.reservation.missing());
    insertion.reservation.write(&here[..of_value]);
    turn.position += of_value;
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
        cpserver::stored(turn.output.text(), dialect, status);
    }
    Flow::Next
}
