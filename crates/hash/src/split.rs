//! Cuts a hash into the parts a table needs.
//!
//! ```text
//!  63      48 47                 n n-1        0
//! +----------+--------------------+------------+
//! |  tag 16  |  grows the bucket  |  bucket    |     n = log2(buckets), at most 48
//! +----------+--------------------+------------+
//! ```
//!
//! The bucket takes the low bits, so that a table that doubles keeps an item in its bucket or moves
//! it to the bucket half a table above: one more bit of the same hash decides. The tag takes the
//! top bits and never meets the bucket's.

/// Buckets that a table may have at most (2^48), so that bucket and tag share no bit.
pub const BUCKET_BITS_MAX: u32 = 48;

/// The bucket in a table of `mask + 1` buckets, a power of two.
#[inline(always)]
pub const fn bucket(hash: u64, mask: u64) -> u64 {
    hash & mask
}

/// A 16-bit tag, never 0: 0 marks an empty slot.
#[inline(always)]
pub const fn tag16(hash: u64) -> u64 {
    let tag = hash >> 48;
    if tag == 0 { 1 } else { tag }
}

/// MemC3's one-byte tag, never 0.
#[inline(always)]
pub const fn tag8(hash: u64) -> u64 {
    let tag = hash >> 56;
    if tag == 0 { 1 } else { tag }
}

/// A 32-bit tag, never 0: 0 marks an empty slot. It meets no bucket of a table of up to 2^32.
#[inline(always)]
pub const fn tag32(hash: u64) -> u64 {
    let tag = hash >> 32;
    if tag == 0 { 1 } else { tag }
}

/// The whole hash as a tag, never 0: 0 marks an empty slot.
#[inline(always)]
pub const fn tag64(hash: u64) -> u64 {
    if hash == 0 { 1 } else { hash }
}

/// Spreads a 32-bit hash, such as a network card computes, over the 64 bits that the others cut:
/// its top half is the 16-bit tag, its low bits are the bucket, as in Open vSwitch's signature
/// cache.
#[inline(always)]
pub const fn widen(hash: u32) -> u64 {
    (hash as u64) << 32 | hash as u64
}

/// MemC3's `HASH(tag)`: what to xor a bucket with to get the other candidate (section 3.1).
///
/// Always odd, so that the two candidates differ in every table of two buckets or more, and lie on
/// two different version stripes.
#[inline(always)]
pub const fn partner_offset(tag: u64) -> u64 {
    // Two rounds of multiply and fold: with one, low bits of the product see low bits of the tag
    // only, and the high half of the tag would not choose the partner in small tables.
    let mixed = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_each_other() {
        for tag in 1..=0xffff_u64 {
            for bucket in [0_u64, 1, 77, 8191] {
                let other = bucket ^ (partner_offset(tag) & 8191);
                assert_ne!(bucket, other);
                assert_eq!(bucket, other ^ (partner_offset(tag) & 8191));
            }
        }
    }

    #[test]
    fn partners_spread_over_the_table() {
        let mut seen = vec![0_u32; 8192];
        for tag in 1..=0xffff_u64 {
            seen[(partner_offset(tag) & 8191) as usize] += 1;
        }
        let used = seen.iter().filter(|&&count| count > 0).count();
        // Only odd offsets exist: 4096 of them, 16 tags each on average.
        assert!(used > 4080, "{used} of 4096 offsets used");
        assert!(*seen.iter().max().unwrap() < 48);
    }

    #[test]
    fn tags_are_never_empty() {
        assert_eq!(tag16(0), 1);
        assert_eq!(tag8(0), 1);
        assert_eq!(tag32(0xffff_ffff), 1);
        assert_eq!(tag64(0), 1);
        assert_eq!(tag16(u64::MAX), 0xffff);
        assert_eq!(tag8(u64::MAX), 0xff);
        assert_eq!(tag32(u64::MAX), 0xffff_ffff);
        assert_eq!(tag64(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_widened_hash_is_cut_as_open_vswitch_cuts_it() {
        let hash = widen(0xabcd_1234);
        assert_eq!(tag16(hash), 0xabcd);
        assert_eq!(tag32(hash), 0xabcd_1234);
        assert_eq!(bucket(hash, 0xfff), 0x234);
    }
}
