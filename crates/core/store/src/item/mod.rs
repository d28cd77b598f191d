//! The bytes of an item.
//!
//! ```text
//!            63........32  31..28  27.......8  7......0
//!  word 0   |   expiry   | state | value len | key len |     expiry: tick, 0 = never
//!            63..........................14  13......0
//!  word 1   |           sequence            |  flags   |   sequence: also the cas
//!  word 2   |                   cas                    |  \ only if WIDE: a cas of the client's
//!  word 3   |    value len      |        flags         |  / choice, large flags or a large item
//!  ...        key, then value, without a gap (or, if LARGE, the key, padded to a word, and one
//!             word for each piece of the value)
//! ```
//!
//! The header takes sixteen bytes for nearly every item. State bits: STALE and WON belong to the meta commands, WIDE
//! and LARGE to the layout. Memory that holds no item has key length 0. A free chunk is all zero in word 0. A piece
//! of a large value has LARGE, its number and its bytes there, and the address of its head in word 1.
//!
//! A key of more than [`SHORT_KEY_LEN_MAX`] bytes is long: its length field is [`LONG_KEY`], its item is WIDE, so that
//! word 3 has the value's length, and its own length stands in word 0 in the place of the value's.
//!
//! In a [log](crate::log) items, pieces and gaps lie one behind the other. The first word of a record gives the start
//! of the next one; for a wide item, the fourth word as well. Neither word gives another length for as long as the
//! record is there: a gap replaces the item with one store.

pub mod fresh;
pub mod key;
pub mod links;
pub mod pinned;
#[cfg(all(debug_assertions, not(loom)))]
pub mod read_hook;
pub mod unlinked;
mod uses;
mod value;

use std::time::Duration;

use nuthatch_base::sync::clock::Time;

use crate::memory::arena::{Address, Arena, WORD};
use crate::memory::sizes::CHUNK_MIN;
use nuthatch_engine::reply::Item;
use nuthatch_engine::request::{Expiry, KEY_LEN_MAX, LONG_KEY_LEN_MAX};
use nuthatch_engine::semantics::Existing;

/// Bytes of the common header.
pub const HEADER: usize = 2 * WORD;
/// Bytes of a wide header.
pub const HEADER_WIDE: usize = 4 * WORD;
/// Bytes before the data in a piece of a large value.
pub const PIECE_HEADER: usize = 2 * WORD;

const KEY_LEN_BITS: u32 = 8;
const KEY_LEN_MASK: u64 = (1 << KEY_LEN_BITS) - 1;
/// The longest key whose length stands in its own field.
pub const SHORT_KEY_LEN_MAX: usize = KEY_LEN_MASK as usize - 1;
/// The length field of a longer key.
const LONG_KEY: u64 = KEY_LEN_MASK;
const VALUE_LEN_BITS: u32 = 20;
const VALUE_LEN_MASK: u64 = (1 << VALUE_LEN_BITS) - 1;
const STATE_SHIFT: u32 = KEY_LEN_BITS + VALUE_LEN_BITS;
const EXPIRY_SHIFT: u32 = STATE_SHIFT + 4;
const FLAGS_BITS: u32 = 14;
const SEQUENCE_SHIFT: u32 = FLAGS_BITS;
const SEQUENCE_BITS: u32 = 64 - SEQUENCE_SHIFT;

/// Set by md I, cleared by a store.
const STALE: u64 = 1 << STATE_SHIFT;
/// Set when a reader won the right to refresh the item.
const WON: u64 = 1 << (STATE_SHIFT + 1);
/// Words 2 and 3 belong to the header.
const WIDE: u64 = 1 << (STATE_SHIFT + 2);
/// The value lies in pieces; always WIDE too.
const LARGE: u64 = 1 << (STATE_SHIFT + 3);

// A plain get checks the other fields of the word first: they lie in half a word, which an instruction can hold a mask
// for.
const _: () = assert!(EXPIRY_SHIFT == 32);

// The length of a long key fits the field of a value's length, and the keys of memcached's clients are short.
const _: () = assert!(
    LONG_KEY_LEN_MAX as u64 <= VALUE_LEN_MASK && KEY_LEN_MAX <= SHORT_KEY_LEN_MAX,
    "lengths of keys fit their fields"
);

/// The greatest sequence. 2^50 sequences last for four million stores a second in all the 8.5 years that a [`Time`] can
/// represent.
pub const SEQUENCE_MAX: u64 = (1 << SEQUENCE_BITS) - 1;

/// How a store cuts values that are too long for one piece of its memory.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Bytes of its largest piece of memory.
    pub max: usize,
    /// True: if the last piece were short beside the others, all get one length. In a log they leave less unused at a
    /// page's end than the longest records do. False where memory of other sizes than the largest is rounded up.
    pub evenly: bool,
}

/// A last piece of less than one part in so many of the others is short.
const SHORT: usize = 4;

impl Cut {
    /// Data bytes of each piece but the last of a value of so many bytes. Never 0, not even for a torn header.
    fn piece(self, value_len: usize) -> usize {
        let most = self.max - PIECE_HEADER;
        let last = value_len % most;
        if !self.evenly || last == 0 || last * SHORT >= most {
            return most;
        }
        let even = value_len.div_ceil(value_len.div_ceil(most));
        even.next_multiple_of(WORD).min(most)
    }
}

/// How many bytes an item takes and where they lie, known before any is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of the key.
    pub key_len: usize,
    /// Bytes of the value.
    pub value_len: usize,
    /// With words 2 and 3.
    pub wide: bool,
    /// Data bytes of each piece but the last if the value does not fit beside the key.
    pub piece: Option<usize>,
}

impl Shape {
    /// The shape of an item in a store that cuts values in this way.
    #[inline]
    pub fn new(key_len: usize, value_len: usize, wide: bool, cut: Cut) -> Self {
        let small = Self {
            key_len,
            value_len,
            wide: wide || key_len > SHORT_KEY_LEN_MAX,
            piece: None,
        };
        if small.head_bytes() <= cut.max {
            small
        } else {
            Self {
                wide: true,
                piece: Some(cut.piece(value_len)),
                ..small
            }
        }
    }

    /// True if the flags or the cas need the wide header.
    #[inline]
    pub fn needs_wide(flags: u32, new_cas: Option<u64>) -> bool {
        flags >> FLAGS_BITS != 0 || new_cas.is_some()
    }

    /// Bytes of the memory that holds the header and the key.
    #[inline]
    pub fn head_bytes(&self) -> usize {
        match self.piece {
            None => self.value_start() + self.value_len,
            Some(_) => self.pieces_start() + self.pieces() * WORD,
        }
    }

    /// All bytes that the item needs; the item limit is compared with this.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        self.value_start() + self.value_len
    }

    /// Bytes before the value, if it is not in pieces.
    #[inline]
    pub fn value_start(&self) -> usize {
        self.key_start() + self.key_len
    }

    /// Bytes before the key.
    #[inline]
    pub fn key_start(&self) -> usize {
        if self.wide { HEADER_WIDE } else { HEADER }
    }

    /// Bytes before the table of pieces.
    pub fn pieces_start(&self) -> usize {
        self.value_start().next_multiple_of(WORD)
    }

    /// How many pieces hold the value.
    pub fn pieces(&self) -> usize {
        self.piece.map_or(0, |piece| self.value_len.div_ceil(piece))
    }

    /// Bytes of the memory of piece `index`.
    pub fn piece_bytes(&self, index: usize) -> usize {
        let piece = self.piece.unwrap_or(0);
        PIECE_HEADER + (self.value_len - index * piece).min(piece)
    }
}

/// Words that a record of `bytes` bytes takes in the log: at least the granule of a recency bit.
#[inline(always)]
pub const fn record_words(bytes: usize) -> usize {
    let words = bytes.div_ceil(WORD);
    if words < CHUNK_MIN / WORD {
        CHUNK_MIN / WORD
    } else {
        words
    }
}

/// The header of an item as a reader found it: it may be torn until the version check says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    word0: u64,
    word1: u64,
    cas: u64,
    long: u64,
}

/// The fields that a writer puts into a header.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// The client's flags.
    pub flags: u32,
    /// When it expires.
    pub expiry: Expiry,
    /// Its place in the order of all stores.
    pub sequence: u64,
    /// A cas of the client's choice.
    pub cas: Option<u64>,
    /// Marked stale.
    pub stale: bool,
    /// Won by a reader.
    pub won: bool,
}

impl Header {
    /// Reads the header at an address.
    #[inline(always)]
    pub fn load(arena: &Arena, address: Address) -> Self {
        let (word0, word1) = (arena.load(address, 0), arena.load(address, 1));
        if word0 & WIDE == 0 {
            Self {
                word0,
                word1,
                cas: 0,
                long: 0,
            }
        } else {
            Self {
                word0,
                word1,
                cas: arena.load(address, 2),
                long: arena.load(address, 3),
            }
        }
    }

    /// The header of the common item (narrow, in one piece, with a value of fewer than `value_end` bytes, a power of
    /// two), if the first two words there are such a header for a key of this length.
    #[inline(always)]
    pub fn fast_path(word0: u64, word1: u64, key_len: usize, value_end: usize) -> Option<Self> {
        debug_assert!(value_end.is_power_of_two() && key_len <= SHORT_KEY_LEN_MAX);
        let long = (VALUE_LEN_MASK & (value_end as u64).wrapping_neg()) << KEY_LEN_BITS;
        let usual = word0 & (WIDE | LARGE | long | KEY_LEN_MASK) == key_len as u64;
        if key_len as u64 > KEY_LEN_MASK || !usual {
            return None;
        }
        let header = Self {
            word0,
            word1,
            cas: 0,
            long: 0,
        };
        // SAFETY: `usual` compares the bits of WIDE and those of lengths from `value_end` on with the same bits of
        // `key_len`, which are zero, since it has eight bits at most. The compiler does not see that, and would ask again
        // for each field of the header, and for each use of the length.
        unsafe {
            std::hint::assert_unchecked(word0 & WIDE == 0);
            std::hint::assert_unchecked(header.value_len() < value_end);
        }
        Some(header)
    }

    /// The header of an item of this shape.
    #[inline]
    pub fn new(shape: &Shape, fields: &Fields) -> Self {
        let expiry = match fields.expiry {
            Expiry::Never => 0,
            // Tick 0 means never; the clock starts at 1.
            Expiry::At(time) => u64::from(time.0.max(1)),
        };
        let is_long = shape.key_len > SHORT_KEY_LEN_MAX;
        let mut word0 = expiry << EXPIRY_SHIFT;
        if is_long {
            debug_assert!(shape.wide && shape.key_len as u64 <= VALUE_LEN_MASK);
            word0 |= LONG_KEY | (shape.key_len as u64) << KEY_LEN_BITS;
        } else {
            word0 |= shape.key_len as u64;
        }
        if shape.piece.is_some() {
            word0 |= LARGE;
        } else if !is_long {
            word0 |= (shape.value_len as u64) << KEY_LEN_BITS;
        }
        word0 |= if fields.stale { STALE } else { 0 };
        word0 |= if fields.won { WON } else { 0 };
        let sequence = fields.sequence;
        debug_assert!(sequence <= SEQUENCE_MAX);
        if !shape.wide {
            let word1 = sequence << SEQUENCE_SHIFT | u64::from(fields.flags);
            return Self {
                word0,
                word1,
                cas: 0,
                long: 0,
            };
        }
        Self {
            word0: word0 | WIDE,
            word1: sequence << SEQUENCE_SHIFT,
            cas: fields.cas.unwrap_or(sequence),
            long: u64::from(fields.flags) | (shape.value_len as u64) << 32,
        }
    }

    /// Writes the header into memory that the caller owns or has locked.
    #[inline]
    pub fn store(&self, arena: &Arena, address: Address) {
        arena.store(address, 0, self.word0);
        arena.store(address, 1, self.word1);
        if self.is_wide() {
            arena.store(address, 2, self.cas);
            arena.store(address, 3, self.long);
        }
    }

    /// Marks memory as piece `index` of the item at `head`, which takes `bytes` bytes with its own header.
    pub fn store_piece(arena: &Arena, address: Address, head: Address, index: usize, bytes: usize) {
        let word0 = LARGE | (bytes as u64) << KEY_LEN_BITS | (index as u64) << EXPIRY_SHIFT;
        arena.store(address, 0, word0);
        arena.store(address, 1, head.0);
    }

    /// Marks a record of `words` words of the log as a gap.
    #[inline(always)]
    pub fn store_gap(arena: &Arena, address: Address, words: usize) {
        arena.store(address, 0, (words as u64) << KEY_LEN_BITS);
    }

    /// Keeps the length of a gap readable also while the wide header of an item of this shape is being written over it.
    #[inline(always)]
    pub fn store_length(arena: &Arena, address: Address, shape: &Shape) {
        if shape.wide {
            arena.store(address, 3, (shape.value_len as u64) << 32);
        }
    }

    /// Words of a record of the log, in a store that cuts values in this way.
    #[inline(always)]
    pub fn record_words(&self, cut: Cut) -> usize {
        if self.is_item() {
            record_words(self.shape(cut).head_bytes())
        } else if self.word0 & LARGE != 0 {
            record_words(self.value_len())
        } else {
            self.value_len()
        }
    }

    /// The number of the piece in its item.
    pub fn piece_index(&self) -> usize {
        (self.word0 >> EXPIRY_SHIFT) as usize
    }

    /// Marks a chunk of a size class as free; `next` is the allocator's.
    pub fn store_free(arena: &Arena, address: Address, next: u64) {
        arena.store(address, 0, 0);
        arena.store(address, 1, next);
    }

    /// True if an item lies there.
    #[inline(always)]
    pub fn is_item(&self) -> bool {
        self.word0 & KEY_LEN_MASK != 0
    }

    /// True if a record of the log is a gap.
    pub fn is_gap(&self) -> bool {
        !self.is_item() && self.word0 & LARGE == 0
    }

    /// The head, if a piece lies there.
    pub fn piece_of(&self) -> Option<Address> {
        (!self.is_item() && self.word0 & LARGE != 0).then_some(Address(self.word1))
    }

    /// Bytes of the key.
    #[inline(always)]
    pub fn key_len(&self) -> usize {
        if self.has_long_key() {
            (self.word0 >> KEY_LEN_BITS & VALUE_LEN_MASK) as usize
        } else {
            (self.word0 & KEY_LEN_MASK) as usize
        }
    }

    /// True if its key has more than [`SHORT_KEY_LEN_MAX`] bytes.
    #[inline(always)]
    pub fn has_long_key(&self) -> bool {
        self.word0 & KEY_LEN_MASK == LONG_KEY
    }

    /// Bytes of the value.
    #[inline(always)]
    pub fn value_len(&self) -> usize {
        if self.word0 & WIDE == 0 {
            (self.word0 >> KEY_LEN_BITS & VALUE_LEN_MASK) as usize
        } else {
            (self.long >> 32) as usize
        }
    }

    /// The item's shape, in a store that cuts values in this way.
    #[inline(always)]
    pub fn shape(&self, cut: Cut) -> Shape {
        Shape {
            key_len: self.key_len(),
            value_len: self.value_len(),
            wide: self.is_wide(),
            piece: self.is_large().then(|| cut.piece(self.value_len())),
        }
    }

    /// Has words 2 and 3.
    #[inline(always)]
    pub fn is_wide(&self) -> bool {
        self.word0 & WIDE != 0
    }

    /// Its value lies in pieces.
    #[inline(always)]
    pub fn is_large(&self) -> bool {
        self.word0 & LARGE != 0
    }

    /// Bytes before the key.
    #[inline(always)]
    pub fn key_start(&self) -> usize {
        if self.is_wide() { HEADER_WIDE } else { HEADER }
    }

    /// The client's flags.
    #[inline(always)]
    pub fn flags(&self) -> u32 {
        if self.is_wide() {
            self.long as u32
        } else {
            (self.word1 & ((1 << FLAGS_BITS) - 1)) as u32
        }
    }

    /// The cas that clients see.
    #[inline(always)]
    pub fn cas(&self) -> u64 {
        if self.is_wide() {
            self.cas
        } else {
            self.sequence()
        }
    }

    /// The cas that the client chose.
    pub fn own_cas(&self) -> Option<u64> {
        (self.is_wide() && self.cas != self.sequence()).then_some(self.cas)
    }

    /// Its place in the order of all stores.
    #[inline(always)]
    pub fn sequence(&self) -> u64 {
        self.word1 >> SEQUENCE_SHIFT
    }

    /// When it expires.
    #[inline(always)]
    pub fn expiry(&self) -> Expiry {
        match (self.word0 >> EXPIRY_SHIFT) as u32 {
            0 => Expiry::Never,
            tick => Expiry::At(Time(tick)),
        }
    }

    /// True if it has an expiry.
    #[inline(always)]
    pub fn is_expiring(&self) -> bool {
        self.word0 >> EXPIRY_SHIFT != 0
    }

    /// True if it must not be returned at `now`.
    #[inline(always)]
    pub fn is_expired(&self, now: Time) -> bool {
        // Never is 0: minus 1 it wraps to the far end of time.
        ((self.word0 >> EXPIRY_SHIFT) as u32).wrapping_sub(1) < now.0
    }

    /// Marked stale.
    #[inline(always)]
    pub fn is_stale(&self) -> bool {
        self.word0 & STALE != 0
    }

    /// Won by a reader.
    #[inline(always)]
    pub fn is_won(&self) -> bool {
        self.word0 & WON != 0
    }

    /// The fields, to write a changed header.
    pub fn fields(&self) -> Fields {
        Fields {
            flags: self.flags(),
            expiry: self.expiry(),
            sequence: self.sequence(),
            cas: self.own_cas(),
            stale: self.is_stale(),
            won: self.is_won(),
        }
    }
}

/// The metadata in the header: all that a plain get needs.
#[inline(always)]
pub fn plain_item(header: &Header) -> Item {
    Item {
        flags: header.flags(),
        value_len: header.value_len(),
        cas: header.cas(),
        expiry: header.expiry(),
        stale: header.is_stale(),
        won: false,
        won_before: header.is_won(),
        fetched: false,
        idle: Duration::ZERO,
    }
}

impl Existing for Header {
    fn cas(&self) -> u64 {
        Header::cas(self)
    }

    fn flags(&self) -> u32 {
        Header::flags(self)
    }

    fn expiry(&self) -> Expiry {
        Header::expiry(self)
    }

    fn value_len(&self) -> usize {
        Header::value_len(self)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const CHUNK_MAX: usize = 1000;
    const CUT: Cut = Cut {
        max: CHUNK_MAX,
        evenly: false,
    };

    fn fields() -> Fields {
        Fields {
            flags: 5,
            expiry: Expiry::At(Time(99)),
            sequence: 1234,
            cas: None,
            stale: false,
            won: true,
        }
    }

    fn back(shape: &Shape, fields: &Fields) -> Header {
        let arena = Arena::reserve(16, 16).unwrap();
        Header::new(shape, fields).store(&arena, Address(4));
        Header::load(&arena, Address(4))
    }

    #[test]
    fn a_small_item_has_sixteen_bytes_of_header() {
        let shape = Shape::new(16, 32, false, CUT);
        assert_eq!(shape.total_bytes(), 64);
        let header = back(&shape, &fields());
        assert_eq!(header.shape(CUT), shape);
        assert_eq!(
            (header.flags(), header.cas(), header.expiry()),
            (5, 1234, Expiry::At(Time(99)))
        );
        assert!(header.is_won() && !header.is_stale() && header.is_item());
    }

    #[test]
    fn large_flags_and_chosen_cas_widen_it() {
        assert!(Shape::needs_wide(1 << 14, None));
        assert!(!Shape::needs_wide((1 << 14) - 1, None));
        let shape = Shape::new(3, 7, true, CUT);
        let header = back(
            &shape,
            &Fields {
                flags: u32::MAX,
                cas: Some(u64::MAX),
                ..fields()
            },
        );
        assert_eq!(header.shape(CUT), shape);
        assert_eq!(
            (header.flags(), header.cas(), header.sequence()),
            (u32::MAX, u64::MAX, 1234)
        );
        assert_eq!(header.own_cas(), Some(u64::MAX));
    }

    #[test]
    fn a_long_key_widens_it_and_every_length_comes_back() {
        for key_len in [254, 255, 256, 4096, 65_536, LONG_KEY_LEN_MAX] {
            for (value_len, max) in [(0, 1 << 20), (300, 1 << 20), (1 << 22, 1 << 18)] {
                let cut = Cut { max, evenly: true };
                let shape = Shape::new(key_len, value_len, false, cut);
                assert_eq!(shape.wide, key_len > 254 || shape.piece.is_some());
                let header = back(&shape, &fields());
                assert_eq!(header.shape(cut), shape);
                assert_eq!(header.has_long_key(), key_len > 254);
                assert!(header.is_item() && !header.is_gap() && header.piece_of().is_none());
                assert_eq!((header.flags(), header.cas()), (5, 1234));
            }
        }
    }

    #[test]
    fn large_items_are_cut_into_pieces() {
        let shape = Shape::new(5, 3000, false, CUT);
        assert_eq!(shape.pieces(), 4);
        assert_eq!(shape.head_bytes(), 32 + 8 + 4 * 8);
        assert_eq!(shape.piece_bytes(0), CHUNK_MAX);
        assert_eq!(shape.piece_bytes(3), 16 + 3000 - 3 * 984);
        assert_eq!(back(&shape, &fields()).shape(CUT), shape);
    }

    #[test]
    fn no_piece_is_short_beside_the_others() {
        let cut = Cut {
            evenly: true,
            ..CUT
        };
        for (value_len, pieces, first, last) in [
            (984, 1, 984, 984),
            (985, 2, 496, 489),
            (984 + 245, 2, 616, 613),
            (984 + 246, 2, 984, 246),
            (2 * 984, 2, 984, 984),
            (3000, 4, 752, 744),
            (100_000, 102, 984, 616),
            // Of so many, one length in whole words is the longest.
            (200 * 984 + 8, 201, 984, 8),
        ] {
            let shape = Shape::new(5, value_len, false, cut);
            assert_eq!(shape.pieces(), pieces, "{value_len}");
            assert_eq!(shape.piece_bytes(0), 16 + first, "{value_len}");
            assert_eq!(shape.piece_bytes(pieces - 1), 16 + last, "{value_len}");
            assert_eq!(back(&shape, &fields()).shape(cut), shape);
        }
        // A torn header may say anything.
        assert_eq!([cut.piece(0), cut.piece(1)], [984, 8]);
    }

    #[test]
    fn expiry_is_exact_to_the_tick() {
        let header = back(&Shape::new(1, 1, false, CUT), &fields());
        assert!(!header.is_expired(Time(98)));
        assert!(header.is_expired(Time(99)));
        let never = Fields {
            expiry: Expiry::Never,
            ..fields()
        };
        assert!(!back(&Shape::new(1, 1, false, CUT), &never).is_expired(Time(u32::MAX)));
    }

    #[test]
    fn a_record_of_the_log_tells_its_length() {
        let arena = Arena::reserve(64, 64).unwrap();
        let words = |at| Header::load(&arena, Address(at)).record_words(CUT);
        for (key_len, value_len, wide) in [
            (1, 0, false),
            (5, 100, false),
            (5, 100, true),
            (9, 5000, true),
            (300, 0, true),
            (300, 77, true),
            (300, 5000, true),
        ] {
            let shape = Shape::new(key_len, value_len, wide, CUT);
            let expected = record_words(shape.head_bytes());
            Header::store_gap(&arena, Address(0), expected);
            Header::store_length(&arena, Address(0), &shape);
            assert_eq!(words(0), expected);
            // The length is known as soon as the first word of the header is written.
            let header = Header::new(&shape, &fields());
            arena.store(Address(0), 0, header.word0);
            assert_eq!(words(0), expected);
            header.store(&arena, Address(0));
            assert_eq!(words(0), expected);
        }
        Header::store_piece(&arena, Address(8), Address(0), 7, 101);
        let piece = Header::load(&arena, Address(8));
        assert_eq!(
            (piece.piece_index(), piece.piece_of()),
            (7, Some(Address(0)))
        );
        assert_eq!(words(8), 13);
        assert_eq!(record_words(1), CHUNK_MIN / WORD);
    }

    #[test]
    fn other_chunks_are_not_items() {
        let arena = Arena::reserve(16, 16).unwrap();
        assert!(!Header::load(&arena, Address(0)).is_item());
        Header::store_piece(&arena, Address(2), Address(7), 3, 100);
        assert_eq!(
            Header::load(&arena, Address(2)).piece_of(),
            Some(Address(7))
        );
        Header::store_free(&arena, Address(2), 3);
        assert_eq!(Header::load(&arena, Address(2)).piece_of(), None);
    }
}
