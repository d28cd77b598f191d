//! Words of a line, eight bytes at a step: the scan of a multi-get is the parser's hot loop.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Words behind a command's name, split at spaces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words<'a>(pub &'a [u8]);

impl<'a> Words<'a> {
    /// The words, in order, none of them empty.
    #[inline]
    pub fn iter(&self) -> WordIter<'a> {
        WordIter { rest: self.0 }
    }

    /// The words as an array, empty behind the last, with their number; `None` if they do not fit.
    #[inline]
    pub(crate) fn collect<const N: usize>(&self) -> Option<([&'a [u8]; N], usize)> {
        let mut words = [&[][..]; N];
        let mut count = 0;
        for word in self.iter() {
            *words.get_mut(count)? = word;
            count += 1;
        }
        Some((words, count))
    }
}

impl<'a> IntoIterator for Words<'a> {
    type Item = &'a [u8];
    type IntoIter = WordIter<'a>;

    fn into_iter(self) -> WordIter<'a> {
        self.iter()
    }
}

/// Walks through [`Words`].
#[derive(Clone, Debug)]
pub struct WordIter<'a> {
    rest: &'a [u8],
}

impl<'a> WordIter<'a> {
    /// What stands behind the words that were taken.
    #[inline]
    pub(crate) fn rest(&self) -> Words<'a> {
        Words(self.rest)
    }
}

impl<'a> Iterator for WordIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let text = skip_spaces(self.rest);
        if text.is_empty() {
            self.rest = text;
            return None;
        }
        let (word, rest) = text.split_at(position(text, spaces));
        self.rest = rest;
        Some(word)
    }
}

/// `text` without the spaces at its front.
#[inline]
pub(crate) fn skip_spaces(mut text: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] = text {
        text = rest;
    }
    text
}

/// Length of the key at the front of `text`: up to the first byte that no key may have, which is a
/// space, a control character or DEL.
#[inline]
pub(crate) fn key_len(text: &[u8]) -> usize {
    position(text, not_of_keys)
}

/// Where the first byte stands that `hits` marks, or the length. `hits` sets the high bit of marked
/// bytes; it must be right about the lowest one that it sets, and may be wrong above that.
#[inline(always)]
fn position(text: &[u8], hits: impl Fn(u64) -> u64) -> usize {
    let mut at = 0;
    let mut chunks = text.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        let found = hits(u64::from_le_bytes(word));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    // Behind the end stand zeros, which either count as hits or not: never beyond the length.
    let tail = chunks.remainder();
    let mut word = [0; 8];
    word[..tail.len()].copy_from_slice(tail);
    let found = hits(u64::from_le_bytes(word));
    at + ((found.trailing_zeros() / 8) as usize).min(tail.len())
}

/// Marks spaces.
#[inline(always)]
fn spaces(bytes: u64) -> u64 {
    zeros(bytes ^ (ONES * b' ' as u64))
}

/// Marks bytes up to the space, and DEL.
#[inline(always)]
fn not_of_keys(bytes: u64) -> u64 {
    let up_to_space = bytes.wrapping_sub(ONES * (b' ' as u64 + 1)) & !bytes & HIGH_BITS;
    up_to_space | zeros(bytes ^ (ONES * 0x7f))
}

/// Marks zero bytes. Borrows run upwards only, so the lowest mark is always right.
#[inline(always)]
fn zeros(bytes: u64) -> u64 {
    bytes.wrapping_sub(ONES) & !bytes & HIGH_BITS
}
