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
