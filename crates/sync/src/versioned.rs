//! Reads of words that lie between two versions: a writer raises the last word's version before it changes them, and
//! the first word's behind that (Lamport, 1977).

use crate::shim::{AtomicU64, Ordering, fence};

/// Copies words from the first to the last. If then both versions are equal, and the last word is not locked, all words
/// are of that version.
///
/// A word of a version's content is written behind a release fence that follows that version's lock. So who reads such a
/// word, and the last one after it, reads a lock of that version, or of a later one. And who reads the first word's version
/// reads no older content behind it: its writer stored it behind a release fence, too.
///
/// Panics if there are fewer than two words, or not as many in both places.
#[inline]
pub fn load_in_order(words: &[AtomicU64], into: &mut [u64]) {
    let last = words.len() - 1;
    // Acquire: pairs with the fence that puts content before the first word.
    into[0] = words[0].load(Ordering::Acquire);
    for (into, word) in into[1..last].iter_mut().zip(&words[1..last]) {
        // Relaxed: the fence below puts them before the last word.
        *into = word.load(Ordering::Relaxed);
    }
    // Acquire: pairs with the fence that puts the lock before content.
    fence(Ordering::Acquire);
    into[last] = words[last].load(Ordering::Relaxed);
}
