//! Sizes as people type them.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::num::IntErrorKind;

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeError {
    /// It is no number.
    NotASize(String),
    /// It is a number of more bytes than there are addresses.
    TooLarge(String),
}

impl Display for SizeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASize(text) => write!(
                out,
                "`{text}` is not a size: a number, with k, m or g behind it"
            ),
            Self::TooLarge(text) => write!(out, "`{text}` is too large a number"),
        }
    }
}

impl Error for SizeError {}

/// Bytes: a number, with `k`, `m` or `g` (either case) behind it for powers of 1024.
pub fn parse(text: &str) -> Result<usize, SizeError> {
    parse_in(text, 1)
}

/// Like [`parse`], but a number without a letter counts `unit` bytes.
pub fn parse_in(text: &str, unit: usize) -> Result<usize, SizeError> {
    let (digits, factor) = match text.as_bytes().last().map(u8::to_ascii_lowercase) {
        Some(b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, unit),
    };
    let too_large = || SizeError::TooLarge(text.to_owned());
    match digits.parse::<usize>() {
        Ok(number) => number.checked_mul(factor).ok_or_else(too_large),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(too_large()),
        Err(_) => Err(SizeError::NotASize(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_and_units() {
        assert_eq!(parse("0"), Ok(0));
        assert_eq!(parse("1536"), Ok(1536));
        assert_eq!(parse("2k"), Ok(2048));
        assert_eq!(parse("64M"), Ok(64 << 20));
        assert_eq!(parse_in("64", 1 << 20), Ok(64 << 20));
        assert_eq!(parse_in("1g", 1 << 20), Ok(1 << 30));
    }

    #[test]
    fn what_is_no_size() {
        for text in ["", "k", "-1", "1.5m", "10t", "1 k", "ä"] {
            let error = SizeError::NotASize(text.to_owned());
            assert_eq!(parse(text), Err(error));
        }
        for text in [
            "99999999999999999999",
            "99999999999999999999k",
            "17179869184g",
        ] {
            let error = SizeError::TooLarge(text.to_owned());
            assert_eq!(parse(text), Err(error));
        }
    }
}
