//! The flags of the meta commands: one letter, some with a token right behind it. Every command accepts all flags, and
//! ignores those that have no meaning for it.

use crate::command::{Exptime, MetaFlags, MetaMode};
use crate::error::Error;
use crate::key::{self, KEY_LEN_MAX, KEY_ROOM};
use crate::number;
use crate::words::Words;

/// The longest opaque, in bytes, without its letter.
pub const OPAQUE_MAX: usize = 31;

/// The most words of a meta command's line, its name and its key among them.
const WORDS_MAX: usize = 20;

/// The differences between the commands.
#[derive(Clone, Copy)]
struct Dialect {
    /// Words before the flags.
    words_before: usize,
    /// The modes that `M` can have. `None` if the command ignores it.
    modes: Option<Modes>,
}

/// The mode of a letter.
type Modes = fn(u8) -> Result<MetaMode, Error>;

/// Parses the flags of mg and md, and checks their key.
#[inline]
pub(crate) fn parse<'a>(key: &'a [u8], flags: Words<'a>) -> Result<MetaFlags<'a>, Error> {
    let dialect = Dialect {
        words_before: 2,
        modes: None,
    };
    parse_with(key, flags, dialect)
}

/// Parses the flags of ms, and checks its key.
#[inline]
pub(crate) fn parse_store<'a>(key: &'a [u8], flags: Words<'a>) -> Result<MetaFlags<'a>, Error> {
    let dialect = Dialect {
        words_before: 3,
        modes: Some(|mode| match mode {
            b'S' => Ok(MetaMode::Set),
            b'E' => Ok(MetaMode::Add),
            b'A' => Ok(MetaMode::Append),
            b'P' => Ok(MetaMode::Prepend),
            b'R' => Ok(MetaMode::Replace),
            _ => Err(Error::BAD_STORE_MODE),
        }),
    };
    parse_with(key, flags, dialect)
}

/// Parses the flags of ma, and checks its key.
pub(crate) fn parse_arithmetic<'a>(
    key: &'a [u8],
    flags: Words<'a>,
) -> Result<MetaFlags<'a>, Error> {
    let dialect = Dialect {
        words_before: 2,
        modes: Some(|mode| match mode {
            b'I' | b'+' => Ok(MetaMode::Increment),
            b'D' | b'-' => Ok(MetaMode::Decrement),
            _ => Err(Error::BAD_DELTA_MODE),
        }),
    };
    // For ma, memcached's errors are less precise.
    parse_with(key, flags, dialect).map_err(|error| match error {
        Error::OPAQUE_TOO_LONG | Error::BAD_DELTA_MODE => error,
        _ if !all_begin_as_flags(flags) => error,
        _ => Error::BAD_FLAG,
    })
}

/// Parses the flags of me, which accepts only a `b` as its first flag, and checks its key.
pub(crate) fn parse_debug<'a>(key: &'a [u8], raw: Words<'a>) -> Result<MetaFlags<'a>, Error> {
    let base64 = raw.iter().next() == Some(b"b");
    if base64 {
        key::decode_key(key, &mut [0; KEY_ROOM]).ok_or(Error::BAD_FORMAT)?;
    } else {
        key::check(key)?;
    }
    if !all_begin_as_flags(raw) {
        return Err(Error::BAD_FORMAT);
    }
    Ok(MetaFlags {
        raw,
        base64,
        ..MetaFlags::default()
    })
}

#[inline]
fn parse_with<'a>(key: &'a [u8], raw: Words<'a>, dialect: Dialect) -> Result<MetaFlags<'a>, Error> {
    take_all(key, raw, dialect).map_err(|error| blame(key, raw, dialect, error))
}

/// The error that memcached reports for a line in which `take_all` found this one.
#[cold]
fn blame(key: &[u8], raw: Words<'_>, dialect: Dialect, error: Error) -> Error {
    if key.len() > KEY_LEN_MAX || !all_begin_as_flags(raw) {
        Error::BAD_FORMAT
    } else if raw.iter().count() + dialect.words_before > WORDS_MAX {
        Error::TOO_MANY_FLAGS
    } else {
        error
    }
}

/// False if a word begins with a byte that no flag of any command may begin with.
fn all_begin_as_flags(raw: Words<'_>) -> bool {
    raw.iter()
        .all(|word| matches!(word[0], b'0'..=b'9' | b'A'..=b'z'))
}

#[inline]
fn take_all<'a>(key: &'a [u8], raw: Words<'a>, dialect: Dialect) -> Result<MetaFlags<'a>, Error> {
    let mut flags = MetaFlags {
        raw,
        ..MetaFlags::default()
    };
    let mut seen: u128 = 0;
    let mut words = dialect.words_before;
    // The last of several bad tokens is reported. An unknown or repeated flag is reported at once.
    let mut bad_token = None;
    let mut mode = None;
    for word in raw.iter() {
        let (&letter, token) = word.split_first().ok_or(Error::BAD_FORMAT)?;
        words += 1;
        if words > WORDS_MAX {
            return Err(Error::TOO_MANY_FLAGS);
        }
        let bit = 1u128
            .checked_shl(letter.into())
            .ok_or(Error::INVALID_FLAG)?;
        if seen & bit != 0 {
            return Err(Error::DUPLICATE_FLAG);
        }
        seen |= bit;
        match letter {
            b'M' => mode = Some(token.first().copied().unwrap_or_default()),
            b'b' => {
                flags.base64 = true;
                if key::decode_key(key, &mut [0; KEY_ROOM]).is_none() {
                    bad_token = Some(Error::BAD_BASE64);
                }
            }
            _ => match take(&mut flags, letter, token) {
                Ok(()) => {}
                Err(Error::INVALID_FLAG) => return Err(Error::INVALID_FLAG),
                // `F` has no error of its own, so it does not replace the error of another bad token.
                Err(Error::BAD_FORMAT) => bad_token = bad_token.or(Some(Error::BAD_FORMAT)),
                Err(error) => bad_token = Some(error),
            },
        }
    }
    if let Some(error) = bad_token {
        return Err(error);
    }
    if !flags.base64 {
        key::check(key)?;
    }
    if let (Some(modes), Some(mode)) = (dialect.modes, mode) {
        flags.mode = Some(modes(mode)?);
    }
    match flags.opaque {
        Some(opaque) if opaque.len() > OPAQUE_MAX => Err(Error::OPAQUE_TOO_LONG),
        _ => Ok(flags),
    }
}

/// Takes one flag other than `b` and `M`.
#[inline]
fn take<'a>(flags: &mut MetaFlags<'a>, letter: u8, token: &'a [u8]) -> Result<(), Error> {
    match letter {
        b'q' => flags.quiet = true,
        b'u' => flags.no_bump = true,
        b'v' => flags.value = true,
        b'x' => flags.drop_value = true,
        b'I' => flags.invalidate = true,
        b'C' => flags.compare_cas = Some(unsigned(token)?),
        b'E' => flags.new_cas = Some(unsigned(token)?),
        b'J' => flags.initial = Some(number::unsigned(token).ok_or(Error::BAD_INITIAL)?),
        b'D' => flags.delta = Some(number::unsigned(token).ok_or(Error::BAD_META_DELTA)?),
        b'F' => flags.client_flags = Some(number::unsigned_32(token).ok_or(Error::BAD_FORMAT)?),
        b'T' => flags.ttl = Some(exptime(token)?),
        b'N' => flags.vivify = Some(exptime(token)?),
        b'R' => flags.recache = Some(exptime(token)?),
        b'O' => flags.opaque = Some(token),
        // These ask for a part of the reply, which is made from `raw`. `P` and `L` are for proxies.
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
            recache: Some(Exptime(-8)),
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
            ("1", Error::INVALID_FLAG),
            ("!", Error::BAD_FORMAT),
            ("v v {", Error::BAD_FORMAT),
            ("v \u{7f}", Error::BAD_FORMAT),
            ("\u{e9}", Error::BAD_FORMAT),
            ("T", Error::BAD_TOKEN),
            ("Tx", Error::BAD_TOKEN),
            ("T2147483648", Error::BAD_TOKEN),
            ("N4294967295", Error::BAD_TOKEN),
            ("R-2147483649", Error::BAD_TOKEN),
            ("N1x", Error::BAD_TOKEN),
            ("R99999999999999999999", Error::BAD_TOKEN),
            ("C-1", Error::BAD_TOKEN),
            ("C18446744073709551616", Error::BAD_TOKEN),
            ("Ex", Error::BAD_TOKEN),
            ("Fx", Error::BAD_FORMAT),
            ("F4294967296", Error::BAD_FORMAT),
            ("Jx", Error::BAD_INITIAL),
            ("D", Error::BAD_META_DELTA),
            ("b", Error::BAD_BASE64),
            // Of several errors the last is reported, unless it has no text of its own.
            ("Tx Jx", Error::BAD_INITIAL),
            ("b Tx Fx", Error::BAD_TOKEN),
            ("Tx b", Error::BAD_BASE64),
            ("Tx b v v", Error::DUPLICATE_FLAG),
            ("Tx b Z v v", Error::INVALID_FLAG),
        ] {
            assert_eq!(flags(raw), Err(error), "{raw:?}");
        }
    }

    #[test]
    fn an_opaque_has_at_most_31_bytes() {
        let longest = format!("O{}", "1".repeat(OPAQUE_MAX));
        let opaque = flags(&longest).expect("lawful").opaque;
        assert_eq!(opaque, Some(&longest.as_bytes()[1..]));
        assert_eq!(flags("O").expect("lawful").opaque, Some(&b""[..]));
        assert_eq!(flags(&format!("{longest}1")), Err(Error::OPAQUE_TOO_LONG));
    }

    #[test]
    fn more_words_than_20_are_too_many() {
        let most = "b c f h k l O q s t u v x E1 N1 R1 T1 C1";
        assert_eq!(
            parse(b"a2V5", Words(most.as_bytes())).map(|flags| flags.base64),
            Ok(true)
        );
        assert_eq!(
            parse_store(b"a2V5", Words(most.as_bytes())),
            Err(Error::TOO_MANY_FLAGS)
        );
        let more = format!("{most} v v");
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
                    ("MSET", Some(MetaMode::Set)),
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
        }
        assert_eq!(parse(b"\x7f", Words(b"v b")), Err(Error::BAD_BASE64));
        assert_eq!(parse(&long, Words(b"v b")), Err(Error::BAD_FORMAT));
    }
}
