//! get, gets, gat, gats.

use crate::command::{Command, Exptime, Get};
use crate::error::Error;
use crate::key::KEY_LEN_MAX;
use crate::number;
use crate::parse::Reject;
use crate::words::{self, Words};

/// `get <key>+`, `gets <key>+`.
#[inline]
pub(crate) fn parse(keys: Words<'_>, with_cas: bool) -> Result<Command<'_>, Reject> {
    command(keys, with_cas, None)
}

/// `gat <exptime> <key>+`, `gats <exptime> <key>+`.
pub(crate) fn parse_touching(args: Words<'_>, with_cas: bool) -> Result<Command<'_>, Reject> {
    let mut words = args.iter();
    let exptime = words.next().ok_or(Error::Unknown)?;
    let exptime = number::exptime(exptime).ok_or(Error::BAD_EXPTIME)?;
    command(words.rest(), with_cas, Some(exptime))
}

#[inline]
fn command(keys: Words<'_>, with_cas: bool, touch: Option<Exptime>) -> Result<Command<'_>, Reject> {
    check_keys(keys.0)?;
    Ok(Command::Get(Get {
        keys,
        with_cas,
        touch,
    }))
}

/// Checks that `text` is one key or more. One pass: where a key ends, a space must stand.
#[inline]
fn check_keys(text: &[u8]) -> Result<(), Error> {
    let mut rest = words::skip_spaces(text);
    if rest.is_empty() {
        return Err(Error::Unknown);
    }
    while !rest.is_empty() {
        let len = words::key_len(rest);
        if len == 0 || len > KEY_LEN_MAX {
            return Err(Error::BAD_FORMAT);
        }
        rest = words::skip_spaces(&rest[len..]);
    }
    Ok(())
}
