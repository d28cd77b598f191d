//! The parser of Redis' protocol: it parses the command at the front of the input.

use nuthatch_protocol::Awaited;
use nuthatch_protocol::Limits;

use crate::arguments::{Arguments, END, Stop};
use crate::command::{Body, Command, Many, Parsed, Refusal, ValueCommand};
use crate::error::Error;
use crate::names::{Entry, Named, Verb, named};
use crate::rest::Rest;
use crate::{channels, inline, management, many, scripts, strings};

/// Bytes of an unknown command's name, and of its arguments, that its error shows.
pub(super) const UNKNOWN_SHOWN: usize = 128;

/// Parses the front of `input`. More input never changes a result other than [`Parsed::Incomplete`] and
/// [`Parsed::Body`].
#[inline]
pub fn parse<'a>(input: &'a [u8], limits: &Limits) -> Parsed<'a> {
    match input.first() {
        Some(b'*') => request(input, limits),
        Some(_) => inline::parse(input),
        None => Parsed::Incomplete(Awaited::bytes(1)),
    }
}

#[inline]
fn request<'a>(input: &'a [u8], limits: &Limits) -> Parsed<'a> {
    let mut arguments = match Arguments::of(input) {
        Ok(arguments) if arguments.left > 0 => arguments.within(limits),
        Ok(arguments) => {
            return Parsed::Nothing {
                consumed: arguments.at,
            };
        }
        Err(stop) => return stopped(&Arguments::at(input, 0, 0), &[], stop),
    };
    let words = i64::from(arguments.left);
    let entry = match name(&mut arguments).and_then(|entry| counted(entry, words)) {
        Ok(entry) => entry,
        Err(stop) => return stopped(&arguments, &[], stop),
    };
    let mut key: &[u8] = &[];
    match command(entry, &mut arguments, &mut key, limits) {
        Ok(Understood::Command(command)) => Parsed::Command {
            command,
            consumed: arguments.at,
        },
        Ok(Understood::Many(verb)) => Parsed::Many {
            verb,
            arguments: arguments.left,
            consumed: arguments.at,
        },
        Err(stop) => stopped(&arguments, key, stop),
    }
}

/// The command that the first argument names.
#[inline]
pub(super) fn name<'a>(arguments: &mut Arguments<'a>) -> Result<Entry, Stop<'a>> {
    let name = arguments.next()?;
    match named(name) {
        Named::Known(entry) => Ok(entry),
        Named::NotHere(name) => Err(Error::NotHere(name).into()),
        Named::Unknown => Err(unknown(name, arguments)),
    }
}

/// True if a request is AUTH or HELLO, by which clients log in, whatever its arguments are.
pub fn says_who(input: &[u8]) -> bool {
    Arguments::of(input)
        .and_then(|mut arguments| match arguments.left {
            0 => Ok(false),
            _ => name(&mut arguments).map(|entry| matches!(entry.verb, Verb::Auth | Verb::Hello)),
        })
        .unwrap_or(false)
}

/// `entry`, if it takes this many words.
#[inline]
pub(super) fn counted<'a>(entry: Entry, words: i64) -> Result<Entry, Stop<'a>> {
    // These take pairs only.
    let odd = matches!(entry.verb, Verb::Mset | Verb::MsetNx) && words % 2 == 0;
    if odd {
        return Err(Error::Arity(entry.name).into());
    }
    fitting(entry, words)
}

/// `entry`, if it may have this many words. Before EXEC nothing else is checked.
pub(super) fn fitting<'a>(entry: Entry, words: i64) -> Result<Entry, Stop<'a>> {
    let fits = if entry.arity < 0 {
        words >= -entry.arity
    } else {
        words == entry.arity
    };
    if fits {
        Ok(entry)
    } else {
        Err(Error::Arity(entry.name).into())
    }
}

/// Refuses a command that does not exist, once the arguments that its error shows have arrived.
#[cold]
fn unknown<'a>(name: &'a [u8], arguments: &mut Arguments<'a>) -> Stop<'a> {
    let mut ahead = *arguments;
    let mut shown = 0;
    while ahead.left > 0 && shown < UNKNOWN_SHOWN {
        match ahead.front(UNKNOWN_SHOWN) {
            Ok(front) => shown += front.len() + b"'' ".len(),
            Err(stop) => return stop,
        }
    }
    Stop::Refused(Error::Unknown {
        name,
        behind: &arguments.input[arguments.at..],
        arguments: arguments.left - ahead.left,
    })
}

/// The content of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Understood<'a> {
    /// A command.
    Command(Command<'a>),
    /// A command of any number of keys, which follow.
    Many(Many),
}

#[inline]
fn command<'a>(
    entry: Entry,
    arguments: &mut Arguments<'a>,
    key: &mut &'a [u8],
    limits: &Limits,
) -> Result<Understood<'a>, Stop<'a>> {
    let verb = entry.verb;
    if verb == Verb::Get {
        let key = arguments.key()?;
        return Ok(Understood::Command(ValueCommand::Get { key }.into()));
    }
    if let Some(many) = many::verb(verb) {
        return Ok(Understood::Many(many));
    }
    let command = match management::parse(verb, arguments)? {
        Some(command) => command,
        None if matches!(
            verb,
            Verb::Eval | Verb::EvalSha | Verb::EvalRo | Verb::EvalShaRo
        ) =>
        {
            scripts::parse(verb, key, arguments, limits)?.into()
        }
        None if matches!(verb, Verb::Publish | Verb::SPublish) => {
            channels::publish(verb, arguments, limits)?.into()
        }
        None => {
            *key = arguments.key()?;
            strings::parse(entry, key, arguments, limits)?.into()
        }
    };
    debug_assert_eq!(arguments.left, 0, "every argument is looked at");
    Ok(Understood::Command(command))
}

/// The result if the parser stops at the arguments.
#[cold]
pub(super) fn stopped<'a>(arguments: &Arguments<'a>, key: &'a [u8], stop: Stop<'a>) -> Parsed<'a> {
    match stop {
        Stop::More(length) => Parsed::Incomplete(Awaited::bytes(length)),
        Stop::Refused(error) => Parsed::Refused(Refusal {
            error,
            consumed: arguments.at.min(arguments.input.len()),
            rest: arguments.rest(),
            close: false,
        }),
        Stop::Broken(error) => broken(arguments.input, error),
        Stop::Body {
            line,
            value_len,
            whole,
        } => Parsed::Body(Body {
            whole,
            ..body(arguments, key, line, value_len)
        }),
    }
}

/// The announcement of the value whose length was read last.
pub(super) fn body<'a>(
    arguments: &Arguments<'a>,
    key: &'a [u8],
    line: usize,
    value_len: usize,
) -> Body<'a> {
    Body {
        key,
        line,
        head: arguments.at,
        value_len,
        whole: true,
        rest: Rest::new(arguments.left, END),
        awaited: Awaited::bytes(arguments.at + value_len + END + arguments.least()),
    }
}

/// Refuses all input of a client that cannot be parsed any more.
#[cold]
pub(super) fn broken<'a>(input: &[u8], error: Error<'a>) -> Parsed<'a> {
    Parsed::Refused(Refusal {
        error,
        consumed: input.len(),
        rest: Rest::default(),
        close: true,
    })
}
