//! CLOCK (MemC3 section 4): one recency bit an item, one hand a class.
//!
//! A hit sets the item's bit, and only writes when it is clear. The hand clears set bits as it
//! passes and stops at the first clear one. Where *not* to use it: one-pass scans of more items
//! than fit push everything else out.
//!
//! Bits are found from the chunk's address alone: one bit for each [`GRANULE`] of the arena, so a
//! hit needs to know neither the page nor the class. They are hints: a late reader may set the bit
//! of a chunk that has another item by now, which costs nothing but a little precision.

use nuthatch_sync::shim::{AtomicU64, Ordering};

use super::{Policy, Victim};
use crate::slab::Store;
use crate::slab::arena::{Chunk, WORD};
use crate::slab::sizes::CHUNK_MIN;
use crate::slab::words::Words;

/// CLOCK as a policy: all that it knows are the store's recency bits and the classes' hands.
#[derive(Clone, Copy, Debug)]
pub struct Clock;

impl Policy for Clock {
    fn victim(&self, store: &Store, class: usize) -> Option<Victim> {
        let chunk = store.victim(class)?;
        Some(Victim { chunk, class })
    }
}

/// Words of the arena that one bit stands for: no chunk is smaller.
const GRANULE: u64 = (CHUNK_MIN / WORD) as u64;

/// Recency of all chunks of an arena, and whether they were ever fetched.
pub struct Recency {
    recent: Words,
    fetched: Words,
}

impl Recency {
    /// Bytes of bits for so many words of arena.
    pub fn bytes_for(arena_words: usize) -> usize {
        2 * arena_words.div_ceil(64 * GRANULE as usize) * WORD
    }

    /// All bits clear.
    pub fn reserve(arena_words: usize) -> std::io::Result<Self> {
        // A bit for each granule, and one for the arena's end.
        let words = arena_words / (64 * GRANULE as usize) + 1;
        Ok(Self {
            recent: Words::reserve(words)?,
            fetched: Words::reserve(words)?,
        })
    }

    /// A get hit the chunk's item.
    #[inline(always)]
    pub fn hit(&self, chunk: Chunk) {
        assert!(place(chunk).0 < self.recent.len());
        // SAFETY: asserted.
        unsafe { self.hit_within(chunk) }
    }

    /// The same without a look at the bounds: gets alone are 3 % faster.
    ///
    /// # Safety
    /// The chunk begins in the arena that these bits were reserved for, or at its end.
    #[inline(always)]
    pub unsafe fn hit_within(&self, chunk: Chunk) {
        let granule = chunk.0 / GRANULE;
        // SAFETY: `reserve` made a bit for each granule of the arena and for its end, and the chunk is there (the
        // caller's promise).
        let word = unsafe { self.recent.get_unchecked((granule / 64) as usize) };
        // The shift takes of the granule's number what is its place in the word.
        if word.load(Ordering::Relaxed).wrapping_shr(granule as u32) & 1 == 0 {
            self.mark(chunk);
        }
    }

    /// Sets an item's bits.
    #[cold]
    fn mark(&self, chunk: Chunk) {
        let (word, bit) = place(chunk);
        // A load and a store, not one atomic operation, which would be a full barrier: no later
        // get could start before this one's last miss. Two threads that set bits of one word at
        // the same moment may lose one, or bring one back that the hand has just cleared: an
        // item is evicted a round earlier or later.
        for words in [&self.recent, &self.fetched] {
            let bits = words[word].load(Ordering::Relaxed);
            words[word].store(bits | 1 << bit, Ordering::Relaxed);
        }
    }

    /// A new item lies in the chunk: not yet fetched, and the hand has just passed it.
    #[inline]
    pub fn start(&self, chunk: Chunk) {
        let (word, bit) = place(chunk);
        for words in [&self.recent, &self.fetched] {
            if words[word].load(Ordering::Relaxed) >> bit & 1 != 0 {
                words[word].fetch_and(!(1 << bit), Ordering::Relaxed);
            }
        }
    }

    /// The item moved from one chunk to another because it was rewritten: its history goes along.
    pub fn carry(&self, from: Chunk, to: Chunk) {
        self.start(to);
        let ((source, source_bit), (target, target_bit)) = (place(from), place(to));
        for words in [&self.recent, &self.fetched] {
            if words[source].load(Ordering::Relaxed) >> source_bit & 1 != 0 {
                words[target].fetch_or(1 << target_bit, Ordering::Relaxed);
            }
        }
    }

    /// The hand passes: true if the chunk was used since it last came by.
    #[inline]
    pub fn pass(&self, chunk: Chunk) -> bool {
        let (word, bit) = place(chunk);
        let recent = self.recent[word].load(Ordering::Relaxed) >> bit & 1 != 0;
        if recent {
            self.recent[word].fetch_and(!(1 << bit), Ordering::Relaxed);
        }
        recent
    }

    /// How many chunks of a page of so many words were used since the hand passed them, or since
    /// [`Recency::pass_page`].
    pub fn used_in(&self, page: u32, page_words: usize) -> u32 {
        let used = |(word, mask): (usize, u64)| {
            let bits = self.recent[word].load(Ordering::Relaxed) & mask;
            bits.count_ones()
        };
        of_page(page, page_words).map(used).sum()
    }

    /// Clears the bits of a whole page.
    pub fn pass_page(&self, page: u32, page_words: usize) {
        for (word, mask) in of_page(page, page_words) {
            if self.recent[word].load(Ordering::Relaxed) & mask != 0 {
                self.recent[word].fetch_and(!mask, Ordering::Relaxed);
            }
        }
    }

    /// True if a get has hit the chunk's item.
    #[inline]
    pub fn was_fetched(&self, chunk: Chunk) -> bool {
        let (word, bit) = place(chunk);
        self.fetched[word].load(Ordering::Relaxed) >> bit & 1 != 0
    }

    /// Where the chunk's bit lies, for prefetching.
    #[inline(always)]
    pub fn address(&self, chunk: Chunk) -> *const AtomicU64 {
        self.recent.as_ptr().wrapping_add(place(chunk).0)
    }
}

/// The words that have a page's bits, and a mask of these bits. (Models have small pages, which share a word.)
fn of_page(page: u32, page_words: usize) -> impl Iterator<Item = (usize, u64)> {
    let bits = page_words as u64 / GRANULE;
    let first = u64::from(page) * bits;
    let mask = u64::MAX >> 64_u64.saturating_sub(bits) << (first % 64);
    (first / 64..(first + bits).div_ceil(64)).map(move |word| (word as usize, mask))
}

/// The word of a chunk's bit, and its number there.
#[inline(always)]
fn place(chunk: Chunk) -> (usize, u64) {
    let granule = chunk.0 / GRANULE;
    ((granule / 64) as usize, granule % 64)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_hit_gives_a_second_chance_once() {
        let recency = Recency::reserve(1 << 16).unwrap();
        let (one, other) = (Chunk(400), Chunk(404));
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
    fn a_page_is_looked_at_as_a_whole() {
        const WORDS: usize = 1 << 17;
        let recency = Recency::reserve(3 * WORDS).unwrap();
        let page = WORDS as u64;
        let inside = [page, page + 4, page + 1000, 2 * page - 4].map(Chunk);
        let outside = [page - 4, 2 * page].map(Chunk);
        for chunk in inside.into_iter().chain(outside) {
            recency.hit(chunk);
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
        assert!(outside.into_iter().all(|chunk| recency.pass(chunk)));
    }
}
