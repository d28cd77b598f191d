//! Recency bits: they mark the items that were used lately, by address alone.
//!
//! There are bits for each [`GRANULE`] of the arena, so a hit needs neither the page nor the class. The
//! bits are hints: a late reader may set the bit of an address that has another item by now, which costs only a little
//! precision.

use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use crate::memory::arena::{Address, WORD};
use crate::memory::sizes::CHUNK_MIN;
use crate::memory::words::Words;

/// Words of the arena that one place stands for: no item takes less.
const GRANULE: u64 = (CHUNK_MIN / WORD) as u64;

/// The highest count of uses, in an arena that counts them: it distinguishes none, one, two, and more.
pub const USES_MAX: u8 = 3;

/// Recency of all items of an arena, and whether they were ever fetched.
///
/// ```text
///  where uses are counted:   a word for 32 granules   | uses, two bits each |
///                            a word for 64 granules   | fetched, a bit each |     in an array of its own
///  where they are not:       a word for 32 granules   | fetched, recent: a bit each, the lower one is `recent` |
/// ```
/// So a hit finds all that it needs in one word, and hardly ever changes it.
pub struct Recency {
    pairs: Words,
    /// Empty where uses are not counted.
    fetched: Words,
    /// The bits of the uses, [`RECENT`] or [`BOTH`]: a hit changes nothing where they are set.
    saturated: u64,
}

/// Granules of a word of pairs.
const PAIRS: u64 = 32;

/// Where uses are not counted, of the two bits of a granule the one that is set by a hit and cleared when the hand
/// passes; where they are, the lower bit of their number.
const RECENT: u64 = 1;
/// Where uses are not counted, the other one.
const FETCHED: u64 = 2;
/// Both bits of a granule.
const BOTH: u64 = 3;
/// [`RECENT`] of all granules of a word.
const ALL_RECENT: u64 = 0x5555_5555_5555_5555;

impl Recency {
    /// Bytes of bits for an arena of so many words, whose uses are counted or not.
    pub fn bytes_for(arena_words: usize, counts: bool) -> usize {
        let places = arena_words.div_ceil(64 * GRANULE as usize);
        (2 * places + if counts { places } else { 0 }) * WORD
    }

    /// Reserves the bits, all clear. With `counts`, a second use is distinguished from the first.
    pub fn reserve(arena_words: usize, counts: bool) -> std::io::Result<Self> {
        // Bits for each granule, and for the arena's end.
        let places = arena_words / (64 * GRANULE as usize) + 1;
        Ok(Self {
            pairs: Words::reserve_to_grow(2 * places)?,
            fetched: Words::reserve_to_grow(if counts { places } else { 0 })?,
            saturated: if counts { BOTH } else { RECENT },
        })
    }

    /// Notes that the memory limit lets about so many words of the arena be used.
    pub fn expect(&self, arena_words: usize) {
        let places = arena_words.div_ceil(64 * GRANULE as usize);
        self.pairs.expect((2 * places).min(self.pairs.len()));
        self.fetched.expect(places.min(self.fetched.len()));
    }

    #[inline(always)]
    fn counts(&self) -> bool {
        self.saturated == BOTH
    }

    /// The word with an address's pair of bits, and how far they are shifted in it.
    #[inline(always)]
    fn pair(&self, address: Address) -> (&AtomicU64, u64) {
        let granule = address.0 / GRANULE;
        (
            &self.pairs[(granule / PAIRS) as usize],
            2 * (granule % PAIRS),
        )
    }

    /// The word that says whether the item at an address was fetched, and the number of the bit in it.
    #[inline(always)]
    fn fetched_bit(&self, address: Address) -> (&AtomicU64, u64) {
        if self.counts() {
            let granule = address.0 / GRANULE;
            return (&self.fetched[(granule / 64) as usize], granule % 64);
        }
        let (word, shift) = self.pair(address);
        (word, shift + FETCHED.trailing_zeros() as u64)
    }

    /// A get hit the item at an address.
    #[inline(always)]
    pub fn hit(&self, address: Address) {
        assert!(address.0 / GRANULE / PAIRS < self.pairs.len() as u64);
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
        // SAFETY: `reserve` made words for each granule of the arena and for its end, and the address is there (the
        // caller's promise).
        let word = unsafe { self.pairs.get_unchecked((granule / PAIRS) as usize) };
        // The shift uses only those bits of the number that are the place in the word.
        let bits = word
            .load(Ordering::Relaxed)
            .wrapping_shr(2 * granule as u32);
        if !bits & self.saturated != 0 {
            self.mark(address);
        }
    }

    /// Notes a use of an item that was not used so often yet since it came or was passed last.
    #[cold]
    fn mark(&self, address: Address) {
        let (word, shift) = self.pair(address);
        let uses = word.load(Ordering::Relaxed) >> shift & self.saturated;
        let uses = (uses + 1).min(self.saturated);
        set_bits(word, self.saturated << shift, uses << shift);
        // The first use may have been granted, so each marks.
        self.mark_fetched(address);
    }

    fn mark_fetched(&self, address: Address) {
        let (word, bit) = self.fetched_bit(address);
        set_bits(word, 0, 1 << bit);
    }

    /// Uses since the item came or was passed last, where they are counted: [`USES_MAX`] for more than two.
    #[inline]
    pub fn uses(&self, address: Address) -> u8 {
        let (word, shift) = self.pair(address);
        (word.load(Ordering::Relaxed) >> shift & self.saturated) as u8
    }

    /// Notes that the item moves to another address and keeps `uses` uses.
    pub fn relocate(&self, from: Address, to: Address, uses: u8) {
        self.start(to);
        if self.was_fetched(from) {
            self.mark_fetched(to);
        }
        self.grant(to, uses);
    }

    /// Grants `uses` uses to an item without any, as if there had been hits. An item that was never fetched gets fewer
    /// than the most, so that its next hit marks it as fetched.
    pub fn grant(&self, address: Address, uses: u8) {
        if !self.counts() {
            return;
        }
        let uses = match self.was_fetched(address) {
            true => uses,
            false => uses.min(USES_MAX - 1),
        };
        let (word, shift) = self.pair(address);
        set_bits(word, 0, u64::from(uses & USES_MAX) << shift);
    }

    /// Notes a new item at an address: not fetched yet, and as if the hand had just passed it.
    #[inline]
    pub fn start(&self, address: Address) {
        let (word, shift) = self.pair(address);
        clear_now(word, BOTH << shift);
        let (word, bit) = self.fetched_bit(address);
        clear_now(word, 1 << bit);
    }

    /// Moves an item's history to another address, because a rewrite moved the item.
    pub fn carry(&self, from: Address, to: Address) {
        self.start(to);
        let ((source, source_shift), (target, shift)) = (self.pair(from), self.pair(to));
        let bits = source.load(Ordering::Relaxed) >> source_shift & BOTH;
        if bits != 0 {
            target.fetch_or(bits << shift, Ordering::Relaxed);
        }
        if self.counts() && self.was_fetched(from) {
            let (word, bit) = self.fetched_bit(to);
            word.fetch_or(1 << bit, Ordering::Relaxed);
        }
    }

    /// The hand passes: true if the item was used since the hand last passed it.
    #[inline]
    pub fn pass(&self, address: Address) -> bool {
        let (word, shift) = self.pair(address);
        clear_now(word, RECENT << shift)
    }

    /// How many items of a page of so many words were used since the hand passed them, or since
    /// [`Recency::pass_page`]; or have uses left, where they are counted.
    pub fn used_in(&self, page: u32, page_words: usize) -> u32 {
        let used = |(word, mask): (usize, u64)| {
            let bits = self.pairs[word].load(Ordering::Relaxed) & mask;
            self.used(bits).count_ones()
        };
        pairs_of_page(page, page_words).map(used).sum()
    }

    /// Clears the bits of a whole page.
    pub fn pass_page(&self, page: u32, page_words: usize) {
        for (word, mask) in pairs_of_page(page, page_words) {
            clear_now(&self.pairs[word], mask & ALL_RECENT);
        }
    }

    /// Clears the uses in a page that begins a new life: of its last one, some are left where items began that nothing
    /// begins at now.
    pub fn start_page(&self, page: u32, page_words: usize) {
        for (word, mask) in pairs_of_page(page, page_words) {
            clear_now(&self.pairs[word], mask);
        }
    }

    /// Takes a use from each item of a page that has one, where uses are counted.
    pub fn pay_in(&self, page: u32, page_words: usize) {
        debug_assert!(self.counts());
        for (word, mask) in pairs_of_page(page, page_words) {
            let word = &self.pairs[word];
            let bits = word.load(Ordering::Relaxed) & mask;
            let used = self.used(bits);
            if used != 0 {
                // Nothing is borrowed from a neighbour: each of these pairs is at least one.
                set_bits(word, bits, bits - used);
            }
        }
    }

    /// Of a word of pairs, the lower bit of each that has a use.
    fn used(&self, bits: u64) -> u64 {
        let again = if self.counts() { bits >> 1 } else { 0 };
        (bits | again) & ALL_RECENT
    }

    /// Forgets the uses of all items of a page, but not those that were granted to an item that was never fetched. Only
    /// where uses are counted.
    pub fn forget_uses(&self, page: u32, page_words: usize) {
        for (word, mask) in pairs_of_page(page, page_words) {
            // Two words of pairs belong to one of fetched bits.
            let fetched = self.fetched[word / 2].load(Ordering::Relaxed);
            let fetched = (fetched >> (PAIRS * (word as u64 % 2))) as u32;
            clear_now(&self.pairs[word], (BOTH * spread(fetched)) & mask);
        }
    }

    /// True if a get has hit the item at an address.
    #[inline]
    pub fn was_fetched(&self, address: Address) -> bool {
        let (word, bit) = self.fetched_bit(address);
        word.load(Ordering::Relaxed) >> bit & 1 != 0
    }

    /// A pointer to the word that a hit of an item needs, for prefetching.
    #[inline(always)]
    pub fn pointer(&self, address: Address) -> *const AtomicU64 {
        let granule = address.0 / GRANULE;
        self.pairs.as_ptr().wrapping_add((granule / PAIRS) as usize)
    }
}

/// Clears some bits and sets some. A load and a store, not one atomic operation, which would be a full barrier: no later
/// get could start before this one's last miss. Two threads that set bits of one word at the same moment may lose one,
/// or bring one back that has just been cleared: an item leaves a round earlier or later.
#[inline]
fn set_bits(word: &AtomicU64, clear: u64, set: u64) {
    let bits = word.load(Ordering::Relaxed);
    word.store(bits & !clear | set, Ordering::Relaxed);
}

/// Clears bits in one atomic operation, if any of them is set. True if one was.
#[inline]
fn clear_now(word: &AtomicU64, bits: u64) -> bool {
    let any = word.load(Ordering::Relaxed) & bits != 0;
    if any {
        word.fetch_and(!bits, Ordering::Relaxed);
    }
    any
}

/// Spreads 32 bits over the lower bits of as many pairs.
fn spread(bits: u32) -> u64 {
    let mut spread = u64::from(bits);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, ALL_RECENT),
    ] {
        spread = (spread | spread << shift) & mask;
    }
    spread
}

/// The words with the pairs of a page, and a mask of these. (Models have small pages, which share a word.)
fn pairs_of_page(page: u32, page_words: usize) -> impl Iterator<Item = (usize, u64)> {
    let granules = page_words as u64 / GRANULE;
    let first = u64::from(page) * granules;
    let mask = u64::MAX >> 64_u64.saturating_sub(2 * granules) << (2 * (first % PAIRS));
    (first / PAIRS..(first + granules).div_ceil(PAIRS)).map(move |word| (word as usize, mask))
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
    fn bits_are_spread_over_pairs() {
        for bits in [0, 1, 0x8000_0001, u32::MAX, 0x1234_5678] {
            let spread = spread(bits);
            let bit = |number: u32| (spread >> (2 * number) & BOTH) as u32;
            assert!((0..32).all(|number| bit(number) == bits >> number & 1));
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
    fn each_used_item_of_a_page_pays_a_use() {
        const WORDS: usize = 1 << 17;
        let recency = Recency::reserve(2 * WORDS, true).unwrap();
        let items: Vec<Address> = (0..=USES_MAX)
            .map(|uses| Address(4 * u64::from(uses)))
            .collect();
        let outside = Address(WORDS as u64);
        for (uses, &address) in items.iter().enumerate() {
            (0..uses).for_each(|_| recency.hit(address));
        }
        recency.hit(outside);
        for wanted in [[0, 1, 2, 3], [0, 0, 1, 2], [0, 0, 0, 1], [0; 4], [0; 4]] {
            let uses: Vec<u8> = items.iter().map(|&address| recency.uses(address)).collect();
            assert_eq!(uses, wanted);
            let used = wanted.iter().filter(|&&uses| uses > 0).count();
            assert_eq!(recency.used_in(0, WORDS) as usize, used);
            recency.pay_in(0, WORDS);
        }
        recency.hit(items[0]);
        recency.start_page(0, WORDS);
        assert!(items.iter().all(|&address| recency.uses(address) == 0));
        assert_eq!(recency.uses(outside), 1);
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
