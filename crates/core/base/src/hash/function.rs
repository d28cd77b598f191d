//! The default hash function: rapidhash, seeded once a process.

use std::hash::{BuildHasher, RandomState};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline, rapidhash_v3_nano_inline};

/// A seeded hash function over keys.
///
/// With [`KeyHasher::random`] no one outside the process can choose keys that fall into one bucket.
#[derive(Clone)]
pub struct KeyHasher {
    secrets: RapidSecrets,
}

/// For keys of up to this many bytes all variants of rapidhash V3 are the same.
const SHORT: usize = 16;

impl KeyHasher {
    /// A function that no one outside this process can predict.
    pub fn random() -> Self {
        Self::seeded(Self::random_seed())
    }

    /// A seed that no one outside this process can predict.
    pub fn random_seed() -> u64 {
        // The standard library draws this from the operating system.
        RandomState::new().hash_one(0x6e75_7468_6174_6368_u64)
    }

    /// The function of a seed: the same keys give the same hashes in every process.
    pub const fn seeded(seed: u64) -> Self {
        Self {
            secrets: RapidSecrets::seed(seed),
        }
    }

    /// All 64 bits are usable: avalanche is on.
    ///
    /// Short keys are hashed inline in the caller's code, where a length that the compiler knows leaves a dozen
    /// instructions; longer ones by a call.
    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> u64 {
        if key.len() <= SHORT {
            rapidhash_v3_inline::<true, true, false>(key, &self.secrets)
        } else {
            self.hash_long(key)
        }
    }

    #[inline(never)]
    fn hash_long(&self, key: &[u8]) -> u64 {
        rapidhash_v3_nano_inline::<true, false>(key, &self.secrets)
    }
}

impl std::fmt::Debug for KeyHasher {
    /// Does not show the seed: a log must not reveal how to flood a bucket.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("KeyHasher")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_are_hashed_by_the_same_function() {
        let hasher = KeyHasher::random();
        let key: Vec<u8> = (0..=SHORT as u8 + 1).collect();
        for len in 0..key.len() {
            assert_eq!(
                hasher.hash(&key[..len]),
                hasher.hash_long(&key[..len]),
                "{len}"
            );
        }
    }

    #[test]
    fn a_seed_decides_the_hash() {
        let key = b"the same key";
        assert_eq!(
            KeyHasher::seeded(1).hash(key),
            KeyHasher::seeded(1).hash(key)
        );
        assert_ne!(
            KeyHasher::seeded(1).hash(key),
            KeyHasher::seeded(2).hash(key)
        );
        assert_ne!(KeyHasher::random().hash(key), KeyHasher::random().hash(key));
    }
}
