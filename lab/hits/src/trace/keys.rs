//! The keys of a trace: numbered, so that policies index arrays where caches search tables.

use std::ops::Range;

use hashbrown::HashTable;
use nuthatch_base::hash::KeyHasher;

/// The longest key of memcached's protocol.
const KEY_MAX: usize = 250;
/// A number that is no key's.
pub const NO_KEY: u32 = u32::MAX;
/// Any fixed seed: equal traces get equal numbers.
const HASHER: KeyHasher = KeyHasher::seeded(0x6869_7473);

/// Different keys, in the order in which they came first. Two keys count as one if 64 bits of their hashes are
/// equal.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Key numbers, found by identity.
    numbers: HashTable<u32>,
    identities: Vec<u64>,
    /// The keys' names in a memcached, one behind the other.
    names: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.identities.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.identities.is_empty()
    }

    /// The name of key number `key` in a memcached: as in the trace if the protocol takes that, otherwise its identity
    /// in hexadecimal.
    pub fn bytes(&self, key: u32) -> &[u8] {
        &self.names[self.range(key as usize)]
    }

    fn range(&self, key: usize) -> Range<usize> {
        let start = key.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[key]
    }

    /// The number of a key that is bytes. None if there are no numbers left.
    pub(super) fn of_bytes(&mut self, key: &[u8]) -> Option<u32> {
        let identity = HASHER.hash(key);
        self.number(identity, |names| {
            if is_name(key) {
                names.extend_from_slice(key);
            } else {
                names.extend_from_slice(format!("{identity:016x}").as_bytes());
            }
        })
    }

    /// The number of a key that is itself a number.
    pub(super) fn of_number(&mut self, key: u64) -> Option<u32> {
        self.number(key, |names| {
            names.extend_from_slice(key.to_string().as_bytes());
        })
    }

    fn number(&mut self, identity: u64, name: impl FnOnce(&mut Vec<u8>)) -> Option<u32> {
        let identities = &self.identities;
        let same = |&number: &u32| identities[number as usize] == identity;
        if let Some(&number) = self.numbers.find(spread(identity), same) {
            return Some(number);
        }
        let number = u32::try_from(identities.len()).ok()?;
        if number == NO_KEY {
            return None;
        }
        self.identities.push(identity);
        let identities = &self.identities;
        let hash = |&number: &u32| spread(identities[number as usize]);
        self.numbers.insert_unique(spread(identity), number, hash);
        name(&mut self.names);
        self.ends.push(self.names.len());
        Some(number)
    }
}

/// The table takes its places from the lowest and its tags from the highest bits; keys that are numbers differ in
/// few.
fn spread(identity: u64) -> u64 {
    let mixed = u128::from(identity ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (mixed >> 64) as u64 ^ mixed as u64
}

/// True if memcached's text protocol takes the key.
fn is_name(key: &[u8]) -> bool {
    let taken = |byte: &u8| *byte > b' ' && *byte != 0x7f;
    (1..=KEY_MAX).contains(&key.len()) && key.iter().all(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbered_as_they_come() {
        let mut keys = Keys::default();
        assert!(keys.is_empty());
        assert_eq!(keys.of_bytes(b"b"), Some(0));
        assert_eq!(keys.of_bytes(b"a"), Some(1));
        assert_eq!(keys.of_bytes(b"b"), Some(0));
        assert_eq!(keys.of_number(7), Some(2));
        assert_eq!(keys.of_number(7), Some(2));
        assert_eq!(keys.len(), 3);
        let names = [0, 1, 2].map(|key| keys.bytes(key));
        assert_eq!(names, [&b"b"[..], b"a", b"7"]);
    }

    #[test]
    fn a_key_that_no_memcached_takes_gets_another_name() {
        let mut keys = Keys::default();
        for key in [&[b'x'; 251][..], b"two words", b"", b"new\nline"] {
            let number = keys.of_bytes(key).unwrap();
            assert_eq!(keys.bytes(number).len(), 16);
            assert!(is_name(keys.bytes(number)));
        }
        let longest = keys.of_bytes(&[b'x'; 250]).unwrap();
        assert_eq!(keys.bytes(longest), [b'x'; 250]);
        assert_eq!(keys.len(), 5);
    }

    #[test]
    fn many_keys_are_told_apart() {
        let mut keys = Keys::default();
        for number in 0..100_000 {
            assert_eq!(keys.of_number(number << 20), Some(number as u32));
        }
        for number in 0..100_000 {
            assert_eq!(keys.of_number(number << 20), Some(number as u32));
        }
    }
}
