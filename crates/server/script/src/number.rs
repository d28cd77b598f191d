//! Lua's numbers and how they are written.

use std::ffi::CStr;
use std::ptr;

/// The longest text that is parsed as a number: a value of any length may be tried as one, again and again.
const LEN_MAX: usize = 256;

/// The number that a text is to Lua 5.1, which asks C's `strtod`: decimal or hexadecimal, infinity or NaN by their names,
/// with blanks around it.
pub fn parse(text: &[u8]) -> Option<f64> {
    if text.len() > LEN_MAX {
        return None;
    }
    let mut copy = [0; LEN_MAX + 1];
    copy[..text.len()].copy_from_slice(text);
    // As in Lua, a text ends at its first zero byte.
    let text = CStr::from_bytes_until_nul(&copy).ok()?;
    let mut end = ptr::null_mut();
    // SAFETY: `text` ends with a zero byte, and `end` is a place for one pointer. No thread of this process sets a locale,
    // the only other thing that it reads.
    let number = unsafe { libc::strtod(text.as_ptr(), &mut end) };
    // What `strtod` did not use is the end of `text`, so the difference is not negative.
    let used = end.addr() - text.as_ptr().addr();
    let behind = &text.to_bytes()[used..];
    let is_all = behind
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t'..=b'\r'));
    (used > 0 && is_all).then_some(number)
}

/// Digits of a number in a text.
const DIGITS: usize = 14;

/// A number as an argument of a command, as Redis writes it since 7.2: by the fewest digits that tell it.
pub fn as_argument(number: f64) -> String {
    /// Half of the largest integer: whole numbers up to here have all of their digits.
    const WHOLE_MAX: f64 = (i64::MAX / 2) as f64;
    /// Zeros that are written behind the digits of a whole number beyond that.
    const ZEROS_MAX: i32 = 7;
    if !number.is_finite() {
        return as_text(number);
    }
    if number.abs() <= WHOLE_MAX && number.fract() == 0.0 {
        return (number as i64).to_string();
    }
    let sign = if number < 0.0 { "-" } else { "" };
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let digits = mantissa.replace('.', "");
    // The place of the last digit.
    let last = exponent + 1 - digits.len() as i32;
    let zeros_max = ZEROS_MAX - sign.len() as i32;
    let is_whole = last >= 0 && exponent.abs() < digits.len() as i32 + zeros_max;
    let is_fraction = last < 0 && (last > -7 || exponent.abs() < 4);
    match is_whole || is_fraction {
        true => number.to_string(),
        false => format!("{sign}{mantissa}e{exponent:+}"),
    }
}

/// A number in a text, as C's `%.14g` writes it.
pub fn as_text(number: f64) -> String {
    if !number.is_finite() {
        let name = if number.is_nan() { "nan" } else { "inf" };
        let sign = if number.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{name}");
    }
    let scientific = format!("{:.*e}", DIGITS - 1, number);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if exponent < -4 || exponent >= DIGITS as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", shortened(mantissa), exponent.abs());
    }
    let decimals = (DIGITS as i32 - 1 - exponent) as usize;
    shortened(&format!("{number:.decimals$}")).to_owned()
}

/// Without the zeros at the end of a fraction.
fn shortened(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbers_as_in_lua() {
        let infinity = Some(f64::INFINITY);
        for (text, number) in [
            ("10", Some(10.0)),
            (" 10\n", Some(10.0)),
            ("\x0b10\x0c", Some(10.0)),
            ("-1.5", Some(-1.5)),
            ("+1", Some(1.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("1e3", Some(1000.0)),
            ("1e400", infinity),
            ("0x10", Some(16.0)),
            ("-0X1.8p1", Some(-3.0)),
            ("0x123456789abcdef01", Some(20_988_295_479_420_645_000.0)),
            ("inf", infinity),
            ("-INF", Some(f64::NEG_INFINITY)),
            ("+Infinity ", infinity),
            ("10\0x", Some(10.0)),
            ("", None),
            (" ", None),
            ("-", None),
            ("--1", None),
            ("1x", None),
            ("1_0", None),
            ("0x", None),
            ("0x1g", None),
            ("infinit", None),
            ("1 2", None),
            ("1\u{a0}", None),
        ] {
            assert_eq!(parse(text.as_bytes()), number, "{text:?}");
        }
        for text in ["nan", "-NaN", " nan "] {
            let number = parse(text.as_bytes()).unwrap();
            assert!(number.is_nan(), "{text}");
            assert_eq!(number.is_sign_negative(), text.starts_with('-'));
        }
        assert_eq!(parse(&[b'0'; LEN_MAX]), Some(0.0));
        assert_eq!(parse(&[b'0'; LEN_MAX + 1]), None);
    }

    #[test]
    fn numbers_are_written_as_in_redis() {
        for (number, text, argument) in [
            (0.0, "0", "0"),
            (1.0, "1", "1"),
            (-30_000.0, "-30000", "-30000"),
            (1.5, "1.5", "1.5"),
            (0.1, "0.1", "0.1"),
            (-0.0, "-0", "0"),
            (1e13, "10000000000000", "10000000000000"),
            (1e14, "1e+14", "100000000000000"),
            (1e20, "1e+20", "1e+20"),
            (0.00001, "1e-05", "0.00001"),
            (1e-7, "1e-07", "1e-7"),
            (-1.25e-6, "-1.25e-06", "-1.25e-6"),
            (1.0 / 3.0, "0.33333333333333", "0.3333333333333333"),
            (312_681_270.399_015, "312681270.39902", "312681270.399015"),
            (1e18, "1e+18", "1000000000000000000"),
            (
                9_223_372_036_854_775_807.0,
                "9.2233720368548e+18",
                "9223372036854776000",
            ),
            (
                -9_223_372_036_854_775_807.0,
                "-9.2233720368548e+18",
                "-9223372036854776000",
            ),
            (1e19, "1e+19", "1e+19"),
            (5e-324, "4.9406564584125e-324", "5e-324"),
            (f64::MAX, "1.7976931348623e+308", "1.7976931348623157e+308"),
            (f64::INFINITY, "inf", "inf"),
        ] {
            assert_eq!(as_text(number), text);
            assert_eq!(as_argument(number), argument);
        }
    }
}
