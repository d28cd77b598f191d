//! Answers of the binary protocol, appended to a connection's output.

use super::{ANSWER_MAGIC, HEADER, Head, Status};

/// Bytes of a value's extras: its flags.
const FLAGS: usize = 4;

/// Lengths in a header.
#[derive(Clone, Copy, Default)]
struct Lengths {
    key: usize,
    extras: usize,
    /// The length of extras, key and value together.
    body: usize,
}

#[inline]
fn header(out: &mut Vec<u8>, head: Head, status: Status, lengths: Lengths, cas: u64) {
    let mut header = [0; HEADER];
    header[0] = ANSWER_MAGIC;
    header[1] = head.opcode.0;
    // A key has 250 bytes at most, a value 1 GiB.
    header[2..4].copy_from_slice(&(lengths.key as u16).to_be_bytes());
    header[4] = lengths.extras as u8;
    header[6..8].copy_from_slice(&(status as u16).to_be_bytes());
    header[8..12].copy_from_slice(&(lengths.body as u32).to_be_bytes());
    header[12..16].copy_from_slice(&head.opaque);
    header[16..24].copy_from_slice(&cas.to_be_bytes());
    out.extend_from_slice(&header);
}

/// Everything that precedes a value of `value_len` bytes. An empty `key` is left out.
#[inline]
pub fn value(out: &mut Vec<u8>, head: Head, key: &[u8], flags: u32, value_len: usize, cas: u64) {
    let lengths = Lengths {
        key: key.len(),
        extras: FLAGS,
        body: FLAGS + key.len() + value_len,
    };
    header(out, head, Status::Done, lengths, cas);
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(key);
}

/// Success without a body.
#[inline]
pub fn done(out: &mut Vec<u8>, head: Head, cas: u64) {
    header(out, head, Status::Done, Lengths::default(), cas);
}

/// The number that an increment or a decrement made.
pub fn number(out: &mut Vec<u8>, head: Head, number: u64, cas: u64) {
    let body = number.to_be_bytes();
    let lengths = Lengths {
        body: body.len(),
        ..Lengths::default()
    };
    header(out, head, Status::Done, lengths, cas);
    out.extend_from_slice(&body);
}

/// Success with a key and a text, either of which may be empty: a version, a statistic.
pub fn text(out: &mut Vec<u8>, head: Head, key: &[u8], text: &[u8]) {
    let lengths = Lengths {
        key: key.len(),
        extras: 0,
        body: key.len() + text.len(),
    };
    header(out, head, Status::Done, lengths, 0);
    out.extend_from_slice(key);
    out.extend_from_slice(text);
}

/// A miss that repeats its key.
pub fn miss_of(out: &mut Vec<u8>, head: Head, key: &[u8]) {
    let lengths = Lengths {
        key: key.len(),
        extras: 0,
        body: key.len(),
    };
    header(out, head, Status::NotFound, lengths, 0);
    out.extend_from_slice(key);
}

/// An error, with its usual text.
pub fn error(out: &mut Vec<u8>, head: Head, status: Status) {
    error_in_words(out, head, status, status.words());
}

/// An error with another text.
pub fn error_in_words(out: &mut Vec<u8>, head: Head, status: Status, words: &str) {
    let lengths = Lengths {
        body: words.len(),
        ..Lengths::default()
    };
    header(out, head, status, lengths, 0);
    out.extend_from_slice(words.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::Opcode;

    const HEAD: Head = Head {
        opcode: Opcode::GETK,
        opaque: *b"opaq",
    };

    #[test]
    fn answers_byte_by_byte() {
        let mut out = Vec::new();
        value(&mut out, HEAD, b"key", 0xdead_beef, 2, 7);
        let header = b"\x81\x0c\0\x03\x04\0\0\0\0\0\0\x09opaq\0\0\0\0\0\0\0\x07";
        assert_eq!(out, [&header[..], b"\xde\xad\xbe\xefkey"].concat());

        out.clear();
        number(&mut out, HEAD, 258, 1);
        let header = b"\x81\x0c\0\0\0\0\0\0\0\0\0\x08opaq\0\0\0\0\0\0\0\x01";
        assert_eq!(out, [&header[..], b"\0\0\0\0\0\0\x01\x02"].concat());

        out.clear();
        miss_of(&mut out, HEAD, b"k");
        error(&mut out, HEAD, Status::NotFound);
        let miss = b"\x81\x0c\0\x01\0\0\0\x01\0\0\0\x01opaq\0\0\0\0\0\0\0\0k";
        let error = b"\x81\x0c\0\0\0\0\0\x01\0\0\0\x09opaq\0\0\0\0\0\0\0\0Not found";
        assert_eq!(out, [&miss[..], error].concat());
    }
}
