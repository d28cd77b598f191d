//! Reads of words that lie between two versions: a writer raises the last word's version before it changes the words,
//! and the first word's version after that (Lamport, 1977). While they differ, the words are locked.

use crate::sync::shim::{AtomicU64, Ordering, fence};

/// Copies words from the first to the last. If then both versions are equal, all words are of that version.
///
/// A writer stores a word of a version's content after a release fence, which follows the lock of that version. So a
/// reader that reads such a word, and the last one after it, reads a lock of that version, or of a later one. And a
/// reader that reads the first word's version reads no older content after it: the writer stored that version after a
/// release fence, too.
///
/// Panics if there are fewer than two words, or if the two places have different lengths.
#[inline]
pub fn load_in_order(words: &[AtomicU64], into: &mut [u64]) {
    let last = words.len() - 1;
    // Acquire: pairs with the fence that orders content before the first word.
    into[0] = words[0].load(Ordering::Acquire);
    for (into, word) in into[1..last].iter_mut().zip(&words[1..last]) {
        // Relaxed: the fence below orders them before the last word.
        *into = word.load(Ordering::Relaxed);
    }
    // Acquire: pairs with the fence that orders the lock before content.
    fence(Ordering::Acquire);
    into[last] = words[last].load(Ordering::Relaxed);
}
