//! Namespaces of keys: how a server keeps its databases apart within one engine.
//!
//! A namespace is part of an engine's key, as a prefix before the client's key:
//!
//! ```text
//!  bare namespace      client's key                    if that does not begin with a zero byte
//!                      | 0 | 0 | client's key          if it does
//!  another             | 0 | number | client's key     the number in 1 to 4 bytes of 7 bits, the lowest first
//! ```
//!
//! So no two keys of different namespaces are equal, and the keys of one are equal only if the clients' keys are. An
//! engine knows nothing of this: to it a key is a key. A server that uses one database alone has bare keys.

use crate::request::PREFIX_LEN_MAX;

/// How many databases there are.
pub const DATABASES: usize = 16;

/// Bits of a namespace's number that say whose it was at first.
const HOME_BITS: u32 = DATABASES.ilog2();

/// The first byte of every prefix.
const MARK: u8 = 0;

/// Bits of a number in a byte of a prefix.
const DIGIT_BITS: u32 = 7;

/// Says that another byte follows.
const MORE: u8 = 1 << DIGIT_BITS;

/// A namespace: generation and home, the database that it is made for. A database that is flushed gets another
/// generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Namespace(u32);

impl Namespace {
    /// That without a prefix, the first of database 0.
    pub const BARE: Self = Self(0);

    /// The greatest generation.
    pub const GENERATION_MAX: u32 =
        (1 << (DIGIT_BITS * (PREFIX_LEN_MAX as u32 - 1) - HOME_BITS)) - 1;

    /// The namespace of a database in a generation, which is no greater than [`Self::GENERATION_MAX`].
    pub fn of(home: usize, generation: u32) -> Self {
        debug_assert!(home < DATABASES && generation <= Self::GENERATION_MAX);
        Self(generation << HOME_BITS | home as u32)
    }

    /// The database that it was made for.
    pub fn home(self) -> usize {
        self.0 as usize % DATABASES
    }

    /// Its number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The namespace with this number.
    pub fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// True if a client's key is the engine's key.
    #[inline(always)]
    pub fn leaves(self, key: &[u8]) -> bool {
        self == Self::BARE && key.first() != Some(&MARK)
    }

    /// What stands before keys that it does not leave as they are.
    pub fn prefix(self) -> Prefix {
        let mut prefix = Prefix::default();
        prefix.push(MARK);
        let mut rest = self.0;
        while rest >= u32::from(MORE) {
            prefix.push(rest as u8 | MORE);
            rest >>= DIGIT_BITS;
        }
        prefix.push(rest as u8);
        prefix
    }

    /// The namespace and the client's key of an engine's key. One that no namespace has counts as a bare one.
    #[inline]
    pub fn split(key: &[u8]) -> (Self, &[u8]) {
        match key.first() {
            Some(&MARK) => Self::split_prefix(key).unwrap_or((Self::BARE, key)),
            _ => (Self::BARE, key),
        }
    }

    /// The same. `None` for a key that no namespace has.
    pub fn try_split(key: &[u8]) -> Option<(Self, &[u8])> {
        match key.first()? {
            &MARK => Self::split_prefix(key),
            _ => Some((Self::BARE, key)),
        }
    }

    #[inline(never)]
    fn split_prefix(key: &[u8]) -> Option<(Self, &[u8])> {
        let mut number = 0;
        for (at, &byte) in key.iter().enumerate().take(PREFIX_LEN_MAX).skip(1) {
            number |= u32::from(byte & !MORE) << (DIGIT_BITS * (at as u32 - 1));
            if byte & MORE == 0 {
                let name = &key[at + 1..];
                return (!name.is_empty()).then_some((Self(number), name));
            }
        }
        None
    }

    /// The engine's key of a client's key, in a vector.
    pub fn stored(self, key: &[u8]) -> Vec<u8> {
        match self.leaves(key) {
            true => key.to_vec(),
            false => [self.prefix().bytes(), key].concat(),
        }
    }
}

/// What stands before keys of a namespace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prefix {
    bytes: [u8; PREFIX_LEN_MAX],
    len: usize,
}

impl Prefix {
    fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The namespace of each database, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping(pub [Namespace; DATABASES]);

impl Default for Mapping {
    /// That of a server without items: each database has the first namespace that was made for it.
    fn default() -> Self {
        Self(std::array::from_fn(|database| Namespace::of(database, 0)))
    }
}

impl Mapping {
    /// The database that has a namespace. `None` if it was flushed.
    pub fn database_of(&self, namespace: Namespace) -> Option<usize> {
        self.0.iter().position(|&its| its == namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_and_no_two_are_equal() {
        let last = Namespace::of(DATABASES - 1, Namespace::GENERATION_MAX);
        let mut namespaces: Vec<_> = (0..300).map(Namespace::numbered).collect();
        namespaces.extend([16_383, 16_384, 2_097_151, 2_097_152].map(Namespace::numbered));
        namespaces.push(last);
        let mut all = std::collections::HashSet::new();
        for namespace in namespaces {
            for key in [
                &b"k"[..],
                b"\0",
                b"\0k",
                b"\0\0k",
                b"\x01k",
                b"\0\x01k",
                b"\xff",
            ] {
                let stored = namespace.stored(key);
                assert!(stored.len() <= key.len() + PREFIX_LEN_MAX);
                assert_eq!(Namespace::split(&stored), (namespace, key));
                assert!(all.insert(stored));
            }
        }
    }

    #[test]
    fn database_0_costs_a_key_nothing_and_the_others_two_bytes() {
        assert!(Namespace::of(0, 0).leaves(b"key"));
        for database in 1..DATABASES {
            let namespace = Namespace::of(database, 0);
            assert_eq!(
                (namespace.home(), namespace.prefix().bytes().len()),
                (database, 2)
            );
        }
    }

    #[test]
    fn bytes_that_are_no_key_of_a_namespace_are_split_somehow() {
        for key in [
            &b""[..],
            b"\0",
            b"\0\x01",
            b"\0\xff",
            b"\0\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(Namespace::split(key), (Namespace::BARE, key));
            assert_eq!(Namespace::try_split(key), None);
        }
    }
}
