//! Sizes in settings, as Redis reads them.

use crate::integer;

/// The hard limit of `pubsub` in groups of four words: kind, hard limit, soft limit, seconds. `None` if it is not such a
/// text.
pub fn hard_limit(text: &[u8]) -> Option<Option<usize>> {
    let text = std::str::from_utf8(text).ok()?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (groups, rest) = words.as_chunks::<4>();
    let mut limit = None;
    for [kind, hard, soft, seconds] in groups {
        let hard = bytes(hard.as_bytes())?;
        bytes(soft.as_bytes())?;
        seconds.parse::<u32>().ok()?;
        match kind.to_ascii_lowercase().as_str() {
            // 0 is no limit in Redis. A limit there is here.
            "pubsub" => limit = Some(hard).filter(|hard| *hard > 0),
            "normal" | "slave" | "replica" => {}
            _ => return None,
        }
    }
    (rest.is_empty() && !groups.is_empty()).then_some(limit)
}

/// A size as Redis reads it: `100mb`, `1g`, `4096`.
pub fn bytes(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let unit: usize = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    usize::try_from(integer(number)?).ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::{bytes, hard_limit};

    #[test]
    fn the_limit_of_messages_is_among_others() {
        for (text, expected) in [
            ("pubsub 1mb 0 0", Some(Some(1 << 20))),
            ("normal 0 0 0 pubsub 32mb 8mb 60", Some(Some(32 << 20))),
            ("slave 0 0 0", Some(None)),
            ("pubsub 0 0 0", Some(None)),
            ("pubsub 1mb 0", None),
            ("foo 1mb 0 0", None),
            ("", None),
        ] {
            assert_eq!(hard_limit(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn sizes_are_written_as_in_redis() {
        for (text, expected) in [
            (&b"4096"[..], Some(4096)),
            (b"64mb", Some(64 << 20)),
            (b"1G", Some(1_000_000_000)),
            (b"2kB", Some(2048)),
            (b"x", None),
            (b"1tb", None),
            (b"", None),
        ] {
            assert_eq!(bytes(text), expected, "{text:?}");
        }
    }
}
