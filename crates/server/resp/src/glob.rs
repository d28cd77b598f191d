//! Patterns of KEYS, SCAN and CONFIG GET: `*`, `?`, `[a-c]`, `[^a-c]`, and `\` before a byte that stands for itself.
//!
//! A pattern is matched as an automaton without backtracking. Its state after some bytes of a text is a set of numbers,
//! a bit each: number n is in the set if these bytes match the pattern's first n signs and the stars among them.
//! Whatever the pattern, a byte takes a few steps for each word of that set. A matcher that backtracks at stars would
//! take as many steps as there are signs, for each place where a star may end.

/// The longest pattern that clients may send.
pub const PATTERN_LEN_MAX: usize = 1024;

/// Words of the largest such set. A pattern has no more signs than bytes.
const WORDS: usize = words_of(PATTERN_LEN_MAX);

/// Words of a set of the numbers up to this one.
const fn words_of(signs: usize) -> usize {
    signs / u64::BITS as usize + 1
}

/// A set of numbers of signs, a bit each.
type Signs = [u64; WORDS];

/// A compiled pattern. Unusual patterns mean the same as in Redis: a class that is not closed ends with the pattern, a
/// range may be written backwards, and its bytes are compared as signed numbers.
pub struct Glob {
    /// For each byte, the signs that match it, in `stride` words. Stars are not counted as signs.
    accepting: Box<[u64]>,
    /// Words of a set of as many signs as the pattern has bytes.
    stride: usize,
    /// Numbers of signs that a star follows: these stay in the state at any byte.
    staying: Signs,
    /// The number of signs. `None` if the pattern is too long: then it matches nothing.
    signs: Option<usize>,
    /// True if the pattern ends with a star: any bytes may follow.
    open: bool,
}

impl Glob {
    /// Compiles a pattern.
    pub fn new(pattern: &[u8]) -> Self {
        let stride = words_of(pattern.len().min(PATTERN_LEN_MAX));
        let mut glob = Self {
            accepting: vec![0; stride << u8::BITS].into(),
            stride,
            staying: Signs::default(),
            signs: None,
            open: false,
        };
        let mut rest = pattern;
        for sign in 0..=PATTERN_LEN_MAX {
            while let [b'*', behind @ ..] = rest {
                rest = behind;
                set(&mut glob.staying, sign);
            }
            if rest.is_empty() {
                glob.signs = Some(sign);
                glob.open = has(&glob.staying, sign);
                break;
            }
            rest = glob.add(sign, rest);
        }
        glob
    }

    /// Records the bytes that the sign at the front of a pattern matches, and returns the rest of the pattern.
    fn add<'p>(&mut self, sign: usize, pattern: &'p [u8]) -> &'p [u8] {
        let mut accept = |byte: u8| {
            set(&mut self.accepting[usize::from(byte) * self.stride..], sign);
        };
        match pattern {
            [b'?', rest @ ..] => {
                (0..=u8::MAX).for_each(accept);
                rest
            }
            [b'[', rest @ ..] => {
                let (class, rest) = Class::parse(rest);
                let bytes = (0..=u8::MAX).filter(|byte| class.has(*byte));
                bytes.for_each(accept);
                rest
            }
            [b'\\', byte, rest @ ..] | [byte, rest @ ..] => {
                accept(*byte);
                rest
            }
            [] => pattern,
        }
    }

    /// The words of its sets that are used: the cost of a byte of text.
    pub fn words(&self) -> usize {
        self.signs.map_or(1, words_of)
    }

    /// Bytes of memory that it holds besides itself.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.accepting)
    }

    /// True if the pattern matches the whole of `text`.
    pub fn matches(&self, text: &[u8]) -> bool {
        let Some(signs) = self.signs else {
            return false;
        };
        let mut state = Signs::default();
        set(&mut state, 0);
        for byte in text {
            if self.open && has(&state, signs) {
                return true;
            }
            let accepting = &self.accepting[usize::from(*byte) * self.stride..];
            let (mut carry, mut any) = (0, 0);
            for word in 0..self.words() {
                let passed = state[word] & accepting[word];
                state[word] = state[word] & self.staying[word] | passed << 1 | carry;
                carry = passed >> (u64::BITS - 1);
                any |= state[word];
            }
            // No further bytes could match.
            if any == 0 {
                return false;
            }
        }
        has(&state, signs)
    }
}

fn set(signs: &mut [u64], number: usize) {
    signs[number / u64::BITS as usize] |= 1 << (number % u64::BITS as usize);
}

fn has(signs: &Signs, number: usize) -> bool {
    signs[number / u64::BITS as usize] >> (number % u64::BITS as usize) & 1 == 1
}

/// The bytes between two brackets.
struct Class {
    bytes: [bool; 1 << u8::BITS],
    /// True if the class matches the bytes that are not among these.
    others: bool,
}

impl Class {
    /// Parses the class behind a `[`. Returns it and the rest of the pattern.
    fn parse(pattern: &[u8]) -> (Self, &[u8]) {
        let (others, mut rest) = match pattern {
            [b'^', rest @ ..] => (true, rest),
            _ => (false, pattern),
        };
        let mut bytes = [false; 1 << u8::BITS];
        loop {
            rest = match rest {
                [b'\\', sign, behind @ ..] => {
                    bytes[usize::from(*sign)] = true;
                    behind
                }
                [b']', behind @ ..] => {
                    rest = behind;
                    break;
                }
                [] => break,
                [from, b'-', to, behind @ ..] => {
                    let (from, to) = (*from as i8, *to as i8);
                    for byte in from.min(to)..=from.max(to) {
                        bytes[usize::from(byte as u8)] = true;
                    }
                    behind
                }
                [sign, behind @ ..] => {
                    bytes[usize::from(*sign)] = true;
                    behind
                }
            };
        }
        (Self { bytes, others }, rest)
    }

    fn has(&self, byte: u8) -> bool {
        self.bytes[usize::from(byte)] != self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &[u8], text: &[u8]) -> bool {
        Glob::new(pattern).matches(text)
    }

    #[test]
    fn patterns_mean_what_they_mean_in_redis() {
        for (pattern, text, expected) in [
            ("*", "key", true),
            ("k?y", "key", true),
            ("k?y", "ky", false),
            ("k*", "k", true),
            ("*y*e*", "key", false),
            ("*k*y*", "key", true),
            ("a**b", "ab", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[\\]]llo", "h]llo", true),
            ("[ab", "b", true),
            ("[ab", "c", false),
            ("[a-", "-", true),
            ("[]a", "a", false),
            ("[^]a", "xa", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("a\\", "a\\", true),
            ("", "", true),
            ("", "a", false),
            ("key", "keys", false),
        ] {
            let found = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_long_pattern_matches_long_keys() {
        const LONG: usize = 250;
        let key = [b'a'; LONG];
        for (pattern, expected) in [
            (b"a".repeat(LONG), true),
            (b"*?".repeat(LONG), true),
            (b"[a]*".repeat(LONG), true),
            (b"[^b]".repeat(LONG - 1), false),
            (b"*a".repeat(LONG + 1), false),
            (b"*".repeat(PATTERN_LEN_MAX), true),
            ([&b"a*".repeat(200)[..], b"b"].concat(), false),
            ([&b"*"[..], &b"a".repeat(200), b"b"].concat(), false),
        ] {
            let text = String::from_utf8_lossy(&pattern);
            assert_eq!(matches(&pattern, &key), expected, "{text}");
        }
        let key = [&[b'a'; 65_535][..], b"b"].concat();
        assert!(matches(b"a*b", &key) && !matches(b"a*a", &key));
        assert!(matches(&[&b"a".repeat(1022)[..], b"*b"].concat(), &key));
        assert!(matches(&b"a".repeat(1024), &[b'a'; 1024]));
        assert!(!matches(&b"a".repeat(1025), &[b'a'; 1025]));
    }

    /// The rest of a pattern, which does not begin with a star, if its first sign matches this byte.
    fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
        match pattern {
            [] => None,
            [b'?', rest @ ..] => Some(rest),
            [b'[', rest @ ..] => {
                let (class, rest) = Class::parse(rest);
                class.has(byte).then_some(rest)
            }
            [b'\\', sign, rest @ ..] | [sign, rest @ ..] => (*sign == byte).then_some(rest),
        }
    }

    /// The same result by trying all lengths for each star.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|taken| naive(rest, &text[taken..])),
            ([], []) => true,
            (_, [byte, behind @ ..]) => one(pattern, *byte).is_some_and(|rest| naive(rest, behind)),
            _ => false,
        }
    }

    /// The same result sign by sign, for patterns and texts of any length.
    fn by_columns(pattern: &[u8], text: &[u8]) -> bool {
        let mut reached = vec![false; text.len() + 1];
        reached[0] = true;
        let mut rest = pattern;
        while let [first, behind @ ..] = rest {
            if *first == b'*' {
                let from = reached.iter().position(|it| *it).unwrap_or(text.len() + 1);
                reached[from..].fill(true);
                rest = behind;
                continue;
            }
            let mut next = vec![false; text.len() + 1];
            for (at, byte) in text.iter().enumerate() {
                next[at + 1] = reached[at] && one(rest, *byte).is_some();
            }
            reached = next;
            rest = match first {
                b'[' => Class::parse(behind).1,
                b'\\' if !behind.is_empty() => &behind[1..],
                _ => behind,
            };
        }
        reached[text.len()]
    }

    proptest! {
        #[test]
        fn a_star_takes_whatever_lets_the_rest_match(
            pattern in "[ab*?\\[\\]^\\\\-]{0,12}",
            text in "[ab\\]-]{0,10}",
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(pattern, text), naive(pattern, text));
        }

        /// Long patterns cross the borders of words, which short ones do not.
        #[test]
        fn long_patterns_match_what_they_say(
            pattern in r"([ab*?\\]|\[a\]|[ab]{20}){0,60}",
            text in "(a|b|[ab]{20}){0,12}",
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            let text = &text[..text.len().min(PATTERN_LEN_MAX)];
            prop_assert_eq!(matches(pattern, text), by_columns(pattern, text));
            // A pattern made from the text.
            let mut made = text.to_vec();
            for at in (3..made.len()).step_by(7) {
                made[at] = if at % 2 == 0 { b'?' } else { b'*' };
            }
            prop_assert!(matches(&made, text));
        }
    }
}
