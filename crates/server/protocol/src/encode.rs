//! Replies of the text protocol, appended to a connection's output. The arguments are plain numbers: this module does
//! not depend on an engine.
//!
//! The caller appends a value's bytes and the `\r\n` behind them: most values come straight from an engine.

use itoa::Buffer;

use crate::command::MetaFlags;
use crate::error::Error;

/// A line's end, also behind a value.
pub const CRLF: &[u8] = b"\r\n";
/// Behind the values of a get, and behind statistics.
pub const END: &[u8] = b"END\r\n";
/// A store took place.
pub const STORED: &[u8] = b"STORED\r\n";
/// A store did not take place: its condition did not hold.
pub const NOT_STORED: &[u8] = b"NOT_STORED\r\n";
/// The item changed since its cas was read.
pub const EXISTS: &[u8] = b"EXISTS\r\n";
/// There is no such item.
pub const NOT_FOUND: &[u8] = b"NOT_FOUND\r\n";
/// A delete took place.
pub const DELETED: &[u8] = b"DELETED\r\n";
/// A touch took place.
pub const TOUCHED: &[u8] = b"TOUCHED\r\n";
/// A command was executed.
pub const OK: &[u8] = b"OK\r\n";
/// The statistics were reset.
pub const RESET: &[u8] = b"RESET\r\n";
/// The reply to mn.
pub const MN: &[u8] = b"MN\r\n";

/// `VALUE <key> <flags> <bytes> [<cas>]`.
#[inline]
pub fn value(out: &mut Vec<u8>, key: &[u8], flags: u32, value_len: usize, cas: Option<u64>) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    if flags == 0 {
        out.extend_from_slice(b" 0 ");
    } else {
        out.push(b' ');
        number(out, flags.into());
        out.push(b' ');
    }
    number(out, value_len as u64);
    if let Some(cas) = cas {
        out.push(b' ');
        number(out, cas);
    }
    out.extend_from_slice(CRLF);
}

/// Decimal digits.
#[inline]
pub fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(Buffer::new().format(number).as_bytes());
}

/// Decimal digits as a line: the reply to incr and decr.
#[inline]
pub fn number_line(out: &mut Vec<u8>, value: u64) {
    number(out, value);
    out.extend_from_slice(CRLF);
}

/// An error's line.
pub fn error(out: &mut Vec<u8>, error: Error) {
    let (kind, words) = match error {
        Error::Unknown => ("ERROR", ""),
        Error::Client(words) => ("CLIENT_ERROR ", words),
        Error::Server(words) => ("SERVER_ERROR ", words),
    };
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(words.as_bytes());
    out.extend_from_slice(CRLF);
}

/// `VERSION <version>`.
pub fn version(out: &mut Vec<u8>, version: &str) {
    out.extend_from_slice(b"VERSION ");
    out.extend_from_slice(version.as_bytes());
    out.extend_from_slice(CRLF);
}

/// `STAT <name> <value>`.
pub fn stat(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(b"STAT ");
    out.extend_from_slice(name.as_bytes());
    out.push(b' ');
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(CRLF);
}

/// `STAT <name> <number>`.
pub fn stat_number(out: &mut Vec<u8>, name: &str, value: u64) {
    stat(out, name, Buffer::new().format(value));
}

/// The last reply to a client whose connection is closed because its requests would wait for a script of Lua that runs for long.
pub const SCRIPT_BUSY: &[u8] = b"SERVER_ERROR busy running a script\r\n";

/// The last reply to a client whose connection is closed because it holds too much.
pub const OUT_OF_MEMORY_READING: &[u8] = b"SERVER_ERROR out of memory reading request\r\n";

/// The reply to a client that uses TLS on a port without it.
pub const NO_TLS: &[u8] = b"CLIENT_ERROR this port does not speak TLS\r\n";

/// The limit that a datagram exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// More commands than it may have. A connection would wait, a datagram cannot.
    Commands,
    /// Its answer is longer than allowed.
    Answer,
}

/// The refusal of a datagram, instead of its answer.
pub fn too_much(what: TooMuch) -> &'static [u8] {
    match what {
        TooMuch::Commands => b"SERVER_ERROR too many commands for a datagram\r\n",
        TooMuch::Answer => b"SERVER_ERROR the answer is too large for UDP\r\n",
    }
}

/// Those who are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// All connections.
    OfServer,
    /// Those of an address.
    OfAddress,
}

/// The refusal of a connection above the limit.
pub fn too_many_connections(crowd: Crowd) -> &'static [u8] {
    match crowd {
        Crowd::OfServer => b"ERROR Too many open connections\r\n",
        Crowd::OfAddress => b"ERROR Too many open connections of this address\r\n",
    }
}

/// The first word of a meta reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaStatus {
    /// `HD`: done, or found without its value.
    Done,
    /// `VA`: found, its value follows the line.
    Value,
    /// `EN`: mg or me found nothing.
    Miss,
    /// `NF`: the item to change does not exist.
    NotFound,
    /// `NS`: not stored.
    NotStored,
    /// `EX`: the cas is not the one demanded.
    Exists,
}

/// An item's properties that the flags of a meta command can ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetaItem {
    /// `f`: the client's flags.
    pub flags: u32,
    /// `s`: bytes of the value, which also stand behind `VA`.
    pub value_len: usize,
    /// `t`: seconds to live; `None` is for ever, written -1.
    pub ttl: Option<u64>,
    /// `c`.
    pub cas: u64,
    /// `l`: seconds since the last access.
    pub last_access: u64,
    /// `h`: an earlier get hit it.
    pub fetched: bool,
    /// `W`: this client has won the right to refresh it.
    pub won: bool,
    /// `X`: it is stale.
    pub stale: bool,
    /// `Z`: another client won that right before.
    pub won_before: bool,
}

/// A meta reply about an item: mg, ma and ms (`item` is the stored one; for a store that failed all its numbers are 0
/// but the size, which is that of the value sent). The flags that `answers` has come in the request's order, and then,
/// for mg, `Z`, `X` and `W`. Behind [`MetaStatus::Value`] the value and [`CRLF`] must follow.
#[inline]
pub fn meta_item(
    out: &mut Vec<u8>,
    status: MetaStatus,
    answers: Answers,
    key: &[u8],
    flags: &MetaFlags<'_>,
    item: &MetaItem,
) {
    meta_head(out, status);
    if status == MetaStatus::Value {
        out.push(b' ');
        number(out, item.value_len as u64);
    }
    for word in flags.raw.iter() {
        // Words are never empty.
        let letter = word[0];
        if letter == b'k' || letter == b'O' {
            key_or_opaque(out, word, key, flags.base64);
        } else if answers.letters.contains(&letter) {
            out.extend_from_slice(&[b' ', letter]);
            item_flag(out, letter, item);
        }
    }
    for (set, mark) in [
        (item.won_before, b" Z"),
        (item.stale, b" X"),
        (item.won, b" W"),
    ] {
        if set && answers.marks {
            out.extend_from_slice(mark);
        }
    }
    out.extend_from_slice(CRLF);
}

/// A meta reply without an item: misses, failures, and all replies of md.
pub fn meta_status(out: &mut Vec<u8>, status: MetaStatus, key: &[u8], flags: &MetaFlags<'_>) {
    let none = Answers::numbers(b"");
    meta_item(out, status, none, key, flags, &MetaItem::default());
}

/// The properties of an item that a reply has.
#[derive(Clone, Copy, Debug)]
pub struct Answers {
    /// The request's flags that are answered with a number.
    letters: &'static [u8],
    /// `Z`, `X` and `W`.
    marks: bool,
}

impl Answers {
    /// The reply to mg.
    pub const GET: Answers = Answers {
        letters: b"stcflh",
        marks: true,
    };
    /// The reply to ms.
    pub const STORE: Answers = Answers::numbers(b"cs");
    /// The reply to ma.
    pub const ARITHMETIC: Answers = Answers::numbers(b"ct");

    const fn numbers(letters: &'static [u8]) -> Self {
        Self {
            letters,
            marks: false,
        }
    }
}

/// `ME <key> ...`: an item's internals. `key` is as the client sent it.
pub fn meta_debug(out: &mut Vec<u8>, key: &[u8], item: &MetaItem, class: usize, size: usize) {
    out.extend_from_slice(b"ME ");
    out.extend_from_slice(key);
    out.extend_from_slice(b" exp=");
    time_to_live(out, item.ttl);
    out.extend_from_slice(b" la=");
    number(out, item.last_access);
    out.extend_from_slice(b" cas=");
    number(out, item.cas);
    let fetched: &[u8] = if item.fetched { b"yes" } else { b"no" };
    out.extend_from_slice(b" fetch=");
    out.extend_from_slice(fetched);
    out.extend_from_slice(b" cls=");
    number(out, class as u64);
    out.extend_from_slice(b" size=");
    number(out, size as u64);
    out.extend_from_slice(CRLF);
}

#[inline]
fn meta_head(out: &mut Vec<u8>, status: MetaStatus) {
    out.extend_from_slice(match status {
        MetaStatus::Done => b"HD",
        MetaStatus::Value => b"VA",
        MetaStatus::Miss => b"EN",
        MetaStatus::NotFound => b"NF",
        MetaStatus::NotStored => b"NS",
        MetaStatus::Exists => b"EX",
    });
}

/// `k` with the key as the client sent it, marked if that is base64. Or the opaque.
#[inline]
fn key_or_opaque(out: &mut Vec<u8>, word: &[u8], key: &[u8], base64: bool) {
    out.push(b' ');
    if word[0] == b'O' {
        out.extend_from_slice(word);
        return;
    }
    out.push(b'k');
    out.extend_from_slice(key);
    if base64 {
        out.extend_from_slice(b" b");
    }
}

#[inline]
fn item_flag(out: &mut Vec<u8>, letter: u8, item: &MetaItem) {
    match letter {
        b'f' => number(out, item.flags.into()),
        b's' => number(out, item.value_len as u64),
        b't' => time_to_live(out, item.ttl),
        b'c' => number(out, item.cas),
        b'l' => number(out, item.last_access),
        b'h' => number(out, item.fetched.into()),
        _ => {}
    }
}

#[inline]
fn time_to_live(out: &mut Vec<u8>, ttl: Option<u64>) {
    match ttl {
        Some(seconds) => number(out, seconds),
        None => out.extend_from_slice(b"-1"),
    }
}
