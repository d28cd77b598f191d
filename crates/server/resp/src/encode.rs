//! Replies of Redis' protocol, appended to a connection's output. The arguments are plain numbers: this module does not
//! depend on an engine.

use itoa::Buffer;

use nuthatch_protocol::encode::Crowd;

use crate::arguments::Arguments;
use crate::error::Error;
use crate::names::Described;
use crate::parse::UNKNOWN_SHOWN;

/// What precedes an option that HELLO does not have.
const HELLO_OPTION: &str = "ERR Syntax error in HELLO option '";

/// What precedes a kind of clients that does not exist.
const CLIENT_TYPE: &str = "ERR Unknown client type '";

/// What precedes an attribute that CLIENT SETINFO does not have.
const OPTION: &str = "ERR Unrecognized option '";

/// The version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// RESP2: what every client understands.
    #[default]
    Resp2,
    /// RESP3: after HELLO 3.
    Resp3,
}

impl Version {
    /// Its number.
    pub fn number(self) -> u8 {
        match self {
            Version::Resp2 => 2,
            Version::Resp3 => 3,
        }
    }
}

/// What a client of RESP2 may send while it has subscribed.
const NOT_REDIS: &str =
    "' is not supported: this server is Nuthatch, a cache of plain values alone, and not Redis";
const ONLY_SUBSCRIBED: &str =
    "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context";

const END: &[u8] = b"\r\n";

/// The reply to a client that uses TLS on a port without it.
pub const NO_TLS: &[u8] = b"-ERR this port does not speak TLS\r\n";

/// The last reply to a client whose connection is closed because it holds too much.
pub const OUT_OF_MEMORY_READING: &[u8] = b"-ERR out of memory reading request\r\n";

/// The refusal of a connection above the limit.
pub fn too_many_connections(crowd: Crowd) -> &'static [u8] {
    match crowd {
        Crowd::OfServer => b"-ERR max number of clients reached\r\n",
        Crowd::OfAddress => b"-ERR max number of clients of this address reached\r\n",
    }
}

/// Writes replies one after the other.
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    version: Version,
}

impl<'o> Writer<'o> {
    /// Appends to `out`.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>, version: Version) -> Self {
        Self { out, version }
    }

    #[inline]
    fn line(&mut self, mark: u8, words: &[u8]) {
        self.out.push(mark);
        self.out.extend_from_slice(words);
        self.out.extend_from_slice(END);
    }

    #[inline]
    fn number(&mut self, mark: u8, number: i64) {
        self.line(mark, Buffer::new().format(number).as_bytes());
    }

    /// A status, without line ends.
    #[inline]
    pub fn status(&mut self, words: &str) {
        self.line(b'+', words.as_bytes());
    }

    /// A status in a client's words. It has no place for ends of lines.
    pub fn status_of(&mut self, words: &[u8]) {
        let begin = self.out.len() + 1;
        self.line(b'+', words);
        let end = begin + words.len();
        for byte in &mut self.out[begin..end] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
    }

    /// `OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }

    /// Yes or no as a number: 1 or 0.
    #[inline]
    pub fn flag(&mut self, flag: bool) {
        self.out
            .extend_from_slice(if flag { b":1\r\n" } else { b":0\r\n" });
    }

    /// Bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.bulk_header(bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(END);
    }

    /// The header of `len` bytes. The bytes and a line end must follow.
    #[inline]
    pub fn bulk_header(&mut self, len: usize) {
        self.number(b'$', len as i64);
    }

    /// Text of many lines, to be read by people.
    pub fn text(&mut self, text: &str) {
        self.verbatim(*b"txt", text.as_bytes());
    }

    /// Bytes with the name of their format. Bytes of the name that end a line are blanks.
    pub fn verbatim(&mut self, format: [u8; 3], bytes: &[u8]) {
        match self.version {
            Version::Resp2 => self.bulk(bytes),
            Version::Resp3 => {
                self.number(b'=', bytes.len() as i64 + 4);
                self.out.extend_from_slice(&format.map(unbroken));
                self.out.push(b':');
                self.out.extend_from_slice(bytes);
                self.out.extend_from_slice(END);
            }
        }
    }

    /// An integer of any size, in its digits. Bytes that end a line are blanks.
    pub fn big_number(&mut self, digits: &[u8]) {
        let digits: Vec<u8> = digits.iter().copied().map(unbroken).collect();
        match self.version {
            Version::Resp2 => self.bulk(&digits),
            Version::Resp3 => self.line(b'(', &digits),
        }
    }

    /// Nothing, where bytes could be.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Resp2 => b"$-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// Nothing, where an array could be.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Resp2 => b"*-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// The header of an array: `len` replies follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.number(b'*', len as i64);
    }

    /// The header of a map: `len` pairs of replies follow.
    pub fn map(&mut self, len: usize) {
        match self.version {
            Version::Resp2 => self.array(2 * len),
            Version::Resp3 => self.number(b'%', len as i64),
        }
    }

    /// The header of a set: `len` different replies follow, in any order.
    pub fn set(&mut self, len: usize) {
        match self.version {
            Version::Resp2 => self.array(len),
            Version::Resp3 => self.number(b'~', len as i64),
        }
    }

    /// The header of a push: `len` replies follow that answer no request.
    pub fn push(&mut self, len: usize) {
        match self.version {
            Version::Resp2 => self.array(len),
            Version::Resp3 => self.number(b'>', len as i64),
        }
    }

    /// A number with a fraction.
    pub fn double(&mut self, number: f64) {
        let text = if number.is_infinite() {
            String::from(if number > 0.0 { "inf" } else { "-inf" })
        } else if number.is_nan() {
            String::from("nan")
        } else {
            number.to_string()
        };
        match self.version {
            Version::Resp2 => self.bulk(text.as_bytes()),
            Version::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// Yes or no.
    pub fn boolean(&mut self, flag: bool) {
        match self.version {
            Version::Resp2 => self.flag(flag),
            Version::Resp3 => self
                .out
                .extend_from_slice(if flag { b"#t\r\n" } else { b"#f\r\n" }),
        }
    }

    /// A command, as COMMAND INFO describes it.
    pub fn command(&mut self, command: &Described) {
        self.array(10);
        self.bulk(command.name.as_bytes());
        self.integer(command.arity);
        self.set(command.flags.len());
        for flag in command.flags {
            self.status(flag);
        }
        for number in command.keys {
            self.integer(number);
        }
        self.categories_of(command.name);
        // Hints, specifications of keys, subcommands.
        for _ in 0..3 {
            self.array(0);
        }
    }

    /// An error.
    #[cold]
    pub fn error(&mut self, error: &Error<'_>) {
        self.out.push(b'-');
        let from = self.out.len();
        match *error {
            Error::Words(words) => self.say(&[words]),
            Error::KeyTooLong(max) => self.say_key_too_long(max),
            Error::Expected(byte) => {
                self.say(&["ERR Protocol error: expected '$', got '"]);
                self.out.extend_from_slice(&[byte, b'\'']);
            }
            Error::Unknown {
                name,
                behind,
                arguments,
            } => {
                self.say(&["ERR unknown command '"]);
                self.quote(name, UNKNOWN_SHOWN);
                self.say(&["', with args beginning with: "]);
                self.arguments(behind, arguments);
            }
            Error::UnknownSubcommand { command, name } => {
                let behind = ["'. Try ", command, " HELP."];
                self.say_of("ERR unknown subcommand '", name, UNKNOWN_SHOWN, &behind);
            }
            // As in Redis: the transaction is over.
            Error::Arity("exec") => self.say(&[
                "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command",
            ]),
            Error::Arity(name) => {
                self.say(&["ERR wrong number of arguments for '", name, "' command"]);
            }
            Error::Expiry(name) => {
                self.say(&["ERR invalid expire time in '", name, "' command"]);
            }
            Error::NotHere(name) => {
                self.say(&["ERR '", name, NOT_REDIS]);
            }
            Error::Subscribed(name) => self.say(&["ERR Can't execute '", name, ONLY_SUBSCRIBED]),
            Error::Option(word) => self.say_of("ERR Unsupported option ", word, usize::MAX, &[]),
            Error::ConfigUnknown(name) => {
                const WORDS: &str = "ERR Unknown option or number of arguments for CONFIG SET - '";
                self.say_of(WORDS, name, UNKNOWN_SHOWN, &["'"]);
            }
            Error::Config { name, why } => {
                const WORDS: &str = "ERR CONFIG SET failed (possibly related to argument '";
                self.say_of(WORDS, name, UNKNOWN_SHOWN, &["') - ", why]);
            }
            Error::ClientType(word) => self.say_of(CLIENT_TYPE, word, usize::MAX, &["'"]),
            Error::Overlap {
                prefix,
                other,
                is_set,
            } => self.say_overlap(prefix, other, is_set),
            Error::NoUser(name) => self.say_of("ERR No such user '", name, UNKNOWN_SHOWN, &["'"]),
            Error::CategoryUnknown(word) => {
                self.say_of("ERR Unknown category '", word, usize::MAX, &["'"]);
            }
            Error::InfoUnknown(word) => self.say_of(OPTION, word, usize::MAX, &["'"]),
            Error::Info(name) => {
                const BEHIND: &str = " cannot contain spaces, newlines or special characters.";
                self.say_of("ERR ", name, usize::MAX, &[BEHIND]);
            }
            Error::Script(text) => self.out.extend_from_slice(text),
            Error::HelloOption(word) => self.say_of(HELLO_OPTION, word, usize::MAX, &["'"]),
        }
        // Bytes that a client sent must not end the line.
        for byte in &mut self.out[from..] {
            *byte = unbroken(*byte);
        }
        self.out.extend_from_slice(END);
    }

    fn say_key_too_long(&mut self, max: usize) {
        self.say(&["ERR key is longer than ", &max.to_string(), " bytes"]);
    }

    fn say(&mut self, words: &[&str]) {
        for words in words {
            self.out.extend_from_slice(words.as_bytes());
        }
    }

    fn say_overlap(&mut self, prefix: &[u8], other: &[u8], is_set: bool) {
        let what = match is_set {
            true => "an existing prefix '",
            false => "another provided prefix '",
        };
        const BEHIND: &str = "'. Prefixes for a single client must not overlap.";
        self.say_of("ERR Prefix '", prefix, usize::MAX, &["' overlaps with "]);
        self.say_of(what, other, usize::MAX, &[BEHIND]);
    }

    /// Words, what a client sent (up to `max` bytes of it), and words behind it.
    fn say_of(&mut self, words: &str, sent: &[u8], max: usize, behind: &[&str]) {
        self.say(&[words]);
        self.quote(sent, max);
        self.say(behind);
    }

    /// Repeats what a client sent, up to its first NUL.
    fn quote(&mut self, bytes: &[u8], max: usize) {
        let bytes = &bytes[..bytes.len().min(max)];
        let end = bytes.iter().position(|&byte| byte == 0);
        self.out
            .extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
    }

    /// The first arguments of an unknown command, up to 128 bytes in all.
    fn arguments(&mut self, behind: &[u8], count: u32) {
        let mut arguments = Arguments::at(behind, 0, count);
        let from = self.out.len();
        while arguments.left > 0 && self.out.len() - from < UNKNOWN_SHOWN {
            let Ok(front) = arguments.front(UNKNOWN_SHOWN) else {
                return;
            };
            self.out.push(b'\'');
            self.quote(front, UNKNOWN_SHOWN - (self.out.len() - 1 - from));
            self.out.extend_from_slice(b"' ");
        }
    }
}

/// A byte, and a blank for one that would end a line.
fn unbroken(byte: u8) -> u8 {
    match byte {
        b'\r' | b'\n' => b' ',
        byte => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Write<'w> = &'w dyn Fn(&mut Writer<'_>);

    fn both(write: impl Fn(&mut Writer<'_>)) -> [String; 2] {
        [Version::Resp2, Version::Resp3].map(|version| {
            let mut out = Vec::new();
            write(&mut Writer::new(&mut out, version));
            String::from_utf8(out).unwrap()
        })
    }

    #[test]
    fn replies_of_both_versions() {
        let same: [(Write<'_>, &str); 6] = [
            (&|w| w.ok(), "+OK\r\n"),
            (&|w| w.status("PONG"), "+PONG\r\n"),
            (&|w| w.integer(i64::MIN), ":-9223372036854775808\r\n"),
            (&|w| w.bulk(b"a\r\nb"), "$4\r\na\r\nb\r\n"),
            (&|w| w.array(3), "*3\r\n"),
            (
                &|w| w.error(&Error::Expected(b'\n')),
                "-ERR Protocol error: expected '$', got ' '\r\n",
            ),
        ];
        for (write, expected) in same {
            assert_eq!(both(write), [expected, expected]);
        }
        let apart: [(Write<'_>, [&str; 2]); 10] = [
            (&|w| w.null(), ["$-1\r\n", "_\r\n"]),
            (&|w| w.null_array(), ["*-1\r\n", "_\r\n"]),
            (&|w| w.map(2), ["*4\r\n", "%2\r\n"]),
            (&|w| w.set(2), ["*2\r\n", "~2\r\n"]),
            (&|w| w.push(2), ["*2\r\n", ">2\r\n"]),
            (&|w| w.double(1.5), ["$3\r\n1.5\r\n", ",1.5\r\n"]),
            (&|w| w.boolean(true), [":1\r\n", "#t\r\n"]),
            (&|w| w.text("a"), ["$1\r\na\r\n", "=5\r\ntxt:a\r\n"]),
            (
                &|w| w.verbatim(*b"a\r ", b"\n"),
                ["$1\r\n\n\r\n", "=5\r\na  :\n\r\n"],
            ),
            (&|w| w.big_number(b"1\n"), ["$2\r\n1 \r\n", "(1 \r\n"]),
        ];
        for (write, expected) in apart {
            assert_eq!(both(write), expected);
        }
    }
}
