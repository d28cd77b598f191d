//! A cache of items of one size, as the paper's section 5.3 has four of them: chains or cuckoo hashing, with strict LRU or
//! CLOCK.
//!
//! ```text
//!  words of an item:   | link of a chain | newer, older, references | header | key    | value  |
//!                      |  1, of chains   |  3, of LRU               |  3     |  2     |  4     |
//!
//!  chaining + LRU   56 + 48 bytes, memcached's       chaining + CLOCK   32 + 48
//!  cuckoo + LRU     48 + 48                          cuckoo + CLOCK     24 + 48, MemC3's
//! ```
//!
//! The header has what a cache keeps beside pointers and the count of references: times, lengths, flags, the cas. Nothing
//! here reads it. As in the paper, a cache's size is that of its items, and the index is apart.
//!
//! Items are atomic words, since a reader under versions may read one that is being replaced. Invariants, on top of those
//! of the crate:
//! 1. Sets come one at a time. Only a set writes an item, and only while no index refers to it.
//! 2. What a get returns was read within [`Locks::read`](crate::Locks::read). With versions: an item's words are written
//!    after the Release fence of the [`Stripes`](nuthatch_base::sync::stripes) of the key that it had, so a reader that
//!    saw one of the new words sees that key's versions changed.

use std::io;

use nuthatch_base::hash::KeyHasher;
use nuthatch_base::memory::Mapped;
use nuthatch_base::sync::mutex::Mutex;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use crate::chains::Chains;
use crate::cuckoo::{Cuckoo, SLOTS};
use crate::index::{Index, Inserted, Items, Reference, Shape};
use crate::locks::{BucketLocks, OneLock, Versions};
use crate::order::{Clock, Links, Lru, Order};
use crate::search::Paths;
use crate::tags::OneByte;

/// A key of 16 bytes.
pub type KeyWords = [u64; 2];

/// A value of 32 bytes.
pub type ValueWords = [u64; 4];

/// Words of a header without pointers.
const HEADER: usize = 3;

/// Memcached's: one lock for the table, one for the list.
pub type ChainingLru = Cache<Chains<OneLock>, Lru>;

/// Optimistic cuckoo hashing behind memcached's list.
pub type CuckooLru = Cache<Cuckoo<OneByte, Versions>, Lru>;

/// Chains under locks of buckets, with CLOCK.
pub type ChainingClock = Cache<Chains<BucketLocks>, Clock>;

/// MemC3's.
pub type CuckooClock = Cache<Cuckoo<OneByte, Versions>, Clock>;

/// A cache.
pub struct Cache<I, O> {
    index: I,
    order: O,
    items: Array,
    writer: Mutex<Writer>,
}

/// What the one thread that sets at a time has.
struct Writer {
    paths: Paths,
    /// Places that were used at least once.
    used: usize,
    /// Places that are empty again.
    free: Vec<usize>,
}

/// The items' words.
struct Array {
    words: Mapped<AtomicU64>,
    /// Words of an item.
    size: usize,
    /// Those in front of the header.
    front: usize,
    /// Those of the chain in front of the order's.
    links: usize,
    hasher: KeyHasher,
}

impl Array {
    #[inline(always)]
    fn item(&self, place: usize) -> &[AtomicU64] {
        &self.words[place * self.size..][..self.size]
    }

    #[inline(always)]
    fn load<const N: usize>(words: &[AtomicU64]) -> [u64; N] {
        // Relaxed: see the invariants of the module.
        std::array::from_fn(|at| words[at].load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn key(&self, place: usize) -> KeyWords {
        Self::load(&self.item(place)[self.front + HEADER..])
    }

    #[inline(always)]
    fn value(&self, place: usize) -> ValueWords {
        Self::load(&self.item(place)[self.front + HEADER + 2..])
    }

    fn write(&self, place: usize, key: &KeyWords, value: &ValueWords) {
        let words = &self.item(place)[self.front + HEADER..];
        for (word, &content) in words.iter().zip(key.iter().chain(value)) {
            // Relaxed: the insert into the index publishes it.
            word.store(content, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn hash_of(&self, key: &KeyWords) -> u64 {
        let [one, other] = key.map(u64::to_ne_bytes);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&one);
        bytes[8..].copy_from_slice(&other);
        self.hasher.hash(&bytes)
    }
}

impl Items for Array {
    #[inline(always)]
    fn link(&self, item: Reference) -> &AtomicU64 {
        &self.item(item.number())[0]
    }

    fn hash(&self, item: Reference) -> u64 {
        self.hash_of(&self.key(item.number()))
    }
}

impl Links for Array {
    #[inline(always)]
    fn word(&self, place: usize, word: usize) -> &AtomicU64 {
        &self.item(place)[self.links + word]
    }
}

impl<I: Index, O: Order> Cache<I, O> {
    /// Bytes of an item.
    pub const ITEM: usize = (I::LINKS + O::WORDS + HEADER + 2 + 4) * size_of::<u64>();

    /// A cache with so many bytes for items, one at least. The index has room for more than these. Errors: too little
    /// address space.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let items = (bytes / Self::ITEM).max(1);
        let slots = (items * 10 / 9).next_power_of_two().max(4 * SLOTS) as u64;
        let buckets = match I::LINKS {
            0 => slots / SLOTS as u64,
            _ => slots / 2,
        };
        let size = Self::ITEM / size_of::<u64>();
        Ok(Self {
            index: I::new(Shape {
                buckets,
                huge_pages: true,
            })?,
            order: O::new(items),
            items: Array {
                words: Mapped::reserve(items * size)?,
                size,
                front: I::LINKS + O::WORDS,
                links: I::LINKS,
                hasher: KeyHasher::seeded(1),
            },
            writer: Mutex::new(Writer {
                paths: Paths::new(2, 1),
                used: 0,
                free: Vec::new(),
            }),
        })
    }

    /// The most items that it holds.
    pub fn capacity(&self) -> usize {
        self.items.words.len() / self.items.size
    }

    /// How many items it holds.
    pub fn count(&self) -> usize {
        let writer = self.writer.lock();
        writer.used - writer.free.len()
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &KeyWords) -> Option<ValueWords> {
        let items = &self.items;
        let look = |item: Reference| {
            let place = item.number();
            (items.key(place) == *key).then(|| (place, items.value(place)))
        };
        let (place, value) = self.index.find(items.hash_of(key), items, look)?;
        self.order.hit(items, place);
        Some(value)
    }

    /// Stores a value. A value that the key had is removed before, so a get between the two finds none. False if the
    /// index found no room; then the key has no value.
    pub fn set(&self, key: &KeyWords, value: &ValueWords) -> bool {
        let writer = &mut *self.writer.lock();
        let items = &self.items;
        let hash = items.hash_of(key);
        let place = match self.remove(hash, key) {
            Some(place) => place,
            None => self.room(writer),
        };
        items.write(place, key, value);
        let item = Reference::to(place);
        if self.index.insert(hash, item, items, &mut writer.paths) == Inserted::Full {
            writer.free.push(place);
            return false;
        }
        self.order.put(items, place);
        true
    }

    /// Removes a key. True if it was there.
    pub fn delete(&self, key: &KeyWords) -> bool {
        let writer = &mut *self.writer.lock();
        let removed = self.remove(self.items.hash_of(key), key);
        writer.free.extend(removed);
        removed.is_some()
    }

    /// Takes an item out of index and order; the caller is the only writer, and owns its place from then on.
    fn remove(&self, hash: u64, key: &KeyWords) -> Option<usize> {
        let items = &self.items;
        let is = |item: Reference| items.key(item.number()) == *key;
        let place = self.index.remove(hash, items, is)?.number();
        self.order.take(items, place);
        Some(place)
    }

    /// An empty place: one that was never used, one that is free again, or that of the item that leaves.
    fn room(&self, writer: &mut Writer) -> usize {
        if let Some(place) = writer.free.pop() {
            return place;
        }
        if writer.used < self.capacity() {
            writer.used += 1;
            return writer.used - 1;
        }
        let place = self.order.victim(&self.items);
        let key = self.items.key(place);
        let removed = self.remove(self.items.hash_of(&key), &key);
        assert_eq!(removed, Some(place), "an item in the order is in the index");
        place
    }
}
