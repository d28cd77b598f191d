//! Patterns as KEYS, SCAN and CONFIG GET know them: `*`, `?`, `[a-c]`, `[^a-c]`, `\` before a byte that is itself.

/// The longest pattern that clients may send. Matching takes at most as many steps as the lengths of pattern and
/// text multiplied.
pub const PATTERN_LEN_MAX: usize = 1024;

/// True if all of `text` is what `pattern` says. Odd patterns mean what they mean in Redis: a class that is not
/// closed ends with the pattern, a range may be written backwards, and its bytes are compared with their sign.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // What stands behind the last star, and what of the text it may take next. A longer match of an earlier star
    // would leave less to the later ones, so only the last one is tried again.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            pattern = rest;
            star = Some((pattern, text));
            continue;
        }
        let step = match text {
            [] if pattern.is_empty() => return true,
            // Nothing is left that another try could match.
            [] => return false,
            [byte, behind @ ..] => one(pattern, *byte).map(|rest| (rest, behind)),
        };
        (pattern, text) = match (step, star) {
            (Some(step), _) => step,
            (None, Some((behind_star, [_, shorter @ ..]))) => {
                star = Some((behind_star, shorter));
                (behind_star, shorter)
            }
            (None, _) => return false,
        };
    }
}

/// What is left of a pattern, which does not begin with a star, if its first sign matches this byte.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => class(rest, byte),
        [b'\\', sign, rest @ ..] | [sign, rest @ ..] => (*sign == byte).then_some(rest),
    }
}

/// What is left behind a class if it has this byte.
fn class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (others, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [b'\\', sign, behind @ ..] => {
                found |= *sign == byte;
                behind
            }
            [b']', behind @ ..] => {
                rest = behind;
                break;
            }
            [] => break,
            [from, b'-', to, behind @ ..] => {
                let (from, to, byte) = (*from as i8, *to as i8, byte as i8);
                found |= (from.min(to)..=from.max(to)).contains(&byte);
                behind
            }
            [sign, behind @ ..] => {
                found |= *sign == byte;
                behind
            }
        };
    }
    (found != others).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn many_stars_take_no_exponential_time() {
        let pattern = b"*a".repeat(PATTERN_LEN_MAX / 2);
        assert!(!matches(&pattern, &[b'a'; 250]));
        let pattern = [&b"a*".repeat(200)[..], b"b"].concat();
        assert!(!matches(&pattern, &[b'a'; 250]));
    }

    /// The same, trying all that a star can take.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|taken| naive(rest, &text[taken..])),
            ([], []) => true,
            (_, [byte, behind @ ..]) => one(pattern, *byte).is_some_and(|rest| naive(rest, behind)),
            _ => false,
        }
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
    }
}
