//! The layout of an element.
//!
//! ```text
//!            63        48 47     40 39    32 31......................0
//!  word 0   |            |  kind   | lines  |  next piece            |   of every piece
//!  word 1   |     last access: tick         |  next of the bucket    |
//!  word 2   |     next older of the LRU     |  next newer            |
//!  word 3   |                         hash                           |
//!            63..................32 31....24 23......................0
//!  word 4   |   expiry: tick       | state_bits  |  readers               |
//!  word 5   |     flags            |          value length           |
//!            63        48 47.........................................0
//!  word 6   | key length |                 sequence                  |
//!  word 7   |                          cas                           |
//!  line 1   key, then value without a gap
//! ```
//!
//! The header is one line, which stays in the caches of the partition's owner. Key and value lie in the lines behind
//! it, and the threads that read or write them touch those (CPHash, section 3.1). An element that found no run of free
//! lines long enough, or is larger than a block, continues in more pieces: word 0 as above, the element's first line in
//! word 1, then data.
//!
//! While an element is READY and has readers, only words 1, 2 and 4 change: the parts that readers look at do not.

use std::num::NonZeroU32;
use std::time::Duration;

use nuthatch_base::sync::clock::Time;

use super::memory::{BlockMemory, LINE};
use nuthatch_engine::reply::{Item, Reply};
use nuthatch_engine::request::{Expiry, Read};
use nuthatch_engine::semantics::{permit_touch, wins};
use nuthatch_store::memory::arena::WORD;

/// Bytes before the data in an element's first piece.
pub const HEADER: usize = LINE;
/// Bytes before the data in any other piece.
pub const MORE_HEADER: usize = 2 * WORD;
/// The longest key that a header can record, in bytes.
pub const KEY_LEN_LIMIT: usize = u16::MAX as usize;

/// The longest value that a header can record, in bytes.
pub const VALUE_LEN_LIMIT: usize = u32::MAX as usize;

const CHAIN: usize = 1;
pub(super) const LRU: usize = 2;
const HASH: usize = 3;
const STATE: usize = 4;
const LENGTHS: usize = 5;
const SEQUENCE: usize = 6;
const CAS: usize = 7;

const SEQUENCE_BITS: u32 = 48;
/// The greatest sequence. Each partition has its own: 2^48 of them last for a million stores a second in all the 8.5
/// years that a [`Time`] can represent.
pub(super) const SEQUENCE_MAX: u64 = (1 << SEQUENCE_BITS) - 1;
const READERS: u64 = (1 << 24) - 1;
const LOW: u64 = u32::MAX as u64;

/// Marks of an element, in word 4.
pub(super) mod mark {
    /// The table refers to it.
    pub const LINKED: u64 = 1 << 24;
    /// All its bytes are written. Without this mark: NOT READY.
    pub const READY: u64 = 1 << 25;
    /// Usable, but a reader should refresh it.
    pub const STALE: u64 = 1 << 26;
    /// A reader won the right to refresh it.
    pub const WON: u64 = 1 << 27;
    /// A get has hit it.
    pub const FETCHED: u64 = 1 << 28;
}

/// An element: the number of its first line, never 0. It is only a number: only the partition's owner and holders of a
/// reference can rely on it to stay this element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Element(NonZeroU32);

impl Element {
    /// The element whose first line has this number; none if it is 0.
    #[inline(always)]
    pub fn new(line: u32) -> Option<Self> {
        NonZeroU32::new(line).map(Self)
    }

    /// The number of its first line.
    #[inline(always)]
    pub fn line(self) -> u32 {
        self.0.get()
    }
}

/// What the lines of a piece hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An element's header and the beginning of its data.
    Head = 1,
    /// More of its data.
    More = 2,
}

/// The tag at the beginning of each piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The first line of the next piece of the element, or 0.
    pub next: u32,
    /// How many lines it has.
    pub lines: u32,
    pub kind: Kind,
}

impl Piece {
    #[inline(always)]
    pub fn load(memory: &BlockMemory, line: u32) -> Self {
        let word = memory.load(line, 0);
        Self {
            next: word as u32,
            lines: (word >> 32) as u8 as u32,
            kind: if (word >> 40) as u8 == Kind::Head as u8 {
                Kind::Head
            } else {
                Kind::More
            },
        }
    }

    #[inline(always)]
    pub fn store(&self, memory: &BlockMemory, line: u32) {
        let word = u64::from(self.next) | u64::from(self.lines) << 32 | (self.kind as u64) << 40;
        memory.store(line, 0, word);
    }
}

/// The fields of a new element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub flags: u32,
    pub expiry: Expiry,
    pub sequence: u64,
    /// A cas that the client chose.
    pub cas: Option<u64>,
    /// Marks among STALE, WON, FETCHED.
    pub state_bits: u64,
}

/// An expiry as the header has it: 0 is never, and the clock starts at 1.
fn tick(expiry: Expiry) -> u64 {
    match expiry {
        Expiry::Never => 0,
        Expiry::At(time) => u64::from(time.0.max(1)),
    }
}

/// Access to the headers, field by field. Only the owner calls the setters. In a partition with a
/// [descriptor](super::descriptor) only the holder of an element's bucket sets words 1 and 4 of an element in the
/// table.
impl BlockMemory {
    /// All bits of the key's hash.
    #[inline(always)]
    pub fn hash(&self, element: Element) -> u64 {
        self.load(element.line(), HASH)
    }

    /// Bytes of the key.
    #[inline(always)]
    pub fn key_len(&self, element: Element) -> usize {
        (self.load(element.line(), SEQUENCE) >> SEQUENCE_BITS) as usize
    }

    /// Bytes of the value.
    #[inline(always)]
    pub fn value_len(&self, element: Element) -> usize {
        (self.load(element.line(), LENGTHS) & LOW) as usize
    }

    /// True if the element's key is `key`.
    #[inline(always)]
    pub fn has_key(&self, element: Element, key: &[u8]) -> bool {
        self.key_len(element) == key.len() && self.has_at(element, 0, key)
    }

    /// The metadata that clients see.
    #[inline]
    pub fn item(&self, element: Element, now: Time) -> Item {
        let state_bits = self.state_bits(element);
        let accessed = Time((self.load(element.line(), CHAIN) >> 32) as u32);
        Item {
            flags: (self.load(element.line(), LENGTHS) >> 32) as u32,
            value_len: self.value_len(element),
            cas: self.cas(element),
            expiry: self.expiry(element),
            stale: state_bits & mark::STALE != 0,
            won: false,
            won_before: state_bits & mark::WON != 0,
            fetched: state_bits & mark::FETCHED != 0,
            idle: now.since(accessed),
        }
    }

    /// The cas that clients see.
    #[inline(always)]
    pub fn cas(&self, element: Element) -> u64 {
        self.load(element.line(), CAS)
    }

    /// When it expires.
    #[inline(always)]
    pub fn expiry(&self, element: Element) -> Expiry {
        match (self.load(element.line(), STATE) >> 32) as u32 {
            0 => Expiry::Never,
            tick => Expiry::At(Time(tick)),
        }
    }

    /// When it was stored or last hit, in ticks.
    #[inline(always)]
    pub(super) fn accessed(&self, element: Element) -> u32 {
        (self.load(element.line(), CHAIN) >> 32) as u32
    }

    #[inline(always)]
    pub(super) fn sequence(&self, element: Element) -> u64 {
        self.load(element.line(), SEQUENCE) & SEQUENCE_MAX
    }

    #[inline(always)]
    pub(super) fn state_bits(&self, element: Element) -> u64 {
        self.load(element.line(), STATE) & !READERS & LOW
    }

    #[inline(always)]
    pub(super) fn set_state_bits(&self, element: Element, set: u64, clear: u64) {
        let word = self.load(element.line(), STATE);
        self.store(element.line(), STATE, word & !clear | set);
    }

    /// The number of references, without the table's.
    #[inline(always)]
    pub(super) fn readers(&self, element: Element) -> u32 {
        (self.load(element.line(), STATE) & READERS) as u32
    }

    /// Adds a reader; false if there are more than can be counted.
    #[inline(always)]
    pub(super) fn add_reader(&self, element: Element) -> bool {
        let word = self.load(element.line(), STATE);
        let room = word & READERS < READERS;
        if room {
            self.store(element.line(), STATE, word + 1);
        }
        room
    }

    #[inline(always)]
    pub(super) fn drop_reader(&self, element: Element) {
        let word = self.load(element.line(), STATE);
        assert!(word & READERS > 0, "a reference is dropped once");
        self.store(element.line(), STATE, word - 1);
    }

    #[inline(always)]
    pub(super) fn next_in_bucket(&self, element: Element) -> Option<Element> {
        Element::new(self.load(element.line(), CHAIN) as u32)
    }

    #[inline(always)]
    pub(super) fn set_next_in_bucket(&self, element: Element, next: Option<Element>) {
        let word = self.load(element.line(), CHAIN) & !LOW;
        self.store(element.line(), CHAIN, word | u64::from(line_of(next)));
    }

    #[inline(always)]
    pub(super) fn set_accessed(&self, element: Element, now: Time) {
        let word = self.load(element.line(), CHAIN) & LOW;
        self.store(element.line(), CHAIN, word | u64::from(now.0) << 32);
    }

    /// The neighbours in the order of use: newer and older.
    #[inline(always)]
    pub(super) fn neighbours(&self, element: Element) -> (Option<Element>, Option<Element>) {
        let word = self.load(element.line(), LRU);
        (Element::new(word as u32), Element::new((word >> 32) as u32))
    }

    #[inline(always)]
    pub(super) fn set_neighbours(
        &self,
        element: Element,
        newer: Option<Element>,
        older: Option<Element>,
    ) {
        let word = u64::from(line_of(newer)) | u64::from(line_of(older)) << 32;
        self.store(element.line(), LRU, word);
    }

    #[inline(always)]
    pub(super) fn set_expiry(&self, element: Element, expiry: Expiry) {
        let word = self.load(element.line(), STATE) & LOW;
        self.store(element.line(), STATE, word | tick(expiry) << 32);
    }

    /// Marks an element as hit now. It stores to the header's line only if that changes something.
    #[inline(always)]
    pub(super) fn mark_hit(&self, element: Element, now: Time) {
        if self.state_bits(element) & mark::FETCHED == 0 {
            self.set_state_bits(element, mark::FETCHED, 0);
        }
        if self.accessed(element) != now.0 {
            self.set_accessed(element, now);
        }
    }

    /// Applies a read with options to the header of the live element that it finds, and returns the metadata that it
    /// sees, or the refusal.
    #[inline]
    pub(super) fn mark_read(
        &self,
        element: Element,
        now: Time,
        read: &Read,
    ) -> Result<Item, Reply> {
        let mut item = self.item(element, now);
        permit_touch(read, &item)?;
        if wins(read, &item, now) {
            item.won = true;
            self.set_state_bits(element, mark::WON, 0);
        }
        if let Some(expiry) = read.touch {
            item.expiry = expiry;
            self.set_expiry(element, expiry);
        }
        if read.bump {
            self.mark_hit(element, now);
        }
        if !read.idle {
            item.idle = Duration::ZERO;
        }
        Ok(item)
    }

    /// Writes the header of an element that is NOT READY and has one reader: the thread that fills it.
    pub(super) fn begin_header(
        &self,
        element: Element,
        hash: u64,
        key_len: usize,
        value_len: usize,
    ) {
        self.store(element.line(), CHAIN, 0);
        self.store(element.line(), LRU, 0);
        self.store(element.line(), HASH, hash);
        self.store(element.line(), STATE, 1);
        self.store(element.line(), LENGTHS, value_len as u64);
        self.store(element.line(), SEQUENCE, (key_len as u64) << SEQUENCE_BITS);
        self.store(element.line(), CAS, 0);
    }

    /// Sets all fields that clients see at once; the readers stay.
    pub(super) fn set_fields(&self, element: Element, value_len: usize, fields: &Fields) {
        let keep = self.load(element.line(), STATE) & (READERS | mark::LINKED | mark::READY);
        let state = keep | fields.state_bits | tick(fields.expiry) << 32;
        self.store(element.line(), STATE, state);
        let lengths = value_len as u64 | u64::from(fields.flags) << 32;
        self.store(element.line(), LENGTHS, lengths);
        let key_len = (self.key_len(element) as u64) << SEQUENCE_BITS;
        let sequence = fields.sequence;
        debug_assert!(sequence <= SEQUENCE_MAX);
        self.store(element.line(), SEQUENCE, key_len | sequence);
        self.store(element.line(), CAS, fields.cas.unwrap_or(sequence));
    }

    /// Copies the header, without the tag of the piece, to another element with the same data.
    pub(super) fn copy_header(&self, from: Element, to: Element) {
        for word in CHAIN..=CAS {
            self.store(to.line(), word, self.load(from.line(), word));
        }
    }
}

/// The number of an element's first line, 0 for none.
#[inline(always)]
pub(super) fn line_of(element: Option<Element>) -> u32 {
    element.map_or(0, Element::line)
}
