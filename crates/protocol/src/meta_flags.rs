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
        Error::OPAQUE_TOO_LONG | Error::BAD_DELTA_MODE => error,
        _ => Error::BAD_FLAG,
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
        b'F' => flags.client_flags = Some(number::unsigned_32(token).ok_or(Error::BAD_FORMAT)?),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn flags<'a>(raw: &'a str) -> Result<MetaFlags<'a>, Error> {
        parse(b"key", Words(raw.as_bytes()))
    }

    #[test]
    fn each_letter_has_its_field() {
        let all = flags("q u v x I C1 E2 J3 D4 F5 T6 N7 R-8 Oab c f h k").expect("lawful");
        let expected = MetaFlags {
            raw: all.raw,
            base64: false,
            quiet: true,
            no_bump: true,
            value: true,
            drop_value: true,
            invalidate: true,
            compare_cas: Some(1),
            new_cas: Some(2),
            initial: Some(3),
            delta: Some(4),
            client_flags: Some(5),
            ttl: Some(Exptime(6)),
            vivify: Some(Exptime(7)),
            recache: Some(-8),
            mode: None,
            opaque: Some(b"ab"),
        };
        assert_eq!(all, expected);
        for ignored in ["", "l s t", "P L", "Pproxy Lhint", "k  c ", "MX"] {
            let raw = Words(ignored.as_bytes());
            let none = MetaFlags {
                raw,
                ..MetaFlags::default()
            };
            assert_eq!(flags(ignored), Ok(none), "{ignored:?}");
        }
    }

    #[test]
    fn bad_flags_are_named() {
        for (raw, error) in [
            ("v v", Error::DUPLICATE_FLAG),
            ("O1 q O2", Error::DUPLICATE_FLAG),
            ("Pa Pb", Error::DUPLICATE_FLAG),
            ("S1", Error::INVALID_FLAG),
            ("!", Error::INVALID_FLAG),
            ("v \u{7f}", Error::INVALID_FLAG),
            ("\u{e9}", Error::INVALID_FLAG),
            ("T", Error::BAD_TOKEN),
            ("Tx", Error::BAD_TOKEN),
            ("T9223372036854775808", Error::BAD_TOKEN),
            ("N1x", Error::BAD_TOKEN),
            ("R99999999999999999999", Error::BAD_TOKEN),
            ("C-1", Error::BAD_TOKEN),
            ("C18446744073709551616", Error::BAD_TOKEN),
            ("Ex", Error::BAD_TOKEN),
            ("Fx", Error::BAD_FORMAT),
            ("F4294967296", Error::BAD_FORMAT),
            ("M", Error::BAD_MODE_LENGTH),
            ("MSET", Error::BAD_MODE_LENGTH),
            ("b", Error::BAD_BASE64),
        ] {
            assert_eq!(flags(raw), Err(error), "{raw:?}");
        }
    }

    #[test]
    fn an_opaque_has_at_most_32_bytes() {
        let longest = format!("O{}", "1".repeat(OPAQUE_MAX));
        let opaque = flags(&longest).expect("lawful").opaque;
        assert_eq!(opaque, Some(&longest.as_bytes()[1..]));
        assert_eq!(flags("O").expect("lawful").opaque, Some(&b""[..]));
        assert_eq!(flags(&format!("{longest}1")), Err(Error::OPAQUE_TOO_LONG));
    }

    #[test]
    fn more_flags_than_20_are_too_many() {
        let most = "b c f h k l O q s t u v x E1 N1 R1 T1 C1 P L";
        assert_eq!(
            parse(b"a2V5", Words(most.as_bytes())).map(|flags| flags.base64),
            Ok(true)
        );
        let more = format!("{most} I");
        assert_eq!(flags(&more), Err(Error::TOO_MANY_FLAGS));
    }

    #[test]
    fn modes_belong_to_their_command() {
        for (modes, parse) in [
            (
                &[
                    ("MS", Some(MetaMode::Set)),
                    ("ME", Some(MetaMode::Add)),
                    ("MA", Some(MetaMode::Append)),
                    ("MP", Some(MetaMode::Prepend)),
                    ("MR", Some(MetaMode::Replace)),
                    ("", None),
                ][..],
                parse_store as for<'a> fn(&'a [u8], Words<'a>) -> Result<MetaFlags<'a>, Error>,
            ),
            (
                &[
                    ("MI", Some(MetaMode::Increment)),
                    ("M+", Some(MetaMode::Increment)),
                    ("MD", Some(MetaMode::Decrement)),
                    ("M-", Some(MetaMode::Decrement)),
                    ("", None),
                ],
                parse_arithmetic,
            ),
        ] {
            for &(raw, mode) in modes {
                let flags = parse(b"key", Words(raw.as_bytes()));
                assert_eq!(flags.map(|flags| flags.mode), Ok(mode), "{raw:?}");
            }
        }
    }

    #[test]
    fn keys_are_checked_by_their_kind() {
        let long = [b'k'; 251];
        for key in [&b"a\x01"[..], b"\x7f", &long] {
            assert_eq!(parse(key, Words(b"v")), Err(Error::BAD_FORMAT));
            assert_eq!(parse(key, Words(b"v b")), Err(Error::BAD_BASE64));
        }
    }
}
