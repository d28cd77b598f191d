//! Requests between MULTI and EXEC: they are queued as they arrive, and parsed when they are executed. Before that the
//! parser only checks that their commands and subcommands exist and have the right number of arguments.

use nuthatch_protocol::Awaited;

use crate::arguments::Arguments;
use crate::command::{Parsed, Refusal};
use crate::error::Error;
use crate::names::Verb;
use crate::parse::{fitting, name, stopped};
use crate::rest::Rest;
use crate::{arguments::Stop, inline, management};

/// How to handle a request in a transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queued<'a> {
    /// Parse again when this has arrived.
    Incomplete(Awaited),
    /// No request, and no answer.
    Nothing {
        /// Bytes to drop from the input.
        consumed: usize,
    },
    /// A line typed by hand: see [`rewrite`](crate::rewrite).
    Inline {
        /// The line without its end.
        line: &'a [u8],
        /// Its bytes, its end included.
        consumed: usize,
    },
    /// It is not queued but executed at once: see [`parse`](crate::parse()).
    AtOnce,
    /// It is queued, from its first byte to the end of this rest.
    Queue {
        /// Bytes of it that have arrived in any case.
        head: usize,
        /// The rest behind them.
        rest: Rest,
    },
    /// It is refused, and so the transaction is too.
    Refused(Refusal<'a>),
}

/// Parses the front of `input`.
pub fn parse_queued(input: &[u8]) -> Queued<'_> {
    match input.first() {
        Some(b'*') => {}
        Some(_) => {
            return match inline::parse(input) {
                Parsed::Inline { line, consumed } => Queued::Inline { line, consumed },
                other => queued(other),
            };
        }
        None => return Queued::Incomplete(Awaited::bytes(1)),
    }
    let mut arguments = match Arguments::of(input) {
        Ok(arguments) if arguments.left > 0 => arguments,
        Ok(arguments) => {
            return Queued::Nothing {
                consumed: arguments.at,
            };
        }
        Err(stop) => return refused(&Arguments::at(input, 0, 0), stop),
    };
    let words = i64::from(arguments.left);
    match name(&mut arguments).and_then(|entry| fitting(entry, words)) {
        Ok(entry) if is_at_once(entry.verb) => Queued::AtOnce,
        Ok(entry) => match subcommand(entry.verb, arguments) {
            Ok(()) => Queued::Queue {
                head: arguments.at,
                rest: arguments.rest(),
            },
            Err((arguments, stop)) => refused(&arguments, stop),
        },
        Err(stop) => refused(&arguments, stop),
    }
}

/// Refuses a subcommand that does not exist, or takes another number of arguments: subcommands are checked like
/// commands.
fn subcommand(verb: Verb, mut arguments: Arguments<'_>) -> Result<(), (Arguments<'_>, Stop<'_>)> {
    use Verb::{Acl, Client, Command, Config, Latency, Memory, Object, PubSub, Script, SlowLog};
    if !matches!(
        verb,
        Acl | Client | Command | Config | Latency | Memory | Object | PubSub | Script | SlowLog
    ) {
        return Ok(());
    }
    match management::parse(verb, &mut arguments) {
        Err(
            stop @ (Stop::Refused(
                Error::UnknownSubcommand { .. } | Error::Arity(_) | Error::NotHere(_),
            )
            | Stop::More(_)
            | Stop::Broken(_)),
        ) => Err((arguments, stop)),
        _ => Ok(()),
    }
}

fn is_at_once(verb: Verb) -> bool {
    use Verb::{Discard, Exec, Multi, Quit, Reset, Watch};
    matches!(verb, Exec | Discard | Multi | Quit | Reset | Watch)
}

fn refused<'a>(arguments: &Arguments<'a>, stop: Stop<'a>) -> Queued<'a> {
    queued(stopped(arguments, &[], stop))
}

fn queued(parsed: Parsed<'_>) -> Queued<'_> {
    match parsed {
        Parsed::Refused(refusal) => Queued::Refused(refusal),
        Parsed::Incomplete(awaited) => Queued::Incomplete(awaited),
        Parsed::Nothing { consumed } => Queued::Nothing { consumed },
        // Heads and lines have no other results.
        _ => Queued::AtOnce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn requests_are_queued_whole_and_unseen() {
        let input = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
        let Queued::Queue { head, mut rest } = parse_queued(&input[..14]) else {
            panic!("the head is here");
        };
        assert_eq!(head + rest.pass(&input[head..]).unwrap(), input.len());
        assert!(rest.is_over());
        for name in ["EXEC", "discard", "multi"] {
            let input = format!("*1\r\n${}\r\n{name}\r\n", name.len());
            assert_eq!(parse_queued(input.as_bytes()), Queued::AtOnce);
        }
    }

    #[test]
    fn pairs_are_looked_at_when_they_are_carried_out() {
        let odd = b"*4\r\n$4\r\nMSET\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n";
        assert!(matches!(parse_queued(odd), Queued::Queue { .. }));
        let none = b"*2\r\n$4\r\nMSET\r\n$1\r\na\r\n";
        let Queued::Refused(refusal) = parse_queued(none) else {
            panic!("MSET has two arguments at least");
        };
        assert_eq!(refusal.error, Error::Arity("mset"));
    }

    #[test]
    fn what_cannot_be_queued_is_refused() {
        for (input, error) in [
            (&b"*1\r\n$3\r\nGET\r\n"[..], Error::Arity("get")),
            (b"*2\r\n$5\r\nLPUSH\r\n", Error::NotHere("lpush")),
            (
                b"*2\r\n$6\r\nOBJECT\r\n$8\r\nencoding\r\n",
                Error::Arity("object|encoding"),
            ),
            (
                b"*2\r\n$6\r\nCLIENT\r\n$3\r\nfoo\r\n",
                Error::UnknownSubcommand {
                    command: "CLIENT",
                    name: b"foo",
                },
            ),
        ] {
            let Queued::Refused(refusal) = parse_queued(input) else {
                panic!("{input:?}");
            };
            assert_eq!(refusal.error, error);
        }
        assert!(matches!(parse_queued(b"*1\r\n+"), Queued::Refused(refusal) if refusal.close));
    }
}
