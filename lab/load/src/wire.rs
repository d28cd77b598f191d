//! Requests and answers, in memcached's text protocol and in Redis' RESP2.

use std::io::Write;
use std::ops::Range;

use clap::ValueEnum;
use nuthatch_bench::server;
use nuthatch_workload::ItemShape;
use serde::Serialize;

use crate::content;

/// The longest line of an answer.
const LINE_MAX: usize = 4096;
/// The largest value that an answer may have. No workload has one so large.
const VALUE_MAX: usize = 1 << 20;

/// What the server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// memcached's text protocol
    #[default]
    Memcached,
    /// Redis' GET, MGET, SET and DEL, in RESP2
    Redis,
}

impl From<Protocol> for server::Protocol {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Memcached => Self::Memcached,
            Protocol::Redis => Self::Redis,
        }
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// One key's value.
    Get,
    /// So many keys' values.
    GetMany(usize),
    /// A value to be stored.
    Set,
    /// A key to be deleted.
    Delete,
}

/// An answer to a request that is not about values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The values of a get, which the caller has seen one by one.
    Values,
    /// The value is stored.
    Stored,
    /// It is not: too large, or no memory for it.
    Refused,
    /// The item was there, and is no more.
    Deleted,
    /// There was none.
    NotFound,
}

/// A part of the answer to a get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A key and its value. Keys without one are passed over.
    Found(&'a [u8], &'a [u8]),
    /// What the next key has.
    Next(Option<&'a [u8]>),
}

/// Receives the parts of an answer.
pub type Each<'e> = &'e mut dyn FnMut(Part<'_>) -> Result<(), String>;

/// Bytes of a whole answer, or none if more are needed.
type Whole = Result<Option<(usize, Answer)>, String>;

impl Protocol {
    /// Adds a get of one or several keys.
    pub fn get(self, out: &mut Vec<u8>, keys: &[Vec<u8>]) {
        match self {
            Self::Memcached => {
                out.extend_from_slice(b"get");
                for key in keys {
                    out.push(b' ');
                    out.extend_from_slice(key);
                }
                out.extend_from_slice(b"\r\n");
            }
            Self::Redis => {
                let name: &[u8] = if keys.len() == 1 { b"GET" } else { b"MGET" };
                array(out, keys.len() + 1);
                bulk(out, name);
                keys.iter().for_each(|key| bulk(out, key));
            }
        }
    }

    /// Adds a set of an item. The stamp goes into its value.
    pub fn set(self, out: &mut Vec<u8>, key: &[u8], shape: &ItemShape, stamp: u64) {
        let ItemShape {
            value, lifetime, ..
        } = *shape;
        match self {
            Self::Memcached => {
                out.extend_from_slice(b"set ");
                out.extend_from_slice(key);
                text(
                    out,
                    format_args!(" 0 {} {value}\r\n", lifetime.unwrap_or(0)),
                );
                filled(out, key, stamp, value);
            }
            Self::Redis => {
                array(out, if lifetime.is_some() { 5 } else { 3 });
                bulk(out, b"SET");
                bulk(out, key);
                text(out, format_args!("${value}\r\n"));
                filled(out, key, stamp, value);
                if let Some(seconds) = lifetime {
                    bulk(out, b"EX");
                    bulk(out, seconds.to_string().as_bytes());
                }
            }
        }
    }

    /// Adds a delete.
    pub fn delete(self, out: &mut Vec<u8>, key: &[u8]) {
        match self {
            Self::Memcached => {
                out.extend_from_slice(b"delete ");
                out.extend_from_slice(key);
                out.extend_from_slice(b"\r\n");
            }
            Self::Redis => {
                array(out, 2);
                bulk(out, b"DEL");
                bulk(out, key);
            }
        }
    }

    /// Parses the answer at the front of `bytes`, once it is whole: then `each` gets its parts. Errors: it is none, or a
    /// part is refused.
    pub fn answer(self, ask: Ask, bytes: &[u8], each: Each<'_>) -> Whole {
        let walk = |each: Each<'_>| match (self, ask) {
            (Self::Memcached, Ask::Get) => values(bytes, 1, each),
            (Self::Memcached, Ask::GetMany(keys)) => values(bytes, keys, each),
            (Self::Memcached, Ask::Set | Ask::Delete) => memcached_line(ask, bytes),
            (Self::Redis, Ask::Get) => bulks(bytes, 0, 1, each),
            (Self::Redis, Ask::GetMany(keys)) => multi_bulk(bytes, keys, each),
            (Self::Redis, Ask::Set | Ask::Delete) => redis_line(ask, bytes),
        };
        // First whether it is whole.
        match walk(&mut |_| Ok(())) {
            Ok(Some(_)) => walk(each),
            other => other,
        }
    }
}

fn text(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes all");
}

fn array(out: &mut Vec<u8>, length: usize) {
    text(out, format_args!("*{length}\r\n"));
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    text(out, format_args!("${}\r\n", bytes.len()));
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// A value of a key, and the end of its line.
fn filled(out: &mut Vec<u8>, key: &[u8], stamp: u64, size: usize) {
    let from = out.len();
    out.resize(from + size, 0);
    content::write(key, stamp, &mut out[from..]);
    out.extend_from_slice(b"\r\n");
}

/// The line at `at`, without its end, and where the next one begins. None: more bytes are needed.
fn line(bytes: &[u8], at: usize) -> Result<Option<(&[u8], usize)>, String> {
    let rest = &bytes[at..];
    match rest.iter().take(LINE_MAX).position(|&byte| byte == b'\n') {
        Some(end) => {
            let text = &rest[..end];
            Ok(Some((
                text.strip_suffix(b"\r").unwrap_or(text),
                at + end + 1,
            )))
        }
        None if rest.len() >= LINE_MAX => Err(odd(&rest[..LINE_MAX])),
        None => Ok(None),
    }
}

/// The value of this size at `at`, and where its line ends. None: more bytes are needed.
fn value(bytes: &[u8], at: usize, size: usize) -> Result<Option<(Range<usize>, usize)>, String> {
    if size > VALUE_MAX {
        return Err(format!("the server sends a value of {size} bytes"));
    }
    let end = at + size;
    match bytes.get(end..end + 2) {
        Some(b"\r\n") => Ok(Some((at..end, end + 2))),
        Some(other) => Err(odd(other)),
        None => Ok(None),
    }
}

/// memcached's values, of so many keys at most.
fn values(bytes: &[u8], keys: usize, each: Each<'_>) -> Whole {
    let mut at = 0;
    let mut left = keys;
    while let Some((head, next)) = line(bytes, at)? {
        if head == b"END" {
            return Ok(Some((next, Answer::Values)));
        }
        let words = head.strip_prefix(b"VALUE ").ok_or_else(|| odd(head))?;
        let mut words = words.split(|&byte| byte == b' ');
        let (key, size) = (words.next(), words.nth(1).and_then(number));
        let (Some(key), Some(size), true) = (key, size, left > 0) else {
            return Err(odd(head));
        };
        left -= 1;
        let Some((range, next)) = value(bytes, next, size)? else {
            return Ok(None);
        };
        each(Part::Found(key, &bytes[range]))?;
        at = next;
    }
    Ok(None)
}

fn memcached_line(ask: Ask, bytes: &[u8]) -> Whole {
    let Some((head, next)) = line(bytes, 0)? else {
        return Ok(None);
    };
    let answer = match (ask, head) {
        (Ask::Set, b"STORED") => Answer::Stored,
        (Ask::Set, head) if head.starts_with(b"SERVER_ERROR ") => Answer::Refused,
        (Ask::Delete, b"DELETED") => Answer::Deleted,
        (Ask::Delete, b"NOT_FOUND") => Answer::NotFound,
        _ => return Err(odd(head)),
    };
    Ok(Some((next, answer)))
}

/// Redis' values of so many keys, from `at` on.
fn bulks(bytes: &[u8], mut at: usize, keys: usize, each: Each<'_>) -> Whole {
    for _ in 0..keys {
        let Some((head, next)) = line(bytes, at)? else {
            return Ok(None);
        };
        at = next;
        if head == b"$-1" {
            each(Part::Next(None))?;
            continue;
        }
        let size = head.strip_prefix(b"$").and_then(number);
        let Some((range, next)) = value(bytes, at, size.ok_or_else(|| odd(head))?)? else {
            return Ok(None);
        };
        each(Part::Next(Some(&bytes[range])))?;
        at = next;
    }
    Ok(Some((at, Answer::Values)))
}

fn multi_bulk(bytes: &[u8], keys: usize, each: Each<'_>) -> Whole {
    let Some((head, next)) = line(bytes, 0)? else {
        return Ok(None);
    };
    match head.strip_prefix(b"*").and_then(number) {
        Some(count) if count == keys => bulks(bytes, next, keys, each),
        _ => Err(odd(head)),
    }
}

fn redis_line(ask: Ask, bytes: &[u8]) -> Whole {
    let Some((head, next)) = line(bytes, 0)? else {
        return Ok(None);
    };
    let answer = match (ask, head) {
        (Ask::Set, b"+OK") => Answer::Stored,
        (Ask::Set, head) if head.starts_with(b"-OOM ") => Answer::Refused,
        (Ask::Delete, b":1") => Answer::Deleted,
        (Ask::Delete, b":0") => Answer::NotFound,
        _ => return Err(odd(head)),
    };
    Ok(Some((next, answer)))
}

fn number(word: &[u8]) -> Option<usize> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn odd(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(&line[..line.len().min(200)]);
    format!("an answer that does not belong here: {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of an answer as text, its length and kind. The answer needs all of its bytes.
    fn parsed(protocol: Protocol, ask: Ask, bytes: &[u8]) -> (Vec<String>, usize, Answer) {
        for cut in 0..bytes.len() {
            let none = protocol.answer(ask, &bytes[..cut], &mut |part| panic!("{part:?}"));
            assert_eq!(none, Ok(None), "cut at {cut}");
        }
        let mut parts = Vec::new();
        let with_more = [bytes, b"more"].concat();
        let whole = protocol.answer(ask, &with_more, &mut |part| {
            parts.push(match part {
                Part::Found(key, value) => format!("{}={}", key.len(), value.len()),
                Part::Next(value) => format!("{:?}", value.map(<[u8]>::len)),
            });
            Ok(())
        });
        let (length, answer) = whole.unwrap().unwrap();
        assert_eq!(length, bytes.len());
        (parts, length, answer)
    }

    #[test]
    fn answers_are_parsed_once_they_are_whole() {
        use Protocol::{Memcached, Redis};
        let many = Ask::GetMany(3);
        for (protocol, ask, bytes, parts, answer) in [
            (Memcached, Ask::Get, "END\r\n", &[][..], Answer::Values),
            (
                Memcached,
                Ask::Get,
                "VALUE k 0 2\r\nab\r\nEND\r\n",
                &["1=2"],
                Answer::Values,
            ),
            (
                Memcached,
                many,
                "VALUE k 0 5\r\n\r\nEND\r\nVALUE kk 7 0\r\n\r\nEND\r\n",
                &["1=5", "2=0"],
                Answer::Values,
            ),
            (Memcached, Ask::Set, "STORED\r\n", &[], Answer::Stored),
            (
                Memcached,
                Ask::Set,
                "SERVER_ERROR full\r\n",
                &[],
                Answer::Refused,
            ),
            (Memcached, Ask::Delete, "DELETED\r\n", &[], Answer::Deleted),
            (
                Memcached,
                Ask::Delete,
                "NOT_FOUND\r\n",
                &[],
                Answer::NotFound,
            ),
            (Redis, Ask::Get, "$-1\r\n", &["None"], Answer::Values),
            (
                Redis,
                Ask::Get,
                "$2\r\nab\r\n",
                &["Some(2)"],
                Answer::Values,
            ),
            (
                Redis,
                many,
                "*3\r\n$0\r\n\r\n$-1\r\n$1\r\na\r\n",
                &["Some(0)", "None", "Some(1)"],
                Answer::Values,
            ),
            (Redis, Ask::Set, "+OK\r\n", &[], Answer::Stored),
            (Redis, Ask::Set, "-OOM no memory\r\n", &[], Answer::Refused),
            (Redis, Ask::Delete, ":1\r\n", &[], Answer::Deleted),
            (Redis, Ask::Delete, ":0\r\n", &[], Answer::NotFound),
        ] {
            let (found, _, kind) = parsed(protocol, ask, bytes.as_bytes());
            assert_eq!(
                (&found[..], kind),
                (
                    &parts
                        .iter()
                        .map(|part| (*part).to_owned())
                        .collect::<Vec<_>>()[..],
                    answer
                )
            );
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        use Protocol::{Memcached, Redis};
        let long = "x".repeat(LINE_MAX);
        for (protocol, ask, bytes) in [
            (Memcached, Ask::Get, "ERROR\r\n"),
            (Memcached, Ask::Get, "VALUE k 0\r\n"),
            (Memcached, Ask::Get, "VALUE k 0 1\r\nabcd"),
            (Memcached, Ask::Get, "VALUE k 0 9999999\r\n"),
            (
                Memcached,
                Ask::Get,
                "VALUE a 0 0\r\n\r\nVALUE b 0 0\r\n\r\nEND\r\n",
            ),
            (Memcached, Ask::Set, "END\r\n"),
            (Memcached, Ask::Delete, &long),
            (Redis, Ask::Get, "*1\r\n"),
            (Redis, Ask::Get, "-NOAUTH\r\n"),
            (Redis, Ask::GetMany(2), "*3\r\n"),
            (Redis, Ask::Set, "-ERR\r\n"),
        ] {
            let answer = protocol.answer(ask, bytes.as_bytes(), &mut |_| Ok(()));
            assert!(answer.is_err(), "{protocol:?} {bytes:?}");
        }
    }

    #[test]
    fn requests_are_written_as_the_protocols_have_them() {
        let shape = |lifetime| ItemShape {
            key: 1,
            value: 1,
            lifetime,
        };
        let keys = [b"a".to_vec(), b"b".to_vec()];
        let written = |protocol: Protocol, lifetime| {
            let mut out = Vec::new();
            protocol.get(&mut out, &keys);
            protocol.set(&mut out, b"a", &shape(lifetime), 1);
            protocol.delete(&mut out, b"b");
            let at = out
                .windows(3)
                .position(|part| part[1..] == *b"\r\n" && content::vouches(b"a", &part[..1]));
            out[at.unwrap()] = b'?';
            String::from_utf8(out).unwrap()
        };
        let text = written(Protocol::Memcached, Some(60));
        assert_eq!(text, "get a b\r\nset a 0 60 1\r\n?\r\ndelete b\r\n");
        let text = written(Protocol::Redis, Some(60));
        assert!(text.starts_with("*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n*5\r\n$3\r\nSET\r\n"));
        assert!(
            text.contains("$1\r\n?\r\n$2\r\nEX\r\n$2\r\n60\r\n*2\r\n$3\r\nDEL\r\n"),
            "{text}"
        );
    }
}
