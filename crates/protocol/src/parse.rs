//! The front of the input: where its line ends, and whose command it is.

use memchr::memchr;

use crate::command::{Command, Limits, Parsed, Refusal};
use crate::error::Error;
use crate::words::{self, Words};
use crate::{admin, delete, delta, get, meta, store, touch};

/// The longest line, its end included.
pub const LINE_MAX: usize = 2048;

/// The longest line of get, gets, gat and gats, its end included.
pub const GET_LINE_MAX: usize = 256 * 1024;

/// The first byte of every request of the binary protocol.
const BINARY_MAGIC: u8 = 0x80;

/// A line that is refused: all that its command's parser knows.
#[derive(Debug)]
pub(crate) struct Reject {
    pub(crate) error: Error,
    pub(crate) quiet: bool,
    pub(crate) close: bool,
}

impl Reject {
    /// Says `error` unless the client asked for silence.
    pub(crate) fn unless(quiet: bool, error: Error) -> Self {
        Self {
            error,
            quiet,
            close: false,
        }
    }
}

impl From<Error> for Reject {
    fn from(error: Error) -> Self {
        Self::unless(false, error)
    }
}

/// Says what stands at the front of `input`. More input never changes an answer other than
/// [`Parsed::Incomplete`] and [`Parsed::Body`].
#[inline]
pub fn parse<'a>(input: &'a [u8], limits: &Limits) -> Parsed<'a> {
    match memchr(b'\n', &input[..input.len().min(LINE_MAX)]) {
        _ if input.first() == Some(&BINARY_MAGIC) => close(input, Error::BINARY_PROTOCOL),
        Some(end) => parse_line(input, end, limits),
        None => parse_without_end(input, limits),
    }
}

/// Parses the line that ends at `input[end]`.
#[inline]
fn parse_line<'a>(input: &'a [u8], end: usize, limits: &Limits) -> Parsed<'a> {
    let line = &input[..end];
    let text = words::skip_spaces(line.strip_suffix(b"\r").unwrap_or(line));
    let consumed = end + 1;
    let mut after = Words(text).iter();
    let name = after.next().unwrap_or_default();
    let args = after.rest();
    let outcome = match name {
        b"get" => get::parse(args, false),
        b"gets" => get::parse(args, true),
        b"mg" => meta::parse_get(args),
        _ => match store::verb(name) {
            Some(verb) => return store::parse(input, consumed, verb, args, limits),
            None => parse_other(name, args),
        },
    };
    match outcome {
        Ok(command) => Parsed::Command { command, consumed },
        Err(reject) => Parsed::Refused(Refusal {
            error: reject.error,
            quiet: reject.quiet,
            consumed,
            swallow: 0,
            close: reject.close,
            forget: None,
        }),
    }
}

/// Commands that have neither a data block nor to be fast.
fn parse_other<'a>(name: &'a [u8], args: Words<'a>) -> Result<Command<'a>, Reject> {
    match name {
        b"gat" => get::parse_touching(args, false),
        b"gats" => get::parse_touching(args, true),
        b"incr" => delta::parse(args, false),
        b"decr" => delta::parse(args, true),
        b"touch" => touch::parse(args),
        b"delete" => delete::parse(args),
        b"md" => meta::parse_delete(args),
        b"ma" => meta::parse_arithmetic(args),
        b"me" => meta::parse_debug(args),
        b"mn" => Ok(meta::noop()),
        _ => admin::parse(name, args),
    }
}

/// Judges input that has no line end within [`LINE_MAX`].
#[cold]
fn parse_without_end<'a>(input: &'a [u8], limits: &Limits) -> Parsed<'a> {
    if input.len() < LINE_MAX {
        return Parsed::Incomplete;
    }
    let (front, behind) = input.split_at(LINE_MAX);
    if !is_get(front) {
        return close(input, Error::LINE_TOO_LONG);
    }
    let reach = behind.len().min(GET_LINE_MAX - LINE_MAX);
    match memchr(b'\n', &behind[..reach]) {
        Some(end) => parse_line(input, LINE_MAX + end, limits),
        None if input.len() < GET_LINE_MAX => Parsed::Incomplete,
        None => close(input, Error::LINE_TOO_LONG),
    }
}

/// Nothing that this client sends can be understood.
#[cold]
fn close<'a>(input: &[u8], error: Error) -> Parsed<'a> {
    Parsed::Refused(Refusal {
        error,
        quiet: false,
        consumed: input.len(),
        swallow: 0,
        close: true,
        forget: None,
    })
}

/// True if a line begins as one of those that may be long.
fn is_get(line: &[u8]) -> bool {
    let name = Words(line).iter().next();
    name.is_some_and(|name| matches!(name, b"get" | b"gets" | b"gat" | b"gats"))
}
