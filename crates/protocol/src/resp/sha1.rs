//! SHA-1: the names of scripts. It guards nothing here.

/// A script's name: its bytes, not their hexadecimal digits.
pub(super) type Digest = [u8; 20];

/// Bytes of a block.
const BLOCK: usize = 64;

/// The digest of `text`.
pub(super) fn sha1(text: &[u8]) -> Digest {
    let mut state = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    for block in blocks {
        mix(&mut state, block);
    }
    // Behind the text: a bit, zeros, and the text's length in bits at the end of a block.
    let mut last = [0; 2 * BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    let length = (text.len() as u64 * 8).to_be_bytes();
    let used = if rest.len() + 1 + length.len() <= BLOCK {
        BLOCK
    } else {
        2 * BLOCK
    };
    last[used - length.len()..used].copy_from_slice(&length);
    for block in last[..used].as_chunks::<BLOCK>().0 {
        mix(&mut state, block);
    }
    let mut digest = Digest::default();
    for (place, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *place = word.to_be_bytes();
    }
    digest
}

fn mix(state: &mut [u32; 5], block: &[u8; BLOCK]) {
    let mut words = [0; 80];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..words.len() {
        let word: u32 = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
        words[at] = word.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.into_iter().enumerate() {
        let (chosen, constant) = match at {
            0..20 => (b & c | !b & d, 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc_u32),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(chosen)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
        *sum = sum.wrapping_add(part);
    }
}

/// The digest that `digits` write, in either case.
pub(super) fn digest(digits: &[u8]) -> Option<Digest> {
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    if pairs.len() != size_of::<Digest>() {
        return None;
    }
    let mut digest = Digest::default();
    for (place, [high, low]) in digest.iter_mut().zip(pairs) {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        *place = (digit(*high)? * 16 + digit(*low)?) as u8;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        let million = vec![b'a'; 1_000_000];
        for (text, digits) in [
            (&b""[..], "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            (b"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
            ),
            (&million, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
        ] {
            assert_eq!(Some(sha1(text)), digest(digits.as_bytes()), "{digits}");
            assert_eq!(Some(sha1(text)), digest(digits.to_uppercase().as_bytes()));
        }
        for digits in [&b""[..], b"abc", &[b'g'; 40], &[b'0'; 42]] {
            assert_eq!(digest(digits), None);
        }
    }
}
