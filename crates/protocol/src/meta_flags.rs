//! The flags of the meta commands: one letter, some with a token right behind it. All commands
//! take all flags, and each ignores those that mean nothing to it.

use crate::command::{Exptime, MetaFlags, MetaMode};
use crate::error::Error;
use crate::key::{self, KEY_ROOM};
use crate::number;
use crate::words::Words;

/// The longest opaque, in bytes.
pub const OPAQUE_MAX: usize = 32;

/// The most flags of one command.
const FLAGS_MAX: usize = 20;

/// The modes of one command, or none if it has no modes and ignores `M`.
type Modes = fn(u8) -> Result<Option<MetaMode>, Error>;

/// The flags of mg, md and me, and their key checked.
#[inline]
pub(crate) fn parse<'a>(key: &'a [u8], flags: Words<'a>) -> Result<MetaFlags<'a>, Error> {
    parse_with(key, flags, |_| Ok(None))
}

/// The flags of ms, and its key checked.
#[inline]
pub(crate) fn parse_store<'a>(key: &'a [u8], flags: Words<'a>) -> Result<MetaFlags<'a>, Error> {
    parse_with(key, flags, |mode| match mode {
        b'S' => Ok(Some(MetaMode::Set)),
        b'E' => Ok(Some(MetaMode::Add)),
        b'A' => Ok(Some(MetaMode::Append)),
        b'P' => Ok(Some(MetaMode::Prepend)),
        b'R' => Ok(Some(MetaMode::Replace)),
        _ => Err(Error::BAD_STORE_MODE),
    })
}

/// The flags of ma, and its key checked.
pub(crate) fn parse_arithmetic<'a>(
    key: &'a [u8],
    flags: Words<'a>,
) -> Result<MetaFlags<'a>, Error> {
    let parsed = parse_with(key, flags, |mode| match mode {
        b'I' | b'+' => Ok(Some(MetaMode::Increment)),
        b'D' | b'-' => Ok(Some(MetaMode::Decrement)),
        _ => Err(Error::BAD_DELTA_MODE),
    });
    // Here memcached says less than elsewhere.
    parsed.map_err(|error| match error {
        Error::DUPLICATE_FLAG | Error::INVALID_FLAG | Error::BAD_TOKEN => Error::BAD_FLAG,
        error => error,
    })
}

#[inline]
fn parse_with<'a>(key: &'a [u8], raw: Words<'a>, modes: Modes) -> Result<MetaFlags<'a>, Error> {
    let mut flags = MetaFlags {
        raw,
        ..MetaFlags::default()
    };
    let mut seen: u128 = 0;
    for (count, word) in raw.iter().enumerate() {
        let (&letter, token) = word.split_first().ok_or(Error::BAD_FORMAT)?;
        if count == FLAGS_MAX {
            return Err(Error::TOO_MANY_FLAGS);
        }
        let bit = 1u128
            .checked_shl(letter.into())
            .ok_or(Error::INVALID_FLAG)?;
        if seen & bit != 0 {
            return Err(Error::DUPLICATE_FLAG);
        }
        seen |= bit;
        take(&mut flags, letter, token, modes)?;
    }
    if flags.base64 {
        key::decode_key(key, &mut [0; KEY_ROOM]).ok_or(Error::BAD_BASE64)?;
    } else {
        key::check(key)?;
    }
    Ok(flags)
}

/// Takes one flag.
#[inline]
fn take<'a>(
    flags: &mut MetaFlags<'a>,
    letter: u8,
    token: &'a [u8],
    modes: Modes,
) -> Result<(), Error> {
    match letter {
        b'b' => flags.base64 = true,
        b'q' => flags.quiet = true,
        b'u' => flags.no_bump = true,
        b'v' => flags.value = true,
        b'x' => flags.drop_value = true,
        b'I' => flags.invalidate = true,
        b'C' => flags.compare_cas = Some(unsigned(token)?),
        b'E' => flags.new_cas = Some(unsigned(token)?),
        b'J' => flags.initial = Some(unsigned(token)?),
        b'D' => flags.delta = Some(unsigned(token)?),
        b'F' => flags.client_flags = Some(number::unsigned_32(token).ok_or(Error::BAD_TOKEN)?),
        b'T' => flags.ttl = Some(exptime(token)?),
        b'N' => flags.vivify = Some(exptime(token)?),
        b'R' => flags.recache = Some(exptime(token)?.0),
        b'M' => match token {
            [mode] => flags.mode = modes(*mode)?,
            _ => return Err(Error::BAD_MODE_LENGTH),
        },
        b'O' if token.len() > OPAQUE_MAX => return Err(Error::OPAQUE_TOO_LONG),
        b'O' => flags.opaque = Some(token),
        // These ask for something in the reply, which is made from `raw`; and two speak to proxies.
        b'c' | b'f' | b'h' | b'k' | b'l' | b's' | b't' | b'P' | b'L' => {}
        _ => return Err(Error::INVALID_FLAG),
    }
    Ok(())
}

#[inline]
fn unsigned(token: &[u8]) -> Result<u64, Error> {
    number::unsigned(token).ok_or(Error::BAD_TOKEN)
}

#[inline]
fn exptime(token: &[u8]) -> Result<Exptime, Error> {
    number::exptime(token).ok_or(Error::BAD_TOKEN)
}
