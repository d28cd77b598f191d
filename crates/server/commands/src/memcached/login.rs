//! Login of text clients: if the server has passwords, a client begins with `set any any any LENGTH` and the value `name
//! password`. As with memcached's `-Y`, the words between `set` and the length count for nothing.

use nuthatch_protocol::binary::MAGIC;
use nuthatch_protocol::{Awaited, Error, LINE_MAX, awaited_block, encode};
use nuthatch_security::guesses::Credentials;
use nuthatch_security::login::Login;

use super::phase::Phase;
use crate::context::Context;
use crate::tls;
use crate::turn::{Flow, Turn};
use crate::work::Work;

/// The longest value of a login.
const VALUE_MAX: usize = 1024;

const UNAUTHENTICATED: Error = Error::Client("unauthenticated");
const FAILURE: Error = Error::Client("authentication failure");
const BAD_TOKEN: Error = Error::Client("bad authentication token format");
const TOKEN_TOO_LONG: Error = Error::Client("auth token too long");
const BAD_END: Error = Error::Client("bad command line termination");

/// What ends a value.
const BLOCK_END: &[u8] = b"\r\n";

/// Bytes up to the line end of the shortest line that memcached answers before a login.
const LINE_MIN: usize = 6;

/// Parses the front of the input of a client that has not logged in.
pub fn step(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    mut login: Login,
    input: &[u8],
) -> Flow {
    let front = &input[turn.position..];
    if tls::is_spoken(front) {
        tls::refuse(turn, encode::NO_TLS);
        turn.position = input.len();
        return Flow::Next;
    }
    let (consumed, error) = match Said::read(front) {
        Said::Incomplete(awaited) => {
            turn.awaited = awaited;
            return Flow::Starved;
        }
        // As in memcached: who says so little means another protocol.
        Said::Short => {
            turn.closing = true;
            return Flow::Next;
        }
        Said::Login(consumed, value) => match name_and_password(value) {
            None => (consumed, BAD_TOKEN),
            said if cx.login(turn, said) => {
                turn.position += consumed;
                turn.output.text().extend_from_slice(encode::STORED);
                *phase = Phase::Commands;
                return Flow::Next;
            }
            Some(_) => (consumed, FAILURE),
        },
        Said::Other(consumed, error) => (consumed, error),
        Said::Endless(error) => {
            turn.closing = true;
            (front.len(), error)
        }
    };
    encode::error(turn.output.text(), error);
    turn.position += consumed;
    turn.spend(Work::COMMAND);
    turn.closing |= login.is_enough();
    *phase = Phase::Login(login);
    Flow::Next
}

/// What a client says before it has logged in.
enum Said<'i> {
    /// Not all of it has come.
    Incomplete(Awaited),
    /// The bytes of a login, and its value.
    Login(usize, &'i [u8]),
    /// The bytes of a line or a value that is no login, and the error.
    Other(usize, Error),
    /// A line that is shorter than that of any login.
    Short,
    /// The start of the next line is unknown.
    Endless(Error),
}

impl<'i> Said<'i> {
    fn read(input: &'i [u8]) -> Self {
        let mut front = input.iter().take(LINE_MAX);
        let Some(end) = front.position(|&byte| byte == b'\n') else {
            // memcached's binary protocol has no lines.
            let is_binary = input.first() == Some(&MAGIC);
            return match input.len() < LINE_MAX && !is_binary {
                true => Self::Incomplete(Awaited::default()),
                false => Self::Endless(UNAUTHENTICATED),
            };
        };
        if end < LINE_MIN {
            return Self::Short;
        }
        let line = end + 1;
        let Some(length) = value_len(&input[..end]) else {
            return Self::Other(line, UNAUTHENTICATED);
        };
        if length > VALUE_MAX {
            return Self::Endless(TOKEN_TOO_LONG);
        }
        let all = line + length + BLOCK_END.len();
        match input.get(line..all) {
            None => Self::Incomplete(awaited_block(line, length)),
            Some(block) => match block.strip_suffix(BLOCK_END) {
                Some(value) => Self::Login(all, value),
                None => Self::Other(all, BAD_END),
            },
        }
    }
}

/// The length of a login's value, if this is the line of one.
fn value_len(line: &[u8]) -> Option<usize> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let words = line.split(|&byte| byte == b' ');
    let mut words = words.filter(|word| !word.is_empty());
    if words.next() != Some(b"set") {
        return None;
    }
    let length = std::str::from_utf8(words.nth(3)?).ok()?;
    length.parse::<u32>().ok().map(|length| length as usize)
}

/// The name and the password, with a space between.
fn name_and_password(said: &[u8]) -> Credentials<'_> {
    let space = said.iter().position(|&byte| byte == b' ')?;
    Some((&said[..space], &said[space + 1..]))
}
