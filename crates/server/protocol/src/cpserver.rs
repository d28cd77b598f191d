//! CPServer's binary protocol (CPHash, section 4.1): LOOKUP and INSERT by keys of 64 bits, and for each a second form
//! whose answer has a status, which the paper's form lacks.
//!
//! All numbers are little-endian. A request is a header of 16 bytes, and a value if it stores one:
//!
//! ```text
//!  byte   0        4        8                16
//!         | op     | size   | key            | value: size bytes, if op stores one |
//!
//!  op           its answer
//!  0  LOOKUP    | size | value: size bytes |            a miss is size 0, as an empty value is
//!  1  INSERT    none
//!  2  FIND      | status | size | value: size bytes |   a miss is status 1
//!  3  STORE     | status | 0 |
//!
//!  any other    | status | 0 |                          status 4, and the connection closes
//!
//!  status       0 done   1 no such key   2 value too large   3 out of memory   4 no such operation
//! ```
//!
//! `size` has no meaning in LOOKUP and FIND. All 64 bits of a key count. For an engine the key is these 8 bytes, so a
//! request borrows it from the input like any other key.

use crate::awaited::Awaited;
use crate::limits::Limits;

/// The paper's port.
pub const PORT: u16 = 2117;

/// Bytes of a request without its value.
pub const HEADER: usize = 16;

/// Bytes of a key.
pub const KEY_LEN: usize = 8;

/// Bytes of the operation's number.
const OP: usize = 4;

/// The longest value whose length fits into an answer.
pub const VALUE_MAX: usize = u32::MAX as usize;

/// The form of a request: how much its answer tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The paper's LOOKUP and INSERT.
    Paper,
    /// FIND and STORE: each request has an answer, and the answer a status.
    Extended,
}

/// The outcome of a request, in the answers to FIND and STORE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// Found, or stored.
    Done = 0,
    /// There is no such key.
    NotFound = 1,
    /// The value can never be stored.
    TooLarge = 2,
    /// The value finds no memory now.
    OutOfMemory = 3,
    /// No operation has this number.
    Unknown = 4,
}

/// The request at the front of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// Nothing complete yet; ask again with more bytes.
    Incomplete,
    /// LOOKUP or FIND, of [`HEADER`] bytes.
    Lookup {
        /// [`KEY_LEN`] bytes.
        key: &'a [u8],
        /// Which of the two.
        dialect: Dialect,
    },
    /// INSERT or STORE with its whole value: [`HEADER`] bytes and the value.
    Insert {
        /// [`KEY_LEN`] bytes.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
        /// Which of the two.
        dialect: Dialect,
    },
    /// The header of an INSERT or a STORE whose value has not arrived completely. The server may wait for it, or take
    /// the header and receive the value piece by piece.
    Body(StoreHeader<'a>),
    /// The header of an INSERT or a STORE whose value is over the limit: it is to be dropped,
    /// and the key's old value must not survive.
    TooLarge(StoreHeader<'a>),
    /// No operation has this number. The start of the next request is unknown.
    Unknown {
        /// The number.
        op: u32,
    },
}

/// The header of an INSERT or a STORE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreHeader<'a> {
    /// [`KEY_LEN`] bytes.
    pub key: &'a [u8],
    /// Bytes of the value, whether they have arrived already or not.
    pub value_len: usize,
    /// Which of the two.
    pub dialect: Dialect,
}

/// Parses the front of `input`. More input never changes a result other than [`Parsed::Incomplete`] and
/// [`Parsed::Body`].
#[inline]
pub fn parse<'a>(input: &'a [u8], limits: &Limits) -> Parsed<'a> {
    let Some((header, rest)) = input.split_first_chunk::<HEADER>() else {
        return short(input);
    };
    let (op, size, key) = (word(header, 0), word(header, 4), &header[8..]);
    let (stores, dialect) = match op {
        0 => (false, Dialect::Paper),
        1 => (true, Dialect::Paper),
        2 => (false, Dialect::Extended),
        3 => (true, Dialect::Extended),
        _ => return Parsed::Unknown { op },
    };
    if !stores {
        return Parsed::Lookup { key, dialect };
    }
    let announced = StoreHeader {
        key,
        value_len: size as usize,
        dialect,
    };
    if announced.value_len > limits.value_max {
        return Parsed::TooLarge(announced);
    }
    match rest.get(..announced.value_len) {
        Some(value) => Parsed::Insert {
            key,
            value,
            dialect,
        },
        None => Parsed::Body(announced),
    }
}

/// The bytes that must arrive before [`parse`], which returned [`Parsed::Incomplete`] for `input`, can return more.
pub fn awaited(input: &[u8]) -> Awaited {
    Awaited::bytes(if input.len() < OP { OP } else { HEADER })
}

/// Parses less than a header: a request that begins with an unknown operation is refused before its header is complete.
#[cold]
fn short<'a>(input: &[u8]) -> Parsed<'a> {
    match input.first_chunk::<OP>() {
        Some(op) if u32::from_le_bytes(*op) > 3 => Parsed::Unknown {
            op: u32::from_le_bytes(*op),
        },
        _ => Parsed::Incomplete,
    }
}

#[inline(always)]
fn word(header: &[u8; HEADER], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

/// The bytes that precede a value that was found. The value must follow. `len` is at most [`VALUE_MAX`].
#[inline]
pub fn value(out: &mut Vec<u8>, dialect: Dialect, len: usize) {
    debug_assert!(len <= VALUE_MAX);
    let size = (len as u32).to_le_bytes();
    match dialect {
        Dialect::Paper => out.extend_from_slice(&size),
        Dialect::Extended => {
            out.extend_from_slice(&(Status::Done as u32).to_le_bytes());
            out.extend_from_slice(&size);
        }
    }
}

/// The answer of a LOOKUP or a FIND that found nothing.
#[inline]
pub fn miss(out: &mut Vec<u8>, dialect: Dialect) {
    match dialect {
        Dialect::Paper => out.extend_from_slice(&[0; 4]),
        Dialect::Extended => status(out, Status::NotFound),
    }
}

/// The answer of an INSERT, which has none, or of a STORE.
#[inline]
pub fn stored(out: &mut Vec<u8>, dialect: Dialect, outcome: Status) {
    if dialect == Dialect::Extended {
        status(out, outcome);
    }
}

/// The answer to an unknown operation. Behind it the connection closes.
#[cold]
pub fn unknown(out: &mut Vec<u8>) {
    status(out, Status::Unknown);
}

#[inline]
fn status(out: &mut Vec<u8>, status: Status) {
    out.extend_from_slice(&(status as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits::of_values(64);

    fn request(op: u32, size: u32, key: u64, value: &[u8]) -> Vec<u8> {
        let mut bytes = [op.to_le_bytes(), size.to_le_bytes()].concat();
        bytes.extend(key.to_le_bytes());
        bytes.extend(value);
        bytes
    }

    #[test]
    fn the_four_requests() {
        let key = 0x0807_0605_0403_0201_u64;
        let bytes = key.to_le_bytes();
        for (op, dialect) in [(0, Dialect::Paper), (2, Dialect::Extended)] {
            // The size has no meaning here, and the bytes that follow are another request.
            let input = request(op, 99, key, b"more");
            let parsed = parse(&input, &LIMITS);
            assert_eq!(
                parsed,
                Parsed::Lookup {
                    key: &bytes,
                    dialect
                }
            );
        }
        for (op, dialect) in [(1, Dialect::Paper), (3, Dialect::Extended)] {
            for value in [&b""[..], b"acorn", &[7; 64]] {
                let mut input = request(op, value.len() as u32, key, value);
                input.extend(b"more");
                let parsed = parse(&input, &LIMITS);
                assert_eq!(
                    parsed,
                    Parsed::Insert {
                        key: &bytes,
                        value,
                        dialect
                    }
                );
            }
        }
    }

    #[test]
    fn what_is_cut_off_is_awaited() {
        let input = request(1, 5, 9, b"acorn");
        for cut in 0..input.len() {
            let parsed = parse(&input[..cut], &LIMITS);
            if cut < HEADER {
                assert_eq!(parsed, Parsed::Incomplete, "{cut}");
            } else {
                let (key, value_len) = (&input[8..16], 5);
                let dialect = Dialect::Paper;
                assert_eq!(
                    parsed,
                    Parsed::Body(StoreHeader {
                        key,
                        value_len,
                        dialect
                    })
                );
            }
        }
    }

    #[test]
    fn a_value_over_the_limit_is_told_by_its_header() {
        for size in [65, 1 << 20, u32::MAX] {
            let input = request(3, size, 1, b"");
            let Parsed::TooLarge(announced) = parse(&input, &LIMITS) else {
                panic!("{size} is too large");
            };
            assert_eq!(announced.value_len, size as usize);
        }
    }

    #[test]
    fn no_operation_is_told_by_four_bytes() {
        for op in [4, 0x80, u32::from_le_bytes(*b"get "), u32::MAX] {
            let input = request(op, 0, 0, b"");
            for cut in 4..input.len() {
                assert_eq!(parse(&input[..cut], &LIMITS), Parsed::Unknown { op });
            }
            assert_eq!(parse(&input[..3], &LIMITS), Parsed::Incomplete);
        }
    }

    #[test]
    fn answers_byte_by_byte() {
        let bytes = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            out
        };
        let (paper, extended) = (Dialect::Paper, Dialect::Extended);
        assert_eq!(bytes(&|out| value(out, paper, 258)), [2, 1, 0, 0]);
        assert_eq!(
            bytes(&|out| value(out, extended, 258)),
            [0, 0, 0, 0, 2, 1, 0, 0]
        );
        assert_eq!(bytes(&|out| miss(out, paper)), [0; 4]);
        assert_eq!(bytes(&|out| miss(out, extended)), [1, 0, 0, 0, 0, 0, 0, 0]);
        assert!(bytes(&|out| stored(out, paper, Status::TooLarge)).is_empty());
        let refused = bytes(&|out| stored(out, extended, Status::OutOfMemory));
        assert_eq!(refused, [3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(&|out| unknown(out)), [4, 0, 0, 0, 0, 0, 0, 0]);
    }
}
