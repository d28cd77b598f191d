//! The order in which the items of a cache leave it: strict LRU by a list, or CLOCK by a bit each (section 4).

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use crate::index::Reference;

/// An order of eviction. Places are numbers of items.
pub trait Order {
    /// Words that it needs in each item's header.
    const WORDS: usize;

    /// For so many items.
    fn new(items: usize) -> Self;

    /// A get found the item in this place, which may have left since.
    fn hit(&self, links: &impl Links, place: usize);

    /// An item was put into this place. Only by one thread at a time.
    fn put(&self, links: &impl Links, place: usize);

    /// The item in this place is taken out. Only by the same thread.
    fn take(&self, links: &impl Links, place: usize);

    /// The place whose item should leave next. Only by the same thread, of a cache that is full.
    fn victim(&self, links: &impl Links) -> usize;
}

/// The words that an order has in the items.
pub trait Links {
    /// Word `word` of the item in this place.
    fn word(&self, place: usize, word: usize) -> &AtomicU64;
}

/// A list through the items, from the one used last to the one not used for longest. Each get moves its item to the
/// front, under the list's lock.
pub struct Lru(Mutex<Ends>);

/// The ends of the list: references as words, 0 for none.
#[derive(Default)]
struct Ends {
    newest: u64,
    oldest: u64,
}

/// The link to the item that was used next after this one.
const NEWER: usize = 0;
/// The link to the item that was used next before this one.
const OLDER: usize = 1;
/// Whether the item is in the list: where memcached counts references.
const STATE: usize = 2;

/// [`STATE`] of an item in the list.
const LISTED: u64 = 1;

// Relaxed everywhere: all words of the list are read and written under its lock.
impl Ends {
    fn load(links: &impl Links, item: u64, word: usize) -> u64 {
        Self::at(links, item, word).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn at(links: &impl Links, item: u64, word: usize) -> Option<&AtomicU64> {
        Some(links.word(Reference::of_word(item)?.number(), word))
    }

    /// Makes one the next newer item of the other.
    fn join(&mut self, links: &impl Links, newer: u64, older: u64) {
        match Self::at(links, newer, OLDER) {
            Some(word) => word.store(older, Ordering::Relaxed),
            None => self.newest = older,
        }
        match Self::at(links, older, NEWER) {
            Some(word) => word.store(newer, Ordering::Relaxed),
            None => self.oldest = newer,
        }
    }

    fn take(&mut self, links: &impl Links, item: u64) {
        let (newer, older) = (
            Self::load(links, item, NEWER),
            Self::load(links, item, OLDER),
        );
        self.join(links, newer, older);
    }

    fn put(&mut self, links: &impl Links, item: u64) {
        self.join(links, item, self.newest);
        self.join(links, 0, item);
    }
}

impl Order for Lru {
    const WORDS: usize = 3;

    fn new(_: usize) -> Self {
        Self(Mutex::default())
    }

    #[inline]
    fn hit(&self, links: &impl Links, place: usize) {
        let item = Reference::to(place).word();
        let mut ends = self.0.lock();
        let is_listed = links.word(place, STATE).load(Ordering::Relaxed) == LISTED;
        if is_listed && ends.newest != item {
            ends.take(links, item);
            ends.put(links, item);
        }
    }

    fn put(&self, links: &impl Links, place: usize) {
        let mut ends = self.0.lock();
        ends.put(links, Reference::to(place).word());
        links.word(place, STATE).store(LISTED, Ordering::Relaxed);
    }

    fn take(&self, links: &impl Links, place: usize) {
        let mut ends = self.0.lock();
        ends.take(links, Reference::to(place).word());
        links.word(place, STATE).store(0, Ordering::Relaxed);
    }

    fn victim(&self, _: &impl Links) -> usize {
        let oldest = Reference::of_word(self.0.lock().oldest);
        oldest.expect("a full cache has items").number()
    }
}

/// A bit for each item, which its gets set, and a hand that clears bits until it finds a clear one.
pub struct Clock {
    bits: Box<[AtomicU64]>,
    items: usize,
    /// Where the hand stands.
    hand: AtomicU64,
}

impl Clock {
    /// The word and the bit of a place.
    #[inline(always)]
    fn bit(&self, place: usize) -> (&AtomicU64, u64) {
        (&self.bits[place / 64], 1 << (place % 64))
    }
}

// Relaxed everywhere: a bit is a hint, and the hand has one thread at a time.
impl Order for Clock {
    const WORDS: usize = 0;

    fn new(items: usize) -> Self {
        Self {
            bits: (0..items.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            items,
            hand: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    fn hit(&self, _: &impl Links, place: usize) {
        let (word, bit) = self.bit(place);
        // Of popular items it is set, and their line is only read.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn put(&self, links: &impl Links, place: usize) {
        self.hit(links, place);
    }

    fn take(&self, _: &impl Links, place: usize) {
        let (word, bit) = self.bit(place);
        word.fetch_and(!bit, Ordering::Relaxed);
    }

    fn victim(&self, _: &impl Links) -> usize {
        let mut place = self.hand.load(Ordering::Relaxed) as usize;
        // Twice around at most, unless others set the bits again: the second time all are clear.
        loop {
            let next = if place + 1 == self.items {
                0
            } else {
                place + 1
            };
            let (word, bit) = self.bit(place);
            if word.fetch_and(!bit, Ordering::Relaxed) & bit == 0 {
                self.hand.store(next as u64, Ordering::Relaxed);
                return place;
            }
            place = next;
        }
    }
}
