//! Login by AUTH, or by HELLO with AUTH, with which clients of a server with passwords begin. The names are those of
//! its password file. AUTH with a password alone means the user `default`, as in Redis.

use nuthatch_commands::context::Context;
use nuthatch_commands::turn::{Flow, Turn};
use nuthatch_commands::work::Work;
use nuthatch_protocol::Limits;
use nuthatch_resp::{Command, Error, Parsed, Rest, ServerCommand, parse, says_who};

use crate::auth::count_error;
use crate::manage;
use crate::phase::Phase;
use crate::reader::{RequestReader, refused_tls};
use crate::refusal::typed;

/// The longest value of a client that has not logged in.
const LIMITS: Limits = Limits::of_values(1024);

/// Takes the request at the front, of a client that has not logged in.
#[cold]
pub fn take(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'_>,
) -> Flow {
    if refused_tls(turn, reader) {
        return Flow::Next;
    }
    turn.spend(Work::COMMAND);
    let mut error = Error::NO_AUTH;
    let (consumed, rest) = match parse(reader.left(), &LIMITS) {
        Parsed::Incomplete(awaited) => {
            turn.awaited = awaited;
            return Flow::Starved;
        }
        Parsed::Body(body) => {
            turn.awaited = body.awaited;
            return Flow::Starved;
        }
        Parsed::Nothing { consumed } => {
            reader.used += consumed;
            return Flow::Next;
        }
        Parsed::Inline { line, consumed } => {
            typed(turn, phase, line);
            reader.used += consumed;
            return Flow::Next;
        }
        Parsed::Command {
            command:
                Command::Server(
                    command @ (ServerCommand::Auth(_)
                    | ServerCommand::Hello(_)
                    | ServerCommand::Quit
                    | ServerCommand::Reset),
                ),
            consumed,
        } => {
            let is_hello = matches!(command, ServerCommand::Hello(hello) if hello.login.is_none());
            match is_hello {
                true => phase.writer(turn).error(&Error::NO_AUTH_HELLO),
                false => manage::command(cx, turn, phase, command),
            }
            reader.used += consumed;
            return Flow::Next;
        }
        Parsed::Command { consumed, .. } => (consumed, Rest::default()),
        Parsed::Many {
            arguments,
            consumed,
            ..
        } => (consumed, Rest::of(arguments)),
        Parsed::Refused(refusal) => {
            turn.closing |= refusal.close;
            if refusal.close || is_shown_before_login(&refusal.error) || says_who(reader.left()) {
                error = refusal.error;
            }
            (refusal.consumed, refusal.rest)
        }
    };
    phase.writer(turn).error(&error);
    count_error(turn, phase);
    reader.used += consumed;
    phase.drop_rest(rest);
    Flow::Next
}

/// True for an error that a client gets even before its login: there is no such command, or the number of arguments is
/// wrong.
fn is_shown_before_login(error: &Error<'_>) -> bool {
    matches!(
        error,
        Error::Unknown { .. } | Error::UnknownSubcommand { .. } | Error::Arity(_)
    )
}
