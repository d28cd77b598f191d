//! The words of a line. The scan takes eight bytes at a step, because the scan of a multi-get is the parser's hot loop.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// The most words behind a command's name that are used, as in memcached.
const WORDS_MAX: usize = 22;

/// Words behind a command's name, split at spaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words<'a>(pub &'a [u8]);

impl<'a> Words<'a> {
    /// The words, in order, none of them empty.
    #[inline]
    pub fn iter(&self) -> WordIter<'a> {
        WordIter { rest: self.0 }
    }

    /// The first `N` words, and what a command needs of the others.
    #[inline]
    pub(crate) fn first<const N: usize>(&self) -> FirstWords<'a, N> {
        let mut words = [&[][..]; N];
        let mut count = 0;
        let mut last = &[][..];
        let mut all = self.iter();
        for (place, word) in words.iter_mut().zip(all.by_ref()) {
            *place = word;
            last = word;
            count += 1;
        }
        if count == N {
            for word in all.take(WORDS_MAX - N) {
                last = word;
                count += 1;
            }
        }
        FirstWords {
            words,
            count,
            noreply: last == b"noreply",
        }
    }
}

/// The words that a command needs. Words behind them have no meaning, except that the last may be
/// noreply.
pub(crate) struct FirstWords<'a, const N: usize> {
    /// The first `N` words. They are empty if there are fewer.
    pub(crate) words: [&'a [u8]; N],
    /// The number of all words, with those behind the first `N`.
    pub(crate) count: usize,
    /// True if the last word is `noreply`.
    pub(crate) noreply: bool,
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
    /// The text behind the words that were taken.
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
        let (word, rest) = text.split_at(word_len(text));
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

/// Length of the word at the front of `text`: up to the first space.
#[inline]
pub(crate) fn word_len(text: &[u8]) -> usize {
    position(text, spaces)
}

/// Length of the key at the front of `text`: up to the first byte that no key may have, which is a
/// space, a control character or DEL.
#[inline]
pub(crate) fn key_len(text: &[u8]) -> usize {
    position(text, not_of_keys)
}

/// The index of the first byte that `hits` marks, or the length. `hits` sets the high bit of marked bytes. The lowest
/// mark must be right, marks above it may be wrong.
#[inline(always)]
fn position(text: &[u8], hits: impl Fn(u64) -> u64) -> usize {
    let mut at = 0;
    let (chunks, tail) = text.as_chunks::<8>();
    for chunk in chunks {
        let found = hits(u64::from_le_bytes(*chunk));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    for &byte in tail {
        if hits(byte.into()) & 0x80 != 0 {
            return at;
        }
        at += 1;
    }
    at
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_split_at_any_number_of_spaces() {
        for (text, expected) in [
            (&b""[..], &[][..]),
            (b"   ", &[]),
            (b"a", &[&b"a"[..]]),
            (b"  a  bc ", &[b"a", b"bc"]),
            (b"12345678 12345678", &[b"12345678", b"12345678"]),
            (b"a\tb c\x80 ", &[b"a\tb", b"c\x80"]),
        ] {
            let words: Vec<&[u8]> = Words(text).iter().collect();
            assert_eq!(words, expected, "{text:?}");
        }
    }

    #[test]
    fn the_first_words_know_of_those_behind_them() {
        let few = Words(b"a  b").first::<3>();
        assert_eq!((few.words, few.count), ([&b"a"[..], b"b", b""], 2));
        assert!(!few.noreply);
        let more = Words(b"a b c noreply").first::<1>();
        assert_eq!((more.words, more.count), ([&b"a"[..]], 4));
        assert!(more.noreply);
        assert!(!Words(b"a noreply b").first::<2>().noreply);
        assert!(Words(b"noreply").first::<0>().noreply);
        let most = [&b"k"[..], &b" x".repeat(20), b" noreply"].concat();
        assert!(Words(&most).first::<1>().noreply);
        let many = [&b"k"[..], &b" x".repeat(21), b" noreply"].concat();
        assert!(!Words(&many).first::<1>().noreply);
    }

    proptest! {
        #[test]
        fn words_are_those_of_a_naive_split(
            text in proptest::collection::vec(0x1eu8..0x24, 0..60),
        ) {
            let naive: Vec<&[u8]> =
                text.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).collect();
            let words: Vec<&[u8]> = Words(&text).iter().collect();
            prop_assert_eq!(words, naive);
        }

        #[test]
        fn a_key_ends_where_a_naive_scan_says(text: Vec<u8>) {
            let naive = text.iter().position(|&byte| byte <= b' ' || byte == 0x7f);
            prop_assert_eq!(key_len(&text), naive.unwrap_or(text.len()));
        }

        #[test]
        fn a_long_key_ends_where_a_naive_scan_says(
            start in proptest::collection::vec(0x21u8..0x7f, 0..40),
            end in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let text = [start, end].concat();
            let naive = text.iter().position(|&byte| byte <= b' ' || byte == 0x7f);
            prop_assert_eq!(key_len(&text), naive.unwrap_or(text.len()));
        }
    }
}
