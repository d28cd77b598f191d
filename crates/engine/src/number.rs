//! Decimal numbers as clients store them.

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

/// The number that `text` is: 1 to 20 bytes, digits and nothing else but white space around them, under
/// 2^64. (White space because memcached pads a number that has become shorter, and reads what it pads.)
pub fn parse(text: &[u8]) -> Option<u64> {
    if text.len() > DIGITS_MAX {
        return None;
    }
    let text = text.trim_ascii();
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
            "-1",
            "+1",
            "1a",
            "0x1",
            "18446744073709551616",
            "1 2",
            "1\0",
            "                    1",
            "000000000000000000000",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse(b"00000000000000000042"), Some(42));
        for text in ["42 ", " 42", "\t42  \r\n"] {
            assert_eq!(parse(text.as_bytes()), Some(42), "{text:?}");
        }
    }
}
