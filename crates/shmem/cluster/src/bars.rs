//! Expiration bars: for each size class of a server the oldest epoch in which it lists a pair. Pairs of the class that
//! were last used before it are gone.
//!
//! Each class has a bar of its own. A class evicts only when it needs memory itself, so one that has enough may keep
//! pairs that nobody uses for ever.
//!
//! The server puts the bars to each client beside its statistics. They are hints: they may be late, and of two moments.
//! A client that drops a good pointer by a bar looks in the bucket instead.
//!
//! ```text
//!  word n   63..32 bar of class 2n + 1   31..0 bar of class 2n
//! ```

use std::sync::atomic::Ordering;

use nuthatch_fabric::Word;

/// The number of words of a server's bars.
pub const WORDS: usize = 40;

/// Classes that have a bar. Pages with more classes are larger than a gigabyte.
const CLASSES: usize = 2 * WORDS;

/// A server's bars, as it put them last.
#[derive(Clone, Copy, Debug)]
pub struct Bars<'w>(&'w [Word]);

impl<'w> Bars<'w> {
    /// No class has one.
    pub const NONE: Self = Self(&[]);

    /// Those in some words.
    #[inline]
    pub fn new(words: &'w [Word]) -> Self {
        Self(words)
    }

    /// A class's; 0 if it has none.
    #[inline]
    pub fn of(self, class: usize) -> u32 {
        // Relaxed: a hint.
        let two = self.0.get(class / 2).map(|two| two.load(Ordering::Relaxed));
        (two.unwrap_or(0) >> (class % 2 * 32)) as u32
    }

    /// Stores the classes' bars, in order.
    pub fn lay(self, bars: impl Iterator<Item = u32>) {
        let bars: Vec<_> = bars.take(CLASSES).collect();
        for (word, two) in self.0.iter().zip(bars.chunks(2)) {
            let high = two.get(1).copied().unwrap_or(0);
            // Relaxed: the fabric reads the words when it is called, or later, and then they are younger.
            word.store(u64::from(high) << 32 | u64::from(two[0]), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_own() {
        let words = [const { Word::new(0) }; WORDS];
        let bars = Bars::new(&words);
        bars.lay((1..=3).chain([u32::MAX]).chain(5..200));
        let all = [1, 2, 3, u32::MAX, 5].into_iter().chain(6..=80);
        assert!(all.eq((0..CLASSES).map(|class| bars.of(class))));
        assert_eq!([80, 1000].map(|class| bars.of(class)), [0; 2]);
    }
}
