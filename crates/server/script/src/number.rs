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

/// Digits of a number in a text, and in an argument of a command.
pub const DIGITS_OF_TEXT: usize = 14;
pub const DIGITS_OF_ARGUMENT: usize = 17;

/// A number as C's `%.{digits}g` writes it.
pub fn written(number: f64, digits: usize) -> String {
    if !number.is_finite() {
        let name = if number.is_nan() { "nan" } else { "inf" };
        let sign = if number.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{name}");
    }
    let scientific = format!("{:.*e}", digits - 1, number);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", shortened(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent) as usize;
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
    fn numbers_are_written_as_by_c() {
        for (number, text, argument) in [
            (0.0, "0", "0"),
            (1.0, "1", "1"),
            (-30_000.0, "-30000", "-30000"),
            (1.5, "1.5", "1.5"),
            (0.1, "0.1", "0.10000000000000001"),
            (1e13, "10000000000000", "10000000000000"),
            (1e14, "1e+14", "100000000000000"),
            (1e20, "1e+20", "1e+20"),
            (0.00001, "1e-05", "1.0000000000000001e-05"),
            (f64::INFINITY, "inf", "inf"),
        ] {
            assert_eq!(written(number, DIGITS_OF_TEXT), text);
            assert_eq!(written(number, DIGITS_OF_ARGUMENT), argument);
        }
    }
}
