//! The parsing and writing of decimal numbers as clients store them.

/// Digits of `u64::MAX`.
pub const DIGITS_MAX: usize = 20;

/// Room for a number's digits.
#[derive(Default)]
pub struct Digits([u8; DIGITS_MAX]);

impl Digits {
    /// The digits of a number, without leading zeros.
    pub fn write(&mut self, mut number: u64) -> &[u8] {
        let mut start = DIGITS_MAX;
        loop {
            start -= 1;
            self.0[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return &self.0[start..];
            }
        }
    }
}

/// A longer text is not a number. The bound is far below the length of a value in segments, and of one that would keep
/// a lock for long.
pub const LEN_MAX: usize = 256;

/// The number in `text`, as memcached reads it: digits, under 2^64, with an optional sign before them, and nothing else
/// but white space around both. (White space because memcached pads a number that has become shorter.) No number is
/// below zero: `-0` is one, and `-1` is not.
///
/// memcached reads some of what is no number here: of `5 x` the part before the space, so that counting loses the rest,
/// and -18446744073709551615 as what it wraps to in 64 bits, 1.
pub fn parse(text: &[u8]) -> Option<u64> {
    if text.len() > LEN_MAX {
        return None;
    }
    match trimmed(text) {
        [b'+', text @ ..] => digits(text),
        [b'-', text @ ..] => digits(text).filter(|&number| number == 0),
        text => digits(text),
    }
}

/// A text without the white space around it, by C's definition.
fn trimmed(text: &[u8]) -> &[u8] {
    let is_space = |byte: u8| byte == b' ' || (b'\t'..=b'\r').contains(&byte);
    let start = text.iter().position(|&byte| !is_space(byte));
    let end = text.iter().rposition(|&byte| !is_space(byte));
    match (start, end) {
        (Some(start), Some(end)) => &text[start..=end],
        _ => &[],
    }
}

/// A number of digits alone, of any length, for which the standard library's parser would need a `str` without a sign.
/// `nuthatch-protocol` has one as well: neither of the two crates depends on the other, and they share no crate below.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then_some(())?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 7, 10, 99, 12345, u64::MAX] {
            assert_eq!(parse(Digits::default().write(number)), Some(number));
        }
    }

    #[test]
    fn only_numbers_are_numbers() {
        for text in [
            "",
            " ",
            "-",
            "+",
            "-1",
            "+-1",
            "+ 1",
            "-9223372036854775808",
            "-9223372036854775809",
            "-18446744073709551615",
            "-18446744073709551616",
            "1a",
            "0x1",
            "18446744073709551616",
            "1 2",
            "1\0",
            "1\x1f",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        for text in ["42 ", " 42", "\t42  \r\n", "\x0b42\x0c", "+42", " +042 "] {
            assert_eq!(parse(text.as_bytes()), Some(42), "{text:?}");
        }
        assert_eq!(parse(b"-0"), Some(0));
        assert_eq!(parse(&[b'0'; LEN_MAX]), Some(0));
        assert_eq!(parse(&[b'0'; LEN_MAX + 1]), None);
    }
}
