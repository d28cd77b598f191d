//! Lua's numbers and how they are written.

/// The number that a text is, with blanks around it: decimal, or hexadecimal without a fraction.
pub fn parse(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text)
        .ok()?
        .trim_matches([' ', '\t', '\r', '\n', '\x0b', '\x0c']);
    let (negative, magnitude) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let hexadecimal = magnitude
        .strip_prefix("0x")
        .or(magnitude.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()? as f64
        }
        Some(_) => return None,
        // Rust also knows names of numbers, and allows a second sign.
        None if !magnitude.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
            return None;
        }
        None => magnitude.parse().ok()?,
    };
    Some(if negative { -number } else { number })
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
        for (text, number) in [
            ("10", Some(10.0)),
            (" 10\n", Some(10.0)),
            ("-1.5", Some(-1.5)),
            ("+1", Some(1.0)),
            (".5", Some(0.5)),
            ("1e3", Some(1000.0)),
            ("0x10", Some(16.0)),
            ("", None),
            ("-", None),
            ("--1", None),
            ("1x", None),
            ("0x", None),
            ("inf", None),
            ("nan", None),
            ("1 2", None),
        ] {
            assert_eq!(parse(text.as_bytes()), number, "{text:?}");
        }
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
