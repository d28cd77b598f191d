//! memcached's binary protocol: bytes to requests, replies to bytes.
//!
//! A request is a header of 24 bytes, big-endian, and a body of extras, key and value. The answer has the same form:
//!
//! ```text
//!  byte   0       1        2            4               5           6         8             12       16    24
//!         | magic | opcode | key length | extras length | data type | status  | body length | opaque | cas | body
//!
//!  0x80   request: its body length counts extras, key and value; in place of the status stands a partition
//!  0x81   answer: opcode and opaque are the request's; the cas is the item's
//! ```
//!
//! * [`mod@parse`] parses the front of a connection's input.
//! * [`encode`] writes answers.

pub mod encode;
pub mod parse;
mod reply;

pub use parse::{
    Command, Parsed, Refusal, Request, Sasl, ServerCommand, Store, StoreVerb, ValueCommand,
    awaited, parse,
};
pub use reply::ReplyHead;

/// The first byte of every request.
pub const MAGIC: u8 = 0x80;

/// The first byte of every answer.
pub const ANSWER_MAGIC: u8 = 0x81;

/// Bytes of a request, and of an answer, without its body.
pub const HEADER: usize = 24;

/// The parts of a request that its answer repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The operation.
    pub opcode: Opcode,
    /// Four bytes that have a meaning for the client only.
    pub opaque: [u8; 4],
}

/// The number of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode(pub u8);

#[expect(missing_docs, reason = "the names are the protocol's")]
impl Opcode {
    pub const GET: Self = Self(0x00);
    pub const SET: Self = Self(0x01);
    pub const ADD: Self = Self(0x02);
    pub const REPLACE: Self = Self(0x03);
    pub const DELETE: Self = Self(0x04);
    pub const INCREMENT: Self = Self(0x05);
    pub const DECREMENT: Self = Self(0x06);
    pub const QUIT: Self = Self(0x07);
    pub const FLUSH: Self = Self(0x08);
    pub const GETQ: Self = Self(0x09);
    pub const NOOP: Self = Self(0x0a);
    pub const VERSION: Self = Self(0x0b);
    pub const GETK: Self = Self(0x0c);
    pub const GETKQ: Self = Self(0x0d);
    pub const APPEND: Self = Self(0x0e);
    pub const PREPEND: Self = Self(0x0f);
    pub const STAT: Self = Self(0x10);
    pub const TOUCH: Self = Self(0x1c);
    pub const GAT: Self = Self(0x1d);
    pub const GATQ: Self = Self(0x1e);
    pub const SASL_LIST: Self = Self(0x20);
    pub const SASL_AUTH: Self = Self(0x21);
    pub const SASL_STEP: Self = Self(0x22);
    pub const GATK: Self = Self(0x23);
    pub const GATKQ: Self = Self(0x24);
}

impl Opcode {
    /// SETQ to PREPENDQ, one for each of SET to PREPEND that has a quiet form.
    const FIRST_QUIET: u8 = 0x11;
    const QUIETED: [Self; 10] = [
        Self::SET,
        Self::ADD,
        Self::REPLACE,
        Self::DELETE,
        Self::INCREMENT,
        Self::DECREMENT,
        Self::QUIT,
        Self::FLUSH,
        Self::APPEND,
        Self::PREPEND,
    ];

    /// The same operation in its loud form, and true if this one is quiet: then a success has no answer, nor has a
    /// get's miss.
    #[inline]
    pub fn loud(self) -> (Self, bool) {
        match self {
            Self::GETQ => (Self::GET, true),
            Self::GETKQ => (Self::GETK, true),
            Self::GATQ => (Self::GAT, true),
            Self::GATKQ => (Self::GATK, true),
            Self(number) => {
                let quieted = number.checked_sub(Self::FIRST_QUIET);
                match quieted.and_then(|at| Self::QUIETED.get(usize::from(at))) {
                    Some(loud) => (*loud, true),
                    None => (self, false),
                }
            }
        }
    }

    /// True if the answer repeats the key.
    #[inline]
    pub fn repeats_key(self) -> bool {
        matches!(self.loud().0, Self::GETK | Self::GATK)
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// It was executed.
    Done = 0x00,
    /// There is no such key.
    NotFound = 0x01,
    /// The key exists, or its cas is another.
    Exists = 0x02,
    /// The value can never be stored.
    TooLarge = 0x03,
    /// Lengths that the operation cannot have.
    Invalid = 0x04,
    /// There was no value to append to.
    NotStored = 0x05,
    /// The value is no number.
    NonNumeric = 0x06,
    /// The client has not logged in, or its password is wrong.
    Unauthenticated = 0x20,
    /// No operation has this number.
    Unknown = 0x81,
    /// The value finds no memory now.
    OutOfMemory = 0x82,
    /// Who has the item does not answer.
    Unavailable = 0x86,
}

impl Status {
    /// The text in the body of an answer with this status. Empty for [`Done`](Self::Done).
    pub fn words(self) -> &'static str {
        match self {
            Self::Done => "",
            Self::NotFound => "Not found",
            Self::Exists => "Data exists for key.",
            Self::TooLarge => "Too large.",
            Self::Invalid => "Invalid arguments",
            Self::NotStored => "Not stored.",
            Self::NonNumeric => "Non-numeric server-side value for incr or decr",
            Self::Unauthenticated => "Auth failure.",
            Self::Unknown => "Unknown command",
            Self::OutOfMemory => "Out of memory allocating item",
            Self::Unavailable => "Temporary failure",
        }
    }
}

/// The parts of a header that a server needs to refuse the request if it does not speak the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The parts that the answer repeats.
    pub head: Head,
    /// Bytes of the request, header and body, whether they have arrived already or not.
    pub length: u64,
}

impl Foreign {
    /// The request at the front of `input`, if its header is complete.
    pub fn parse(input: &[u8]) -> Option<Self> {
        let header = parse::header(input)?;
        Some(Self {
            head: header.head,
            length: HEADER as u64 + u64::from(header.body),
        })
    }

    /// Appends the answer: an unknown command, and the reason.
    pub fn refuse(&self, out: &mut Vec<u8>) {
        let words = "The binary protocol is switched off: use the text protocol";
        encode::error_in_words(out, self.head, Status::Unknown, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_opcodes_have_their_loud_form() {
        for (quiet, loud) in [
            (0x09, 0x00),
            (0x0d, 0x0c),
            (0x11, 0x01),
            (0x14, 0x04),
            (0x17, 0x07),
            (0x1a, 0x0f),
            (0x1e, 0x1d),
            (0x24, 0x23),
        ] {
            assert_eq!(Opcode(quiet).loud(), (Opcode(loud), true));
        }
        for loud in [0x00, 0x01, 0x0a, 0x0b, 0x10, 0x1b, 0x1c, 0x20, 0xff] {
            assert_eq!(Opcode(loud).loud(), (Opcode(loud), false));
        }
    }

    #[test]
    fn a_foreign_request_is_known_by_its_header_and_refused_in_its_own_form() {
        let get = b"\x80\x0d\0\x01\0\0\0\0\0\0\0\x01\xde\xad\xbe\xef\0\0\0\0\0\0\0\0k";
        let foreign = Foreign::parse(get).unwrap();
        assert_eq!(foreign.length, 25);
        for end in 0..HEADER {
            assert_eq!(Foreign::parse(&get[..end]), None);
        }
        assert_eq!(Foreign::parse(b"get a text protocol's client\r\n"), None);
        let mut out = b"before".to_vec();
        foreign.refuse(&mut out);
        let header = b"\x81\x0d\0\0\0\0\0\x81\0\0\0\x3a\xde\xad\xbe\xef\0\0\0\0\0\0\0\0";
        assert_eq!(&out[..30], [b"before", &header[..]].concat());
        assert_eq!(out.len(), 30 + 0x3a);
    }
}
