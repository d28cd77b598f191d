//! memcached's text and meta commands.
//!
//! * [`phase`]: the state of a connection.
//! * [`requests`]: commands about keys, which join the batch.
//! * [`store`]: the engine's operation for a storage command; [`key`]: keys in base64.
//! * [`large`]: stores whose value arrives piece by piece.
//! * [`immediate`]: everything that is executed at once: flush_all, version, stats, refusals...
//! * [`admin`]: commands about memcached's internals: slabs, lru, lru_crawler; [`arguments`]: their words.
//! * [`stats`]: the statistics of the server.
//! * [`dump`]: metadump, mgdump, cachedump: replies longer than a slice.
//! * [`login`]: how clients log in.
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
use crate::slice::{Flow, Slice};
use crate::stage::Stage;
use crate::tls;
use crate::work::Work;
pub use phase::Phase;

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
            let flow = slice.skip(left, input);
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
        Parsed::Incomplete if slice.in_batch == 0 && tls::is_spoken(front) => {
            tls::refuse(slice, NO_TLS);
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
        Parsed::Refused(_) if tls::is_spoken(front) => {
            tls::refuse(slice, NO_TLS);
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
