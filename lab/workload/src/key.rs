//! Keys of one size, each made from its number.

/// Makes the keys of a workload: printable, without spaces, all of one size.
///
/// ```
/// let keys = nuthatch_workload::KeyMaker::new(16);
/// assert_eq!(keys.key(35), b"kkkkkkkkkkkkkk13");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyMaker {
    size: usize,
}

/// 32 digits, so that a digit is 5 bits of the number. None of them is the filler.
const DIGITS: &[u8; 32] = b"0123456789abcdefghijlmnopqrstuvw";

/// Takes the place of leading zeros.
const FILLER: u8 = b'k';

impl KeyMaker {
    /// Keys of `size` bytes, 1 to 250.
    pub fn new(size: usize) -> Self {
        assert!((1..=250).contains(&size), "a key has 1 to 250 bytes");
        Self { size }
    }

    /// Bytes of every key.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many different keys there are; 2^64 - 1 stands for that many or more.
    pub fn capacity(&self) -> u64 {
        let bits = 5 * self.size.min(13) as u32;
        1_u64.checked_shl(bits).unwrap_or(u64::MAX)
    }

    /// Writes the key with this number over `room`, which has the keys' size.
    ///
    /// Panics if there are not so many different keys of this size.
    pub fn write(&self, number: u64, room: &mut [u8]) {
        assert_eq!(room.len(), self.size, "room for exactly one key");
        room.fill(FILLER);
        let mut rest = number;
        for byte in room.iter_mut().rev() {
            *byte = DIGITS[(rest % 32) as usize];
            rest /= 32;
            if rest == 0 {
                return;
            }
        }
        panic!("{} bytes cannot hold key number {number}", self.size);
    }

    /// The key with this number.
    pub fn key(&self, number: u64) -> Vec<u8> {
        let mut key = vec![0; self.size];
        self.write(number, &mut key);
        key
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn numbers_make_different_printable_keys_of_one_size() {
        for size in [3, 8, 16, 250] {
            let keys = KeyMaker::new(size);
            let made: HashSet<_> = (0..10_000).map(|number| keys.key(number)).collect();
            assert_eq!(made.len(), 10_000);
            for key in &made {
                assert_eq!(key.len(), size);
                assert!(key.iter().all(u8::is_ascii_alphanumeric));
            }
        }
    }

    #[test]
    fn the_last_number_fits_and_no_more() {
        assert_eq!(KeyMaker::new(2).capacity(), 1024);
        assert_eq!(KeyMaker::new(2).key(1023), b"ww");
        assert_eq!(KeyMaker::new(16).capacity(), u64::MAX);
        assert_eq!(KeyMaker::new(16).key(u64::MAX).len(), 16);
        assert!(std::panic::catch_unwind(|| KeyMaker::new(2).key(1024)).is_err());
    }
}
