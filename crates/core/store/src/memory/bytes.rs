//! Bytes in atomic words: comparing them, and copying them out.
//!
//! Every access here stands for relaxed loads of whole words: what a reader saw counts only after the
//! version check. Lengths and positions that are no multiple of a word cost no call and no loop over
//! bytes: the last load overlaps the one before it.

use std::mem::MaybeUninit;

use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use super::arena::WORD;

/// Bytes behind the requested ones that may be loaded, but are not used.
const SLACK: usize = WORD;

/// True if the words begin with these bytes. Panics if there are not enough words for all of them and one word more.
#[inline(always)]
pub fn equal(words: &[AtomicU64], bytes: &[u8]) -> bool {
    assert!(bytes.len() + SLACK <= size_of_val(words));
    let word = |number: usize| words[number].load(Ordering::Relaxed);
    let Some(last) = bytes.last_chunk() else {
        let used = (1 << (8 * bytes.len())) - 1;
        return word(0) & used == short(bytes);
    };
    // SAFETY: the load lies in the first `bytes.len()` bytes, which are there, as asserted.
    let end = unsafe { load::word(words, bytes.len() - WORD) };
    // All words are compared before the one branch: keys differ seldom, once their tags agree.
    let mut differing = end ^ u64::from_le_bytes(*last);
    if bytes.len() <= 2 * WORD {
        // The common length, without a loop.
        let first = bytes.first_chunk().expect("not short");
        return differing | (word(0) ^ u64::from_le_bytes(*first)) == 0;
    }
    for (number, part) in bytes[..bytes.len() - 1].as_chunks().0.iter().enumerate() {
        differing |= word(number) ^ u64::from_le_bytes(*part);
    }
    differing == 0
}

/// Fills `into` with the bytes that start `from` bytes into the words. Panics if there are not enough words for all of
/// them and one word more.
#[inline(always)]
pub fn copy_out(words: &[AtomicU64], from: usize, into: &mut [MaybeUninit<u8>]) {
    let len = into.len();
    assert!(from <= size_of_val(words) && len + SLACK <= size_of_val(words) - from);
    // SAFETY: every load below lies between `from` and `from + len + SLACK`, as asserted.
    let word = |at: usize| unsafe { load::word(words, from + at) };
    // SAFETY: as above.
    let pair = |at: usize| unsafe { load::pair(words, from + at) };
    if (2 * WORD..=4 * WORD).contains(&len) {
        // A common length, without a loop.
        put(into, 0, pair(0));
        put(into, len - 2 * WORD, pair(len - 2 * WORD));
    } else if len >= 2 * WORD {
        let mut at = 0;
        while at < len - 2 * WORD {
            put(into, at, pair(at));
            at += 2 * WORD;
        }
        put(into, len - 2 * WORD, pair(len - 2 * WORD));
    } else if len >= WORD {
        put(into, 0, word(0).to_le_bytes());
        put(into, len - WORD, word(len - WORD).to_le_bytes());
    } else {
        put_short(into, word(0));
    }
}

/// Bytes that have been initialised. (`assume_init_ref` is newer than the oldest supported compiler.)
///
/// # Safety
/// All of them are initialised.
#[inline(always)]
pub unsafe fn assume_init(bytes: &[MaybeUninit<u8>]) -> &[u8] {
    // SAFETY: the same bytes, initialised by the caller's promise.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

#[inline(always)]
fn put<const N: usize>(into: &mut [MaybeUninit<u8>], at: usize, bytes: [u8; N]) {
    into[at..at + N].copy_from_slice(&bytes.map(MaybeUninit::new));
}

/// Stores the lowest bytes of a word, fewer than 8.
#[inline(always)]
fn put_short(into: &mut [MaybeUninit<u8>], word: u64) {
    let len = into.len();
    if len >= 4 {
        put(into, 0, (word as u32).to_le_bytes());
        put(
            into,
            len - 4,
            ((word >> (8 * (len - 4))) as u32).to_le_bytes(),
        );
    } else if len > 0 {
        put(into, 0, [word as u8]);
        put(into, len / 2, [(word >> (8 * (len / 2))) as u8]);
        put(into, len - 1, [(word >> (8 * (len - 1))) as u8]);
    }
}

/// Fewer than 8 bytes as the low end of a word.
#[inline(always)]
pub fn short(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
        u64::from(head) | u64::from(tail) << (8 * (len - 4))
    } else if let (Some(head), Some(tail)) = (bytes.first(), bytes.last()) {
        let middle = u64::from(bytes[len / 2]) << (8 * (len / 2));
        u64::from(*head) | middle | u64::from(*tail) << (8 * (len - 1))
    } else {
        0
    }
}

/// Loads from any byte on, in one instruction.
///
/// The `asm!` blocks stand for one relaxed load of each word that they touch, of which some bytes are
/// then used: every x86-64 loads the part of an aligned quadword that a wider or an unaligned load
/// covers whole, and the compiler can neither split, repeat nor move them.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
mod load {
    use std::arch::asm;

    use super::*;

    /// The 8 bytes from byte `at` on, the first one lowest.
    ///
    /// # Safety
    /// They lie in `words`.
    #[inline(always)]
    pub unsafe fn word(words: &[AtomicU64], at: usize) -> u64 {
        let value;
        // SAFETY: reads 8 bytes of `words` (the caller's promise), writes the named register.
        unsafe {
            asm!(
                "mov {value}, [{from}]",
                value = lateout(reg) value,
                from = in(reg) words.as_ptr().byte_add(at),
                options(nostack, readonly, preserves_flags)
            );
        }
        value
    }

    /// The 16 bytes from byte `at` on.
    ///
    /// # Safety
    /// They lie in `words`.
    #[inline(always)]
    pub unsafe fn pair(words: &[AtomicU64], at: usize) -> [u8; 2 * WORD] {
        let value: std::arch::x86_64::__m128i;
        // SAFETY: reads 16 bytes of `words` (the caller's promise), writes the named register.
        unsafe {
            asm!(
                "movups {value}, [{from}]",
                value = lateout(xmm_reg) value,
                from = in(reg) words.as_ptr().byte_add(at),
                options(nostack, readonly, preserves_flags)
            );
        }
        // SAFETY: both are 16 bytes for which every pattern is valid.
        unsafe { std::mem::transmute(value) }
    }
}

/// Loads from any byte on, put together from aligned words: for other machines, and for checkers that do not model
/// `asm!`.
#[cfg(not(all(target_arch = "x86_64", not(any(loom, miri, tsan)))))]
mod load {
    use super::*;

    /// The 8 bytes from byte `at` on, the first one lowest.
    ///
    /// # Safety
    /// None here: this one looks at its bounds. It is declared like the other one.
    #[inline(always)]
    pub unsafe fn word(words: &[AtomicU64], at: usize) -> u64 {
        let (index, shift) = (at / WORD, 8 * (at % WORD) as u32);
        let low = words[index].load(Ordering::Relaxed);
        if shift == 0 {
            return low;
        }
        low >> shift | words[index + 1].load(Ordering::Relaxed) << (64 - shift)
    }

    /// The 16 bytes from byte `at` on.
    ///
    /// # Safety
    /// As for [`word`].
    #[inline(always)]
    pub unsafe fn pair(words: &[AtomicU64], at: usize) -> [u8; 2 * WORD] {
        let mut bytes = [0; 2 * WORD];
        let (low, high) = bytes.split_at_mut(WORD);
        // SAFETY: see `word`.
        unsafe {
            low.copy_from_slice(&word(words, at).to_le_bytes());
            high.copy_from_slice(&word(words, at + WORD).to_le_bytes());
        }
        bytes
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn words(bytes: &[u8]) -> Vec<AtomicU64> {
        let words = bytes.as_chunks().0.iter();
        words
            .map(|word| AtomicU64::new(u64::from_le_bytes(*word)))
            .collect()
    }

    #[test]
    fn short_words_have_every_byte_in_its_place() {
        let bytes = [1_u8, 2, 3, 4, 5, 6, 7];
        for len in 0..WORD {
            let mut word = [0; WORD];
            word[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(short(&bytes[..len]), u64::from_le_bytes(word));
        }
    }

    #[test]
    fn every_byte_is_copied_and_none_behind_it() {
        let laid: Vec<u8> = (1..=96).collect();
        let words = words(&laid);
        for from in 0..20 {
            for len in 0..=68 {
                let mut into = [MaybeUninit::new(0xee); 70];
                copy_out(&words, from, &mut into[..len]);
                // SAFETY: made initialised.
                let into = into.map(|byte| unsafe { byte.assume_init() });
                assert_eq!(into[..len], laid[from..from + len]);
                assert!(into[len..].iter().all(|&byte| byte == 0xee));
            }
        }
    }

    #[test]
    fn every_byte_counts_in_a_comparison_and_none_behind_it() {
        for len in 1..40 {
            let bytes: Vec<u8> = (1..=len).collect();
            let mut laid = bytes.clone();
            laid.resize(48, 0xaa);
            assert!(equal(&words(&laid), &bytes));
            for at in 0..usize::from(len) {
                laid[at] ^= 0x80;
                assert!(!equal(&words(&laid), &bytes), "byte {at} of {len}");
                laid[at] ^= 0x80;
            }
        }
    }
}
