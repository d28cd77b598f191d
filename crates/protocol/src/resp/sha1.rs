//! The names of scripts: the SHA-1 of their text. It guards nothing here.

use sha1::Sha1;

/// A script's name: its bytes, not their hexadecimal digits.
pub(super) type Digest = [u8; 20];

/// The digest of `text`.
pub(super) fn sha1(text: &[u8]) -> Digest {
    <Sha1 as sha1::Digest>::digest(text).into()
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
