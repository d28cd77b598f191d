//! The range that GETRANGE names.

use std::ops::Range;

/// The bytes from `start` to `end`, both included, of a value of this length. Negative numbers count from the end.
pub fn range(len: usize, start: i64, end: i64) -> Range<usize> {
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let len = len as i64;
    let place = |at: i64| match at {
        ..0 => at.saturating_add(len).max(0),
        at => at,
    };
    let (start, end) = (place(start), place(end).min(len - 1));
    match start <= end {
        true => start as usize..end as usize + 1,
        false => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn ranges_are_those_of_redis() {
        let value = b"This is a string";
        for (start, end, expected) in [
            (0, 3, &b"This"[..]),
            (-3, -1, b"ing"),
            (0, -1, value),
            (10, 100, b"string"),
            (5, 3, b""),
            (-1, -3, b""),
            (100, 200, b""),
            (i64::MIN, i64::MAX, value),
            (-100, 0, b"T"),
            (-100, -100, b"T"),
        ] {
            assert_eq!(
                &value[range(value.len(), start, end)],
                expected,
                "{start} {end}"
            );
        }
        assert!(range(0, 0, -1).is_empty());
    }
}
