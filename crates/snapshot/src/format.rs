//! The format of a file of items, with all numbers little-endian:
//!
//! ```text
//!  header   | NUTHATCH | version 4 | flush 4 | unix milliseconds 8 | checksum of these 8 |
//!  block    | bytes 4 | items 4 | checksum 8 | items |
//!  ...
//!  end      | 0 4 | 0 4 | checksum of the blocks' checksums 8 | items 8 |
//!
//!  item     | key length 1 | 1 if it expires 1 | flags 4 | cas 8 | expiry 8 | value length 4 | key | value |
//! ```
//!
//! Checksums are XXH3 of 64 bits. An expiry is a moment in unix milliseconds, 0 for an item without one. The flush is
//! the number of ticks (sixteenths of a second) from the header's moment to a flush of all items that is still to come,
//! 0 if there is none. A reader that does not know this field ignores it.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The first bytes of a file.
pub const MAGIC: [u8; 8] = *b"NUTHATCH";

/// The version that is written.
pub const VERSION: u32 = 1;

/// Bytes of the header.
pub const HEADER: usize = 32;

/// Bytes before a block's items.
pub const BLOCK_HEAD: usize = 16;

/// A block is written when it has this many bytes. A block with one item may have more.
pub const BLOCK: usize = 1 << 20;

/// Bytes of an item before its key.
pub const ITEM_HEAD: usize = 26;

/// The longest block: an item has at most 1 GiB (`-I`).
pub const BLOCK_MAX: usize = (1 << 30) + BLOCK;

/// One item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// 1 to 250 bytes.
    pub key: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// Its cas.
    pub cas: u64,
    /// When it expires, in unix milliseconds.
    pub expiry: Option<u64>,
    /// Its value.
    pub value: &'a [u8],
}

/// The content of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// When the file was begun, in unix milliseconds.
    pub unix_millis: u64,
    /// Ticks from there to a flush that is still to come. 0 is none.
    pub flush: u32,
}

/// The bytes of a header.
pub fn header(head: &Head) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&head.flush.to_le_bytes());
    header[16..24].copy_from_slice(&head.unix_millis.to_le_bytes());
    let checksum = xxh3_64(&header[..24]);
    header[24..].copy_from_slice(&checksum.to_le_bytes());
    header
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

/// Parses a header.
pub fn parse_header(header: &[u8; HEADER]) -> Result<Head, BadHeader> {
    if header[..8] != MAGIC {
        return Err(BadHeader::Magic);
    }
    let version = number(&header[8..12]) as u32;
    if version != VERSION {
        return Err(BadHeader::Version(version));
    }
    match number(&header[24..]) == xxh3_64(&header[..24]) {
        true => Ok(Head {
            unix_millis: number(&header[16..24]),
            flush: number(&header[12..16]) as u32,
        }),
        false => Err(BadHeader::Checksum),
    }
}

/// The little-endian number of up to 8 bytes.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Appends an item to a block.
pub fn push(block: &mut Vec<u8>, record: &Record<'_>, value_len: usize) {
    // Both lengths fit: the limits are 250 bytes and 1 GiB.
    block.push(record.key.len() as u8);
    block.push(u8::from(record.expiry.is_some()));
    block.extend_from_slice(&record.flags.to_le_bytes());
    block.extend_from_slice(&record.cas.to_le_bytes());
    block.extend_from_slice(&record.expiry.unwrap_or(0).to_le_bytes());
    block.extend_from_slice(&(value_len as u32).to_le_bytes());
    block.extend_from_slice(record.key);
    block.extend_from_slice(record.value);
}

/// Takes the item at the front of a block. `None` if there is no complete one.
pub fn pop<'a>(block: &mut &'a [u8]) -> Option<Record<'a>> {
    let (head, rest) = block.split_at_checked(ITEM_HEAD)?;
    let (key, rest) = rest.split_at_checked(usize::from(head[0]))?;
    let (value, rest) = rest.split_at_checked(number(&head[22..26]) as usize)?;
    if key.is_empty() || key.len() > nuthatch_engine::request::KEY_LEN_MAX {
        return None;
    }
    *block = rest;
    Some(Record {
        key,
        flags: number(&head[2..6]) as u32,
        cas: number(&head[6..14]),
        expiry: (head[1] != 0).then(|| number(&head[14..22])),
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

    /// The bytes of the end.
    pub fn end(&self) -> [u8; BLOCK_HEAD + 8] {
        let mut end = [0; BLOCK_HEAD + 8];
        end[8..16].copy_from_slice(&self.checksums.digest().to_le_bytes());
        end[16..].copy_from_slice(&self.items.to_le_bytes());
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
            expiry: Some(123_456_789_012),
            value: b"value",
        };
        let mut block = Vec::new();
        push(&mut block, &record, record.value.len());
        let mut front = &block[..];
        assert_eq!(pop(&mut front), Some(record));
        assert!(front.is_empty());
        for end in 0..block.len() {
            assert_eq!(pop(&mut &block[..end]), None);
        }
    }

    #[test]
    fn headers_are_known() {
        let head = Head {
            unix_millis: 99,
            flush: 7,
        };
        let good = header(&head);
        assert_eq!(parse_header(&good), Ok(head));
        for at in 0..HEADER {
            let mut bad = good;
            bad[at] ^= 1;
            assert!(parse_header(&bad).is_err(), "{at}");
        }
        let mut later = good;
        later[8] = 9;
        assert_eq!(parse_header(&later), Err(BadHeader::Version(9)));
    }
}
