//! memcached's binary protocol, as far as it takes to refuse it: its clients read nothing but its own
//! frames, and wait for ever for an answer in text.
//!
//! A request is a header of 24 bytes, big-endian, and a body. The answer has a header of the same form:
//!
//! ```text
//!  byte   0       1        2            4               5           6         8             12       16    24
//!         | magic | opcode | key length | extras length | data type | status  | body length | opaque | cas | body
//!
//!  0x80   request: its body length counts extras, key and value; in place of the status stands a partition
//!  0x81   answer: opcode and opaque are the request's; status 0x0081 is "unknown command", the body says why
//! ```

/// The first byte of every request.
pub const MAGIC: u8 = 0x80;

/// Bytes of a request without its body.
pub const HEADER: usize = 24;

/// The first byte of every answer.
const ANSWER_MAGIC: u8 = 0x81;

const UNKNOWN_COMMAND: u16 = 0x0081;

/// What the body of each answer says.
const WORDS: &[u8] = b"The binary protocol is not supported: use the text protocol";

/// What a request's header says, as far as an answer needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the client wants.
    pub opcode: u8,
    /// What the answer must repeat.
    pub opaque: [u8; 4],
    /// Bytes of the request, header and body, whether they stand in the input already or not.
    pub length: u64,
}

/// The request at the front of `input`, if its header is complete.
pub fn parse(input: &[u8]) -> Option<Request> {
    let header = input.first_chunk::<HEADER>()?;
    let [MAGIC, opcode, ..] = *header else {
        return None;
    };
    let field = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
    Some(Request {
        opcode,
        opaque: field(12),
        length: HEADER as u64 + u64::from(u32::from_be_bytes(field(8))),
    })
}

/// Appends the answer to `request`: there is no such command.
pub fn refuse(out: &mut Vec<u8>, request: &Request) {
    let mut header = [0; HEADER];
    header[0] = ANSWER_MAGIC;
    header[1] = request.opcode;
    header[6..8].copy_from_slice(&UNKNOWN_COMMAND.to_be_bytes());
    header[8..12].copy_from_slice(&(WORDS.len() as u32).to_be_bytes());
    header[12..16].copy_from_slice(&request.opaque);
    out.extend_from_slice(&header);
    out.extend_from_slice(WORDS);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A get of "k".
    const GET: &[u8] = b"\x80\x0d\0\x01\0\0\0\0\0\0\0\x01\xde\xad\xbe\xef\0\0\0\0\0\0\0\0k";

    #[test]
    fn a_request_is_known_by_its_header() {
        let request = Request {
            opcode: 0x0d,
            opaque: *b"\xde\xad\xbe\xef",
            length: 25,
        };
        for end in HEADER..=GET.len() {
            assert_eq!(parse(&GET[..end]), Some(request));
        }
        for end in 0..HEADER {
            assert_eq!(parse(&GET[..end]), None);
        }
        assert_eq!(parse(b"get a text protocol's client\r\n"), None);
        let longest = [&GET[..8], &[0xff; 16]].concat();
        assert_eq!(parse(&longest).unwrap().length, 24 + 0xffff_ffff);
    }

    #[test]
    fn the_answer_byte_by_byte() {
        let mut out = b"before".to_vec();
        refuse(&mut out, &parse(GET).unwrap());
        let header = b"\x81\x0d\0\0\0\0\0\x81\0\0\0\x3b\xde\xad\xbe\xef\0\0\0\0\0\0\0\0";
        assert_eq!(out, [b"before", &header[..], WORDS].concat());
        assert_eq!(WORDS.len(), 0x3b);
    }
}
