//! A checksum of content, which may be long.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

/// A seeded function over content: a change by accident leaves the 64 bits as they were once in 2^64. It is not
/// cryptographic: who sees checksums may find the seed.
///
/// [`KeyHasher`](crate::hash::KeyHasher) is for keys, which are short. This is the variant of the function with more code, which
/// takes more bytes at a time: the fastest of its strength.
#[derive(Clone)]
pub struct Checksum(RapidSecrets);

impl Checksum {
    /// The function of a seed.
    pub const fn seeded(seed: u64) -> Self {
        Self(RapidSecrets::seed(seed))
    }

    /// The checksum of these bytes.
    pub fn of(&self, content: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, false, false>(content, &self.0)
    }
}

impl std::fmt::Debug for Checksum {
    /// Does not show the seed, with which contents of one checksum could be made.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Checksum")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_the_seed_count() {
        let checksum = Checksum::seeded(1);
        for len in [1, 16, 17, 48, 300, 5000] {
            let mut content = vec![7; len];
            let whole = checksum.of(&content);
            assert_ne!(whole, checksum.of(&content[1..]));
            assert_ne!(whole, Checksum::seeded(2).of(&content));
            for at in 0..len {
                content[at] ^= 1 << (at % 8);
                assert_ne!(whole, checksum.of(&content), "byte {at} of {len}");
                content[at] ^= 1 << (at % 8);
            }
        }
    }
}
