//! Items as the paper's benchmarks have them: a key of 16 bytes and a value of 32, beside the link of a chain.

use std::io;

use nuthatch_base::hash::KeyHasher;
use nuthatch_base::memory::{Mapped, Zeroed};
use nuthatch_base::sync::shim::AtomicU64;

use crate::index::{Items, Reference};

/// Bytes of a key.
pub const KEY: usize = 16;

/// Bytes of a value.
pub const VALUE: usize = 32;

/// A key.
pub type Key = [u8; KEY];

/// A value.
pub type Value = [u8; VALUE];

/// An item in a line of its own, so that a look-up that follows a reference loads one.
#[derive(Default)]
#[repr(align(64))]
struct Record {
    link: AtomicU64,
    key: Key,
    value: Value,
}

// SAFETY: an atomic integer and arrays of bytes: all of them may be 0, and dropping them does nothing.
unsafe impl Zeroed for Record {}

const _: () = assert!(size_of::<Record>() == 64);

/// Items, which do not change but for their links.
pub struct Records {
    records: Mapped<Record>,
    hasher: KeyHasher,
    /// [`KEY`], in a place that the compiler does not look through: memcached compares keys of any length.
    key_len: usize,
}

impl Records {
    /// So many items, each made by its number. Errors: too little address space.
    pub fn new(
        count: usize,
        huge_pages: bool,
        mut make: impl FnMut(usize, &mut Key, &mut Value),
    ) -> io::Result<Self> {
        let mut records: Mapped<Record> = match huge_pages {
            true => Mapped::reserve(count)?,
            false => Mapped::reserve_to_grow(count)?,
        };
        for (number, record) in records.iter_mut().enumerate() {
            make(number, &mut record.key, &mut record.value);
        }
        Ok(Self {
            records,
            hasher: KeyHasher::seeded(1),
            key_len: std::hint::black_box(KEY),
        })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.records.len()
    }

    /// The hash of a key.
    #[inline(always)]
    pub fn hash_of(&self, key: &Key) -> u64 {
        self.hasher.hash(key)
    }

    /// True if the item has this key.
    #[inline(always)]
    pub fn is<C: Compare>(&self, item: Reference, key: &Key) -> bool {
        C::same(&self.records[item.number()].key, key, self.key_len)
    }

    /// The item's key.
    #[inline(always)]
    pub fn key(&self, item: Reference) -> &Key {
        &self.records[item.number()].key
    }

    /// The item's value.
    #[inline(always)]
    pub fn value(&self, item: Reference) -> &Value {
        &self.records[item.number()].value
    }
}

impl Items for Records {
    #[inline(always)]
    fn link(&self, item: Reference) -> &AtomicU64 {
        &self.records[item.number()].link
    }

    #[inline]
    fn hash(&self, item: Reference) -> u64 {
        self.hash_of(self.key(item))
    }
}

/// How keys are compared.
pub trait Compare {
    /// True if the first `len` bytes of both are the same; both have zeros or nothing behind them.
    fn same(one: &Key, other: &Key, len: usize) -> bool;
}

/// By the system's `memcmp`, as memcached does.
pub struct Bytes;

impl Compare for Bytes {
    #[inline(always)]
    fn same(one: &Key, other: &Key, len: usize) -> bool {
        one[..len] == other[..len]
    }
}

/// As two integers of eight bytes.
pub struct Integers;

impl Compare for Integers {
    #[inline(always)]
    fn same(one: &Key, other: &Key, _: usize) -> bool {
        u128::from_ne_bytes(*one) == u128::from_ne_bytes(*other)
    }
}
