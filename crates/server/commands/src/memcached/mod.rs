//! memcached's text and meta commands.
//!
//! * `phase`: the state of a connection.
//! * `requests`: commands about keys, which join the batch.
//! * `store`: the engine's operation for a storage command; `key`: keys in base64.
//! * `large`: stores whose value arrives piece by piece.
//! * `immediate`: everything that is executed at once: flush_all, version, stats, refusals...
//! * `admin`: commands about memcached's internals: slabs, lru, lru_crawler; `arguments`: their words.
//! * `stats`: the statistics of the server.
//! * `dump`: metadump, mgdump, cachedump: replies longer than a turn.
//! * `login`: how clients log in.
//! * [`log`]: its lines in the log of commands.

mod admin;
mod arguments;
mod dump;
mod immediate;
mod key;
mod large;
pub mod log;
mod login;
mod phase;
mod requests;
mod stats;
mod store;

use nuthatch_protocol::encode::NO_TLS;
use nuthatch_protocol::{Command, Parsed, awaited, awaited_block, parse};

use self::phase::Keys;
use crate::context::Context;
use crate::tls;
use crate::turn::{Flow, Turn};
use crate::work::Work;
pub use phase::Phase;

/// Takes a command, or a piece of one.
#[inline(always)]
pub fn step<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    match phase {
        Phase::Commands => command(cx, turn, phase, input),
        Phase::Swallow(left) => {
            let flow = turn.skip(left, input);
            if *left == 0 {
                *phase = Phase::Commands;
            }
            flow
        }
        Phase::Keys(keys) => {
            let keys = *keys;
            requests::next_keys(cx, turn, phase, input, keys)
        }
        Phase::SkipLine => skip_line(turn, phase, input),
        Phase::Value(_) => {
            let flow = large::go_on(cx, turn, phase, input);
            cx.charge(turn);
            flow
        }
        Phase::Login(login) => {
            let login = *login;
            login::step(cx, turn, phase, login, input)
        }
        Phase::Watch(watching) => {
            watching.take(turn.output.text());
            turn.position = input.len();
            Flow::Starved
        }
        Phase::Refresh(waiting) => match waiting.outcome() {
            None => Flow::Called,
            Some(outcome) => {
                let words = immediate::refreshed(outcome);
                turn.output.text().extend_from_slice(words);
                *phase = Phase::Commands;
                Flow::Next
            }
        },
        Phase::Dump(dump) => {
            // This connection runs no other command during a dump.
            if dump.go_on(cx, turn) {
                *phase = Phase::Commands;
            }
            cx.charge(turn);
            Flow::Next
        }
    }
}

/// Parses the front of the unused input and takes the command. Not `#[inline]`: it is compiled here, beside what it calls,
/// and not where [`step`] is.
fn command<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    let front = &input[turn.position..];
    if front.is_empty() {
        return Flow::Starved;
    }
    match parse(front, &cx.limits) {
        // Each kind by itself, so that the whole of a command is not moved for it.
        Parsed::Command {
            command: Command::Get(get),
            consumed,
        } => requests::begin_get(cx, turn, phase, input, &get, consumed),
        Parsed::Command {
            command: Command::Value(command),
            consumed,
        } => requests::command(cx, turn, command, consumed),
        Parsed::Command {
            command: Command::Server(command),
            consumed,
        } => immediate::command(cx, turn, phase, command, consumed),
        Parsed::Incomplete if turn.in_batch == 0 && tls::is_spoken(front) => {
            refuse_tls(turn, input)
        }
        Parsed::Incomplete => {
            turn.awaited = awaited(front);
            Flow::Starved
        }
        Parsed::Body {
            line, value_len, ..
        } if value_len <= turn.limits.awaited_max => {
            turn.awaited = awaited_block(line, value_len);
            Flow::Starved
        }
        Parsed::Body {
            store,
            line,
            value_len,
        } => {
            let flow = large::begin(cx, turn, phase, &front[..line], &store, value_len);
            cx.charge(turn);
            flow
        }
        Parsed::LongGet { get, consumed } => {
            *phase = Phase::Keys(Keys {
                with_cas: get.with_cas,
                touch: get.touch,
                any: false,
            });
            turn.position += consumed;
            Flow::Next
        }
        Parsed::Refused(_) | Parsed::Binary(_) if turn.in_batch > 0 => Flow::Barrier,
        Parsed::Refused(_) if tls::is_spoken(front) => refuse_tls(turn, input),
        Parsed::Refused(refusal) => {
            turn.spend(Work::COMMAND);
            immediate::refuse(cx, turn, phase, front, &refusal);
            Flow::Next
        }
        Parsed::Binary(request) => {
            turn.spend(Work::COMMAND);
            immediate::refuse_binary(turn, front, &request);
            Flow::Next
        }
    }
}

/// Refuses all input of a client that speaks TLS where none is spoken.
#[cold]
fn refuse_tls(turn: &mut Turn, input: &[u8]) -> Flow {
    tls::refuse(turn, NO_TLS);
    turn.position = input.len();
    Flow::Next
}

/// Drops input up to the end of a line.
#[cold]
fn skip_line(turn: &mut Turn, phase: &mut Phase, input: &[u8]) -> Flow {
    let rest = &input[turn.position..];
    match rest.iter().position(|&byte| byte == b'\n') {
        Some(end) => {
            turn.position += end + 1;
            *phase = Phase::Commands;
            Flow::Next
        }
        None => {
            turn.position = input.len();
            Flow::Starved
        }
    }
}
