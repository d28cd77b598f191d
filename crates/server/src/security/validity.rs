//! When a certificate ends: the one field of X.509 that this server reads by itself. (RFC 5280, sections 4.1 and 4.1.2.5;
//! DER is that of X.690.)

/// Tags of DER.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The end of a certificate's validity in unix time, or `None` if it cannot be read.
pub(super) fn end(certificate: &[u8]) -> Option<u64> {
    let (_, certificate, _) = element(certificate)?;
    let (tag, signed, _) = element(certificate)?;
    if tag != SEQUENCE {
        return None;
    }
    // The version may be missing; then serial number, signature, issuer, validity.
    let mut rest = signed;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (_, _, behind) = element(validity)?;
    let (tag, text, _) = element(behind)?;
    let (year, text) = match tag {
        UTC_TIME => {
            let year = number(text.get(..2)?)?;
            (
                if year < 50 { 2000 + year } else { 1900 + year },
                text.get(2..)?,
            )
        }
        GENERALIZED_TIME => (number(text.get(..4)?)?, text.get(4..)?),
        _ => return None,
    };
    unix(year, text)
}

/// An element: its tag, what is in it, and what is behind it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        ..=0x7f => (usize::from(first), rest),
        // So many bytes tell the length; four are more than any file of certificates has.
        0x81..=0x84 => {
            let (len, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (
                len.iter()
                    .fold(0, |len, &byte| len << 8 | usize::from(byte)),
                rest,
            )
        }
        _ => return None,
    };
    let (inner, behind) = rest.split_at_checked(len)?;
    Some((tag, inner, behind))
}

/// `MMDDHHMMSSZ` of a year.
fn unix(year: u64, text: &[u8]) -> Option<u64> {
    let (digits, zone) = text.split_at_checked(10)?;
    if zone != b"Z" {
        return None;
    }
    let (pairs, _) = digits.as_chunks::<2>();
    let mut parts = pairs.iter().map(|pair| number(pair));
    let mut next = || parts.next().flatten();
    let (month, day, hour, minute, second) = (next()?, next()?, next()?, next()?, next()?);
    let days = days_before(year, month)? + day.checked_sub(1)?;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days from the beginning of 1970 to that of a month.
fn days_before(year: u64, month: u64) -> Option<u64> {
    const MONTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let index = usize::try_from(month.checked_sub(1)?).ok()?;
    let before = MONTHS.get(..index).filter(|_| index < MONTHS.len())?;
    let leap_day = u64::from(month > 2 && is_leap(year));
    let years: u64 = (1970..year)
        .map(|year| 365 + u64::from(is_leap(year)))
        .sum();
    Some(years + before.iter().sum::<u64>() + leap_day)
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| 10 * number + u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, inner: &[u8]) -> Vec<u8> {
        let len = inner.len() as u8;
        let mut bytes = match len {
            0..0x80 => vec![tag, len],
            _ => vec![tag, 0x81, len],
        };
        bytes.extend_from_slice(inner);
        bytes
    }

    fn certificate(version: bool, end: &[u8]) -> Vec<u8> {
        let mut signed = if version {
            der(VERSION, &der(2, &[2]))
        } else {
            Vec::new()
        };
        signed.extend(der(2, &[1; 20]));
        signed.extend(der(SEQUENCE, &[6, 1, 1]));
        signed.extend(der(SEQUENCE, &[0; 60]));
        let mut validity = der(UTC_TIME, b"240101000000Z");
        validity.extend_from_slice(end);
        signed.extend(der(SEQUENCE, &validity));
        der(SEQUENCE, &der(SEQUENCE, &signed))
    }

    #[test]
    fn both_forms_of_a_time_are_read() {
        for (time, expected) in [
            (der(UTC_TIME, b"700101000000Z"), 0),
            (der(UTC_TIME, b"260228235959Z"), 1_772_323_199),
            (der(UTC_TIME, b"491231235959Z"), 2_524_607_999),
            (der(GENERALIZED_TIME, b"20000301000000Z"), 951_868_800),
            (der(GENERALIZED_TIME, b"21000301000000Z"), 4_107_542_400),
        ] {
            for version in [false, true] {
                assert_eq!(
                    end(&certificate(version, &time)),
                    Some(expected),
                    "{time:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        let whole = certificate(true, &der(UTC_TIME, b"260228235959Z"));
        for cut in 0..whole.len() {
            assert_eq!(end(&whole[..cut]), None, "{cut}");
        }
        for time in [
            &b"26022823595Z"[..],
            b"260228235959+",
            b"261328235959Z",
            b"260200235959Z",
            b"",
        ] {
            assert_eq!(
                end(&certificate(true, &der(UTC_TIME, time))),
                None,
                "{time:?}"
            );
        }
        assert_eq!(end(&[0xff; 300]), None);
    }
}
