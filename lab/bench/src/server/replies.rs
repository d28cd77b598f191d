//! The parser of memcached's text replies. It is as cheap as possible, and still checks that each reply answers its
//! request, and that each value is the one of its key and has the right length.

use crate::server::scan::{Counts, Progress, Scan, refused};
use crate::server::script::{Request, Script};
use nuthatch_workload::proof::vouches;

/// How replies to values of one size look.
pub struct Replies {
    key_size: usize,
    value_size: usize,
    /// The bytes between key and value: flags and length.
    middle: Vec<u8>,
}

const HEAD: &[u8] = b"VALUE ";
const END: &[u8] = b"END\r\n";
const STORED: &[u8] = b"STORED\r\n";

impl Replies {
    /// For items of these sizes, stored without flags.
    pub fn new(key_size: usize, value_size: usize) -> Self {
        Self {
            key_size,
            value_size,
            middle: format!(" 0 {value_size}\r\n").into_bytes(),
        }
    }

    /// Bytes of one value's record: the least that a buffer must hold.
    pub fn record(&self) -> usize {
        HEAD.len() + self.key_size + self.middle.len() + self.value_size + 2
    }

    /// Looks through the reply to `request` at the front of `bytes`.
    #[inline]
    pub fn scan(
        &self,
        script: &Script,
        request: Request,
        progress: &mut Progress,
        bytes: &[u8],
    ) -> Result<Scan, String> {
        let Request::Get { keys_at, keys } = request else {
            return self.scan_stored(bytes);
        };
        let mut at = 0;
        while bytes[at..].first() == Some(&b'V') {
            let Some(record) = bytes.get(at..at + self.record()) else {
                return Ok(Scan::Partial(at));
            };
            let key = &record[HEAD.len()..HEAD.len() + self.key_size];
            // Keys without a value are skipped: the reply does not contain them.
            while progress.passed < keys && script.requested_key(keys_at, progress.passed) != key {
                progress.passed += 1;
            }
            if progress.passed == keys || !self.is_good(record, key) {
                return Err(format!("a wrong reply: {}", show(record)));
            }
            progress.passed += 1;
            progress.hits += 1;
            at += record.len();
        }
        if bytes[at..].starts_with(END) {
            let hits = progress.hits;
            let counts = Counts {
                hits,
                misses: keys as u64 - hits,
                stored: 0,
            };
            *progress = Progress::default();
            Ok(Scan::Complete(at + END.len(), counts))
        } else if END.starts_with(&bytes[at..]) {
            Ok(Scan::Partial(at))
        } else {
            Err(format!("a wrong reply: {}", show(&bytes[at..])))
        }
    }

    #[inline(always)]
    fn is_good(&self, record: &[u8], key: &[u8]) -> bool {
        let (head, value) = record.split_at(record.len() - self.value_size - 2);
        head.starts_with(HEAD)
            && head.ends_with(&self.middle)
            && value.ends_with(b"\r\n")
            && vouches(&value[..self.value_size], key)
    }

    #[inline]
    fn scan_stored(&self, bytes: &[u8]) -> Result<Scan, String> {
        if bytes.starts_with(STORED) {
            Ok(Scan::Complete(STORED.len(), Counts::STORED))
        } else if STORED.starts_with(bytes) {
            Ok(Scan::Partial(0))
        } else {
            Err(refused(self.value_size, &show(bytes)))
        }
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

    fn script(multiget: usize) -> Script {
        let shape = Shape {
            protocol: Protocol::Memcached,
            items: ITEMS,
            distribution: Distribution::Uniform,
            pipeline: 1,
            multiget,
            get_ratio: 1.0,
        };
        Script::random(&shape)
    }

    fn scan(keys: usize, bytes: &[u8]) -> Result<Scan, String> {
        let script = script(keys);
        let request = script.requests(0)[0];
        Replies::new(10, 9).scan(&script, request, &mut Progress::default(), bytes)
    }

    const HIT: &[u8] = b"VALUE kkkkkkkkk0 0 9\r\nkkkkkkk0v\r\n";

    #[test]
    fn hits_and_misses_are_counted() {
        let counts = |hits, misses| Counts {
            hits,
            misses,
            stored: 0,
        };
        assert_eq!(scan(1, END), Ok(Scan::Complete(5, counts(0, 1))));
        let one = [HIT, END].concat();
        assert_eq!(scan(1, &one), Ok(Scan::Complete(one.len(), counts(1, 0))));
        let two = [HIT, HIT, END, END].concat();
        let length = two.len() - END.len();
        assert_eq!(scan(3, &two), Ok(Scan::Complete(length, counts(2, 1))));
    }

    #[test]
    fn every_cut_goes_on_where_it_stopped() {
        let whole = [HIT, HIT, END].concat();
        let script = script(2);
        let request = script.requests(0)[0];
        let scanner = Replies::new(10, 9);
        for cut in 0..whole.len() {
            let mut progress = Progress::default();
            let first = scanner.scan(&script, request, &mut progress, &whole[..cut]);
            let Ok(Scan::Partial(used)) = first else {
                panic!("{cut}: {first:?}");
            };
            let rest = scanner.scan(&script, request, &mut progress, &whole[used..]);
            let Ok(Scan::Complete(length, counts)) = rest else {
                panic!("{cut}: {rest:?}");
            };
            assert_eq!((used + length, counts.hits), (whole.len(), 2));
        }
    }

    #[test]
    fn wrong_replies_are_noticed() {
        let wrong: [&[u8]; 6] = [
            b"VALUE kkkkkkkkk1 0 9\r\nkkkkkkk1v\r\nEND\r\n",
            b"VALUE kkkkkkkkk0 0 9\r\nkkkkkkk1v\r\nEND\r\n",
            b"VALUE kkkkkkkkk0 1 9\r\nkkkkkkk0v\r\nEND\r\n",
            b"VALUE kkkkkkkkk0 0 8\r\nkkkkkkk0\r\nEND\r\nxx",
            b"ERROR\r\n",
            b"STORED\r\n",
        ];
        for reply in wrong {
            assert!(scan(1, reply).is_err(), "{}", show(reply));
        }
        let twice = [HIT, HIT, END].concat();
        assert!(scan(1, &twice).is_err());
        let replies = Replies::new(10, 9);
        let refused = replies.scan_stored(b"SERVER_ERROR out of memory\r\n");
        assert!(refused.unwrap_err().contains("--value-size 9"));
        assert_eq!(replies.scan_stored(b"STOR"), Ok(Scan::Partial(0)));
    }
}
