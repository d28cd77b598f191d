//! Bytes in atomic words: how keys and values are laid into the arena and read back.
//!
//! All accesses are relaxed: what a reader saw counts only after the version check, and what a
//! writer wrote is published by the lock or the slot it stores afterwards.

use std::io;
use std::mem::MaybeUninit;

use nuthatch_sync::shim::{AtomicU64, Ordering};

use super::words::Words;

/// Bytes of a word.
pub const WORD: usize = size_of::<u64>();

/// The start of a chunk, as an index of a word in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Chunk(pub u64);

/// One array of words that holds all items.
pub struct Arena {
    words: Words,
}

impl Arena {
    /// Reserves `words` words of address space.
    pub fn reserve(words: usize) -> io::Result<Self> {
        Ok(Self {
            words: Words::reserve(words)?,
        })
    }

    /// True if the chunk begins inside the arena.
    pub fn contains(&self, chunk: Chunk) -> bool {
        chunk.0 < self.words.len() as u64
    }

    /// Backs words with memory ahead of their use.
    pub fn populate(&self, start: usize, len: usize) {
        self.words.populate(start, len);
    }

    /// Gives memory back to the system.
    pub fn release(&self, start: usize, len: usize) {
        self.words.release(start, len);
    }

    /// The address of a chunk, for prefetching.
    #[inline(always)]
    pub fn address(&self, chunk: Chunk) -> *const AtomicU64 {
        self.words.as_ptr().wrapping_add(chunk.0 as usize)
    }

    /// Loads word `at` of a chunk; 0 beyond the arena.
    #[inline(always)]
    pub fn load(&self, chunk: Chunk, at: usize) -> u64 {
        // Wraps, here and below: a torn word of an item may name any chunk.
        match self.words.get((chunk.0 as usize).wrapping_add(at)) {
            Some(word) => word.load(Ordering::Relaxed),
            None => 0,
        }
    }

    /// Stores word `at` of a chunk that the caller owns or has locked.
    #[inline(always)]
    pub fn store(&self, chunk: Chunk, at: usize, value: u64) {
        self.words[chunk.0 as usize + at].store(value, Ordering::Relaxed);
    }

    /// `len` words of a chunk, unless they lie beyond the arena.
    #[inline(always)]
    pub fn words(&self, chunk: Chunk, len: usize) -> Option<&[AtomicU64]> {
        let start = chunk.0 as usize;
        self.words.get(start..start.wrapping_add(len))
    }

    /// True if the bytes from word `at` of the chunk on are `bytes`; false beyond the arena.
    #[inline(always)]
    pub fn equals(&self, chunk: Chunk, at: usize, bytes: &[u8]) -> bool {
        let start = (chunk.0 as usize).wrapping_add(at);
        match self
            .words
            .get(start..start.wrapping_add(bytes.len().div_ceil(WORD)))
        {
            Some(words) => equal(words, bytes),
            None => false,
        }
    }

    /// Copies `into.len()` bytes that start `offset` bytes into the chunk. Returns false, with
    /// `into` filled by zeros, if they would lie beyond the arena: the reader was misled by a
    /// length that is being overwritten.
    #[inline(always)]
    pub fn read(&self, chunk: Chunk, offset: usize, into: &mut [MaybeUninit<u8>]) -> bool {
        let start = (chunk.0 as usize).wrapping_add(offset / WORD);
        let shift = offset % WORD;
        let Some(words) = self
            .words
            .get(start..start.wrapping_add((shift + into.len()).div_ceil(WORD)))
        else {
            into.fill(MaybeUninit::new(0));
            return false;
        };
        copy_out(words, shift, into);
        true
    }

    /// Writes `bytes` from `offset` bytes into the chunk on. Bytes before them in the same word
    /// stay; bytes behind them in the same word become zero. The caller owns or has locked the
    /// chunk, and the range lies inside it.
    #[inline(always)]
    pub fn write(&self, chunk: Chunk, offset: usize, mut bytes: &[u8]) {
        let mut at = offset / WORD;
        let shift = offset % WORD;
        if shift != 0 {
            let (head, tail) = bytes.split_at(bytes.len().min(WORD - shift));
            let kept = self.load(chunk, at) & ((1 << (8 * shift)) - 1);
            self.store(chunk, at, kept | partial(head) << (8 * shift));
            bytes = tail;
            at += 1;
        }
        let (whole, rest) = bytes.as_chunks::<WORD>();
        let start = chunk.0 as usize + at;
        for (bytes, word) in whole.iter().zip(&self.words[start..start + whole.len()]) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            self.store(chunk, at + whole.len(), partial(rest));
        }
    }

    /// The bytes themselves.
    ///
    /// # Safety
    /// Until the returned slice is dropped nothing may write these words: the caller has pinned the
    /// item, and pinned items are neither changed nor reused. Other threads' atomic loads do no
    /// harm.
    #[cfg(not(loom))]
    pub unsafe fn bytes(&self, chunk: Chunk, offset: usize, len: usize) -> &[u8] {
        let start = chunk.0 as usize + offset / WORD;
        let words = &self.words[start..start + (offset % WORD + len).div_ceil(WORD)];
        // SAFETY: the slice above proves that the range is inside the arena; words are plain
        // initialised memory; the caller promises that nobody writes. On a big-endian machine
        // the bytes of a word would be reversed, which the assertion below refuses at build time.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>().add(offset % WORD), len) }
    }
}

#[cfg(target_endian = "big")]
compile_error!("values are handed out in place, which needs a little-endian machine");

/// True if the words begin with these bytes; there are words for all of them.
#[inline(always)]
pub fn equal(words: &[AtomicU64], bytes: &[u8]) -> bool {
    let (whole, rest) = bytes.as_chunks::<WORD>();
    let (words, last) = words.split_at(whole.len());
    // All words are compared before the one branch: keys differ seldom, once their tags agree.
    let mut differing = 0;
    let (pairs, single) = whole.as_chunks::<2>();
    let (word_pairs, word_single) = words.as_chunks::<2>();
    for (bytes, words) in pairs.iter().zip(word_pairs) {
        differing |= differs(&bytes[0], &words[0]) | differs(&bytes[1], &words[1]);
    }
    if let (Some(bytes), Some(word)) = (single.first(), word_single.first()) {
        differing |= differs(bytes, word);
    }
    if !rest.is_empty() {
        let mask = (1 << (8 * rest.len())) - 1;
        differing |= last[0].load(Ordering::Relaxed) & mask ^ partial(rest);
    }
    differing == 0
}

/// Fills `into` with the bytes that start `shift` bytes, less than a word, into the words; there are
/// words for all of them.
#[inline(always)]
pub fn copy_out(words: &[AtomicU64], shift: usize, into: &mut [MaybeUninit<u8>]) {
    if shift == 0 {
        copy_aligned(words, into);
    } else {
        copy_shifted(words, shift, into);
    }
}

#[inline(always)]
fn differs(bytes: &[u8; WORD], word: &AtomicU64) -> u64 {
    u64::from_le_bytes(*bytes) ^ word.load(Ordering::Relaxed)
}

/// Up to 7 bytes as the low end of a word.
#[inline(always)]
fn partial(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[inline(always)]
fn put(into: &mut [MaybeUninit<u8>], word: u64) {
    let len = into.len();
    into.write_copy_of_slice(&word.to_le_bytes()[..len]);
}

#[inline(always)]
fn copy_aligned(words: &[AtomicU64], into: &mut [MaybeUninit<u8>]) {
    // Four words a turn: the usual small value takes one or two.
    const TURN: usize = 4;
    let (turns, rest) = into.as_chunks_mut::<{ TURN * WORD }>();
    let (word_turns, words) = words.split_at(turns.len() * TURN);
    for (into, words) in turns.iter_mut().zip(word_turns.as_chunks::<TURN>().0) {
        for index in 0..TURN {
            put(
                &mut into[index * WORD..][..WORD],
                words[index].load(Ordering::Relaxed),
            );
        }
    }
    for (into, word) in rest.chunks_mut(WORD).zip(words) {
        put(into, word.load(Ordering::Relaxed));
    }
}

#[inline(always)]
fn copy_shifted(words: &[AtomicU64], shift: usize, into: &mut [MaybeUninit<u8>]) {
    let (down, up) = (8 * shift as u32, 64 - 8 * shift as u32);
    let Some((first, words)) = words.split_first() else {
        return;
    };
    let mut low = first.load(Ordering::Relaxed) >> down;
    let mut words = words.iter();
    for into in into.chunks_mut(WORD) {
        // The last word is there only if its bytes are wanted.
        let next = words.next().map_or(0, |word| word.load(Ordering::Relaxed));
        put(into, low | next << up);
        low = next >> down;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn read(arena: &Arena, offset: usize, len: usize) -> Vec<u8> {
        let mut into = Vec::with_capacity(len);
        assert!(arena.read(Chunk(0), offset, &mut into.spare_capacity_mut()[..len]));
        // SAFETY: `read` fills all of the slice.
        unsafe { into.set_len(len) };
        into
    }

    #[test]
    fn every_alignment_and_length_comes_back() {
        let arena = Arena::reserve(64).unwrap();
        let bytes: Vec<u8> = (1..=100).collect();
        for offset in 0..24 {
            for len in 0..60 {
                arena.write(Chunk(0), offset, &bytes[..len]);
                assert_eq!(read(&arena, offset, len), bytes[..len]);
                // SAFETY: this test is the only thread.
                assert_eq!(unsafe { arena.bytes(Chunk(0), offset, len) }, &bytes[..len]);
                if offset % WORD == 0 {
                    assert!(arena.equals(Chunk(0), offset / WORD, &bytes[..len]));
                    assert!(len == 0 || !arena.equals(Chunk(0), offset / WORD, &bytes[1..=len]));
                }
            }
        }
    }

    #[test]
    fn pieces_join() {
        let arena = Arena::reserve(64).unwrap();
        arena.write(Chunk(2), 3, b"hello, ");
        arena.write(Chunk(2), 10, b"wor");
        arena.write(Chunk(2), 13, b"ld");
        assert_eq!(read(&arena, 16 + 3, 12), b"hello, world");
    }

    #[test]
    fn beyond_the_arena_is_harmless() {
        let arena = Arena::reserve(4).unwrap();
        let mut into = [MaybeUninit::new(1); 16];
        assert!(!arena.read(Chunk(3), 0, &mut into));
        assert!(!arena.equals(Chunk(3), 0, b"123456789"));
        assert_eq!(arena.load(Chunk(3), 1), 0);
        let torn = Chunk(u64::MAX);
        assert!(!arena.read(torn, 8, &mut [MaybeUninit::new(1); 60]));
        assert!(!arena.equals(torn, 0, b"123456789"));
        assert_eq!(arena.load(torn, 0), 0);
    }
}
