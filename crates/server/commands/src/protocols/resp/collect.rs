//! Queues the requests of a transaction as they arrive.

use nuthatch_base::memory::reserve::spare;
use nuthatch_resp::{Error, Queued, Rest, parse_queued};

use super::phase::{Phase, State};
use super::reader::RequestReader;
use super::refusal::{refuse, typed};
use super::request;
use super::transaction::Collected;
use crate::context::Context;
use crate::turn::{Flow, Turn};
use crate::work::Work;

/// A transaction may hold one part in this many of the bound on all connections' buffers. A connection that holds more
/// than its share is closed when the buffers fill, like any other.
const PART_OF_BUFFERS: usize = 2;

/// Adds the request at the front to the transaction.
#[cold]
pub fn take<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    if turn.in_batch > 0 {
        return Flow::Barrier;
    }
    let input = reader.left();
    match parse_queued(input) {
        Queued::AtOnce => return request::take(cx, turn, phase, reader),
        Queued::Incomplete(awaited) => {
            turn.awaited = awaited;
            return Flow::Starved;
        }
        Queued::Nothing { consumed } => reader.used += reader.pass_nothing(consumed),
        Queued::Inline { line, consumed } => {
            reader.used += consumed;
            typed(turn, phase, line);
        }
        Queued::Queue { head, rest } => {
            reader.used += head;
            phase.state = State::Collect(Box::new(Collected {
                request: input[..head].to_vec(),
                rest,
            }));
        }
        Queued::Refused(refusal) => {
            phase.refuse_transaction();
            reader.used += refuse(cx, turn, phase, &refusal);
        }
    }
    turn.last_request = Some(turn.position);
    turn.spend(Work::COMMAND);
    Flow::Next
}

/// Refuses a request of which this rest is still to come, and with it the transaction.
#[cold]
fn refuse_rest(turn: &mut Turn, phase: &mut Phase, rest: Rest, error: &Error<'_>) -> Flow {
    phase.refuse_transaction();
    phase.writer(turn).error(error);
    phase.state = State::Drop(rest);
    Flow::Next
}

/// Collects more bytes of a request.
pub fn go_on(
    cx: &Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'_>,
) -> Flow {
    let State::Collect(collected) = &mut phase.state else {
        return Flow::Next;
    };
    let here = reader.left();
    let passed = match collected.rest.pass(here) {
        Ok(passed) => passed,
        Err(error) => {
            phase.writer(turn).error(&error);
            turn.closing = true;
            return Flow::Next;
        }
    };
    reader.used += passed;
    let rest = collected.rest;
    if spare(|| collected.request.try_reserve(passed)).is_err() {
        return refuse_rest(turn, phase, rest, &Error::OUT_OF_MEMORY);
    }
    collected.request.extend_from_slice(&here[..passed]);
    let len = collected.request.len();
    let before = match phase.session.as_ref().map(|session| &session.transaction) {
        Some(Some(transaction)) => transaction.memory(),
        _ => 0,
    };
    if before + len > cx.shared.accounts.buffers.bound() / PART_OF_BUFFERS {
        return refuse_rest(turn, phase, rest, &Error::TRANSACTION_TOO_LONG);
    }
    if !rest.is_over() {
        return Flow::Starved;
    }
    if let State::Collect(collected) = std::mem::take(&mut phase.state)
        && let Some(transaction) = &mut phase.session().transaction
    {
        if transaction.requests.push(&collected.request).is_err() {
            return refuse_rest(turn, phase, rest, &Error::OUT_OF_MEMORY);
        }
        turn.spend(Work::of_bytes(len));
        phase.writer(turn).status("QUEUED");
    }
    Flow::Next
}
