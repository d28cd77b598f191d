//! Parsers of decimal numbers: no number wraps, no byte is skipped, except where memcached's own parser does so.

use crate::command::Exptime;

/// The most bytes of a number of 64 bits, and of one of 32. memcached refuses longer words, leading
/// zeros or not.
const LEN_MAX_64: usize = 22;
const LEN_MAX_32: usize = 11;

/// A number of digits alone.
#[inline]
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    if text.len() > LEN_MAX_64 {
        return None;
    }
    digits(text)
}

/// A number of digits alone that fits 32 bits.
#[inline]
pub(crate) fn unsigned_32(text: &[u8]) -> Option<u32> {
    if text.len() > LEN_MAX_32 {
        return None;
    }
    digits(text)?.try_into().ok()
}

/// An expiry: 32 bits with a sign. A sign alone is 0, as in memcached.
#[inline]
pub(crate) fn exptime(text: &[u8]) -> Option<Exptime> {
    if text.len() > LEN_MAX_32 {
        return None;
    }
    let seconds = match text {
        b"-" => 0,
        [b'-', rest @ ..] => -i64::try_from(digits(rest)?).ok()?,
        _ => i64::try_from(digits(text)?).ok()?,
    };
    seconds.try_into().ok().map(Exptime)
}

/// The length of a data block: 32 bits with a sign, not negative, and with room for the block's end.
#[inline]
pub(crate) fn block_len(text: &[u8]) -> Option<u32> {
    match digits(text) {
        Some(len) if text.len() <= LEN_MAX_32 && len <= i32::MAX as u64 - 2 => Some(len as u32),
        Some(_) => None,
        // A zero with a sign, as an expiry may have it.
        None => (exptime(text)? == Exptime(0)).then_some(0),
    }
}

/// The client's flags on a storage command's line. memcached reads them with `strtoul`: a sign and
/// any number of leading zeros are allowed, and the lower 32 of 64 bits are kept.
#[inline]
pub(crate) fn client_flags(text: &[u8]) -> Option<u32> {
    match text {
        [b'+', rest @ ..] => digits(rest).map(|flags| flags as u32),
        // A negative number wraps to 64 bits. It is refused if the result would be negative as a signed number.
        [b'-', rest @ ..] => {
            let wrapped = digits(rest)?.wrapping_neg();
            i64::try_from(wrapped).ok().map(|flags| flags as u32)
        }
        _ => digits(text).map(|flags| flags as u32),
    }
}

/// The expiry on a storage command's line. memcached reads it with `strtol`, and keeps the lower 32 of
/// 64 bits. So 4294967295, which some clients send for -1, is -1.
#[inline]
pub(crate) fn stored_exptime(text: &[u8]) -> Option<Exptime> {
    let seconds = match text {
        [b'+', rest @ ..] => i64::try_from(digits(rest)?).ok()?,
        [b'-', rest @ ..] => 0_i64.checked_sub_unsigned(digits(rest)?)?,
        _ => i64::try_from(digits(text)?).ok()?,
    };
    Some(Exptime(seconds as i32))
}

/// A number of digits alone, of any length. `nuthatch-engine` has one as well, for the values of counters: this crate
/// knows no engine, and the two share no crate below.
#[inline]
pub(crate) fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_end_where_their_type_ends() {
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned(b"0000000000000000000001"), Some(1));
        assert_eq!(unsigned_32(b"4294967295"), Some(u32::MAX));
        for text in [
            &b""[..],
            b"+1",
            b"-1",
            b"-",
            b"1 ",
            b"0x1",
            b"1.5",
            b"18446744073709551616",
            b"00000000000000000000001",
        ] {
            assert_eq!(unsigned(text), None, "{text:?}");
            assert_eq!(unsigned_32(text), None, "{text:?}");
        }
        assert_eq!(unsigned_32(b"4294967296"), None);
        assert_eq!(unsigned_32(b"000000000001"), None);
    }

    #[test]
    fn an_expiry_has_32_bits() {
        for (text, seconds) in [
            (&b"0"[..], Some(0)),
            (b"-", Some(0)),
            (b"-1", Some(-1)),
            (b"00000000001", Some(1)),
            (b"2147483647", Some(i32::MAX)),
            (b"-2147483648", Some(i32::MIN)),
            (b"2147483648", None),
            (b"4294967295", None),
            (b"-2147483649", None),
            (b"9223372036854775807", None),
            (b"-9223372036854775808", None),
            (b"000000000001", None),
            (b"+1", None),
            (b"--1", None),
            (b"", None),
        ] {
            assert_eq!(exptime(text), seconds.map(Exptime), "{text:?}");
        }
    }

    #[test]
    fn what_a_storage_line_says_is_cut_to_32_bits() {
        for (text, flags, seconds) in [
            (&b"0"[..], Some(0), Some(0)),
            (b"+7", Some(7), Some(7)),
            (b"-0", Some(0), Some(0)),
            (b"-1", None, Some(-1)),
            (b"2147483648", Some(1 << 31), Some(i32::MIN)),
            (b"4294967295", Some(u32::MAX), Some(-1)),
            (b"4294967296", Some(0), Some(0)),
            (b"-2147483649", None, Some(i32::MAX)),
            (b"9223372036854775807", Some(u32::MAX), Some(-1)),
            (b"-9223372036854775808", None, Some(0)),
            (b"9223372036854775808", Some(0), None),
            (b"-9223372036854775809", Some(u32::MAX), None),
            (b"18446744073709551615", Some(u32::MAX), None),
            (b"-18446744073709551615", Some(1), None),
            (b"18446744073709551616", None, None),
            (b"00000000000000000000000001", Some(1), Some(1)),
            (b"", None, None),
            (b"-", None, None),
            (b"+", None, None),
            (b"+-1", None, None),
            (b"1x", None, None),
        ] {
            assert_eq!(client_flags(text), flags, "{text:?}");
            assert_eq!(stored_exptime(text), seconds.map(Exptime), "{text:?}");
        }
    }

    #[test]
    fn a_block_is_below_2_gigabytes() {
        for (text, len) in [
            (&b"0"[..], Some(0)),
            (b"-0", Some(0)),
            (b"03", Some(3)),
            (b"2147483645", Some(i32::MAX as u32 - 2)),
            (b"2147483646", None),
            (b"4294967299", None),
            (b"-1", None),
            (b"", None),
        ] {
            assert_eq!(block_len(text), len, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u64, seconds: i32) {
            prop_assert_eq!(unsigned(number.to_string().as_bytes()), Some(number));
            let text = seconds.to_string();
            prop_assert_eq!(exptime(text.as_bytes()), Some(Exptime(seconds)));
            prop_assert_eq!(stored_exptime(text.as_bytes()), Some(Exptime(seconds)));
        }

        #[test]
        fn more_digits_never_wrap(text in "[0-9]{1,25}") {
            prop_assert_eq!(digits(text.as_bytes()), text.parse().ok());
        }
    }
}
