//! The functions over bytes from other crates: the one place that calls each.

use std::hash::Hasher;

use fnv::FnvHasher;
use rapidhash::v3::rapidhash_v3;
use siphasher::sip::SipHasher13;

/// FNV-1a with 64 bits.
#[inline(always)]
pub fn fnv_1a(bytes: &[u8]) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// CRC-32C (Castagnoli).
#[inline(always)]
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// XXH3 with 64 bits and its default secret.
#[inline(always)]
pub fn xxh3(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// rapidhash V3 with its default seed: what [`KeyHasher`](nuthatch_base::hash::KeyHasher) would be with a public seed.
#[inline(always)]
pub fn rapidhash(bytes: &[u8]) -> u64 {
    rapidhash_v3(bytes)
}

/// SipHash-1-3 under a key of 128 bits.
#[inline(always)]
pub fn siphash_1_3(bytes: &[u8], key: [u64; 2]) -> u64 {
    SipHasher13::new_with_keys(key[0], key[1]).hash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_answers() {
        // The FNV page's test vectors (draft-eastlake-fnv, appendix C).
        assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
        // RFC 3720, B.4, and the check value of the CRC catalogue.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        // xxHash's specification: the empty input under seed 0.
        assert_eq!(xxh3(b""), 0x2d06_8005_38d3_94c2);
    }

    /// SipHash-1-3 of the bytes 0, 1, 2, … under the key 00 01 … 0f: the first rows of the vectors that
    /// the Rust and Linux test suites share.
    #[test]
    fn siphash_vectors() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let bytes = [0, 1, 2];
        let expected: [u64; 4] = [
            0xabac_0158_050f_c4dc,
            0xc9f4_9bf3_7d57_ca93,
            0x82cb_9b02_4dc7_d44d,
            0x8bf8_0ab8_e7dd_f7fb,
        ];
        for (len, expected) in expected.into_iter().enumerate() {
            assert_eq!(siphash_1_3(&bytes[..len], key), expected, "{len} bytes");
        }
    }

    #[test]
    fn rapidhash_is_not_ours() {
        // Ours has a seed; under the same bytes the two must not meet.
        let seeded = nuthatch_base::hash::KeyHasher::seeded(1);
        assert_ne!(rapidhash(b"seed"), seeded.hash(b"seed"));
        assert_eq!(rapidhash(b"seed"), rapidhash(b"seed"));
    }
}
