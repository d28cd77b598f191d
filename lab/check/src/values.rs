//! The bytes of the values that checks store.
//!
//! Checks make gigabytes of them in a build that hardly optimises, so they are copied and not computed.

/// Bytes after which a value repeats itself: a prime, so that no page, chunk or line of a value has the bytes of
/// the one before it.
const PERIOD: usize = 65_521;

static BYTES: [u8; PERIOD] = {
    let mut bytes = [0; PERIOD];
    let mut state = 1_u32;
    let mut at = 0;
    while at < PERIOD {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes[at] = (state >> 24) as u8;
        at += 1;
    }
    bytes
};

/// A value of `len` bytes. It begins with the seed, so that even values of one byte differ for 256 seeds in a row.
pub(crate) fn bytes(seed: usize, len: usize) -> Vec<u8> {
    let mut value = Vec::with_capacity(len);
    let mut from = seed * 17 % PERIOD;
    while value.len() < len {
        let end = PERIOD.min(from + len - value.len());
        value.extend_from_slice(&BYTES[from..end]);
        from = 0;
    }
    if let Some(first) = value.first_mut() {
        *first = seed as u8;
    }
    value
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_value_has_its_length_and_is_like_no_other() {
        for len in [0, 1, 7, 8, 1000, PERIOD, PERIOD + 1, 3 * PERIOD + 5] {
            assert_eq!(bytes(3, len).len(), len);
            assert_eq!(bytes(3, len), bytes(3, 4 * PERIOD)[..len]);
        }
        for (seeds, len) in [(256, 1), (PERIOD, 8)] {
            let values: HashSet<_> = (0..seeds).map(|seed| bytes(seed, len)).collect();
            assert_eq!(values.len(), seeds);
        }
    }
}
