//! Recency bits: they mark the items that were used lately, by address alone.
//!
//! There is one bit of each kind for each [`GRANULE`] of the arena, so a hit needs neither the page nor the class. The
//! bits are hints: a late reader may set the bit of an address that has another item by now, which costs only a little
//! precision.

use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use crate::memory::arena::{Address, WORD};
use crate::memory::sizes::CHUNK_MIN;
use crate::memory::words::Words;

/// Words of the arena that one bit stands for: no item takes less.
const GRANULE: u64 = (CHUNK_MIN / WORD) as u64;

/// The highest count of uses, in an arena that counts them: it distinguishes none, one, two, and more.
pub const USES_MAX: u8 = 3;

/// Recency of all items of an arena, and whether they were ever fetched.
///
/// ```text
///  64 granules:   | recent | (again) | fetched |     a bit each; `again` only where uses are counted
/// ```
/// Where they are counted, `again` and `recent` are a number of two bits, the uses.
pub struct Recency {
    words: Words,
    /// Words for 64 granules: 2, or 3 where uses are counted. So a hit finds all of them in one line.
    stride: usize,
}

/// The kinds of bits, by their word. The fetched bits are in the last.
const RECENT: usize = 0;
const AGAIN: usize = 1;

const fn stride(counts: bool) -> usize {
    if counts { 3 } else { 2 }
}

impl Recency {
    /// Bytes of bits for an arena of so many words, whose uses are counted or not.
    pub fn bytes_for(arena_words: usize, counts: bool) -> usize {
        stride(counts) * arena_words.div_ceil(64 * GRANULE as usize) * WORD
    }

    /// Reserves the bits, all clear. With `counts`, a second use is distinguished from the first.
    pub fn reserve(arena_words: usize, counts: bool) -> std::io::Result<Self> {
        // A bit for each granule, and one for the arena's end.
        let places = arena_words / (64 * GRANULE as usize) + 1;
        let stride = stride(counts);
        Ok(Self {
            words: Words::reserve_to_grow(places * stride)?,
            stride,
        })
    }

    /// Notes that the memory limit lets about so many words of the arena be used.
    pub fn expect(&self, arena_words: usize) {
        let words = arena_words.div_ceil(64 * GRANULE as usize) * self.stride;
        self.words.expect(words.min(self.words.len()));
    }

    /// The word of one kind of bits for a place.
    #[inline(always)]
    fn word(&self, place: usize, kind: usize) -> &AtomicU64 {
        &self.words[place * self.stride + kind]
    }

    fn fetched(&self, place: usize) -> &AtomicU64 {
        self.word(place, self.stride - 1)
    }

    #[inline(always)]
    fn counts(&self) -> bool {
        self.stride == stride(true)
    }

    /// All words of a place.
    fn kinds(&self, place: usize) -> &[AtomicU64] {
        &self.words[place * self.stride..][..self.stride]
    }

    /// A get hit the item at an address.
    #[inline(always)]
    pub fn hit(&self, address: Address) {
        assert!((place(address).0 + 1) * self.stride <= self.words.len());
        // SAFETY: asserted.
        unsafe { self.hit_within(address) }
    }

    /// [`Recency::hit`] without a bounds check: gets alone are 3 % faster.
    ///
    /// # Safety
    /// The address lies in the arena that these bits were reserved for, or at its end.
    #[inline(always)]
    pub unsafe fn hit_within(&self, address: Address) {
        let granule = address.0 / GRANULE;
        let at = (granule / 64) as usize * self.stride;
        // SAFETY: `reserve` made words for each granule of the arena and for its end, and the address is there (the
        // caller's promise).
        let bits =
            |kind: usize| unsafe { self.words.get_unchecked(at + kind) }.load(Ordering::Relaxed);
        // The shift uses only those bits of the granule's number that are its place in the word.
        if bits(RECENT).wrapping_shr(granule as u32) & 1 == 0 {
            self.mark(address);
        } else if self.counts() && bits(AGAIN).wrapping_shr(granule as u32) & 1 == 0 {
            self.mark_again(address);
        }
    }

    /// Sets an item's bits.
    #[cold]
    fn mark(&self, address: Address) {
        let (place, bit) = place(address);
        set(self.word(place, RECENT), bit);
        set(self.fetched(place), bit);
    }

    /// Notes the item's second use since it came or was passed last.
    #[cold]
    fn mark_again(&self, address: Address) {
        let (place, bit) = place(address);
        set(self.word(place, AGAIN), bit);
        clear(self.word(place, RECENT), bit);
        // The first may have been granted.
        set(self.fetched(place), bit);
    }

    /// Uses since the item came or was passed last, where they are counted: [`USES_MAX`] for more than two.
    #[inline]
    pub fn uses(&self, address: Address) -> u8 {
        let (place, bit) = place(address);
        let is_set = |kind| (self.word(place, kind).load(Ordering::Relaxed) >> bit & 1) as u8;
        is_set(RECENT) + if self.counts() { 2 * is_set(AGAIN) } else { 0 }
    }

    /// Notes that the item moves to another address and keeps `uses` uses.
    pub fn relocate(&self, from: Address, to: Address, uses: u8) {
        self.start(to);
        let (place, bit) = place(to);
        if self.was_fetched(from) {
            set(self.fetched(place), bit);
        }
        self.grant(to, uses);
    }

    /// Grants `uses` uses to an item without any, as if there had been hits. An item that was never fetched gets fewer
    /// than the most, so that its next hit marks it as fetched.
    pub fn grant(&self, address: Address, uses: u8) {
        let (place, bit) = place(address);
        let uses = match self.was_fetched(address) {
            true => uses,
            false => uses.min(USES_MAX - 1),
        };
        if self.counts() && uses & 2 != 0 {
            set(self.word(place, AGAIN), bit);
        }
        if self.counts() && uses & 1 != 0 {
            set(self.word(place, RECENT), bit);
        }
    }

    /// Notes a new item at an address: not fetched yet, and as if the hand had just passed it.
    #[inline]
    pub fn start(&self, address: Address) {
        let (place, bit) = place(address);
        for word in self.kinds(place) {
            if word.load(Ordering::Relaxed) >> bit & 1 != 0 {
                word.fetch_and(!(1 << bit), Ordering::Relaxed);
            }
        }
    }

    /// Moves an item's history to another address, because a rewrite moved the item.
    pub fn carry(&self, from: Address, to: Address) {
        self.start(to);
        let ((source, source_bit), (target, target_bit)) = (place(from), place(to));
        for (source, target) in self.kinds(source).iter().zip(self.kinds(target)) {
            if source.load(Ordering::Relaxed) >> source_bit & 1 != 0 {
                target.fetch_or(1 << target_bit, Ordering::Relaxed);
            }
        }
    }

    /// The hand passes: true if the item was used since the hand last passed it.
    #[inline]
    pub fn pass(&self, address: Address) -> bool {
        let (place, bit) = place(address);
        let word = self.word(place, RECENT);
        let recent = word.load(Ordering::Relaxed) >> bit & 1 != 0;
        if recent {
            word.fetch_and(!(1 << bit), Ordering::Relaxed);
        }
        recent
    }

    /// How many items of a page of so many words were used since the hand passed them, or since
    /// [`Recency::pass_page`].
    pub fn used_in(&self, page: u32, page_words: usize) -> u32 {
        let used = |(place, mask): (usize, u64)| {
            let bits = self.word(place, RECENT).load(Ordering::Relaxed) & mask;
            bits.count_ones()
        };
        of_page(page, page_words).map(used).sum()
    }

    /// Clears the bits of a whole page.
    pub fn pass_page(&self, page: u32, page_words: usize) {
        for (place, mask) in of_page(page, page_words) {
            let word = self.word(place, RECENT);
            if word.load(Ordering::Relaxed) & mask != 0 {
                word.fetch_and(!mask, Ordering::Relaxed);
            }
        }
    }

    /// Forgets the uses of all items of a page, but not those that were granted to an item that was never fetched.
    pub fn forget_uses(&self, page: u32, page_words: usize) {
        for (place, mask) in of_page(page, page_words) {
            let fetched = self.fetched(place).load(Ordering::Relaxed) & mask;
            for kind in [RECENT, AGAIN].into_iter().take(self.stride - 1) {
                let word = self.word(place, kind);
                if word.load(Ordering::Relaxed) & fetched != 0 {
                    word.fetch_and(!fetched, Ordering::Relaxed);
                }
            }
        }
    }

    /// True if a get has hit the item at an address.
    #[inline]
    pub fn was_fetched(&self, address: Address) -> bool {
        let (place, bit) = place(address);
        self.fetched(place).load(Ordering::Relaxed) >> bit & 1 != 0
    }

    /// A pointer to an item's bit, for prefetching.
    #[inline(always)]
    pub fn pointer(&self, address: Address) -> *const AtomicU64 {
        self.words
            .as_ptr()
            .wrapping_add(place(address).0 * self.stride)
    }
}

/// Sets a bit. A load and a store, not one atomic operation, which would be a full barrier: no later get could start
/// before this one's last miss. Two threads that set bits of one word at the same moment may lose one, or bring one
/// back that has just been cleared: an item leaves a round earlier or later.
#[inline]
fn set(word: &AtomicU64, bit: u64) {
    let bits = word.load(Ordering::Relaxed);
    word.store(bits | 1 << bit, Ordering::Relaxed);
}

/// Clears a bit, as [`set`] sets one.
#[inline]
fn clear(word: &AtomicU64, bit: u64) {
    let bits = word.load(Ordering::Relaxed);
    word.store(bits & !(1 << bit), Ordering::Relaxed);
}

/// The words with the bits of a page, and a mask of these bits. (Models have small pages, which share a word.)
fn of_page(page: u32, page_words: usize) -> impl Iterator<Item = (usize, u64)> {
    let bits = page_words as u64 / GRANULE;
    let first = u64::from(page) * bits;
    let mask = u64::MAX >> 64_u64.saturating_sub(bits) << (first % 64);
    (first / 64..(first + bits).div_ceil(64)).map(move |word| (word as usize, mask))
}

/// The word of the bit of an address, and its number there.
#[inline(always)]
fn place(address: Address) -> (usize, u64) {
    let granule = address.0 / GRANULE;
    ((granule / 64) as usize, granule % 64)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_hit_gives_a_second_chance_once() {
        let recency = Recency::reserve(1 << 16, false).unwrap();
        let (one, other) = (Address(400), Address(404));
        recency.hit(one);
        assert!(recency.pass(one));
        assert!(!recency.pass(one));
        assert!(!recency.pass(other));
        assert!(recency.was_fetched(one) && !recency.was_fetched(other));
        recency.hit(one);
        recency.carry(one, other);
        assert!(recency.was_fetched(other) && recency.pass(other));
        recency.start(one);
        assert!(!recency.was_fetched(one) && !recency.pass(one));
    }

    #[test]
    fn three_uses_are_told_apart() {
        let recency = Recency::reserve(1 << 16, true).unwrap();
        let (one, other) = (Address(400), Address(404));
        for uses in [1, 2, USES_MAX, USES_MAX] {
            recency.hit(one);
            assert_eq!((recency.uses(one), recency.uses(other)), (uses, 0));
        }
        for uses in 0..=USES_MAX {
            recency.relocate(one, other, uses);
            assert_eq!(recency.uses(other), uses);
            assert!(recency.was_fetched(other));
        }
        for (granted, counts) in [(0, 0), (1, 1), (2, 2), (USES_MAX, 2)] {
            recency.start(one);
            recency.grant(one, granted);
            assert_eq!(
                (recency.uses(one), recency.was_fetched(one)),
                (counts, false)
            );
            recency.hit(one);
            assert_eq!(
                (recency.uses(one), recency.was_fetched(one)),
                (counts + 1, true)
            );
        }
    }

    #[test]
    fn uses_of_a_page_are_forgotten_and_what_was_granted_is_not() {
        const WORDS: usize = 1 << 17;
        let recency = Recency::reserve(2 * WORDS, true).unwrap();
        let [once, twice, granted, other] = [0, 4, 8, WORDS as u64].map(Address);
        for address in [once, twice, twice, other] {
            recency.hit(address);
        }
        recency.grant(granted, 1);
        recency.forget_uses(0, WORDS);
        let uses = [once, twice, granted, other].map(|address| recency.uses(address));
        assert_eq!(uses, [0, 0, 1, 1]);
        assert!(recency.was_fetched(once) && recency.was_fetched(twice));
    }

    #[test]
    fn a_page_is_looked_at_as_a_whole() {
        const WORDS: usize = 1 << 17;
        let recency = Recency::reserve(3 * WORDS, true).unwrap();
        let page = WORDS as u64;
        let inside = [page, page + 4, page + 1000, 2 * page - 4].map(Address);
        let outside = [page - 4, 2 * page].map(Address);
        for address in inside.into_iter().chain(outside) {
            recency.hit(address);
        }
        assert_eq!(
            [0, 1, 2].map(|page| recency.used_in(page, WORDS)),
            [1, 4, 1]
        );
        recency.pass_page(1, WORDS);
        assert_eq!(
            [0, 1, 2].map(|page| recency.used_in(page, WORDS)),
            [1, 0, 1]
        );
        assert!(outside.into_iter().all(|address| recency.pass(address)));
    }
}
