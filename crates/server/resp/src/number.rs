//! Numbers as Redis reads and writes them.

use itoa::Buffer;

/// An integer of 64 bits: a minus sign if it is negative, and digits without leading zeros. Nothing else is allowed.
#[inline]
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    // 19 digits fit 64 bits unsigned.
    let magnitude = digits.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + u64::from(digit))
    })?;
    if negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// Digits behind the point.
const PLACES: usize = 17;

/// 1 in units of the last place.
const ONE: i128 = 10_i128.pow(PLACES as u32);

/// The limit of numbers, exclusive.
const REACH: i128 = 10_i128.pow(21) * ONE;

/// The longest text that is parsed as a number.
const LEN_MAX: usize = 128;

/// A decimal number as INCRBYFLOAT counts: 17 places behind the point, 21 digits before it, exact. (Redis counts in
/// the processor's long double and rounds to as many places, so the two agree where that is exact enough.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decimal(i128);

impl Decimal {
    /// True if the number is below 0.
    pub fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Parses `text` as a number: a sign, digits with a point among them, an exponent. The result is rounded to the
    /// last place.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > LEN_MAX {
            return None;
        }
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let magnitude = parse_mantissa(mantissa, exponent)?;
        Some(Self(if negative { -magnitude } else { magnitude }))
    }

    /// The sum, if it is within reach.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let sum = self.0 + other.0;
        (sum.abs() < REACH).then_some(Self(sum))
    }

    /// Appends the shortest text.
    pub fn write(self, out: &mut Vec<u8>) {
        let magnitude = self.0.unsigned_abs();
        let (whole, part) = (magnitude / ONE as u128, magnitude % ONE as u128);
        if self.0 < 0 {
            out.push(b'-');
        }
        out.extend_from_slice(Buffer::new().format(whole).as_bytes());
        if part > 0 {
            let mut places = [b'0'; PLACES];
            let mut left = part;
            for place in places.iter_mut().rev() {
                *place += (left % 10) as u8;
                left /= 10;
            }
            out.push(b'.');
            out.extend_from_slice(without_zeros(&places));
        }
    }
}

/// Digits without the zeros at their end.
fn without_zeros(places: &[u8]) -> &[u8] {
    let last = places.iter().rposition(|&digit| digit != b'0');
    &places[..last.map_or(0, |last| last + 1)]
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // A number has few digits, so a larger exponent has the same effect as this one.
    let exponent = digits.iter().fold(0_i64, |exponent, &digit| {
        (exponent * 10 + i64::from(digit - b'0')).min(10_000)
    });
    Some(if negative { -exponent } else { exponent })
}

/// The digits of `text`, shifted by `exponent`, in units of the last place.
fn parse_mantissa(text: &[u8], exponent: i64) -> Option<i128> {
    let point = text.iter().position(|&byte| byte == b'.');
    let (before, behind) = match point {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    if before.is_empty() && behind.is_empty() {
        return None;
    }
    // The decimal power of the next digit, in units of the last place.
    let mut power = before.len() as i64 - 1 + exponent + PLACES as i64;
    let mut sum: i128 = 0;
    let mut half = false;
    for &byte in before.iter().chain(behind) {
        if !byte.is_ascii_digit() {
            return None;
        }
        let digit = i128::from(byte - b'0');
        if power == -1 {
            half = digit >= 5;
        } else if power >= 0 && digit > 0 {
            let unit = u32::try_from(power)
                .ok()
                .and_then(|power| 10_i128.checked_pow(power))?;
            sum = sum.checked_add(unit.checked_mul(digit)?)?;
        }
        power -= 1;
    }
    sum += i128::from(half);
    (sum < REACH).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_are_written_in_one_way() {
        for (text, number) in [
            (&b"0"[..], 0),
            (b"-1", -1),
            (b"9223372036854775807", i64::MAX),
            (b"-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(integer(text), Some(number));
        }
        for text in [
            &b""[..],
            b"-",
            b"-0",
            b"00",
            b"01",
            b"+1",
            b" 1",
            b"1 ",
            b"1.0",
            b"0x1",
            b"1e3",
            b"9223372036854775808",
            b"-9223372036854775809",
            b"99999999999999999999",
        ] {
            assert_eq!(integer(text), None, "{text:?}");
        }
    }

    fn sum(one: &str, other: &str) -> Option<String> {
        let sum = Decimal::parse(one.as_bytes())?.checked_add(Decimal::parse(other.as_bytes())?)?;
        let mut out = Vec::new();
        sum.write(&mut out);
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn decimals_are_exact() {
        for (one, other, expected) in [
            ("10.50", "0.1", "10.6"),
            ("0.1", "0.2", "0.3"),
            ("5.0e3", "2.0e2", "5200"),
            ("-5", "4.5", "-0.5"),
            ("1", "-1.00", "0"),
            ("+.5", "5.", "5.5"),
            ("1e-17", "0", "0.00000000000000001"),
            ("4e-18", "0", "0"),
            ("5e-18", "0", "0.00000000000000001"),
            ("999999999999999999999", "0", "999999999999999999999"),
            ("0e99999999999999999999", "1", "1"),
            ("1e-99999", "1", "1"),
        ] {
            assert_eq!(sum(one, other).as_deref(), Some(expected), "{one} {other}");
        }
        for text in [
            "",
            "-",
            ".",
            "e5",
            "1e",
            "1e+",
            "abc",
            "1 ",
            " 1",
            "1..2",
            "inf",
            "nan",
            "0x10",
            "1e21",
            "1e99999999999",
        ] {
            assert_eq!(Decimal::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(sum("999999999999999999999", "1"), None);
    }

    proptest! {
        #[test]
        fn integers_are_what_the_standard_library_says(number: i64) {
            prop_assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "[-+0-9.eE]{0,40}") {
            let _ = Decimal::parse(text.as_bytes());
            let _ = integer(text.as_bytes());
        }

        #[test]
        fn whole_decimals_add_as_integers(one: i32, other: i32) {
            let expected = (i64::from(one) + i64::from(other)).to_string();
            prop_assert_eq!(sum(&one.to_string(), &other.to_string()), Some(expected));
        }
    }
}
