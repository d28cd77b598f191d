//! One worker's counts by prefix: a cache line each, in a table without chains.
//!
//! Each event of a busy server finds its counts here, so usual prefixes are found without a hash and without a
//! comparison of strings: a prefix of up to fifteen bytes is, with its delimiter, one word or two, and two such
//! prefixes are the same if their words are.

use std::mem;

use super::Event;
use super::delimiter::{self, WORD};

/// Places for prefixes of one word.
const NEAR: usize = 1 << 10;

/// The first number of places for other prefixes. It doubles when half of them are taken.
const FAR_MIN: usize = 64;

/// Marks the second word of a prefix of more than two words: the second word of a shorter one has a delimiter at its
/// end, or is 0.
const LONG: u64 = 0xff << 56;

/// The counts of a prefix.
#[derive(Clone, Copy, Default)]
pub struct Counts([u64; 4]);

impl Counts {
    /// The number of events of a kind.
    pub fn of(&self, event: Event) -> u64 {
        self.0[event as usize]
    }

    /// Adds the counts of another worker.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }

    #[inline]
    fn bump(&mut self, event: Event) {
        self.0[event as usize] += 1;
    }
}

/// The words that identify a prefix.
///
/// The first word is the first eight bytes of the prefix and its delimiter, with zeros behind the delimiter. The second
/// is 0 if the first has the delimiter, the next eight bytes in the same form if these have it, and the hash for a
/// longer prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Words(u64, u64);

impl Words {
    /// The words of a prefix with this hash.
    fn new(prefix: &[u8], hash: u64) -> Self {
        let mut ended = [0; 2 * WORD];
        let len = prefix.len().min(ended.len());
        ended[..len].copy_from_slice(&prefix[..len]);
        if let Some(end) = ended.get_mut(len) {
            *end = delimiter::DELIMITER;
        }
        let (first, second) = ended.split_at(WORD);
        let second = match is_long(prefix) {
            true => hash | LONG,
            false => delimiter::padded(second),
        };
        Self(delimiter::padded(first), second)
    }
}

/// True if a prefix, with its delimiter, has more than two words.
pub fn is_long(prefix: &[u8]) -> bool {
    prefix.len() >= 2 * WORD
}

/// The words of a free place. No prefix has these words, and no guess is the first of them.
const FREE: Words = Words(u64::MAX, 1);

/// A prefix and its counts.
#[repr(align(64))]
struct Entry {
    words: Words,
    counts: Counts,
    prefix: Box<[u8]>,
}

const _: () = assert!(size_of::<Entry>() == 64);

impl Entry {
    #[inline]
    fn is_free(&self) -> bool {
        self.words == FREE
    }
}

/// Counts by prefix.
#[derive(Default)]
pub struct Table {
    /// The counts of prefixes of one word that found their place free: these are found in one step. Empty before the
    /// first prefix.
    near: Box<[Entry]>,
    /// All other prefixes, with linear probing. The number of places is a power of two, or 0.
    far: Box<[Entry]>,
    /// The number of these places that are taken: never more than half.
    far_taken: usize,
    /// The shift that leaves the upper bits of a product, as many as number these places.
    far_shift: u32,
    /// The factors that spread words over the places. They are odd.
    factors: [u64; 2],
}

impl Table {
    /// All prefixes.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Counts)> {
        let places = self.near.iter().chain(&self.far);
        let taken = places.filter(|place| !place.is_free());
        taken.map(|place| (&*place.prefix, &place.counts))
    }

    /// Counts an event of a key, if its prefix has one word and is in `near`. This is as short as possible: it is on
    /// the path of every answer.
    #[inline(always)]
    pub fn count_near(&mut self, key: &[u8], event: Event) -> bool {
        let Some(word) = key.first_chunk::<WORD>() else {
            return false;
        };
        let Some(first) = delimiter::guess(u64::from_le_bytes(*word)) else {
            return false;
        };
        match self.near.get_mut(self.near_number(first)) {
            Some(place) if place.words.0 == first => {
                place.counts.bump(event);
                true
            }
            _ => false,
        }
    }

    /// Counts an event of a key whose prefix has up to two words, wherever the prefix is. A key without a prefix is not
    /// counted. False if the prefix is not in the table, or longer.
    pub fn count(&mut self, key: &[u8], event: Event) -> bool {
        let Some((first, rest)) = key.split_first_chunk::<WORD>() else {
            let first = delimiter::through(delimiter::padded(key));
            return first.is_none_or(|first| self.count_one(first, event));
        };
        let word = u64::from_le_bytes(*first);
        match delimiter::through(word) {
            Some(first) => self.count_one(first, event),
            None => self.count_two(word, rest, event),
        }
    }

    /// The same for a key without delimiter in its first word.
    fn count_two(&mut self, first: u64, rest: &[u8], event: Event) -> bool {
        let second = match rest.first_chunk::<WORD>() {
            Some(second) => u64::from_le_bytes(*second),
            None => delimiter::padded(rest),
        };
        match delimiter::through(second) {
            Some(second) => {
                let found = self.find_far(Words(first, second), |_| true);
                found.map(|counts| counts.bump(event)).is_some()
            }
            // The key ends here, so it has no prefix.
            None => rest.len() <= WORD,
        }
    }

    /// Counts an event of a prefix of more than two words. False if it is not in the table.
    pub fn count_long(&mut self, prefix: &[u8], hash: u64, event: Event) -> bool {
        let words = Words::new(prefix, hash);
        let found = self.find_far(words, |place| *place.prefix == *prefix);
        found.map(|counts| counts.bump(event)).is_some()
    }

    /// The same for a prefix of one word.
    fn count_one(&mut self, first: u64, event: Event) -> bool {
        let words = Words(first, 0);
        let near = self.near_number(first);
        let found = match self.near.get_mut(near) {
            Some(place) if place.words == words => Some(&mut place.counts),
            _ => self.find_far(words, |_| true),
        };
        found.map(|counts| counts.bump(event)).is_some()
    }

    /// The counts of a prefix that is not in `near`. `is_it` compares the rest of a prefix that its words do not
    /// identify.
    #[inline]
    fn find_far(&mut self, words: Words, is_it: impl Fn(&Entry) -> bool) -> Option<&mut Counts> {
        let mut number = self.far_number(words);
        loop {
            // Half of the places are free: this ends.
            let place = self.far.get(number)?;
            if place.words == words && is_it(place) {
                return Some(&mut self.far[number].counts);
            }
            if place.is_free() {
                return None;
            }
            number = self.behind(number);
        }
    }

    /// The place in `near` of a prefix of one word.
    #[inline(always)]
    fn near_number(&self, first: u64) -> usize {
        (first.wrapping_mul(self.factors[0]) >> (u64::BITS - NEAR.ilog2())) as usize
    }

    /// The place in `far` where the search for words begins.
    #[inline]
    fn far_number(&self, Words(first, second): Words) -> usize {
        let [one, other] = self.factors;
        let product = first
            .wrapping_mul(one)
            .wrapping_add(second.wrapping_mul(other));
        // Before there are places this is any number, and none is read.
        (product >> self.far_shift) as usize
    }

    #[inline]
    fn behind(&self, number: usize) -> usize {
        (number + 1) & (self.far.len() - 1)
    }

    /// Enters a prefix that is not in the table, and counts its event. `factors` are odd, and the same each time.
    pub fn begin(&mut self, prefix: &[u8], hash: u64, factors: [u64; 2], event: Event) {
        if self.near.is_empty() {
            self.factors = factors;
            self.near = free(NEAR);
        }
        let mut place = Entry {
            words: Words::new(prefix, hash),
            counts: Counts::default(),
            prefix: prefix.into(),
        };
        place.counts.bump(event);
        let near = self.near_number(place.words.0);
        if place.words.1 == 0 && self.near[near].is_free() {
            self.near[near] = place;
            return;
        }
        if 2 * self.far_taken >= self.far.len() {
            self.grow();
        }
        self.far_taken += 1;
        self.put(place);
    }

    fn grow(&mut self) {
        let grown = free((2 * self.far.len()).max(FAR_MIN));
        self.far_shift = u64::BITS - grown.len().ilog2();
        for place in mem::replace(&mut self.far, grown) {
            if !place.is_free() {
                self.put(place);
            }
        }
    }

    /// Puts a prefix that is not in the table into the first free place.
    fn put(&mut self, place: Entry) {
        let mut number = self.far_number(place.words);
        while !self.far[number].is_free() {
            number = self.behind(number);
        }
        self.far[number] = place;
    }
}

fn free(count: usize) -> Box<[Entry]> {
    let free = || Entry {
        words: FREE,
        counts: Counts::default(),
        prefix: Box::default(),
    };
    (0..count).map(|_| free()).collect()
}
