//! Bob Jenkins's lookup3, which Linux calls jhash and uses for its rhashtable.
//!
//! The function is in the public domain: <http://burtleburtle.net/bob/c/lookup3.c>, `hashlittle`.

/// Where the state starts, before length and seed are added.
const START: u32 = 0xdead_beef;

/// The 32-bit hash of some bytes under a seed.
pub fn jhash(bytes: &[u8], seed: u32) -> u32 {
    let start = START.wrapping_add(bytes.len() as u32).wrapping_add(seed);
    let mut state = [start; 3];
    if bytes.is_empty() {
        return state[2];
    }
    // The last piece has 1 to 12 bytes and is not mixed but finished.
    let last = (bytes.len() - 1) / 12 * 12;
    let (pieces, rest) = bytes.split_at(last);
    for piece in pieces.chunks_exact(12) {
        add(&mut state, piece);
        mix(&mut state);
    }
    add(&mut state, rest);
    finish(&mut state);
    state[2]
}

/// Adds up to 12 bytes to the state, as three words, least byte first, zeros behind.
#[inline(always)]
fn add(state: &mut [u32; 3], piece: &[u8]) {
    let mut bytes = [0; 12];
    bytes[..piece.len()].copy_from_slice(piece);
    let (words, _) = bytes.as_chunks::<4>();
    for (part, word) in state.iter_mut().zip(words) {
        *part = part.wrapping_add(u32::from_le_bytes(*word));
    }
}

/// Six steps. Each subtracts one part from another and xors the result with the first one rotated; then the first one
/// adds the third part.
#[inline(always)]
fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    let step = |x: u32, y: u32, turn: u32| x.wrapping_sub(y) ^ y.rotate_left(turn);
    a = step(a, c, 4);
    c = c.wrapping_add(b);
    b = step(b, a, 6);
    a = a.wrapping_add(c);
    c = step(c, b, 8);
    b = b.wrapping_add(a);
    a = step(a, c, 16);
    c = c.wrapping_add(b);
    b = step(b, a, 19);
    a = a.wrapping_add(c);
    c = step(c, b, 4);
    b = b.wrapping_add(a);
    *state = [a, b, c];
}

/// Seven steps. Each xors a part with another, and subtracts that other one rotated.
#[inline(always)]
fn finish(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    let step = |x: u32, y: u32, turn: u32| (x ^ y).wrapping_sub(y.rotate_left(turn));
    c = step(c, b, 14);
    a = step(a, c, 11);
    b = step(b, a, 25);
    c = step(c, b, 16);
    a = step(a, c, 4);
    b = step(b, a, 14);
    c = step(c, b, 24);
    *state = [a, b, c];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers that lookup3.c's own `driver5` prints.
    #[test]
    fn published_answers() {
        let text = b"Four score and seven years ago";
        assert_eq!(jhash(text, 0), 0x1777_0551);
        assert_eq!(jhash(text, 1), 0xcd62_8161);
        assert_eq!(jhash(b"", 0), 0xdead_beef);
        assert_eq!(jhash(b"", 0xdead_beef), 0xbd5b_7dde);
    }

    #[test]
    fn every_byte_counts_at_every_length() {
        for len in 1..40 {
            let bytes = vec![7_u8; len];
            for at in 0..len {
                let mut other = bytes.clone();
                other[at] ^= 0x80;
                assert_ne!(jhash(&bytes, 0), jhash(&other, 0), "byte {at} of {len}");
            }
        }
    }
}
