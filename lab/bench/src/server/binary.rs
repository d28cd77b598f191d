//! memcached's binary requests and answers, as a client sees them. This is a second implementation, so that it does not
//! repeat a mistake of the server's code.
//!
//! As with real clients, all gets of a block are quiet except the last: a quiet get that misses has no answer, and the
//! answer to the next request shows that.

use std::io::Read;

use crate::server::scan::{Counts, Scan, refused};
use crate::server::script::{Request, Script};
use nuthatch_workload::proof::vouches;

/// Bytes of a header.
const HEADER: usize = 24;

/// Bytes of flags, before a value.
const FLAGS: usize = 4;

const ANSWER: u8 = 0x81;
const GET: u8 = 0x00;
const SET: u8 = 0x01;
const QUIET_GET: u8 = 0x09;
const STAT: u8 = 0x10;

/// The request for the statistics.
pub const STATS: [u8; HEADER] = {
    let mut request = [0; HEADER];
    request[0] = 0x80;
    request[1] = STAT;
    request
};

/// Bytes of one statistic, at most.
const STATISTIC_MAX: usize = 1 << 16;

/// The opaque of a set; the opaque of a get is the place of its key.
const SET_OPAQUE: u32 = u32::MAX;

fn header(text: &mut Vec<u8>, opcode: u8, key: usize, extras: usize, value: usize, opaque: u32) {
    text.extend_from_slice(&[0x80, opcode]);
    text.extend_from_slice(&(key as u16).to_be_bytes());
    text.extend_from_slice(&[extras as u8, 0, 0, 0]);
    text.extend_from_slice(&((key + extras + value) as u32).to_be_bytes());
    text.extend_from_slice(&opaque.to_be_bytes());
    text.extend_from_slice(&[0; 8]);
}

/// Writes the bytes before the key of a quiet get.
pub fn get(text: &mut Vec<u8>, key_size: usize) {
    let opaque = (text.len() + HEADER) as u32;
    header(text, QUIET_GET, key_size, 0, 0, opaque);
}

/// Makes the get loud whose key is at `keys_at`.
pub fn make_loud(text: &mut [u8], keys_at: usize) {
    text[keys_at - HEADER + 1] = GET;
}

/// Writes the bytes before the key and the value of a set.
pub fn set(text: &mut Vec<u8>, key_size: usize, value_size: usize) {
    header(text, SET, key_size, 8, value_size, SET_OPAQUE);
    text.extend_from_slice(&[0; 8]);
}

/// The next statistic of an answer to [`STATS`], its name and its value; `None` behind the last.
pub fn statistic(answer: &mut impl Read) -> Result<Option<(String, String)>, String> {
    let told = |error: std::io::Error| error.to_string();
    let mut head = [0; HEADER];
    answer.read_exact(&mut head).map_err(told)?;
    let [
        magic,
        opcode,
        name_0,
        name_1,
        extras,
        _,
        status_0,
        status_1,
        body @ ..,
    ] = head;
    let name = usize::from(u16::from_be_bytes([name_0, name_1]));
    let body = u32::from_be_bytes([body[0], body[1], body[2], body[3]]) as usize;
    let lawful = extras == 0 && name <= body && body <= STATISTIC_MAX;
    if (magic, opcode, status_0, status_1) != (ANSWER, STAT, 0, 0) || !lawful {
        return Err(format!("it answers {head:?} to STAT"));
    }
    let mut text = vec![0; body];
    answer.read_exact(&mut text).map_err(told)?;
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((name > 0).then(|| (words(&text[..name]), words(&text[name..]))))
}

/// How replies to values of one size look.
pub struct Replies {
    value_size: usize,
}

impl Replies {
    /// For values of this size.
    pub fn new(value_size: usize) -> Self {
        Self { value_size }
    }

    /// Bytes of one value's record: the least that a buffer must hold.
    pub fn record(&self) -> usize {
        HEADER + FLAGS + self.value_size
    }

    /// Looks through the reply to `request` at the front of `bytes`.
    #[inline]
    pub fn scan(&self, script: &Script, request: Request, bytes: &[u8]) -> Result<Scan, String> {
        let Some((head, rest)) = bytes.split_at_checked(HEADER) else {
            return Ok(Scan::Partial(0));
        };
        let word = |at: usize| {
            let word = head[at..].first_chunk().copied();
            u32::from_be_bytes(word.unwrap_or_default())
        };
        let (status, body, opaque) = (word(4) & 0xffff, word(8) as usize, word(12));
        let wrong = || format!("a wrong reply: status {status}, {body} bytes, to {opaque}");
        if head[0] != ANSWER {
            return Err(format!("a wrong reply: {head:?}"));
        }
        let misses = Counts {
            misses: 1,
            ..Counts::default()
        };
        match request {
            Request::Set if opaque != SET_OPAQUE => Err(wrong()),
            Request::Set if status == 0 && body == 0 => Ok(Scan::Complete(HEADER, Counts::STORED)),
            Request::Set => Err(refused(self.value_size, &format!("status {status}"))),
            // This is the answer to a later request.
            Request::Get { keys_at, .. } if opaque != keys_at as u32 => {
                match opaque > keys_at as u32 {
                    true => Ok(Scan::Complete(0, misses)),
                    false => Err(wrong()),
                }
            }
            Request::Get { keys_at, .. } if status == 0 && body == FLAGS + self.value_size => {
                let Some(value) = rest.get(FLAGS..body) else {
                    return Ok(Scan::Partial(0));
                };
                if !vouches(value, script.requested_key(keys_at, 0)) {
                    return Err(format!("a wrong reply: another key's value {value:?}"));
                }
                let counts = Counts {
                    hits: 1,
                    ..Counts::default()
                };
                Ok(Scan::Complete(HEADER + body, counts))
            }
            Request::Get { .. } if status == 1 => match rest.len() < body {
                true => Ok(Scan::Partial(0)),
                false => Ok(Scan::Complete(HEADER + body, misses)),
            },
            Request::Get { .. } => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Distribution, Items};
    use crate::server::scan::Protocol;
    use crate::server::script::Shape;

    fn script(pipeline: usize) -> Script {
        Script::random(&Shape {
            protocol: Protocol::Binary,
            items: Items::alike(1, 10, 9),
            distribution: Distribution::Uniform,
            pipeline,
            multiget: 1,
            get_ratio: 1.0,
        })
    }

    fn answer(status: u8, body: &[u8], opaque: u32) -> Vec<u8> {
        let mut bytes = vec![ANSWER, GET, 0, 0, 4, 0, 0, status];
        bytes.extend_from_slice(&(body.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&opaque.to_be_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(body);
        bytes
    }

    const HIT: &[u8] = b"\0\0\0\0kkkkkkk0v";

    #[test]
    fn the_last_get_of_a_block_is_loud() {
        let script = script(2);
        let expected = b"\x80\x09\0\x0a\0\0\0\0\0\0\0\x0a\0\0\0\x18\0\0\0\0\0\0\0\0kkkkkkkkk0\
                         \x80\x00\0\x0a\0\0\0\0\0\0\0\x0a\0\0\0\x3a\0\0\0\0\0\0\0\0kkkkkkkkk0";
        assert_eq!(script.text(0), expected);
    }

    #[test]
    fn hits_and_misses_are_counted_however_they_are_cut() {
        let script = script(2);
        let replies = Replies::new(9);
        let [first, last] = [0, 1].map(|at| script.requests(0)[at]);
        let hit = answer(0, HIT, 0x18);
        for cut in 0..hit.len() {
            assert_eq!(
                replies.scan(&script, first, &hit[..cut]),
                Ok(Scan::Partial(0))
            );
        }
        let scanned = |request, bytes: &[u8]| match replies.scan(&script, request, bytes) {
            Ok(Scan::Complete(length, counts)) => (length, counts.hits, counts.misses),
            other => panic!("{other:?}"),
        };
        assert_eq!(scanned(first, &hit), (hit.len(), 1, 0));
        // The first get missed, so it has no answer.
        let next = answer(0, HIT, 0x3a);
        assert_eq!(scanned(first, &next), (0, 0, 1));
        let miss = answer(1, b"Not found", 0x3a);
        assert_eq!(scanned(last, &miss), (miss.len(), 0, 1));
    }

    #[test]
    fn wrong_replies_are_noticed() {
        let script = script(2);
        let replies = Replies::new(9);
        let [first, last] = [0, 1].map(|at| script.requests(0)[at]);
        for reply in [
            answer(0, b"\0\0\0\0kkkkkkk1v", 0x18),
            answer(0, b"\0\0\0\0kkkkkkk", 0x18),
            answer(0x82, b"Out of memory", 0x18),
            b"VALUE kkkkkkkkk0 0 9\r\nkkkkkkk0v\r\n".to_vec(),
        ] {
            assert!(replies.scan(&script, first, &reply).is_err(), "{reply:?}");
        }
        assert!(replies.scan(&script, last, &answer(0, HIT, 0x18)).is_err());
        assert!(
            replies
                .scan(&script, Request::Set, &answer(0, b"", 0x18))
                .is_err()
        );
        let stored = answer(0, b"", SET_OPAQUE);
        assert_eq!(
            replies.scan(&script, Request::Set, &stored),
            Ok(Scan::Complete(HEADER, Counts::STORED))
        );
    }
}
