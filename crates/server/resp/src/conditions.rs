//! Conditions on the value that is there: IFEQ and its like, of SET, DELEX and DELIFEQ.

use crate::error::Error;

/// Hexadecimal digits of a digest.
const DIGEST_DIGITS: usize = 16;

/// A condition on a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison<'a> {
    /// What the value is compared with.
    pub with: Pattern<'a>,
    /// True if the value has to be equal, false if it has to differ.
    pub equal: bool,
}

/// What a value is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern<'a> {
    /// A value.
    Value(&'a [u8]),
    /// The digest of a value: XXH3 of 64 bits, without a seed.
    Digest(u64),
}

/// The kinds of conditions, by their names in small letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    is_digest: bool,
    equal: bool,
}

impl Kind {
    /// The kind that this word names.
    pub(super) fn named(word: &[u8]) -> Option<Self> {
        let (is_digest, equal) = match word {
            b"ifeq" => (false, true),
            b"ifne" => (false, false),
            b"ifdeq" => (true, true),
            b"ifdne" => (true, false),
            _ => return None,
        };
        Some(Self { is_digest, equal })
    }

    /// The condition of this kind with this argument. Errors: it is no digest.
    pub(super) fn with(self, argument: &[u8]) -> Result<Comparison<'_>, Error<'static>> {
        let with = match self.is_digest {
            true => Pattern::Digest(digest(argument)?),
            false => Pattern::Value(argument),
        };
        Ok(Comparison {
            with,
            equal: self.equal,
        })
    }
}

/// A digest as it is written: 16 hexadecimal digits.
fn digest(text: &[u8]) -> Result<u64, Error<'static>> {
    let is_written = text.len() == DIGEST_DIGITS && text.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(text).ok().filter(|_| is_written);
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or(Error::DIGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_16_digits_in_any_case() {
        assert_eq!(digest(b"00000000000000ff"), Ok(0xff));
        assert_eq!(digest(b"00000000000000FF"), Ok(0xff));
        for text in [&b""[..], b"ff", b"+0000000000000ff", b"0x000000000000ff"] {
            assert_eq!(digest(text), Err(Error::DIGEST));
        }
    }
}
