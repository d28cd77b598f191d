//! A block's checksum: 64 bits over its content and its version.
//!
//! OpenSHMEM does not say in which order a Get reads, so equal versions at a block's two ends do not prove that the
//! words between them are whole (supplement, 3.2). The checksum does, up to one torn read in 2^64. It is seeded, so
//! that no client can store a value that looks like a block.

/// A job's checksum function.
#[derive(Clone)]
pub struct Checksum(nuthatch_base::hash::Checksum);

impl Checksum {
    /// The function of a seed.
    pub fn seeded(seed: u64) -> Self {
        Self(nuthatch_base::hash::Checksum::seeded(seed))
    }

    /// The checksum of the content's words. It differs for each version.
    #[inline]
    pub fn of(&self, version: u64, content: &[u64]) -> u64 {
        let bytes: &[u8] = bytemuck::cast_slice(content);
        self.0.of(bytes) ^ version.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_and_the_version_count() {
        let checksum = Checksum::seeded(1);
        let mut words = [7; 40];
        let whole = checksum.of(3, &words);
        assert_ne!(whole, checksum.of(4, &words));
        assert_ne!(whole, Checksum::seeded(2).of(3, &words));
        for word in 0..words.len() {
            words[word] ^= 1 << word;
            assert_ne!(whole, checksum.of(3, &words));
            words[word] ^= 1 << word;
        }
    }
}
