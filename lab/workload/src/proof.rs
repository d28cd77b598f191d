//! Values that prove their keys at next to no cost: a value begins with the end of its key, where keys differ most, so
//! that a reader detects a wrong answer without a second table. (The self-checking values of [`value`](crate::value) prove more, but
//! they are longer, and cost more than the operation under measurement.)

/// Bytes of a value that are compared with its key.
const PROOF: usize = 8;

/// Writes the value of a key: its last bytes, then letters.
#[inline]
pub fn write_value(value: &mut [u8], key: &[u8]) {
    let proof = proof(key, value.len());
    let (head, tail) = value.split_at_mut(proof.len());
    head.copy_from_slice(proof);
    tail.fill(b'v');
}

/// True if a value is that of a key.
#[inline(always)]
pub fn vouches(value: &[u8], key: &[u8]) -> bool {
    // The usual sizes: one comparison of eight bytes.
    match (value.first_chunk::<PROOF>(), key.last_chunk::<PROOF>()) {
        (Some(value), Some(key)) => value == key,
        _ => value.starts_with(proof(key, value.len())),
    }
}

/// Reads every byte of a value, cheaply, so that no copy of it can be left out.
#[inline(always)]
pub fn consume(value: &[u8]) -> u64 {
    let (words, rest) = value.as_chunks::<8>();
    let sum = words
        .iter()
        .fold(0, |sum: u64, word| sum ^ u64::from_le_bytes(*word));
    rest.iter().fold(sum, |sum, &byte| sum ^ u64::from(byte))
}

#[inline(always)]
fn proof(key: &[u8], value_size: usize) -> &[u8] {
    &key[key.len() - PROOF.min(key.len()).min(value_size)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_vouches_for_its_own_key_only() {
        for value_size in [8, 9, 32, 100] {
            let (one, other) = (b"0000000012345678", b"0000000012345679");
            let mut value = vec![0; value_size];
            write_value(&mut value, one);
            assert!(vouches(&value, one));
            assert!(!vouches(&value, other));
        }
        assert!(vouches(b"", b"any"));
    }

    #[test]
    fn consuming_feels_each_byte() {
        let mut value = [7; 19];
        let sum = consume(&value);
        for at in 0..value.len() {
            value[at] ^= 1;
            assert_ne!(consume(&value), sum);
            value[at] ^= 1;
        }
    }
}
