//! CPServer's requests and answers, as a client sees them. This is a second implementation, so that it does not repeat
//! a mistake of the server's code.

use crate::server::scan::{Counts, Scan, refused};
use crate::server::script::{Request, Script};
use nuthatch_workload::proof::vouches;

/// Bytes of a key.
pub const KEY_SIZE: usize = 8;

/// Which of the protocol's requests a load has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// LOOKUP and INSERT.
    Paper,
    /// FIND and STORE.
    Extended,
}

impl Dialect {
    /// True if no answer confirms that a value was stored.
    pub fn stores_silently(self) -> bool {
        self == Self::Paper
    }

    /// Writes the bytes before the key of a get.
    pub fn get(self, text: &mut Vec<u8>) {
        let op: u32 = if self == Self::Paper { 0 } else { 2 };
        head(text, op, 0);
    }

    /// Writes the bytes before the key and the value of a set.
    pub fn set(self, text: &mut Vec<u8>, value_size: usize) {
        let op: u32 = if self == Self::Paper { 1 } else { 3 };
        head(text, op, value_size as u32);
    }
}

fn head(text: &mut Vec<u8>, op: u32, size: u32) {
    text.extend_from_slice(&op.to_le_bytes());
    text.extend_from_slice(&size.to_le_bytes());
}

/// How replies to values of one size look.
pub struct Replies {
    dialect: Dialect,
    value_size: usize,
}

impl Replies {
    /// For values of this size.
    pub fn new(dialect: Dialect, value_size: usize) -> Self {
        Self {
            dialect,
            value_size,
        }
    }

    /// Bytes before a value.
    fn head(&self) -> usize {
        match self.dialect {
            Dialect::Paper => 4,
            Dialect::Extended => 8,
        }
    }

    /// Bytes of one value's record: the least that a buffer must hold.
    pub fn record(&self) -> usize {
        self.head() + self.value_size
    }

    /// Looks through the reply to `request` at the front of `bytes`.
    #[inline]
    pub fn scan(&self, script: &Script, request: Request, bytes: &[u8]) -> Result<Scan, String> {
        if request == Request::Set && self.dialect.stores_silently() {
            return Ok(Scan::Complete(0, Counts::STORED));
        }
        let Some((head, rest)) = bytes.split_at_checked(self.head()) else {
            return Ok(Scan::Partial(0));
        };
        let word = |at: usize| {
            let bytes = head[at..].first_chunk().copied();
            u32::from_le_bytes(bytes.unwrap_or_default())
        };
        let (status, size) = match self.dialect {
            // An empty value looks like a miss; none is ever stored here.
            Dialect::Paper => (u32::from(word(0) == 0), word(0) as usize),
            Dialect::Extended => (word(0), word(4) as usize),
        };
        match (request, status) {
            (Request::Set, 0) if size == 0 => Ok(Scan::Complete(head.len(), Counts::STORED)),
            (Request::Get { .. }, 1) if size == 0 => {
                let counts = Counts {
                    misses: 1,
                    ..Counts::default()
                };
                Ok(Scan::Complete(head.len(), counts))
            }
            (Request::Get { keys_at, .. }, 0) if size == self.value_size => {
                let Some(value) = rest.get(..size) else {
                    return Ok(Scan::Partial(0));
                };
                if !vouches(value, script.requested_key(keys_at, 0)) {
                    return Err(format!("a wrong reply: another key's value {value:?}"));
                }
                let counts = Counts {
                    hits: 1,
                    ..Counts::default()
                };
                Ok(Scan::Complete(head.len() + size, counts))
            }
            (Request::Set, _) => Err(refused(self.value_size, &format!("status {status}"))),
            _ => Err(format!("a wrong reply: status {status}, {size} bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Distribution, Items};
    use crate::server::scan::Protocol;
    use crate::server::script::Shape;

    fn script(protocol: Protocol) -> Script {
        Script::random(&Shape {
            protocol,
            items: Items::alike(1, KEY_SIZE, 9),
            distribution: Distribution::Uniform,
            pipeline: 1,
            multiget: 1,
            get_ratio: 1.0,
        })
    }

    fn scan(protocol: Protocol, bytes: &[u8]) -> Result<Scan, String> {
        let script = script(protocol);
        let request = script.requests(0)[0];
        let dialect = protocol.dialect().unwrap();
        Replies::new(dialect, 9).scan(&script, request, bytes)
    }

    #[test]
    fn a_lookup_is_its_number_and_its_key() {
        let expected = b"\0\0\0\0\0\0\0\0kkkkkkk0";
        assert_eq!(script(Protocol::Cpserver).text(0), expected);
        let expected = b"\x02\0\0\0\0\0\0\0kkkkkkk0";
        assert_eq!(script(Protocol::CpserverExtended).text(0), expected);
    }

    #[test]
    fn hits_and_misses_are_counted_however_they_are_cut() {
        for (protocol, hit, miss) in [
            (
                Protocol::Cpserver,
                &b"\x09\0\0\0kkkkkkk0v"[..],
                &b"\0\0\0\0"[..],
            ),
            (
                Protocol::CpserverExtended,
                b"\0\0\0\0\x09\0\0\0kkkkkkk0v",
                b"\x01\0\0\0\0\0\0\0",
            ),
        ] {
            for (reply, hits) in [(hit, 1), (miss, 0)] {
                for cut in 0..reply.len() {
                    assert_eq!(scan(protocol, &reply[..cut]), Ok(Scan::Partial(0)));
                }
                let Ok(Scan::Complete(length, counts)) = scan(protocol, reply) else {
                    panic!("{reply:?} is complete");
                };
                assert_eq!((length, counts.hits), (reply.len(), hits));
            }
        }
    }

    #[test]
    fn wrong_replies_are_noticed() {
        for reply in [
            &b"\x09\0\0\0kkkkkkk1v"[..],
            b"\x08\0\0\0kkkkkkk0",
            b"END\r\n",
        ] {
            assert!(scan(Protocol::Cpserver, reply).is_err(), "{reply:?}");
        }
        for reply in [b"\x02\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\0"] {
            assert!(scan(Protocol::CpserverExtended, reply).is_err());
        }
        let set = |dialect, bytes| {
            Replies::new(dialect, 9).scan(&script(Protocol::Cpserver), Request::Set, bytes)
        };
        let stored = |length| Ok(Scan::Complete(length, Counts::STORED));
        assert_eq!(set(Dialect::Paper, b""), stored(0));
        assert_eq!(set(Dialect::Extended, &[0; 8]), stored(8));
        assert!(set(Dialect::Extended, &[3, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }
}
