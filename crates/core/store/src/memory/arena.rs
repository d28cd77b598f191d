//! The arena: the one array of atomic words in which all items lie.
//!
//! All accesses are relaxed: what a reader loaded counts only after the version check, and what a writer stored is
//! published by the lock or the slot that it stores afterwards.

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;

use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use super::bytes::{copy_out, equal, short};
use super::words::Words;

/// Bytes of a word.
pub const WORD: usize = size_of::<u64>();

/// The start of a chunk, as an index of a word in the arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Chunk(pub u64);

/// Words of a [window](Arena::window): room for the header, the longest key, and the longest value
/// that is copied.
pub const WINDOW: usize = if cfg!(loom) { 8 } else { 1060 };

/// One array of words that holds all items.
pub struct Arena {
    /// Longer than the arena by a window, so that there is a whole window at every chunk.
    words: Words,
    len: usize,
}

impl Arena {
    /// Reserves `words` words of address space. The memory limit allows the use of the first `used` of them: see
    /// [`Arena::expect`].
    pub fn reserve(words: usize, used: usize) -> io::Result<Self> {
        let arena = Self {
            words: Words::reserve_to_grow(words.saturating_add(WINDOW))?,
            len: words,
        };
        arena.expect(used);
        Ok(arena)
    }

    /// Notes that the memory limit allows the use of the first `words`: a huge page is worth its memory only if they
    /// fill it. With a limit of 3 MiB the second huge page would take 1 MiB beyond it.
    pub fn expect(&self, words: usize) {
        self.words.expect(words.min(self.len));
    }

    /// The words of the arena.
    #[cfg(test)]
    pub fn words(&self) -> u64 {
        self.len as u64
    }

    /// True if the chunk begins inside the arena.
    pub fn contains(&self, chunk: Chunk) -> bool {
        chunk.0 < self.len as u64
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
        // Wraps, here and below: a torn word of an item may refer to any chunk.
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

    /// Word `at` of a chunk itself, for other operations than loads and stores.
    #[inline(always)]
    pub fn word(&self, chunk: Chunk, at: usize) -> &AtomicU64 {
        &self.words[chunk.0 as usize + at]
    }

    /// The words from the start of a chunk on, whatever its size is: one bounds check for all words of a small item.
    /// `None` if there is no such chunk.
    #[inline(always)]
    pub fn window(&self, chunk: Chunk) -> Option<&[AtomicU64; WINDOW]> {
        let start = chunk.0 as usize;
        // SAFETY: there are `len` words and a window behind them, so a whole window begins at each
        // word up to number `len`.
        (start <= self.len).then(|| unsafe {
            self.words
                .get_unchecked(start..)
                .first_chunk()
                .unwrap_unchecked()
        })
    }

    /// True if the bytes from word `at` of the chunk on are `bytes`; false beyond the arena.
    #[inline(always)]
    pub fn equals(&self, chunk: Chunk, at: usize, bytes: &[u8]) -> bool {
        let start = (chunk.0 as usize).wrapping_add(at);
        // One word more than needed: see `bytes`. The window behind the arena has it.
        match self
            .words
            .get(start..start.wrapping_add(bytes.len().div_ceil(WORD) + 1))
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
            .get(start..start.wrapping_add((shift + into.len()).div_ceil(WORD) + 1))
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
            self.store(chunk, at, kept | short(head) << (8 * shift));
            bytes = tail;
            at += 1;
        }
        let (whole, rest) = bytes.as_chunks::<WORD>();
        let start = chunk.0 as usize + at;
        for (bytes, word) in whole.iter().zip(&self.words[start..start + whole.len()]) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            self.store(chunk, at + whole.len(), short(rest));
        }
    }

    /// Copies words of one record to the same places of another, which the caller owns.
    pub fn copy(&self, from: Chunk, to: Chunk, words: Range<usize>) {
        let part = |chunk: Chunk| {
            let start = chunk.0 as usize;
            &self.words[start + words.start..start + words.end]
        };
        for (source, target) in part(from).iter().zip(part(to)) {
            target.store(source.load(Ordering::Relaxed), Ordering::Relaxed);
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
        let add = |a: usize, b: usize| a.checked_add(b).expect("a range of the arena");
        let start = add(chunk.0 as usize, offset / WORD);
        let count = add(offset % WORD, len).div_ceil(WORD);
        let words = &self.words[start..add(start, count)];
        // SAFETY: the slice above proves that the range is inside the arena; words are plain
        // initialised memory; the caller promises that nobody writes. On a big-endian machine
        // the bytes of a word would be reversed: nuthatch-base refuses to be built there.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>().add(offset % WORD), len) }
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
        let arena = Arena::reserve(64, 64).unwrap();
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
        let arena = Arena::reserve(64, 64).unwrap();
        arena.write(Chunk(2), 3, b"hello, ");
        arena.write(Chunk(2), 10, b"wor");
        arena.write(Chunk(2), 13, b"ld");
        assert_eq!(read(&arena, 16 + 3, 12), b"hello, world");
    }

    #[test]
    fn beyond_the_arena_is_harmless() {
        let arena = Arena::reserve(4, 4).unwrap();
        let mut into = [MaybeUninit::new(1); 16];
        let last = Chunk((3 + WINDOW) as u64);
        assert!(!arena.read(last, 0, &mut into));
        assert!(!arena.equals(last, 0, b"123456789"));
        assert!(arena.window(last).is_none() && arena.window(Chunk(u64::MAX)).is_none());
        assert!(arena.window(Chunk(4)).is_some());
        assert_eq!(arena.load(Chunk(3), 1), 0);
        // A torn reference may even wrap to the first word: what is read there is zeros, not a fault.
        let torn = Chunk(u64::MAX);
        assert!(arena.read(torn, 8, &mut into));
        // SAFETY: made initialised.
        assert!(into.iter().all(|byte| unsafe { byte.assume_init() } == 0));
        assert!(!arena.equals(torn, 0, b"123456789"));
        assert_eq!(arena.load(torn, 0), 0);
    }
}
