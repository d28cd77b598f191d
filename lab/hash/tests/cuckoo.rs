//! Test of a table with two buckets a key against the theory.

use nuthatch_base::spread::Perfect;
use nuthatch_hash_lab::distribution::cuckoo::{Shape, fill};

/// A table of two buckets a key, filled with random hashes, has the load and false tags that the theory expects.
#[test]
fn a_cuckoo_table_fills_as_expected() {
    let mut state = 1_u64;
    let hashes: Vec<u64> = (0..7 << 14)
        .map(|_| {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            let mixed = (state ^ state >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
            mixed ^ mixed >> 33
        })
        .collect();
    // 7 << 14 items fill the largest power of two of buckets below items / 8.
    let filled = fill(&hashes, Shape::EIGHT_WAY).unwrap();
    let seen = &filled.occupancy;
    let perfect = Perfect::in_slots(seen.items(), seen.buckets(), 8, 16);
    for size in 0..=8 {
        let expected = perfect.buckets_of(size);
        let off = (seen.buckets_of(size) as f64 - expected).abs();
        assert!(
            off < 8.0 * expected.sqrt() + 8.0,
            "{size}: {off} off {expected}"
        );
    }
}
