//! The form in which Redis dumps a plain value (DUMP), and restores it (RESTORE). All versions of Redis and Valkey have
//! the same for it:
//!
//! ```text
//!  0      | the value's form and its bytes | version, 2 bytes | checksum, 8 bytes
//!  string | see below                      |       both with the lowest byte first
//!
//!  00nnnnnn                          n bytes follow
//!  01nnnnnn n                        the same, n of 14 bits
//!  10000000 n n n n                  the same, n of 32 bits, the highest byte first
//!  10000001 n n n n n n n n          the same, n of 64 bits
//!  11000000 i; 11000001 i i; 11000010 i i i i     the digits of an integer of 8, 16, 32 bits, the lowest byte first
//!  11000011 length, length, bytes    LZF: the lengths of what follows and of the value
//! ```
//!
//! A value that is dumped here is not compressed. What is restored may be.

#![forbid(unsafe_code)]

mod lzf;

use std::borrow::Cow;
use std::collections::TryReserveError;

use crc::{CRC_64_REDIS, Crc, Digest, Table};

/// The type of a plain value.
const STRING: u8 = 0;

/// The version that a dump names: that of Redis 5, so that every later server restores it.
const VERSION: u16 = 9;

/// Bytes of version and checksum.
const FOOTER: usize = 10;

/// Bytes of the checksum.
const CHECKSUM: usize = 8;

/// The longest text of an integer that is stored as one.
pub const INTEGER_LEN_MAX: usize = 11;

const CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// Why bytes cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// They are no dump, or not all of one.
    Broken,
    /// They are the dump of something else than a plain value.
    Format,
    /// The value is longer than the limit.
    TooLarge,
    /// There is no memory for it.
    OutOfMemory,
}

impl From<TryReserveError> for Error {
    fn from(_: TryReserveError) -> Self {
        Self::OutOfMemory
    }
}

/// The front of a dump: all before the value's bytes, and whether these follow. `short` is the value, if it is no longer
/// than [`INTEGER_LEN_MAX`].
pub fn front(value_len: usize, short: Option<&[u8]>) -> (Vec<u8>, bool) {
    let mut front = vec![STRING];
    if let Some(integer) = short.and_then(integer) {
        put_integer(&mut front, integer);
        return (front, false);
    }
    match value_len {
        0..0x40 => front.push(value_len as u8),
        0x40..0x4000 => front.extend((0x4000 | value_len as u16).to_be_bytes()),
        _ => match u32::try_from(value_len) {
            Ok(len) => {
                front.push(0x80);
                front.extend(len.to_be_bytes());
            }
            Err(_) => {
                front.push(0x81);
                front.extend((value_len as u64).to_be_bytes());
            }
        },
    }
    (front, true)
}

/// The integer of 32 bits that this text is, if it is written as an integer is printed.
fn integer(text: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(text).ok()?;
    let number: i32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn put_integer(out: &mut Vec<u8>, number: i32) {
    if let Ok(number) = i8::try_from(number) {
        out.push(0xc0);
        out.extend(number.to_le_bytes());
    } else if let Ok(number) = i16::try_from(number) {
        out.push(0xc1);
        out.extend(number.to_le_bytes());
    } else {
        out.push(0xc2);
        out.extend(number.to_le_bytes());
    }
}

/// Makes the footer of a dump from the bytes before it.
pub struct Footer(Digest<'static, u64, Table<16>>);

impl Default for Footer {
    fn default() -> Self {
        static TABLE: Crc<u64, Table<16>> = CRC;
        Self(TABLE.digest())
    }
}

impl Footer {
    /// Takes the next bytes of the dump.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The footer, which follows all bytes so far.
    pub fn finish(mut self) -> [u8; FOOTER] {
        let mut footer = [0; FOOTER];
        footer[..2].copy_from_slice(&VERSION.to_le_bytes());
        self.0.update(&footer[..2]);
        footer[2..].copy_from_slice(&self.0.finalize().to_le_bytes());
        footer
    }
}

/// A dump's value that is not unpacked yet.
pub enum Packed<'a> {
    /// It is as it is.
    Plain(&'a [u8]),
    /// The digits of an integer.
    Integer(i32),
    /// LZF, and the bytes that it is said to unpack to.
    Compressed(&'a [u8], usize),
}

impl<'a> Packed<'a> {
    /// Bytes to which it unpacks, of an integer at most. No bytes are copied before.
    pub fn unpacked_len(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Integer(_) => INTEGER_LEN_MAX,
            Self::Compressed(_, len) => *len,
        }
    }

    /// The value.
    pub fn unpack(self) -> Result<Cow<'a, [u8]>, Error> {
        Ok(match self {
            Self::Plain(bytes) => Cow::Borrowed(bytes),
            Self::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
            Self::Compressed(packed, len) => Cow::Owned(lzf::unpack(packed, len)?),
        })
    }
}

/// What a dump of any version has: the form of a plain value is the same in all. The value is no longer than `len_max`.
pub fn packed(dump: &[u8], len_max: usize) -> Result<Packed<'_>, Error> {
    let body = checked(dump)?;
    let (&kind, mut rest) = body.split_first().ok_or(Error::Format)?;
    if kind != STRING {
        return Err(Error::Format);
    }
    let value = match form(&mut rest)? {
        Form::Bytes(len) => Packed::Plain(take(&mut rest, limited(len, len_max)?)?),
        Form::Integer(number) => Packed::Integer(number),
        Form::Compressed => {
            let (Form::Bytes(packed), Form::Bytes(len)) = (form(&mut rest)?, form(&mut rest)?)
            else {
                return Err(Error::Format);
            };
            let packed = take(&mut rest, usize::try_from(packed).unwrap_or(usize::MAX))?;
            Packed::Compressed(packed, limited(len, len_max)?)
        }
    };
    // As in Redis, what follows the value is not looked at.
    Ok(value)
}

/// A dump without its footer, if its checksum is right.
fn checked(dump: &[u8]) -> Result<&[u8], Error> {
    let (summed, checksum) = dump
        .split_last_chunk::<CHECKSUM>()
        .filter(|(summed, _)| summed.len() >= FOOTER - CHECKSUM)
        .ok_or(Error::Broken)?;
    match CRC.checksum(summed) == u64::from_le_bytes(*checksum) {
        true => Ok(&summed[..summed.len() - (FOOTER - CHECKSUM)]),
        false => Err(Error::Broken),
    }
}

/// How a value is stored.
enum Form {
    Bytes(u64),
    Integer(i32),
    Compressed,
}

fn form(rest: &mut &[u8]) -> Result<Form, Error> {
    let first = array::<1>(rest)?[0];
    let low = first & 0x3f;
    Ok(match (first >> 6, low) {
        (0, _) => Form::Bytes(low.into()),
        (1, _) => Form::Bytes(u64::from(low) << 8 | u64::from(array::<1>(rest)?[0])),
        (2, 0) => Form::Bytes(u32::from_be_bytes(array(rest)?).into()),
        (2, 1) => Form::Bytes(u64::from_be_bytes(array(rest)?)),
        (3, 0) => Form::Integer(i8::from_le_bytes(array(rest)?).into()),
        (3, 1) => Form::Integer(i16::from_le_bytes(array(rest)?).into()),
        (3, 2) => Form::Integer(i32::from_le_bytes(array(rest)?)),
        (3, 3) => Form::Compressed,
        _ => return Err(Error::Format),
    })
}

fn limited(len: u64, len_max: usize) -> Result<usize, Error> {
    let len = usize::try_from(len).ok().filter(|&len| len <= len_max);
    len.ok_or(Error::TooLarge)
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Error> {
    let (taken, behind) = rest.split_at_checked(len).ok_or(Error::Format)?;
    *rest = behind;
    Ok(taken)
}

fn array<const LEN: usize>(rest: &mut &[u8]) -> Result<[u8; LEN], Error> {
    let (taken, behind) = rest.split_first_chunk().ok_or(Error::Format)?;
    *rest = behind;
    Ok(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(dump: &[u8], len_max: usize) -> Result<Cow<'_, [u8]>, Error> {
        packed(dump, len_max)?.unpack()
    }

    #[test]
    fn the_length_of_a_value_is_known_before_it_is_unpacked() {
        // 40,000 bytes are announced, and one is there.
        let bomb = footed(b"\x00\xc3\x02\x80\0\0\x9c\x40\0a".to_vec());
        assert!(matches!(packed(&bomb, 39_999), Err(Error::TooLarge)));
        let packed = packed(&bomb, 40_000).ok().unwrap();
        assert_eq!(packed.unpacked_len(), 40_000);
        assert_eq!(packed.unpack(), Err(Error::Format));
    }

    fn dump(value: &[u8]) -> Vec<u8> {
        let short = (value.len() <= INTEGER_LEN_MAX).then_some(value);
        let (mut dump, follows) = front(value.len(), short);
        if follows {
            dump.extend_from_slice(value);
        }
        footed(dump)
    }

    fn footed(mut body: Vec<u8>) -> Vec<u8> {
        let mut footer = Footer::default();
        footer.update(&body);
        body.extend(footer.finish());
        body
    }

    #[test]
    fn values_come_back() {
        let long = vec![b'x'; 100_000];
        for text in [
            &b""[..],
            b"0",
            b"-1",
            b"127",
            b"128",
            b"-32769",
            b"2147483647",
            b"2147483648",
            b"007",
            b"+1",
            b"-0",
            b"text\r\n\0",
            &long[..63],
            &long[..64],
            &long[..0x3fff],
            &long[..0x4000],
            &long,
        ] {
            assert_eq!(value(&dump(text), long.len()).unwrap(), text);
        }
        assert_eq!(value(&dump(&long), 99_999), Err(Error::TooLarge));
    }

    /// Written by redis-server 7.0.15, of which the last is compressed.
    #[test]
    fn what_redis_has_dumped_is_read() {
        for (written, text) in [
            (
                &b"\x00\x03bar\n\x00\xe6\xbeI`\xeef\xfd\x17"[..],
                &b"bar"[..],
            ),
            (b"\x00\xc0\n\n\x00n\x9fWE\x0e\xaec\xbb", b"10"),
            (b"\x00\xc1\xd4\xfe\n\x00\xc6\xc4\x86#\xfe\xbe\xde.", b"-300"),
            (
                b"\x00\xc2\xa0\x86\x01\x00\n\x00\xf1$\x03Po/\xa6t",
                b"100000",
            ),
            (
                b"\x00\xc3\x0e@\\\x03abca\xe0\x12\x02\xe02\x00\x01a!\n\x00\xbb\xd2\xac\xbd\xd2}\xc0\xba",
                [&b"abc".repeat(10)[..], &b"a".repeat(61), b"!"].concat().leak(),
            ),
        ] {
            assert_eq!(value(written, 100).unwrap(), text);
        }
    }

    #[test]
    fn what_is_no_dump_of_a_value_is_refused() {
        let whole = dump(b"acorn");
        for cut in 0..whole.len() {
            assert_eq!(value(&whole[..cut], 64), Err(Error::Broken), "{cut}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 1;
            assert_eq!(value(&other, 64), Err(Error::Broken), "{at}");
        }
        for body in [
            &b""[..],
            b"\x01\x00",
            b"\x00",
            b"\x00\x05abc",
            b"\x00\x80\0",
            b"\x00\x82abcd",
            b"\x00\xc4",
            b"\x00\xc3\xc0\x01",
            b"\x00\xc3\x05\x05ab",
        ] {
            assert_eq!(
                value(&footed(body.to_vec()), 64),
                Err(Error::Format),
                "{body:?}"
            );
        }
        let huge = footed(b"\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff".to_vec());
        assert_eq!(value(&huge, 64), Err(Error::TooLarge));
        let bomb = footed(b"\x00\xc3\x02\x80\xff\xff\xff\xff\xe0\xff".to_vec());
        assert_eq!(value(&bomb, 64), Err(Error::TooLarge));
    }
}
