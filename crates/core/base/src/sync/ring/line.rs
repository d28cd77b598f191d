//! A message line: the unit that moves from one core's cache to the other's.
//!
//! ```text
//!  byte 0        8        16       24       32       40       48       56      64
//!      +--------+--------+--------+--------+--------+--------+--------+--------+
//!      | word 0 | word 1 | word 2 | word 3 | word 4 | word 5 | word 6 | word 7 |
//!      +--------+--------+--------+--------+--------+--------+--------+--------+
//!       0: free           a zero ends a line that is not full
//!       else: full
//!
//!  eight lookups  | L | L | L | L | L | L | L | L |
//!  four inserts   | I   size | I   size | I   size | I   size |
//!  and a rest     | L | I   size | 0 |
//! ```
//!
//! Word 0 is the only index that both sides share: the producer writes it last, and the consumer zeroes it when it has
//! read the rest. So one transfer of the line carries up to eight words and the notice that they are present.
//!
//! Invariants:
//! 1. While word 0 is zero only the producer writes the line, and while it is not, only the
//!    consumer.
//! 2. A word of a message is never zero, so a line holds at least one word and ends at the first
//!    zero.

use crate::sync::ring::Word;
use crate::sync::shim::{AtomicU64, Ordering};

/// Words of a line: 64 bytes. A model's lines hold one message of two words.
pub const WORDS: usize = if cfg!(loom) { 2 } else { 8 };

/// A line's words, private to one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    words: [Option<Word>; WORDS],
    len: usize,
}

impl Line {
    /// The words, in order; at least one if it came out of a ring.
    pub fn words(&self) -> impl Iterator<Item = Word> + '_ {
        self.words[..self.len].iter().copied().flatten()
    }

    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The word at a position, if there is one.
    #[inline(always)]
    pub fn get(&self, position: usize) -> Option<Word> {
        self.words.get(position).copied().flatten()
    }

    #[inline(always)]
    pub(super) fn room(&self) -> usize {
        WORDS - self.len
    }

    /// Appends a word. There must be room.
    #[inline(always)]
    pub(super) fn push(&mut self, word: Word) {
        self.words[self.len] = Some(word);
        self.len += 1;
    }

    /// Empties it.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.words = [None; WORDS];
        self.len = 0;
    }
}

/// A line in shared memory.
#[repr(align(64))]
pub(super) struct SharedLine([AtomicU64; WORDS]);

const _: () = assert!(cfg!(loom) || size_of::<SharedLine>() == 64);

impl SharedLine {
    pub(super) fn free() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Producer: true if it may write. Consumer: true if there is nothing to read.
    #[inline(always)]
    pub(super) fn is_free(&self) -> bool {
        // Acquire: the producer's; pairs with the Release in `take`: the consumer's reads of the
        // old words lie before the producer's writes of the new ones.
        self.0[0].load(Ordering::Acquire) == 0
    }

    /// Producer: fills a free line with at least one word.
    #[inline(always)]
    pub(super) fn publish(&self, line: &Line) {
        let word = |position: usize| line.words[position].map_or(0, Word::get);
        // Relaxed: invariant 1, no other thread looks at them now. A zero behind the last word ends them.
        let end = WORDS.min(line.len + 1);
        for position in 1..end {
            self.0[position].store(word(position), Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `take`: a thread that sees word 0 sees the others, and all that this
        // thread wrote where the words point to.
        self.0[0].store(word(0), Ordering::Release);
    }

    /// Consumer: reads a full line and frees it.
    #[inline(always)]
    pub(super) fn take(&self) -> Option<Line> {
        // Acquire: pairs with the Release in `publish`.
        let first = Word::new(self.0[0].load(Ordering::Acquire))?;
        let mut line = Line::default();
        line.push(first);
        for other in &self.0[1..] {
            // Relaxed: ordered by the load of word 0.
            let Some(word) = Word::new(other.load(Ordering::Relaxed)) else {
                break;
            };
            line.push(word);
        }
        // Release: pairs with the Acquire in `is_free`. For answers, whose slots the producer does not check, the next
        // message line orders it (`array`, invariant 3).
        self.0[0].store(0, Ordering::Release);
        Some(line)
    }
}
