//! The search for the end of a key's prefix, eight bytes at a time: a busy server does it for every key.

/// Ends a prefix; keys without one are not counted.
pub const DELIMITER: u8 = b':';

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = ONES << 7;
const DELIMITERS: u64 = ONES * DELIMITER as u64;

/// The bytes of a word.
pub const WORD: usize = size_of::<u64>();

/// A key of at most eight bytes as a word, with zeros behind it.
#[inline]
pub fn padded(key: &[u8]) -> u64 {
    debug_assert!(key.len() <= WORD);
    if let (Some(first), Some(last)) = (key.first_chunk(), key.last_chunk()) {
        // Two halves: they agree in the bytes that they share.
        let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
        return first | last << (8 * (key.len() - size_of::<u32>()));
    }
    let word = key.iter().rev();
    word.fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// A word's bytes up to the first delimiter, the delimiter included, with zeros behind it. `None` if it has no
/// delimiter.
#[inline]
pub fn through(word: u64) -> Option<u64> {
    let found = marks(word);
    // All bits up to the lowest mark, which is the top bit of its byte.
    (found != 0).then(|| word & (found ^ (found - 1)))
}

/// The same in fewer steps. If a byte beyond ASCII is before the delimiter, or there is none but such a byte, the
/// result is a number whose last non-zero byte is no delimiter.
#[inline(always)]
pub fn guess(word: u64) -> Option<u64> {
    let found = (word ^ DELIMITERS).wrapping_sub(ONES) & TOPS;
    // The lowest mark is that of the first delimiter, whose own top bit is 0.
    (found != 0).then(|| word & (found - 1))
}

/// The position of the first delimiter.
pub fn position(key: &[u8]) -> Option<usize> {
    memchr::memchr(DELIMITER, key)
}

/// A mask of bytes' top bits: the lowest bit that is set marks the first delimiter.
#[inline]
fn marks(word: u64) -> u64 {
    // A delimiter becomes 0, and borrows.
    let differs = word ^ DELIMITERS;
    differs.wrapping_sub(ONES) & !differs & TOPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_key_is_a_word_with_zeros_behind_it() {
        let key = [1, 2, 3, 4, 5, 6, 0xff, 8];
        for len in 0..=WORD {
            let mut word = key;
            word[len..].fill(0);
            assert_eq!(padded(&key[..len]), u64::from_le_bytes(word), "{len}");
        }
    }

    #[test]
    fn a_word_ends_with_its_first_delimiter_wherever_that_is() {
        // Bytes beside the delimiter's, and those whose top bit is set.
        for other in [b';', b'9', b'k', 0x01, 0x80, 0xba, 0xff] {
            assert_eq!(through(u64::from_le_bytes([other; WORD])), None);
            for at in 0..WORD {
                let mut word = [other; WORD];
                word[at] = DELIMITER;
                // A second delimiter behind it has no effect.
                word[WORD - 1] = DELIMITER;
                let mut expected = word;
                expected[at + 1..].fill(0);
                let expected = Some(u64::from_le_bytes(expected));
                let word = u64::from_le_bytes(word);
                assert_eq!(through(word), expected, "{other} {at}");
                // A guess is right, or is not the word of any prefix.
                let guess = guess(word);
                let last = guess.map_or(0, |guess| {
                    guess
                        .to_le_bytes()
                        .into_iter()
                        .rfind(|&byte| byte != 0)
                        .unwrap_or_default()
                });
                assert!(guess == expected || last != DELIMITER, "{other} {at}");
                assert!(guess == expected || other > 0x7f, "{other} {at}");
            }
        }
    }

    #[test]
    fn a_short_key_has_zeros_behind_it() {
        for len in 0..=WORD {
            let mut word = [0; WORD];
            word[..len].fill(b'k');
            assert_eq!(padded(&word[..len]), u64::from_le_bytes(word));
        }
    }
}
