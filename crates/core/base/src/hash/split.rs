//! The split of a hash: it cuts a hash into the parts that a table needs.
//!
//! ```text
//!  63      48 47                 n n-1        0
//! +----------+--------------------+------------+
//! |  tag 16  |  grows the bucket  |  bucket    |     n = log2(buckets), at most 48
//! +----------+--------------------+------------+
//! ```
//!
//! The bucket takes the low bits, so that a table that doubles keeps an item in its bucket or moves it to the bucket
//! half a table above: one more bit of the same hash decides. The tag takes the top bits and never overlaps with the
//! bucket's.
//!
//! A table in partitions takes the partition from the upper half and the bucket in it from the lower:
//!
//! ```text
//!  63                 32 31        n n-1       0
//! +---------------------+-----------+-----------+
//! |  partition: a share |   grows   |  bucket   |     n = log2(buckets), at most 32
//! +---------------------+-----------+-----------+
//! ```

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

/// A 32-bit tag, never 0: 0 marks an empty slot. It shares no bit with the bucket of a table of up to 2^32.
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

/// Spreads a 32-bit hash, such as a network card computes, over the 64 bits that the other functions cut: its top half
/// is the 16-bit tag, its low bits are the bucket, as in Open vSwitch's signature cache.
#[inline(always)]
pub const fn widen(hash: u32) -> u64 {
    (hash as u64) << 32 | hash as u64
}

/// MemC3's `HASH(tag)`: a bucket xor this value is the other candidate (section 3.1).
///
/// Always odd, so that the two candidates differ in every table of two buckets or more, and lie on
/// two different version stripes.
#[inline(always)]
pub const fn partner_offset(tag: u64) -> u64 {
    // Not the product's lowest bits: they depend on low bits of the tag only, and its high half would not choose the
    // partner in small tables. (With a shift of 32 or 36 a flow cache as large as its table held 0.05 % more than
    // theory says of random partners.)
    (tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24) | 1
}

/// The partition among `partitions`, any number from 1 to 2^32: the upper half of the hash as a
/// fraction of it.
#[inline(always)]
pub const fn partition(hash: u64, partitions: u32) -> u32 {
    (((hash >> 32) * partitions as u64) >> 32) as u32
}

/// The least hash of a partition. Of two partitions or more each has only hashes that are less than 2^63 above it.
pub const fn partition_start(partition: u32, partitions: u32) -> u64 {
    ((partition as u64) << 32).div_ceil(partitions as u64) << 32
}

/// The bucket in an array of `buckets` (at least 1) that grows by one at a time: as many low bits as it takes to number
/// all buckets; one bit less where that would be a bucket that does not exist yet.
#[inline(always)]
pub const fn bucket_of_growing(hash: u64, buckets: u32) -> u32 {
    let mask = u32::MAX >> ((buckets - 1) | 1).leading_zeros();
    let bucket = hash as u32 & mask;
    if bucket < buckets {
        bucket
    } else {
        bucket & mask >> 1
    }
}

/// A hash whose low half is this bucket's number, whatever the size of the array.
#[inline(always)]
pub const fn hash_of_bucket(bucket: u32) -> u64 {
    bucket as u64
}

/// The position of a hash in an order of all hashes in which each bucket of an array that grows by one at a time is a
/// contiguous stretch, before and after it grew: its low half with the bits reversed.
#[inline(always)]
pub const fn walk_position(hash: u64) -> u32 {
    (hash as u32).reverse_bits()
}

/// The last position of a bucket's stretch; the first is that of the bucket's number as a hash.
#[inline(always)]
pub const fn walk_end(bucket: u32, buckets: u32) -> u32 {
    let mask = u32::MAX >> ((buckets - 1) | 1).leading_zeros();
    // The number of a bucket that was divided already, or that a division made, uses all bits; the others use one less.
    let divided = bucket | (mask ^ mask >> 1) < buckets;
    let bits = if divided { mask } else { mask >> 1 };
    (bucket | !bits).reverse_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_share_evenly_and_by_the_upper_half() {
        for partitions in [1, 3, 64, 80, 4096] {
            assert_eq!(partition(0xffff_ffff, partitions), 0);
            assert_eq!(partition(u64::MAX, partitions), partitions - 1);
            let mut seen = vec![0_u32; partitions as usize];
            for number in 0..64 * u64::from(partitions) {
                let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                seen[partition(hash, partitions) as usize] += 1;
            }
            assert!(seen.iter().all(|&count| (32..=128).contains(&count)));
        }
    }

    #[test]
    fn a_partition_begins_at_its_start_and_is_at_most_half_of_all() {
        for partitions in [2, 3, 5, 64, 80, 1023, 4096, u32::MAX] {
            for number in [0, 1, partitions / 2, partitions - 2, partitions - 1] {
                let start = partition_start(number, partitions);
                assert_eq!(partition(start, partitions), number);
                let end = match number + 1 == partitions {
                    true => u64::MAX,
                    false => partition_start(number + 1, partitions) - 1,
                };
                assert_eq!(partition(end, partitions), number);
                assert!(end - start < 1 << 63, "{number} of {partitions}");
            }
        }
    }

    #[test]
    fn a_growing_array_moves_elements_only_into_the_new_bucket() {
        for buckets in 1..200 {
            for number in 0..300_u64 {
                let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let before = bucket_of_growing(hash, buckets);
                let after = bucket_of_growing(hash, buckets + 1);
                assert!(before < buckets);
                let divided = bucket_of_growing(hash_of_bucket(buckets), buckets);
                assert!(after == before || (after, before) == (buckets, divided));
            }
        }
    }

    #[test]
    fn buckets_are_stretches_of_the_walk() {
        for buckets in 1..200_u32 {
            let mut position = 0_u32;
            let mut met = 0;
            loop {
                let bucket = bucket_of_growing(u64::from(position.reverse_bits()), buckets);
                assert_eq!(walk_position(hash_of_bucket(bucket)), position);
                let end = walk_end(bucket, buckets);
                assert_eq!(
                    bucket_of_growing(u64::from(end.reverse_bits()), buckets),
                    bucket
                );
                met += 1;
                match end.checked_add(1) {
                    Some(next) => position = next,
                    None => break,
                }
            }
            assert_eq!(met, buckets);
        }
    }

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
