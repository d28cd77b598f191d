//! Decimal numbers as clients write them: nothing wraps, nothing is skipped.

use crate::command::Exptime;

/// A number of digits alone.
#[inline]
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    // No number of 64 bits has more than 20 digits; leading zeros do not make it one.
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut number: u64 = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(number)
}

/// A number that fits 32 bits.
#[inline]
pub(crate) fn unsigned_32(text: &[u8]) -> Option<u32> {
    unsigned(text)?.try_into().ok()
}

/// An expiry: 32 bits with a sign, as memcached takes it.
#[inline]
pub(crate) fn exptime(text: &[u8]) -> Option<Exptime> {
    let seconds = match text {
        [b'-', digits @ ..] => -i64::try_from(unsigned(digits)?).ok()?,
        digits => i64::try_from(unsigned(digits)?).ok()?,
    };
    i32::try_from(seconds).ok()?;
    Some(Exptime(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_end_where_their_type_ends() {
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned_32(b"4294967295"), Some(u32::MAX));
        assert_eq!(exptime(b"2147483647"), Some(Exptime(i32::MAX.into())));
        assert_eq!(exptime(b"-2147483648"), Some(Exptime(i32::MIN.into())));
        assert_eq!(unsigned(b"00000000000000000001"), Some(1));
        for text in [
            &b""[..],
            b"+1",
            b"-1",
            b"1 ",
            b"0x1",
            b"1.5",
            b"18446744073709551616",
        ] {
            assert_eq!(unsigned(text), None, "{text:?}");
        }
        assert_eq!(unsigned_32(b"4294967296"), None);
        for text in [&b""[..], b"-", b"--1", b"2147483648", b"-2147483649"] {
            assert_eq!(exptime(text), None, "{text:?}");
        }
        assert_eq!(exptime(b"-18446744073709551615"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u64, seconds: i32) {
            prop_assert_eq!(unsigned(number.to_string().as_bytes()), Some(number));
            prop_assert_eq!(
                exptime(seconds.to_string().as_bytes()),
                Some(Exptime(seconds.into()))
            );
        }

        #[test]
        fn more_digits_never_wrap(text in "[0-9]{1,25}") {
            let expected = if text.len() <= 20 { text.parse().ok() } else { None };
            prop_assert_eq!(unsigned(text.as_bytes()), expected);
        }
    }
}
