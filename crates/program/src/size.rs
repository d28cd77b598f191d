//! Sizes as people type them.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// A text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeError(String);

impl Display for SizeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            out,
            "`{text}` is not a size: a number, with k, m or g behind it"
        )
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
    digits
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| SizeError(text.to_owned()))
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
        for text in [
            "",
            "k",
            "-1",
            "1.5m",
            "10t",
            "1 k",
            "99999999999999999999",
            "ä",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("17179869184g").is_err());
    }
}
