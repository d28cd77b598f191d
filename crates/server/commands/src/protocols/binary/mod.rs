//! memcached's binary protocol.
//!
//! * [`phase`]: the state of a connection.
//! * [`requests`]: requests about keys, which join the batch, and requests that are executed at once.
//! * [`large`]: stores whose value arrives piece by piece.
//! * [`login`]: how clients log in.
//! * [`log`]: its lines in the log of requests.

mod large;
pub mod log;
mod login;
mod phase;
mod requests;

use nuthatch_engine::Reply;
use nuthatch_protocol::binary::{self, Command, Parsed, Refusal, Status, encode, parse};
use nuthatch_protocol::{Awaited, Limits};
use nuthatch_security::login::Login;

use self::phase::NO_LIMITS;
use crate::slice::{Flow, Slice};
use crate::stage::Stage;
use crate::work::Work;
pub use phase::Phase;

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
        Phase::Value(_) => {
            let flow = large::go_on(stage, slice, phase, input);
            stage.charge(slice);
            flow
        }
        Phase::Login(login) => {
            let login = *login;
            before_login(stage, slice, phase, login, input)
        }
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
    let front = &input[slice.position..];
    match parse(front, &stage.limits) {
        Parsed::Incomplete => {
            slice.awaited = binary::awaited(front);
            Flow::Starved
        }
        Parsed::Request { request, consumed } => {
            requests::request(stage, slice, &request, consumed)
        }
        Parsed::Body {
            start, value_len, ..
        } if value_len <= slice.terms.awaited_max => {
            slice.awaited = Awaited::bytes(start + value_len);
            Flow::Starved
        }
        // What is executed at once must follow the requests before it.
        _ if slice.in_batch > 0 => Flow::Barrier,
        Parsed::Body {
            head,
            store,
            start,
            value_len,
        } => {
            let request = &front[..start];
            let flow = large::begin(stage, slice, phase, head, &store, request, value_len);
            stage.charge(slice);
            flow
        }
        Parsed::Refused(refusal) => refuse(stage, slice, phase, front, &refusal),
        Parsed::Foreign => {
            slice.position = input.len();
            slice.closing = true;
            Flow::Next
        }
    }
}

/// Parses the front of the input of a client that has not logged in. As in memcached, other requests than a login or
/// the version end the connection.
#[cold]
fn before_login(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    mut login: Login,
    input: &[u8],
) -> Flow {
    let front = &input[slice.position..];
    let (head, consumed) = match parse(front, &NO_VALUES) {
        Parsed::Incomplete => {
            slice.awaited = binary::awaited(front);
            return Flow::Starved;
        }
        Parsed::Request { request, consumed } => {
            let head = request.head;
            match request.command {
                command @ (Command::SaslList | Command::SaslAuth { .. }) => {
                    let is_question = command == Command::SaslList;
                    if login::answer(stage, slice, head, &command) {
                        *phase = Phase::Requests;
                    } else if !is_question {
                        slice.closing |= login.is_enough();
                        *phase = Phase::Login(login);
                    }
                    slice.position += consumed;
                    slice.spend(Work::COMMAND);
                    return Flow::Next;
                }
                Command::Version => {
                    slice.position += consumed;
                    slice.spend(Work::COMMAND);
                    requests::version(slice, head);
                    return Flow::Next;
                }
                _ => (head, consumed),
            }
        }
        Parsed::Refused(refusal) => (refusal.head, front.len()),
        Parsed::Body { head, start, .. } => (head, start),
        Parsed::Foreign => {
            slice.position = input.len();
            slice.closing = true;
            return Flow::Next;
        }
    };
    encode::error(slice.output.text(), head, Status::Unauthenticated);
    slice.position += consumed;
    slice.closing = true;
    Flow::Next
}

/// Refuses a request that cannot be executed. `front` is the input from that request on.
#[cold]
fn refuse(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    front: &[u8],
    refusal: &Refusal<'_>,
) -> Flow {
    if refusal.status == Status::TooLarge {
        stage.counters.count_failure(&Reply::TooLarge);
        if let Parsed::Body { store, .. } = parse(&front[..refusal.consumed], &NO_LIMITS) {
            let op = requests::store_op(stage, &store);
            stage.tell_refused(store.key, &op, &Reply::TooLarge);
        }
    }
    if let Some(key) = refusal.forget {
        stage.forget(key);
    }
    encode::error(slice.output.text(), refusal.head, refusal.status);
    slice.spend(Work::COMMAND);
    slice.position += refusal.consumed;
    slice.closing |= refusal.close;
    if refusal.swallow > 0 {
        *phase = Phase::Swallow(refusal.swallow);
    }
    Flow::Next
}

/// A client that has not logged in stores nothing.
const NO_VALUES: Limits = Limits { value_max: 0 };
