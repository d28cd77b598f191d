//! The set-associative table: a bucket is a line of 64 bytes, which one Get fetches.
//!
//! ```text
//!  word 0 ... 6   entries: 63..48 tag (0: free)  47..40 class  39..0 place, in units of 32 bytes
//!  word 7         how many more pairs of this bucket only the server knows
//! ```
//!
//! Invariant: a pair's entry changes its place in the bucket, or between bucket and overflow, only by being absent
//! in between. So a reader that finds no entry with the key's tag, and no overflow, in words that were read in any
//! order, has seen a moment at which the key had no pair.

use nuthatch_base::hash::split;

/// Words of a bucket.
pub const WORDS: usize = 8;

/// Entries of a bucket.
pub const ENTRIES: usize = 7;

/// Word of the overflow's count.
pub const OVERFLOW: usize = 7;

/// Where a block is: its class and its place among the pages of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Pointer(u64);

const PLACE_BITS: u32 = 40;
const POINTER_BITS: u32 = 48;

impl Pointer {
    /// A block of a class, `place` units behind the first page's start.
    pub fn new(class: usize, place: u64) -> Self {
        debug_assert!(class < 256 && place < 1 << PLACE_BITS);
        Self((class as u64) << PLACE_BITS | place)
    }

    /// From a word's low 48 bits.
    #[inline(always)]
    pub fn of_word(word: u64) -> Self {
        Self(word & ((1 << POINTER_BITS) - 1))
    }

    /// The word's low 48 bits.
    #[inline(always)]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The block's class.
    #[inline(always)]
    pub fn class(self) -> usize {
        (self.0 >> PLACE_BITS) as usize
    }

    /// Its place, in units.
    #[inline(always)]
    pub fn place(self) -> u64 {
        self.0 & ((1 << PLACE_BITS) - 1)
    }
}

/// A word of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(pub u64);

impl Entry {
    /// No entry.
    pub const FREE: Self = Self(0);

    /// The entry of a key with this hash.
    #[inline]
    pub fn new(hash: u64, pointer: Pointer) -> Self {
        Self(split::tag16(hash) << POINTER_BITS | pointer.word())
    }

    /// Where its block is.
    #[inline(always)]
    pub fn pointer(self) -> Pointer {
        Pointer::of_word(self.0)
    }

    /// Its key's tag.
    #[inline(always)]
    pub fn tag(self) -> u64 {
        self.0 >> POINTER_BITS
    }

    /// True if it may be the entry of a key with this hash.
    #[inline(always)]
    pub fn matches(self, hash: u64) -> bool {
        self.tag() == split::tag16(hash)
    }
}

/// What a bucket's words say about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// One entry may be the key's.
    One(Pointer),
    /// The key has no pair.
    Miss,
    /// The server must be asked.
    Unclear,
}

/// Looks for a key in a bucket's words.
#[inline]
pub fn lookup(words: &[u64], hash: u64) -> Lookup {
    let entries = words[..ENTRIES].iter().map(|&word| Entry(word));
    let mut matching = entries.filter(|entry| entry.matches(hash));
    match (matching.next(), matching.next(), words[OVERFLOW]) {
        (Some(entry), None, _) => Lookup::One(entry.pointer()),
        (None, _, 0) => Lookup::Miss,
        _ => Lookup::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_tell_what_is_certain() {
        let hash = 0xabcd_0000_0000_0001;
        let pointer = Pointer::new(255, (1 << 40) - 1);
        assert_eq!((pointer.class(), pointer.place()), (255, (1 << 40) - 1));
        let mut words = [0; WORDS];
        assert_eq!(lookup(&words, hash), Lookup::Miss);
        words[3] = Entry::new(hash, pointer).0;
        assert_eq!(lookup(&words, hash), Lookup::One(pointer));
        assert_eq!(lookup(&words, 1), Lookup::Miss);
        words[OVERFLOW] = 1;
        assert_eq!(lookup(&words, hash), Lookup::One(pointer));
        assert_eq!(lookup(&words, 1), Lookup::Unclear);
        words[5] = Entry::new(hash, Pointer::default()).0;
        assert_eq!(lookup(&words, hash), Lookup::Unclear);
    }
}
