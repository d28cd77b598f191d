//! memcached's binary protocol.
//!
//! * `phase`: the state of a connection.
//! * `requests`: requests about keys, which join the batch, and requests that are executed at once.
//! * `large`: stores whose value arrives piece by piece.
//! * `login`: how clients log in.
//! * [`log`]: its lines in the log of requests.

mod large;
pub mod log;
mod login;
mod phase;
mod requests;

use nuthatch_engine::Reply;
use nuthatch_protocol::binary::{
    self, Command, Parsed, Refusal, Sasl, ServerCommand, Status, encode, parse,
};
use nuthatch_protocol::{Awaited, Limits};
use nuthatch_security::login::Login;

use self::phase::NO_LIMITS;
use crate::context::Context;
use crate::turn::{Flow, Turn};
use crate::work::Work;
pub use phase::Phase;

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
        Phase::Value(_) => {
            let flow = large::go_on(cx, turn, phase, input);
            cx.charge(turn);
            flow
        }
        Phase::Login(login) => {
            let login = *login;
            before_login(cx, turn, phase, login, input)
        }
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
    let front = &input[turn.position..];
    match parse(front, &cx.limits) {
        Parsed::Incomplete => {
            turn.awaited = binary::awaited(front);
            Flow::Starved
        }
        Parsed::Request { request, consumed } => requests::request(cx, turn, &request, consumed),
        Parsed::Body {
            start, value_len, ..
        } if value_len <= turn.limits.awaited_max => {
            turn.awaited = Awaited::bytes(start + value_len);
            Flow::Starved
        }
        // What is executed at once must follow the requests before it.
        _ if turn.in_batch > 0 => Flow::Barrier,
        Parsed::Body {
            head,
            store,
            start,
            value_len,
        } => {
            let request = &front[..start];
            let flow = large::begin(cx, turn, phase, head, &store, request, value_len);
            cx.charge(turn);
            flow
        }
        Parsed::Refused(refusal) => refuse(cx, turn, phase, front, &refusal),
        Parsed::Foreign => {
            turn.position = input.len();
            turn.closing = true;
            Flow::Next
        }
    }
}

/// Parses the front of the input of a client that has not logged in. As in memcached, other requests than a login or
/// the version end the connection.
#[cold]
fn before_login(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    mut login: Login,
    input: &[u8],
) -> Flow {
    let front = &input[turn.position..];
    let (head, consumed) = match parse(front, &NO_VALUES) {
        Parsed::Incomplete => {
            turn.awaited = binary::awaited(front);
            return Flow::Starved;
        }
        Parsed::Request { request, consumed } => {
            let head = request.head;
            match request.command {
                Command::Server(ServerCommand::Sasl(sasl)) => {
                    if login::answer(cx, turn, head, &sasl) {
                        *phase = Phase::Requests;
                    } else if sasl != Sasl::List {
                        turn.closing |= login.is_enough();
                        *phase = Phase::Login(login);
                    }
                    turn.position += consumed;
                    turn.spend(Work::COMMAND);
                    return Flow::Next;
                }
                Command::Server(ServerCommand::Version) => {
                    turn.position += consumed;
                    turn.spend(Work::COMMAND);
                    requests::version(turn, head);
                    return Flow::Next;
                }
                _ => (head, consumed),
            }
        }
        Parsed::Refused(refusal) => (refusal.head, front.len()),
        Parsed::Body { head, start, .. } => (head, start),
        Parsed::Foreign => {
            turn.position = input.len();
            turn.closing = true;
            return Flow::Next;
        }
    };
    encode::error(turn.output.text(), head, Status::Unauthenticated);
    turn.position += consumed;
    turn.closing = true;
    Flow::Next
}

/// Refuses a request that cannot be executed. `front` is the input from that request on.
#[cold]
fn refuse(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    front: &[u8],
    refusal: &Refusal<'_>,
) -> Flow {
    if refusal.status == Status::TooLarge {
        cx.counters.count_failure(&Reply::TooLarge);
        if let Parsed::Body { store, .. } = parse(&front[..refusal.consumed], &NO_LIMITS) {
            let op = requests::store_op(cx, &store);
            cx.notify_refused(store.key, &op, &Reply::TooLarge);
        }
    }
    if let Some(key) = refusal.forget {
        cx.forget(key);
    }
    encode::error(turn.output.text(), refusal.head, refusal.status);
    turn.spend(Work::COMMAND);
    turn.position += refusal.consumed;
    turn.closing |= refusal.close;
    if refusal.swallow > 0 {
        *phase = Phase::Swallow(refusal.swallow);
    }
    Flow::Next
}

/// A client that has not logged in stores nothing.
const NO_VALUES: Limits = Limits::of_values(0);
