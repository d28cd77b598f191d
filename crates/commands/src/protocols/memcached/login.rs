//! Login of text clients: if the server has passwords, a client begins with `set any 0 0 LENGTH` and the value `name
//! password`, as with memcached's `-Y`.

use nuthatch_protocol::{
    Awaited, Command, Error, LINE_MAX, Limits, Parsed, StoreVerb, awaited_block, encode, parse,
};
use nuthatch_security::guesses::Credentials;
use nuthatch_security::login::Login;

use super::Phase;
use crate::protocols;
use crate::slice::Slice;
use crate::stage::{Flow, Stage};
use crate::work::Work;

/// The longest value of a login.
const LIMITS: Limits = Limits { value_max: 1024 };

const UNAUTHENTICATED: Error = Error::Client("unauthenticated");
const FAILURE: Error = Error::Client("authentication failure");
const BAD_TOKEN: Error = Error::Client("bad authentication token format");
const TOKEN_TOO_LONG: Error = Error::Client("auth token too long");
const BAD_END: Error = Error::Client("bad command line termination");

/// Bytes up to the line end of the shortest line that memcached answers before a login.
const LINE_MIN: usize = 6;

/// Parses the front of the input of a client that has not logged in.
pub fn step(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    mut login: Login,
    input: &[u8],
) -> Flow {
    let front = &input[slice.position..];
    if protocols::speaks_tls(front) {
        protocols::refuse_tls(slice, super::NO_TLS);
        slice.position = input.len();
        return Flow::Next;
    }
    let (consumed, swallow, error) = match parse(front, &LIMITS) {
        Parsed::Incomplete if front.len() <= LINE_MAX => {
            slice.awaited = Awaited::default();
            return Flow::Starved;
        }
        Parsed::Body {
            line, value_len, ..
        } => {
            slice.awaited = awaited_block(line, value_len);
            return Flow::Starved;
        }
        Parsed::Command {
            command: Command::Store(store),
            consumed,
        } if store.verb == StoreVerb::Set => match name_and_password(store.value) {
            None => (consumed, 0, BAD_TOKEN),
            said if stage.login(slice, said) => {
                slice.position += consumed;
                slice.output.text().extend_from_slice(encode::STORED);
                *phase = Phase::Commands;
                return Flow::Next;
            }
            Some(_) => (consumed, 0, FAILURE),
        },
        Parsed::Command {
            command: Command::Quit,
            ..
        } => {
            slice.quit();
            return Flow::Next;
        }
        // As in memcached: who says so little means another protocol.
        Parsed::Command { .. } | Parsed::Refused(_) if is_short(front) => {
            slice.closing = true;
            return Flow::Next;
        }
        Parsed::Command { consumed, .. } => (consumed, 0, UNAUTHENTICATED),
        Parsed::Refused(refusal) if !refusal.close => {
            let error = match refusal.error {
                Error::TOO_LARGE if front.starts_with(b"set ") => TOKEN_TOO_LONG,
                Error::BAD_DATA_CHUNK if front.starts_with(b"set ") => BAD_END,
                _ => UNAUTHENTICATED,
            };
            (refusal.consumed, refusal.swallow, error)
        }
        // The start of the next line is unknown.
        Parsed::Refused(_) | Parsed::Binary(_) | Parsed::LongGet { .. } | Parsed::Incomplete => {
            slice.closing = true;
            (front.len(), 0, UNAUTHENTICATED)
        }
    };
    encode::error(slice.output.text(), error);
    slice.position += consumed;
    slice.spend(Work::COMMAND);
    slice.closing |= swallow > 0 || login.is_enough();
    *phase = Phase::Login(login);
    Flow::Next
}

/// True if the first line is shorter than that of any login.
fn is_short(front: &[u8]) -> bool {
    front.iter().take(LINE_MIN).any(|&byte| byte == b'\n')
}

/// The name and the password, with a space between.
fn name_and_password(said: &[u8]) -> Credentials<'_> {
    let space = said.iter().position(|&byte| byte == b' ')?;
    Some((&said[..space], &said[space + 1..]))
}
