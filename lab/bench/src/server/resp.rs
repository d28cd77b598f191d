//! Redis' requests and answers (RESP2), as a client sees them. This is a second implementation, so that it does not
//! repeat a mistake of the server's code.

use crate::server::scan::{Counts, Scan, refused};
use crate::server::script::{Request, Script};
use nuthatch_workload::proof::vouches;

const NULL: &[u8] = b"$-1\r\n";
const OK: &[u8] = b"+OK\r\n";

/// Writes the bytes before the key of a GET. Behind the key comes the end of a line.
pub fn get(text: &mut Vec<u8>, key_size: usize) {
    text.extend_from_slice(format!("*2\r\n$3\r\nGET\r\n${key_size}\r\n").as_bytes());
}

/// Writes the bytes before the key of a SET.
pub fn set(text: &mut Vec<u8>, key_size: usize) {
    text.extend_from_slice(format!("*3\r\n$3\r\nSET\r\n${key_size}\r\n").as_bytes());
}

/// Writes the bytes between key and value.
pub fn between(text: &mut Vec<u8>, value_size: usize) {
    text.extend_from_slice(format!("\r\n${value_size}\r\n").as_bytes());
}

/// How replies to values of one size look.
pub struct Replies {
    head: Vec<u8>,
    value_size: usize,
}

impl Replies {
    /// For values of this size.
    pub fn new(value_size: usize) -> Self {
        Self {
            head: format!("${value_size}\r\n").into_bytes(),
            value_size,
        }
    }

    /// Bytes of one value's record: the least that a buffer must hold.
    pub fn record(&self) -> usize {
        self.head.len() + self.value_size + 2
    }

    /// Looks through the reply to `request` at the front of `bytes`.
    #[inline]
    pub fn scan(&self, script: &Script, request: Request, bytes: &[u8]) -> Result<Scan, String> {
        let Request::Get { keys_at, .. } = request else {
            return whole(OK, Counts::STORED, bytes)
                .ok_or_else(|| refused(self.value_size, &show(bytes)));
        };
        if bytes.starts_with(&self.head) {
            let Some(record) = bytes.get(..self.record()) else {
                return Ok(Scan::Partial(0));
            };
            let value = &record[self.head.len()..][..self.value_size];
            if !record.ends_with(b"\r\n") || !vouches(value, script.requested_key(keys_at, 0)) {
                return Err(format!("a wrong reply: another key's value {value:?}"));
            }
            let counts = Counts {
                hits: 1,
                ..Counts::default()
            };
            return Ok(Scan::Complete(record.len(), counts));
        }
        if self.head.starts_with(bytes) {
            return Ok(Scan::Partial(0));
        }
        let counts = Counts {
            misses: 1,
            ..Counts::default()
        };
        whole(NULL, counts, bytes).ok_or_else(|| format!("a wrong reply: {}", show(bytes)))
    }
}

/// A reply that is always the same, or its beginning.
fn whole(reply: &[u8], counts: Counts, bytes: &[u8]) -> Option<Scan> {
    if bytes.starts_with(reply) {
        Some(Scan::Complete(reply.len(), counts))
    } else {
        reply.starts_with(bytes).then_some(Scan::Partial(0))
    }
}

/// The first line of some bytes, for a message.
fn show(bytes: &[u8]) -> String {
    let line = bytes.split(|&byte| byte == b'\r').next().unwrap_or(bytes);
    String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Distribution, Items};
    use crate::server::scan::Protocol;
    use crate::server::script::Shape;

    const ITEMS: Items = Items::alike(1, 10, 9);

    fn script() -> Script {
        Script::random(&Shape {
            protocol: Protocol::Redis,
            items: ITEMS,
            distribution: Distribution::Uniform,
            pipeline: 1,
            multiget: 1,
            get_ratio: 1.0,
        })
    }

    fn scan(bytes: &[u8]) -> Result<Scan, String> {
        let script = script();
        Replies::new(9).scan(&script, script.requests(0)[0], bytes)
    }

    #[test]
    fn requests_are_arrays() {
        assert_eq!(
            script().text(0),
            b"*2\r\n$3\r\nGET\r\n$10\r\nkkkkkkkkk0\r\n"
        );
        let script = Script::preload(Protocol::Redis, &ITEMS, &[0]);
        let expected = b"*3\r\n$3\r\nSET\r\n$10\r\nkkkkkkkkk0\r\n$9\r\nkkkkkkk0v\r\n";
        assert_eq!(script.text(0), expected);
    }

    #[test]
    fn hits_and_misses_are_counted_however_they_are_cut() {
        for (reply, hits) in [(&b"$9\r\nkkkkkkk0v\r\n"[..], 1), (NULL, 0)] {
            for cut in 0..reply.len() {
                assert_eq!(scan(&reply[..cut]), Ok(Scan::Partial(0)));
            }
            let Ok(Scan::Complete(length, counts)) = scan(reply) else {
                panic!("{reply:?} is complete");
            };
            assert_eq!(
                (length, counts.hits, counts.misses),
                (reply.len(), hits, 1 - hits)
            );
        }
    }

    #[test]
    fn wrong_replies_are_noticed() {
        for reply in [
            &b"$9\r\nkkkkkkk1v\r\n"[..],
            b"$9\r\nkkkkkkk0v\n\n",
            b"$8\r\nkkkkkkk0\r\n",
            b"-ERR no\r\n",
            b"+OK\r\n",
        ] {
            assert!(scan(reply).is_err(), "{reply:?}");
        }
        let script = script();
        let set = |bytes: &[u8]| Replies::new(9).scan(&script, Request::Set, bytes);
        assert_eq!(set(OK), Ok(Scan::Complete(OK.len(), Counts::STORED)));
        assert_eq!(set(b"+O"), Ok(Scan::Partial(0)));
        assert!(set(b"-OOM command not allowed\r\n").is_err());
    }
}
