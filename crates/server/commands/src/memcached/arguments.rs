//! The words of commands about memcached's internals.

use std::str::FromStr;

use nuthatch_protocol::Words;

/// More words than any of these commands looks at.
const WORDS_MAX: usize = 8;

/// The first words of a line, as many as any command looks at, and whether the last word of the line is noreply.
pub struct Arguments<'a> {
    words: [&'a [u8]; WORDS_MAX],
    count: usize,
    pub noreply: bool,
}

impl<'a> Arguments<'a> {
    pub fn of(text: Words<'a>) -> Self {
        let mut words = [&[][..]; WORDS_MAX];
        let mut count = 0;
        for (place, word) in words.iter_mut().zip(text) {
            *place = word;
            count += 1;
        }
        Self {
            words,
            count,
            noreply: text.iter().last() == Some(b"noreply"),
        }
    }

    pub fn words(&self) -> &[&'a [u8]] {
        &self.words[..self.count]
    }
}

/// Parses a word as a number without a plus sign.
pub fn number<T: FromStr>(word: &[u8]) -> Option<T> {
    // Rust's parser accepts a plus sign.
    let word = std::str::from_utf8(word).ok()?;
    word.parse().ok().filter(|_| !word.starts_with('+'))
}
