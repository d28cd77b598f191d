//! LZF, by which Redis compresses the values of its dumps: literals, and copies of what came before.
//!
//! ```text
//!  000nnnnn                  n + 1 bytes follow as they are
//!  nnnooooo oooooooo         n + 2 bytes are copied from o + 1 bytes back, if n is 1 to 6
//!  111ooooo n oooooooo       the same with n + 9 bytes
//! ```

use super::{Error, array, take};

/// A number of bytes to copy that another byte adds to.
const LONG: usize = 7;

/// Unpacks a value of exactly `len` bytes.
pub fn unpack(packed: &[u8], len: usize) -> Result<Vec<u8>, Error> {
    let mut rest = packed;
    let mut out = Vec::new();
    out.try_reserve_exact(len)?;
    while !rest.is_empty() {
        let control = usize::from(array::<1>(&mut rest)?[0]);
        let count = control >> 5;
        if count == 0 {
            let literal = take(&mut rest, control + 1)?;
            fits(&out, literal.len(), len)?;
            out.extend_from_slice(literal);
            continue;
        }
        let count = match count {
            LONG => LONG + usize::from(array::<1>(&mut rest)?[0]),
            count => count,
        };
        let low = usize::from(array::<1>(&mut rest)?[0]);
        let back = ((control & 0x1f) << 8 | low) + 1;
        copy(&mut out, back, count + 2, len)?;
    }
    match out.len() == len {
        true => Ok(out),
        false => Err(Error::Format),
    }
}

fn fits(out: &[u8], more: usize, len: usize) -> Result<(), Error> {
    match out.len() + more <= len {
        true => Ok(()),
        false => Err(Error::Format),
    }
}

/// Copies from so many bytes back. The copy may reach into itself.
fn copy(out: &mut Vec<u8>, back: usize, count: usize, len: usize) -> Result<(), Error> {
    fits(out, count, len)?;
    let from = out.len().checked_sub(back).ok_or(Error::Format)?;
    for at in from..from + count {
        out.push(out[at]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies() {
        assert_eq!(unpack(b"", 0).unwrap(), b"");
        assert_eq!(unpack(b"\x02abc", 3).unwrap(), b"abc");
        // 3 bytes from 3 back, and 9 of the last one.
        assert_eq!(unpack(b"\x02abc\x20\x02", 6).unwrap(), b"abcabc");
        assert_eq!(unpack(b"\x00a\xe0\x00\x00", 10).unwrap(), [b'a'; 10]);
    }

    #[test]
    fn what_is_not_packed_so_is_refused() {
        for (packed, len) in [
            (&b"\x02ab"[..], 3),
            (b"\x02abc", 2),
            (b"\x02abc", 4),
            (b"\x20\x00", 3),
            (b"\x00a\x20\x01", 4),
            (b"\x00a\xe0", 10),
            (b"\x00a\xe0\x00\x00", 9),
        ] {
            assert_eq!(unpack(packed, len), Err(Error::Format), "{packed:?}");
        }
    }
}
