//! A line that a server writes for who watches it: `ts=SECONDS.MICROSECONDS gid=NUMBER type=EVENT key=KEY ...`.

/// The longest key in a line: memcached's 250 bytes, three letters for each.
const KEY_MAX: usize = 750;

/// The longest lifetime that a client can give.
const LIFETIME_MAX: u64 = i32::MAX as u64;

/// A line about an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// The server's number of the event: lines of several of its threads come in another order.
    pub number: u64,
    /// Microseconds since 1970.
    pub time_us: u64,
    /// The key, in which bytes that are not plain letters are written as %XX.
    pub key: Box<[u8]>,
    /// The connection, if the line tells it.
    pub connection: Option<u64>,
    /// What happened.
    pub event: Event,
}

/// What happened to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// It was looked for, and found with a value of so many bytes, or not. A change begins with this, too.
    Get(Option<u32>),
    /// It was stored.
    Store {
        /// Bytes of its value.
        size: u32,
        /// Seconds that it lives; 0: for ever.
        lifetime: u64,
    },
    /// It was not stored, or expired at once.
    NotStored,
    /// A client deleted it.
    Delete,
    /// It was evicted.
    Evict,
}

/// What a watching client reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// A line about an item.
    Item(Line),
    /// The server left out so many lines.
    Skipped(u64),
    /// Something else.
    Other,
}

/// Parses a line, without its end.
pub fn parse(text: &str) -> Read {
    if let Some(count) = text.strip_prefix("skipped=") {
        return count.parse().map_or(Read::Other, Read::Skipped);
    }
    let field = |name: &str| {
        let mut words = text.split(' ').filter_map(|word| word.split_once('='));
        words.find_map(|(found, value)| (found == name).then_some(value))
    };
    let number = |name| field(name).and_then(|value| value.parse::<u64>().ok());
    let size = || number("size").and_then(|size| u32::try_from(size).ok());
    let event = match (field("type"), field("status")) {
        (Some("item_get"), Some("found")) => Event::Get(size()),
        (Some("item_get"), Some(_)) => Event::Get(None),
        (Some("item_store"), Some("stored")) => match field("ttl").map_or(Some(0), lifetime) {
            Some(lifetime) => Event::Store {
                size: size().unwrap_or(0),
                lifetime,
            },
            None => Event::NotStored,
        },
        (Some("item_store"), Some(_)) => Event::NotStored,
        (Some("deleted"), _) => Event::Delete,
        (Some("eviction"), _) => Event::Evict,
        _ => return Read::Other,
    };
    let (Some(key), Some(gid)) = (field("key"), number("gid")) else {
        return Read::Other;
    };
    if key.is_empty() || key.len() > KEY_MAX {
        return Read::Other;
    }
    Read::Item(Line {
        number: gid,
        time_us: field("ts").and_then(micros).unwrap_or(0),
        key: key.as_bytes().into(),
        connection: number("cfd"),
        event,
    })
}

/// Seconds that an item lives; 0: for ever. None: it has expired. memcached writes what is left of it, below 0 then, as a
/// number of 32 bits without a sign.
fn lifetime(text: &str) -> Option<u64> {
    let seconds: i64 = text.parse().unwrap_or(0);
    let seconds = u64::try_from(seconds).ok()?;
    (seconds <= LIFETIME_MAX).then_some(seconds)
}

/// `SECONDS.MICROSECONDS` in microseconds.
fn micros(text: &str) -> Option<u64> {
    let (seconds, rest) = text.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    let rest: u64 = rest.parse().ok()?;
    seconds.checked_mul(1_000_000)?.checked_add(rest)
}

/// The key itself, if a trace can have it as one word without a `%`; else as it is in the line. So two keys stay two: what
/// is as in the line has a `%`, and no other has.
pub fn key(written: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(written.len());
    let mut rest = written;
    while let [first, tail @ ..] = rest {
        let code = match (first, tail.get(..2)) {
            (b'%', Some(code)) => std::str::from_utf8(code).ok(),
            _ => None,
        };
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                key.push(byte);
                rest = &tail[2..];
            }
            None => {
                key.push(*first);
                rest = tail;
            }
        }
    }
    let is_word = |byte: &u8| *byte > b' ' && !matches!(byte, 0x7f | b',' | b'"' | b'%');
    match key.iter().all(is_word) {
        true => key,
        false => written.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As memcached 1.6.18 and Nuthatch write them.
    #[test]
    fn lines_of_servers_are_understood() {
        let line = |text: &str| match parse(text) {
            Read::Item(line) => line,
            other => panic!("{other:?}"),
        };
        let get = line(
            "ts=1795887522.500143 gid=2 type=item_get key=a%2Cb status=not_found clsid=0 cfd=13 size=0",
        );
        assert_eq!((get.number, get.time_us), (2, 1_795_887_522_500_143));
        assert_eq!((&*get.key, get.connection), (&b"a%2Cb"[..], Some(13)));
        assert_eq!(get.event, Event::Get(None));
        let event = |rest| line(&format!("ts=1.000000 gid=7 {rest}")).event;
        for (rest, expected) in [
            (
                "type=item_get key=a status=found clsid=1 cfd=13 size=3",
                Event::Get(Some(3)),
            ),
            (
                "type=item_store key=a status=not_stored cmd=add ttl=0 clsid=1 cfd=13 size=1",
                Event::NotStored,
            ),
            (
                "type=deleted key=a cmd=delete clsid=0 size=0",
                Event::Delete,
            ),
            (
                "type=eviction key=a fetch=yes ttl=-1 la=1 clsid=1 size=9",
                Event::Evict,
            ),
        ] {
            assert_eq!(event(rest), expected);
        }
        let stored =
            event("type=item_store key=a status=stored cmd=set ttl=60 clsid=1 cfd=13 size=3");
        assert_eq!(
            stored,
            Event::Store {
                size: 3,
                lifetime: 60
            }
        );
        assert_eq!(parse("skipped=12"), Read::Skipped(12));
        for other in [
            "",
            "OK",
            "skipped=x",
            "ts=1.0 gid=1 type=conn_new rip=::1",
            "gid=1 type=item_get key= status=found",
        ] {
            assert_eq!(parse(other), Read::Other, "{other}");
        }
    }

    #[test]
    fn a_key_is_decoded_if_it_stays_one_word() {
        assert_eq!(key(b"user%3A1"), b"user:1");
        for kept in [&b"a%2Cb"[..], b"a%20b", b"a%0Ab", b"%", b"%zz", b"a%22"] {
            assert_eq!(key(kept), kept);
        }
    }

    #[test]
    fn two_keys_stay_two() {
        // `a b` and `a%20b`, then `%` and `%25`.
        for [one, other] in [[&b"a%20b"[..], b"a%2520b"], [b"%25", b"%2525"]] {
            assert_ne!(key(one), key(other));
            assert_eq!([key(one), key(other)], [one, other]);
        }
    }

    #[test]
    fn what_expires_at_once_is_not_stored() {
        let event = |ttl: &str| {
            let text =
                format!("gid=1 type=item_store key=a status=stored cmd=set ttl={ttl} size=3");
            match parse(&text) {
                Read::Item(line) => line.event,
                other => panic!("{other:?}"),
            }
        };
        // The second as memcached 1.6.18 writes it for a lifetime of -1, just after its start.
        for ttl in ["-1", "4294967235", "99999999999"] {
            assert_eq!(event(ttl), Event::NotStored, "{ttl}");
        }
        for (ttl, lifetime) in [("0", 0), ("1", 1), ("2147483647", 2_147_483_647)] {
            assert_eq!(event(ttl), Event::Store { size: 3, lifetime }, "{ttl}");
        }
    }
}
