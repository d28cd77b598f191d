//! The format of a file of items, with all numbers little-endian:
//!
//! ```text
//!  header   | NUTHATCH | version 4 | 0 4 | flush 8 | unix 8 | uptime 8 | boot 16 | checksum of these 8 |
//!  block    | bytes 4 | items 4 | checksum 8 | items |
//!  ...
//!  end      | 0 4 | 0 4 | checksum 8 | items 8 | next number 8 |
//!
//!  item     | key length 3 | 1 if it expires 1 | flags 4 | cas 8 | left 8 | value length 4 | key | value |
//! ```
//!
//! Checksums are XXH3 of 64 bits; that of the end covers the blocks' checksums and the next number, which is above the
//! cas of every store so far (see [`next_number`](nuthatch_engine::Engine::next_number)).
//!
//! All times are in nanoseconds. The header has the moment at which the file was begun ([`Written`]): by the wall clock,
//! since 1970, and by the time since the start of the machine, with that start's name. What is left of an item's life,
//! and of the time to a flush of all items that is still to come, counts from that moment. 0 is no flush.
//!
//! A key is that of an engine whose databases have their first [namespaces](nuthatch_engine::namespace).
//!
//! Versions 1 and 2 are read as well. In both the key length is 1 byte, and all keys are of database 0, without a prefix. In version 1 the header is
//!
//! ```text
//!           | NUTHATCH | version 4 | flush 4 | unix 8 | checksum of these 8 |
//! ```
//!
//! with the flush in sixteenths of a second and the moment in milliseconds; an item has the moment of its end, in
//! milliseconds since 1970, in place of what is left; and the end has no next number.

use std::borrow::Cow;
use std::time::Duration;

use nuthatch_engine::Time;
use nuthatch_engine::namespace::{Mapping, Namespace};
use nuthatch_engine::request::{KEY_LEN_MAX, LONG_KEY_LEN_MAX};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::written::Written;

/// The first bytes of a file.
pub const MAGIC: [u8; 8] = *b"NUTHATCH";

/// The version that is written.
pub const VERSION: u32 = 3;

/// Bytes of the header.
pub const HEADER: usize = 64;

/// Bytes of the header of version 1: any file has as many.
pub const HEADER_1: usize = 32;

/// Bytes of the header that its checksum covers.
const SUMMED: usize = HEADER - 8;

/// Bytes before a block's items.
pub const BLOCK_HEAD: usize = 16;

/// A block is written when it has this many bytes. A block with one item may have more.
pub const BLOCK: usize = 1 << 20;

/// Bytes of an item before its key.
pub const ITEM_HEAD: usize = KEY_LEN + BEHIND_KEY_LEN;

/// Bytes of a key's length.
const KEY_LEN: usize = 3;

/// The same in versions 1 and 2.
const KEY_LEN_2: usize = 1;

/// Bytes between a key's length and the key.
const BEHIND_KEY_LEN: usize = 25;

/// The longest block: an item has at most 1 GiB (`-I`).
pub const BLOCK_MAX: usize = (1 << 30) + BLOCK;

/// One item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// 1 to [`LONG_KEY_LEN_MAX`] bytes.
    pub key: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// Its cas.
    pub cas: u64,
    /// What was left of its life when the file was begun.
    pub left: Option<Duration>,
    /// Its value.
    pub value: &'a [u8],
}

/// The content of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// When the file was begun.
    pub written: Written,
    /// The time from there to a flush that is still to come.
    pub flush: Option<Duration>,
    /// The file's version.
    pub version: Version,
}

/// The version of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// 1.
    First,
    /// 2.
    Second,
    /// The one that is written.
    #[default]
    Third,
}

impl Version {
    /// Bytes of a key's length.
    fn key_len(self) -> usize {
        match self {
            Self::First | Self::Second => KEY_LEN_2,
            Self::Third => KEY_LEN,
        }
    }
}

impl Head {
    /// The engine's key of an item of the file.
    pub fn key_of<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        match self.version {
            Version::Third => Cow::Borrowed(key),
            Version::First | Version::Second if Namespace::BARE.leaves(key) => Cow::Borrowed(key),
            Version::First | Version::Second => Cow::Owned(Namespace::BARE.stored(key)),
        }
    }

    /// What the number of an item says that was left of its life.
    fn left(&self, number: u64) -> Duration {
        match self.version {
            Version::First => Duration::from_millis(number).saturating_sub(self.written.unix),
            Version::Second | Version::Third => Duration::from_nanos(number),
        }
    }
}

/// The bytes of a header, of the version that is written.
pub fn header(head: &Head) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    // A flush that comes at once is one.
    let flush = head.flush.map_or(0, |flush| nanos(flush).max(1));
    header[16..24].copy_from_slice(&flush.to_le_bytes());
    header[24..32].copy_from_slice(&nanos(head.written.unix).to_le_bytes());
    header[32..40].copy_from_slice(&nanos(head.written.uptime).to_le_bytes());
    header[40..56].copy_from_slice(&head.written.boot);
    let checksum = xxh3_64(&header[..SUMMED]);
    header[SUMMED..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Nanoseconds; 64 bits of them are 584 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Why a header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHeader {
    /// Another kind of file.
    Magic,
    /// A later version.
    Version(u32),
    /// Its checksum does not fit.
    Checksum,
}

/// Parses a header, whose first bytes are these. `more` reads as many bytes behind them as it is given.
pub fn parse_header<E>(
    first: &[u8; HEADER_1],
    more: impl FnOnce(&mut [u8]) -> Result<(), E>,
) -> Result<Result<Head, BadHeader>, E> {
    if first[..8] != MAGIC {
        return Ok(Err(BadHeader::Magic));
    }
    match number(&first[8..12]) as u32 {
        1 => Ok(parse_header_1(first)),
        version @ (2 | VERSION) => {
            let mut header = [0; HEADER];
            header[..HEADER_1].copy_from_slice(first);
            more(&mut header[HEADER_1..])?;
            let version = match version {
                VERSION => Version::Third,
                _ => Version::Second,
            };
            Ok(parse_header_2(&header, version))
        }
        version => Ok(Err(BadHeader::Version(version))),
    }
}

fn parse_header_1(header: &[u8; HEADER_1]) -> Result<Head, BadHeader> {
    if number(&header[24..]) != xxh3_64(&header[..24]) {
        return Err(BadHeader::Checksum);
    }
    let flush = Time(number(&header[12..16]) as u32).since(Time(0));
    Ok(Head {
        written: Written {
            unix: Duration::from_millis(number(&header[16..24])),
            ..Written::default()
        },
        flush: (!flush.is_zero()).then_some(flush),
        version: Version::First,
    })
}

fn parse_header_2(header: &[u8; HEADER], version: Version) -> Result<Head, BadHeader> {
    if number(&header[SUMMED..]) != xxh3_64(&header[..SUMMED]) {
        return Err(BadHeader::Checksum);
    }
    let time = |at: usize| Duration::from_nanos(number(&header[at..at + 8]));
    let mut boot = [0; 16];
    boot.copy_from_slice(&header[40..56]);
    Ok(Head {
        written: Written {
            unix: time(24),
            uptime: time(32),
            boot,
        },
        flush: Some(time(16)).filter(|flush| !flush.is_zero()),
        version,
    })
}

/// The little-endian number of up to 8 bytes.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Appends an item to a block.
pub fn push(block: &mut Vec<u8>, record: &Record<'_>, value_len: usize) {
    // Both lengths fit: the limits are 64 KiB and 1 GiB.
    block.extend_from_slice(&(record.key.len() as u32).to_le_bytes()[..KEY_LEN]);
    block.push(u8::from(record.left.is_some()));
    block.extend_from_slice(&record.flags.to_le_bytes());
    block.extend_from_slice(&record.cas.to_le_bytes());
    block.extend_from_slice(&record.left.map_or(0, nanos).to_le_bytes());
    block.extend_from_slice(&(value_len as u32).to_le_bytes());
    block.extend_from_slice(record.key);
    block.extend_from_slice(record.value);
}

/// Takes the item at the front of a block of a file with this head. `None` if there is no complete one.
pub fn pop<'a>(block: &mut &'a [u8], of: &Head) -> Option<Record<'a>> {
    let (key_len, rest) = block.split_at_checked(of.version.key_len())?;
    let (head, rest) = rest.split_at_checked(BEHIND_KEY_LEN)?;
    let (key, rest) = rest.split_at_checked(number(key_len) as usize)?;
    let (value, rest) = rest.split_at_checked(number(&head[21..25]) as usize)?;
    let longest = match of.version {
        Version::First | Version::Second => KEY_LEN_MAX,
        Version::Third => LONG_KEY_LEN_MAX,
    };
    if key.is_empty() || key.len() > longest {
        return None;
    }
    if of.version == Version::Third {
        // A key of a database, as it is at the begin of a server.
        let (namespace, _) = Namespace::try_split(key)?;
        Mapping::default().database_of(namespace)?;
    }
    *block = rest;
    Some(Record {
        key,
        flags: number(&head[1..5]) as u32,
        cas: number(&head[5..13]),
        left: (head[0] != 0).then(|| of.left(number(&head[13..21]))),
        value,
    })
}

/// The head of a block.
pub fn block_head(block: &[u8], items: u32) -> [u8; BLOCK_HEAD] {
    let mut head = [0; BLOCK_HEAD];
    head[..4].copy_from_slice(&(block.len() as u32).to_le_bytes());
    head[4..8].copy_from_slice(&items.to_le_bytes());
    head[8..].copy_from_slice(&xxh3_64(block).to_le_bytes());
    head
}

/// The summary of a file's blocks in its end.
#[derive(Clone, Default)]
pub struct Whole {
    checksums: Xxh3,
    /// Items so far.
    pub items: u64,
}

impl Whole {
    /// Adds a block's head.
    pub fn add(&mut self, head: &[u8; BLOCK_HEAD]) {
        self.checksums.update(&head[8..]);
        self.items += number(&head[4..8]);
    }

    /// The bytes of the end. Version 1 has no next number.
    pub fn end(&self, next_number: Option<u64>) -> Vec<u8> {
        let next_number = next_number.map(u64::to_le_bytes);
        let mut checksums = self.checksums.clone();
        checksums.update(next_number.as_ref().map_or(&[][..], |number| number));
        let mut end = vec![0; BLOCK_HEAD / 2];
        end.extend_from_slice(&checksums.digest().to_le_bytes());
        end.extend_from_slice(&self.items.to_le_bytes());
        end.extend(next_number.into_iter().flatten());
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_and_cut_ones_do_not() {
        let record = Record {
            key: b"key",
            flags: 7,
            cas: 1 << 40,
            left: Some(Duration::from_nanos(123_456_789_012)),
            value: b"value",
        };
        let mut block = Vec::new();
        push(&mut block, &record, record.value.len());
        let mut front = &block[..];
        assert_eq!(pop(&mut front, &Head::default()), Some(record));
        assert!(front.is_empty());
        for end in 0..block.len() {
            assert_eq!(pop(&mut &block[..end], &Head::default()), None);
        }
    }

    #[test]
    fn headers_are_known() {
        let head = Head {
            written: Written {
                unix: Duration::from_nanos(99),
                boot: [5; 16],
                uptime: Duration::from_nanos(3),
            },
            flush: Some(Duration::from_nanos(7)),
            version: Version::Third,
        };
        let good = header(&head);
        assert_eq!(parsed(&good), Ok(head));
        for at in 0..HEADER {
            let mut bad = good;
            bad[at] ^= 1;
            assert!(parsed(&bad).is_err(), "{at}");
        }
        let mut later = good;
        later[8] = 9;
        assert_eq!(parsed(&later), Err(BadHeader::Version(9)));
    }

    fn parsed(header: &[u8]) -> Result<Head, BadHeader> {
        let (first, rest) = header.split_first_chunk().unwrap();
        let more = |into: &mut [u8]| -> Result<(), ()> {
            into.copy_from_slice(rest);
            Ok(())
        };
        parse_header(first, more).unwrap()
    }
}
