//! The formats of an entry: a tag and a value, in one word if they fit.
//!
//! ```text
//!            63            32 31      16 15       0
//! Tag16                      |   tag    |  value  |    4 bytes, Open vSwitch's signature cache
//! Tag32     |      tag       |        value       |    8 bytes
//! Hash64    |               hash                  |   16 bytes
//!           |               value                 |
//! ```
//!
//! A tag of 0 marks an empty slot, so that zeroed memory is an empty table and any value can be
//! stored. In the paper a bucket is four tags and then four values; here each tag is next to its
//! value. A lookup loads the same bytes with one instruction in both cases, and since an entry is one
//! word, no reader ever sees the tag of one flow with the value of another.

use std::fmt;
use std::str::FromStr;

use nuthatch_base::hash::split;
use nuthatch_base::sync::shim::{AtomicU32, AtomicU64, Ordering};

use crate::layout::sealed::Sealed;
use crate::memory::Zeroed;
use crate::name::{UnknownName, by_name};

/// The format of an entry, for tables chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Entry {
    /// 16 bits of tag and 16 bits of value: Open vSwitch's signature cache, and the paper's table.
    /// Of lookups of absent flows one in some 8,000 finds another flow's value.
    #[default]
    Tag16,
    /// 32 bits of tag and 32 bits of value.
    Tag32,
    /// The whole 64-bit hash and 64 bits of value. Not for shared tables: it is two words.
    Hash64,
}

impl Entry {
    /// All of them.
    pub const ALL: [Entry; 3] = [Entry::Tag16, Entry::Tag32, Entry::Hash64];

    /// Its name, which [`FromStr`] reads: `16+16`, `32+32` or `64+64`, bits of tag and of value.
    pub const fn name(self) -> &'static str {
        match self {
            Entry::Tag16 => "16+16",
            Entry::Tag32 => "32+32",
            Entry::Hash64 => "64+64",
        }
    }

    /// Bytes of an entry.
    pub const fn bytes(self) -> usize {
        match self {
            Entry::Tag16 => size_of::<u32>(),
            Entry::Tag32 => size_of::<u64>(),
            Entry::Hash64 => 2 * size_of::<u64>(),
        }
    }

    /// The largest value that an entry can store.
    pub const fn value_max(self) -> u64 {
        match self {
            Entry::Tag16 => u16::MAX as u64,
            Entry::Tag32 => u32::MAX as u64,
            Entry::Hash64 => u64::MAX,
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl FromStr for Entry {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        by_name("entry", name, &Self::ALL, Self::name)
    }
}

/// The contents of a slot. `tag` is 0 in an empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Content {
    /// The part of the hash that is stored.
    pub tag: u64,
    /// The caller's value.
    pub value: u64,
}

impl Content {
    /// The contents of an empty slot.
    pub const EMPTY: Content = Content { tag: 0, value: 0 };
}

/// A slot of a table: one of [`Tag16`], [`Tag32`] and [`Hash64`]. Other crates cannot define one, as with
/// [`Shape`](crate::Shape).
pub trait Slot: Sealed + Zeroed + Send + Sync + 'static {
    /// Which one it is.
    const ENTRY: Entry;
    /// True if the entry is one atomic word, so that threads can share it.
    const ONE_WORD: bool;

    /// The tag of a hash: never 0.
    fn tag(hash: u64) -> u64;

    /// Reads the slot.
    ///
    /// Acquire, in all entries that can be shared: pairs with the Release in [`Slot::store`]. A reader of
    /// an entry sees what its writer did in this bucket before, so it never sees an older entry later.
    fn load(&self) -> Content;

    /// Overwrites the slot. A value above [`Entry::value_max`] is truncated.
    fn store(&self, content: Content);
}

/// 16 bits of tag, 16 bits of value.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Tag16(AtomicU32);

impl Sealed for Tag16 {}

impl Slot for Tag16 {
    const ENTRY: Entry = Entry::Tag16;
    const ONE_WORD: bool = true;

    #[inline(always)]
    fn tag(hash: u64) -> u64 {
        split::tag16(hash)
    }

    #[inline(always)]
    fn load(&self) -> Content {
        let word = u64::from(self.0.load(Ordering::Acquire));
        Content {
            tag: word >> 16,
            value: word & 0xffff,
        }
    }

    #[inline(always)]
    fn store(&self, content: Content) {
        let word = content.tag << 16 | content.value & 0xffff;
        self.0.store(word as u32, Ordering::Release);
    }
}

/// 32 bits of tag, 32 bits of value.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Tag32(AtomicU64);

impl Sealed for Tag32 {}

impl Slot for Tag32 {
    const ENTRY: Entry = Entry::Tag32;
    const ONE_WORD: bool = true;

    #[inline(always)]
    fn tag(hash: u64) -> u64 {
        split::tag32(hash)
    }

    #[inline(always)]
    fn load(&self) -> Content {
        let word = self.0.load(Ordering::Acquire);
        Content {
            tag: word >> 32,
            value: word & 0xffff_ffff,
        }
    }

    #[inline(always)]
    fn store(&self, content: Content) {
        let word = content.tag << 32 | content.value & 0xffff_ffff;
        self.0.store(word, Ordering::Release);
    }
}

/// The whole hash and 64 bits of value: two words, for tables of one thread only.
#[derive(Debug, Default)]
#[repr(C, align(16))]
pub struct Hash64 {
    hash: AtomicU64,
    value: AtomicU64,
}

impl Sealed for Hash64 {}

impl Slot for Hash64 {
    const ENTRY: Entry = Entry::Hash64;
    const ONE_WORD: bool = false;

    #[inline(always)]
    fn tag(hash: u64) -> u64 {
        split::tag64(hash)
    }

    // Relaxed, here and below: no other thread reads these (`ONE_WORD` is false).
    #[inline(always)]
    fn load(&self) -> Content {
        Content {
            tag: self.hash.load(Ordering::Relaxed),
            value: self.value.load(Ordering::Relaxed),
        }
    }

    #[inline(always)]
    fn store(&self, content: Content) {
        self.hash.store(content.tag, Ordering::Relaxed);
        self.value.store(content.value, Ordering::Relaxed);
    }
}

// Vector comparisons read slots as raw words.
#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Tag16>() == Entry::Tag16.bytes());
    assert!(size_of::<Tag32>() == Entry::Tag32.bytes());
    assert!(size_of::<Hash64>() == Entry::Hash64.bytes());
};
