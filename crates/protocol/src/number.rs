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

/// An expiry, with a sign. It has 64 bits, so that moments after 2038 are what they say.
#[inline]
pub(crate) fn exptime(text: &[u8]) -> Option<Exptime> {
    let seconds = match text {
        [b'-', digits @ ..] => -i64::try_from(unsigned(digits)?).ok()?,
        digits => i64::try_from(unsigned(digits)?).ok()?,
    };
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
        assert_eq!(exptime(b"9223372036854775807"), Some(Exptime(i64::MAX)));
        assert_eq!(exptime(b"-9223372036854775807"), Some(Exptime(-i64::MAX)));
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
        for text in [
            &b""[..],
            b"-",
            b"--1",
            b"9223372036854775808",
            b"-18446744073709551615",
        ] {
            assert_eq!(exptime(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u64, seconds in -i64::MAX..=i64::MAX) {
            prop_assert_eq!(unsigned(number.to_string().as_bytes()), Some(number));
            prop_assert_eq!(
                exptime(seconds.to_string().as_bytes()),
                Some(Exptime(seconds))
            );
        }

        #[test]
        fn more_digits_never_wrap(text in "[0-9]{1,25}") {
            let expected = if text.len() <= 20 { text.parse().ok() } else { None };
            prop_assert_eq!(unsigned(text.as_bytes()), expected);
        }
    }
}
