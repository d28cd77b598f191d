//! The items: keys of 16 bytes, values that vouch for their keys.

/// Bytes of a key.
pub const KEY_SIZE: usize = 16;

/// The key of an item. A digit is one of 16 letters: so a key is made in a few instructions, and its making hardly counts
/// beside a get of 30 ns.
pub fn key(number: u32) -> [u8; KEY_SIZE] {
    let mut digits = u64::from(number);
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff;
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
    digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let digits = digits + 0x6161_6161_6161_6161;
    let mut key = *b"item:key........";
    key[8..].copy_from_slice(&digits.to_be_bytes());
    key
}

/// The value of a key: the key, again and again.
pub fn value(key: &[u8], size: usize) -> Vec<u8> {
    key.iter().copied().cycle().take(size).collect()
}

/// Whether this is the value of a key. Its beginning and its length are looked at.
#[inline]
pub fn is_value_of(value: &[u8], key: &[u8], size: usize) -> bool {
    let vouching = size.min(key.len());
    value.len() == size && value[..vouching] == key[..vouching]
}

/// Numbers of items as if at random, each as likely as any other.
pub struct Numbers {
    state: u64,
    items: u64,
}

impl Numbers {
    /// Below `items`; another `seed` is another order.
    pub fn new(items: u32, seed: u32) -> Self {
        Self {
            state: u64::from(seed) << 1 | 1,
            items: u64::from(items),
        }
    }

    /// The next one.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        self.state = self
            .state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        // The upper half of the state is the random one; multiplied, it is a number below `items`.
        (((self.state >> 32) * self.items) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_values_vouch_for_them() {
        assert_eq!(&key(0), b"item:keyaaaaaaaa");
        assert_eq!(&key(0x0123_456f), b"item:keyabcdefgp");
        let (one, other) = (key(1), key(2));
        for size in [32, 40] {
            let stored = value(&one, size);
            assert!(is_value_of(&stored, &one, size));
            assert!(!is_value_of(&stored, &other, size));
            assert!(!is_value_of(&stored[1..], &one, size));
        }
        assert!(is_value_of(b"ite", &one, 3));
    }

    #[test]
    fn all_items_are_drawn() {
        let mut numbers = Numbers::new(10, 7);
        let mut drawn = [0; 10];
        (0..1000).for_each(|_| drawn[numbers.draw() as usize] += 1);
        assert!(drawn.iter().all(|&times| times > 50), "{drawn:?}");
    }
}
