//! The arena: the one array of atomic words in which all items lie.
//!
//! All accesses are relaxed: what a reader loaded counts only after the version check, and what a writer stored is
//! published by the lock or the slot that it stores afterwards.

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use nuthatch_base::memory::shared::SharedView;
use nuthatch_base::memory::{Part, Source};
use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use super::bytes::{copy_out, equal, short};
use super::words::Words;

/// Bytes of a word.
pub const WORD: usize = size_of::<u64>();

/// Where an item, a piece of a value or a gap begins, as an index of a word in the arena: at an address of a size
/// class, or as a record of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

/// Words of a [window](Arena::window): room for the header, the longest key, and the longest value
/// that is copied.
pub const WINDOW: usize = if cfg!(loom) { 8 } else { 1060 };

/// One array of words that holds all items.
pub struct Arena {
    /// Longer than the arena by a window, so that there is a whole window at every address.
    words: Words,
    len: usize,
}

impl Arena {
    /// Reserves `words` words of address space. The memory limit allows the use of the first `used` of them: see
    /// [`Arena::expect`].
    pub fn reserve(words: usize, used: usize) -> io::Result<Self> {
        Self::reserve_in(&Source::Private, words, used)
    }

    /// The same, with memory from `source`.
    pub fn reserve_in(source: &Source, words: usize, used: usize) -> io::Result<Self> {
        let arena = Self {
            words: Words::reserve_to_grow_in(source, words.saturating_add(WINDOW))?,
            len: words,
        };
        arena.expect(used);
        Ok(arena)
    }

    /// An arena that another process made, to load from: see [`Words::view`]. `None` also if it is no arena.
    pub fn view(of: &Arc<SharedView>, part: Part) -> Option<Self> {
        let words = Words::view(of, part)?;
        let len = words.len().checked_sub(WINDOW)?;
        Some(Self { words, len })
    }

    /// Where it lies in the file of its source.
    pub fn part(&self) -> Part {
        self.words.part()
    }

    /// Notes that the memory limit allows the use of the first `words`: a huge page is worth its memory only if they
    /// fill it. With a limit of 3 MiB the second huge page would take 1 MiB beyond it.
    pub fn expect(&self, words: usize) {
        self.words.expect(words.min(self.len));
    }

    /// The words of the arena.
    pub fn words(&self) -> u64 {
        self.len as u64
    }

    /// True if the address lies inside the arena.
    pub fn contains(&self, address: Address) -> bool {
        address.0 < self.len as u64
    }

    /// Backs words with memory ahead of their use.
    pub fn populate(&self, start: usize, len: usize) {
        self.words.populate(start, len);
    }

    /// Gives memory back to the system.
    pub fn release(&self, start: usize, len: usize) {
        self.words.release(start, len);
    }

    /// A pointer to the word at an address, for prefetching.
    #[inline(always)]
    pub fn pointer(&self, address: Address) -> *const AtomicU64 {
        self.words.as_ptr().wrapping_add(address.0 as usize)
    }

    /// Loads word `at` from an address on; 0 beyond the arena.
    #[inline(always)]
    pub fn load(&self, address: Address, at: usize) -> u64 {
        // Wraps, here and below: a torn word of an item may be any address.
        match self.words.get((address.0 as usize).wrapping_add(at)) {
            Some(word) => word.load(Ordering::Relaxed),
            None => 0,
        }
    }

    /// Stores word `at` of memory that the caller owns or has locked.
    #[inline(always)]
    pub fn store(&self, address: Address, at: usize, value: u64) {
        self.words[address.0 as usize + at].store(value, Ordering::Relaxed);
    }

    /// Word `at` from an address on itself, for other operations than loads and stores.
    #[inline(always)]
    pub fn word(&self, address: Address, at: usize) -> &AtomicU64 {
        &self.words[address.0 as usize + at]
    }

    /// The words from an address on, whatever its size is: one bounds check for all words of a small item.
    /// `None` if there is no such address.
    #[inline(always)]
    pub fn window(&self, address: Address) -> Option<&[AtomicU64; WINDOW]> {
        let start = address.0 as usize;
        // SAFETY: there are `len` words and a window behind them, so a whole window begins at each
        // word up to number `len`.
        (start <= self.len).then(|| unsafe {
            self.words
                .get_unchecked(start..)
                .first_chunk()
                .unwrap_unchecked()
        })
    }

    /// True if the bytes from word `at` on are `bytes`; false beyond the arena.
    #[inline(always)]
    pub fn equals(&self, address: Address, at: usize, bytes: &[u8]) -> bool {
        let start = (address.0 as usize).wrapping_add(at);
        // One word more than needed: see `bytes`. The window behind the arena has it.
        match self
            .words
            .get(start..start.wrapping_add(bytes.len().div_ceil(WORD) + 1))
        {
            Some(words) => equal(words, bytes),
            None => false,
        }
    }

    /// Copies `into.len()` bytes that start `offset` bytes behind the address. Returns false, with
    /// `into` filled by zeros, if they would lie beyond the arena: the reader was misled by a
    /// length that is being overwritten.
    #[inline(always)]
    pub fn read(&self, address: Address, offset: usize, into: &mut [MaybeUninit<u8>]) -> bool {
        let start = (address.0 as usize).wrapping_add(offset / WORD);
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

    /// Writes `bytes` from `offset` bytes behind the address on. Bytes before them in the same word
    /// stay; bytes behind them in the same word become zero. The caller owns or has locked the
    /// memory, and the range lies inside it.
    #[inline(always)]
    pub fn write(&self, address: Address, offset: usize, mut bytes: &[u8]) {
        let mut at = offset / WORD;
        let shift = offset % WORD;
        if shift != 0 {
            let (head, tail) = bytes.split_at(bytes.len().min(WORD - shift));
            let kept = self.load(address, at) & ((1 << (8 * shift)) - 1);
            self.store(address, at, kept | short(head) << (8 * shift));
            bytes = tail;
            at += 1;
        }
        let (whole, rest) = bytes.as_chunks::<WORD>();
        let start = address.0 as usize + at;
        for (bytes, word) in whole.iter().zip(&self.words[start..start + whole.len()]) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            self.store(address, at + whole.len(), short(rest));
        }
    }

    /// Copies words of one record to the same places of another, which the caller owns.
    pub fn copy(&self, from: Address, to: Address, words: Range<usize>) {
        let part = |address: Address| {
            let start = address.0 as usize;
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
    pub unsafe fn bytes(&self, address: Address, offset: usize, len: usize) -> &[u8] {
        let add = |a: usize, b: usize| a.checked_add(b).expect("a range of the arena");
        let start = add(address.0 as usize, offset / WORD);
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
        assert!(arena.read(Address(0), offset, &mut into.spare_capacity_mut()[..len]));
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
                arena.write(Address(0), offset, &bytes[..len]);
                assert_eq!(read(&arena, offset, len), bytes[..len]);
                // SAFETY: this test is the only thread.
                let lent = unsafe { arena.bytes(Address(0), offset, len) };
                assert_eq!(lent, &bytes[..len]);
                if offset % WORD == 0 {
                    assert!(arena.equals(Address(0), offset / WORD, &bytes[..len]));
                    assert!(len == 0 || !arena.equals(Address(0), offset / WORD, &bytes[1..=len]));
                }
            }
        }
    }

    #[test]
    fn pieces_join() {
        let arena = Arena::reserve(64, 64).unwrap();
        arena.write(Address(2), 3, b"hello, ");
        arena.write(Address(2), 10, b"wor");
        arena.write(Address(2), 13, b"ld");
        assert_eq!(read(&arena, 16 + 3, 12), b"hello, world");
    }

    #[test]
    fn beyond_the_arena_is_harmless() {
        let arena = Arena::reserve(4, 4).unwrap();
        let mut into = [MaybeUninit::new(1); 16];
        let last = Address((3 + WINDOW) as u64);
        assert!(!arena.read(last, 0, &mut into));
        assert!(!arena.equals(last, 0, b"123456789"));
        assert!(arena.window(last).is_none() && arena.window(Address(u64::MAX)).is_none());
        assert!(arena.window(Address(4)).is_some());
        assert_eq!(arena.load(Address(3), 1), 0);
        // A torn reference may even wrap to the first word: what is read there is zeros, not a fault.
        let torn = Address(u64::MAX);
        assert!(arena.read(torn, 8, &mut into));
        // SAFETY: made initialised.
        assert!(into.iter().all(|byte| unsafe { byte.assume_init() } == 0));
        assert!(!arena.equals(torn, 0, b"123456789"));
        assert_eq!(arena.load(torn, 0), 0);
    }
}
