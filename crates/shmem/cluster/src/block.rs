//! The layout of a block, and how a reader decides whether the words it has read are one whole pair.
//!
//! ```text
//!  word 0      1         2         3        4          5     6 ...            ...     last
//!     +------+---------+---------+--------+----------+-----+-----+-------+- - - - -+--------+
//!     | HEAD | RECENCY |  CHECK  |  META  |   LIFE   | CAS | key | value |  unused |  TAIL  |
//!     +------+---------+---------+--------+----------+-----+-----+-------+- - - - -+--------+
//!                       <--- the content: written by one Put ---->
//!
//!  HEAD     version
//!  RECENCY  63..32 epoch of the last use      31..0 low bits of the version that was last read
//!  META     63..32 value's bytes  31..16 generation  15..8 status  7..0 key's bytes, 0: no pair
//!  LIFE     63..32 flags          31..0 expiry, all ones: never
//!  TAIL     63..16 version  15..0 session of the last writer
//! ```
//!
//! A block is locked while its tail's version differs from its head.
//!
//! Invariants (the slides' read-friendly exclusive write, with supplement 3.2's cures):
//! 1. The writer of a block has locked it by a compare-swap that raises the tail's version, from a tail that it has seen
//!    together with an equal head, or that is its own last one. So words of one writer at a time are under way, and those
//!    of its writes are ordered by its fences.
//! 2. The head is written behind the content, and unlocks the block. So when a reader sees equal versions, the writer
//!    has ended, or the words are from before the next writer. The checksum tells which of the two, word by word.
//! 3. A block that is readable (head and tail equal, checksum right, key's bytes not 0) is in the table, and is its
//!    key's only readable one.
//! 4. The tail is changed by atomic operations that have ended when they return, and by nothing else. So of a writer
//!    that is gone no tail is on its way: once the server has raised the tail, no late head is equal to it.

use nuthatch_engine::{Expiry, Item, Time};
use nuthatch_fabric::WHOLE;

use crate::checksum::Checksum;

/// Word of the head version.
pub const HEAD: usize = 0;
/// Word of the recency.
pub const RECENCY: usize = 1;
/// Word of the checksum: the first that a writer's Put carries.
pub const CHECK: usize = 2;
/// Word of lengths and status.
pub const META: usize = 3;
const LIFE: usize = 4;
const CAS: usize = 5;
/// The key's first word.
pub const KEY: usize = 6;

/// Words from [`META`] on that show a block's key, which has 255 bytes at most: few enough that a Get reads each whole.
pub const KEY_READ: usize = KEY - META + words_of(u8::MAX as usize);

const _: () = assert!(KEY_READ <= WHOLE);

/// Words of a block that are neither key nor value.
pub const OVERHEAD: usize = KEY + 1;

/// Versions have 48 bits.
pub const VERSION_MAX: u64 = (1 << 48) - 1;

/// A client should refresh the pair.
pub const STALE: u8 = 1;
/// A client has won the right to refresh it.
pub const WON: u8 = 2;

const NEVER: u32 = u32::MAX;

/// The number of generations by which a pair may be ahead of its reader. A pair that is behind is behind by fewer than
/// all other generations: the server's sweep ensures that.
pub const YOUNGER_MAX: u16 = 1 << 10;

/// The number of words that hold `bytes` bytes.
#[inline(always)]
pub const fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

/// Words that a pair takes.
#[inline(always)]
pub const fn pair_words(key_len: usize, value_len: usize) -> usize {
    OVERHEAD + words_of(key_len) + words_of(value_len)
}

/// A block's last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail(pub u64);

impl Tail {
    /// Of a version that a session writes, or has written.
    pub fn new(version: u64, session: usize) -> Self {
        Self(version << 16 | session as u64)
    }

    /// The tail version.
    #[inline(always)]
    pub fn version(self) -> u64 {
        self.0 >> 16
    }

    /// The session that wrote last, or writes.
    pub fn session(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// Sessions that tails can tell apart; the last number is the servers'.
pub const SESSIONS_MAX: usize = 0xffff;

/// A block's recency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recency(pub u64);

impl Recency {
    /// Used in an epoch; `read` if this version was.
    pub fn new(epoch: u32, version: u64, read: bool) -> Self {
        // If this version was not read, the number stored is another one.
        let seen = if read { version } else { !version };
        Self(u64::from(epoch) << 32 | seen & 0xffff_ffff)
    }

    /// The epoch of the last use.
    #[inline(always)]
    pub fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// True if a get has hit this version.
    #[inline(always)]
    pub fn was_read(self, version: u64) -> bool {
        self.0 as u32 == version as u32
    }
}

/// What a block says about its pair, without the bytes of key and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// 0: there is no pair.
    pub key_len: u8,
    /// [`STALE`], [`WON`].
    pub status: u8,
    /// The number of flushes before it.
    pub generation: u16,
    /// Bytes of the value.
    pub value_len: u32,
    /// The client's flags.
    pub flags: u32,
    /// A tick, or all ones.
    pub expiry: u32,
    /// The cas number that clients see.
    pub cas: u64,
}

/// An expiry as a block holds it.
pub fn expiry_to_tick(expiry: Expiry) -> u32 {
    match expiry {
        Expiry::Never => NEVER,
        Expiry::At(at) => at.0,
    }
}

/// An expiry as requests give it.
#[inline(always)]
pub fn expiry_of_tick(tick: u32) -> Expiry {
    match tick {
        NEVER => Expiry::Never,
        tick => Expiry::At(Time(tick)),
    }
}

impl Header {
    /// Reads the header from a block's words.
    #[inline]
    pub fn read(words: &[u64]) -> Self {
        let (meta, life) = (words[META], words[LIFE]);
        Self {
            key_len: meta as u8,
            status: (meta >> 8) as u8,
            generation: (meta >> 16) as u16,
            value_len: (meta >> 32) as u32,
            flags: (life >> 32) as u32,
            expiry: life as u32,
            cas: words[CAS],
        }
    }

    /// Its three words.
    #[inline]
    pub fn words(&self) -> [u64; 3] {
        let meta = u64::from(self.value_len) << 32
            | u64::from(self.generation) << 16
            | u64::from(self.status) << 8
            | u64::from(self.key_len);
        let life = u64::from(self.flags) << 32 | u64::from(self.expiry);
        [meta, life, self.cas]
    }

    /// Words before the unused ones, the tail not counted.
    #[inline]
    pub fn content_end(&self) -> usize {
        KEY + words_of(self.key_len.into()) + words_of(self.value_len as usize)
    }

    /// The value's first word.
    #[inline(always)]
    pub fn value_at(&self) -> usize {
        KEY + words_of(self.key_len.into())
    }

    /// True if there is a pair that no flush has reached and that has not expired. A generation that is a little
    /// younger than the caller's comes from a writer that learnt of a flush, or whose clock reached its moment, before
    /// the caller.
    #[inline]
    pub fn is_live(&self, now: Time, generation: u16) -> bool {
        self.key_len != 0
            && self.generation.wrapping_sub(generation) <= YOUNGER_MAX
            && !expiry_of_tick(self.expiry).is_past(now)
    }

    /// The item, as replies describe it.
    #[inline]
    pub fn item(&self, was_read: bool) -> Item {
        Item {
            flags: self.flags,
            value_len: self.value_len as usize,
            cas: self.cas,
            expiry: expiry_of_tick(self.expiry),
            stale: self.status & STALE != 0,
            won: false,
            won_before: self.status & WON != 0,
            fetched: was_read,
            idle: Default::default(),
        }
    }
}

/// What a reader finds in the words of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The key's pair, whole.
    Pair(Header),
    /// Another key's pair, or none.
    Other,
    /// A writer is changing the block, or was while it was read.
    Torn,
}

/// Judges a block that was read by a Get whose words came in any order.
#[inline]
pub fn judge(words: &[u64], key: &[u8], checksum: Option<&Checksum>) -> Found {
    let tail = Tail(words[words.len() - 1]);
    if words[HEAD] != tail.version() {
        return Found::Torn;
    }
    let header = Header::read(words);
    if header.key_len == 0 {
        return Found::Other;
    }
    let end = header.content_end();
    if end >= words.len() {
        return Found::Torn;
    }
    if let Some(checksum) = checksum
        && words[CHECK] != checksum.of(words[HEAD], &words[META..end])
    {
        return Found::Torn;
    }
    match key_bytes(words, &header) == key {
        true => Found::Pair(header),
        false => Found::Other,
    }
}

/// The header of any key's pair, if there is one and it is whole.
pub fn read_any(words: &[u64], checksum: &Checksum) -> Option<Header> {
    let header = Header::read(words);
    let key_end = KEY + words_of(header.key_len.into());
    let found = match key_end < words.len() {
        true => judge(words, key_bytes(words, &header), Some(checksum)),
        false => Found::Torn,
    };
    matches!(found, Found::Pair(_)).then_some(header)
}

/// The key in a block's words.
#[inline]
pub fn key_bytes<'w>(words: &'w [u64], header: &Header) -> &'w [u8] {
    &bytemuck::cast_slice(&words[KEY..])[..header.key_len.into()]
}

/// The value in a block's words.
#[inline]
pub fn value_bytes<'w>(words: &'w [u64], header: &Header) -> &'w [u8] {
    &bytemuck::cast_slice(&words[header.value_at()..])[..header.value_len as usize]
}

/// Lays down a pair of a version: all words from [`CHECK`] to the content's end. `value` comes in pieces.
pub fn lay(
    into: &mut Vec<u64>,
    checksum: &Checksum,
    version: u64,
    header: &Header,
    key: &[u8],
    value: &[&[u8]],
) {
    into.clear();
    into.push(0);
    into.extend(header.words());
    push_bytes(into, &[key]);
    push_bytes(into, value);
    into[0] = checksum.of(version, &into[1..]);
}

/// Appends bytes, filled up to whole words.
pub fn push_bytes(into: &mut Vec<u64>, pieces: &[&[u8]]) {
    let start = into.len();
    let len: usize = pieces.iter().map(|piece| piece.len()).sum();
    into.resize(start + words_of(len), 0);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut into[start..]);
    let mut at = 0;
    for piece in pieces {
        bytes[at..][..piece.len()].copy_from_slice(piece);
        at += piece.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(version: u64, value: &[u8]) -> Vec<u64> {
        let header = Header {
            key_len: 3,
            status: STALE,
            generation: 7,
            value_len: value.len() as u32,
            flags: 0xdead_beef,
            expiry: expiry_to_tick(Expiry::At(Time(99))),
            cas: 5,
        };
        let mut content = Vec::new();
        let checksum = Checksum::seeded(0);
        lay(
            &mut content,
            &checksum,
            version,
            &header,
            b"key",
            &[b"", value],
        );
        let mut words = vec![version, 0];
        words.extend(content);
        words.resize(30, 0);
        words.push(Tail::new(version, 3).0);
        words
    }

    #[test]
    fn a_pair_comes_back() {
        let words = block(17, b"some value");
        let Found::Pair(header) = judge(&words, b"key", Some(&Checksum::seeded(0))) else {
            panic!("it is whole");
        };
        assert_eq!(value_bytes(&words, &header), b"some value");
        assert_eq!((header.flags, header.cas), (0xdead_beef, 5));
        assert!(header.is_live(Time(98), 7));
        assert!(!header.is_live(Time(99), 7) && !header.is_live(Time(1), 8));
        // Written by a session that knows of a flush that this reader does not know of yet.
        assert!(header.is_live(Time(98), 6));
        assert_eq!(judge(&words, b"kez", None), Found::Other);
    }

    #[test]
    fn any_word_of_another_version_is_noticed() {
        let (old, new) = (block(17, b"some value"), block(18, b"some other value"));
        let checksum = Checksum::seeded(0);
        for torn in 1_u32..1 << 9 {
            let mut words = old.clone();
            let mixed = [0, 2, 3, 4, 5, 6, 7, 8, 30].into_iter().enumerate();
            for (_, word) in mixed.filter(|(bit, _)| torn >> bit & 1 != 0) {
                words[word] = new[word];
            }
            match judge(&words, b"key", Some(&checksum)) {
                Found::Torn => {}
                // Some words are the same in both.
                Found::Pair(_) => assert!(words == new || words == old, "{torn:b}"),
                Found::Other => panic!("{torn:b}"),
            }
        }
    }

    #[test]
    fn tails_and_recencies_come_back() {
        let tail = Tail::new(VERSION_MAX, SESSIONS_MAX);
        assert_eq!(
            (tail.version(), tail.session()),
            (VERSION_MAX, SESSIONS_MAX)
        );
        let recency = Recency::new(u32::MAX, 12, true);
        assert!(recency.was_read(12) && !recency.was_read(13));
        assert!(!Recency::new(1, 12, false).was_read(12));
        assert_eq!(recency.epoch(), u32::MAX);
    }
}
