//! Tests of chosen keys: an attacker who knows a function can fill one bucket, but not under the seeded default.

use nuthatch_base::spread::{Histogram, Perfect};
use nuthatch_hash_lab::functions::{DEFAULT, Entry, HashedKey, Registry};
use nuthatch_hash_lab::key::{Block, Dentry, Inode, Kind, Numeric, Page};
use nuthatch_hash_lab::table::Table;

/// Keys that an attacker sends.
const CHOSEN: usize = 300;
const TABLE: Table = Table::of_bits(10);

/// Keys that all fall into one bucket under this function, found as an attacker would: by trying.
fn collide<K: HashedKey>(entry: &Entry, candidates: impl Iterator<Item = K> + Clone) -> Vec<K> {
    let function = K::function(entry).unwrap();
    let first = candidates.clone().next().unwrap();
    let aim = function.bucket(first, TABLE);
    candidates
        .filter(|&key| function.bucket(key, TABLE) == aim)
        .take(CHOSEN)
        .collect()
}

fn largest<K: HashedKey>(entry: &Entry, keys: &[K]) -> u64 {
    let mut counts = vec![0; TABLE.buckets() as usize];
    K::function(entry).unwrap().count(keys, TABLE, &mut counts);
    Histogram::of_counts(counts.into_iter().map(u64::from)).largest()
}

/// Attacks every function over this type of key. Returns how many.
fn attack<K: HashedKey>(candidates: impl Iterator<Item = K> + Clone) -> usize {
    // The attacker's registry, and the one of the attacked process: the code is the same, the seed is not.
    let attacker = Registry::new(1);
    let victim = Registry::new(rand_seed());
    let default = victim.find(DEFAULT).unwrap();
    let perfect = Perfect::of(CHOSEN as u64, TABLE.buckets()).largest();
    let mut attacked = 0;
    for entry in attacker.taking(K::KIND) {
        let keys = collide(entry, candidates.clone());
        let name = entry.name;
        assert_eq!(keys.len(), CHOSEN, "{name}: not enough candidates");
        let same = victim.find(name).unwrap();
        if entry.seeded {
            // The seed differs, so the keys that the attacker found do not collide here.
            assert!(largest(same, &keys) <= perfect + 6, "{name}");
        } else {
            assert_eq!(largest(same, &keys), CHOSEN as u64, "{name}");
            assert!(
                largest(default, &keys) <= perfect + 6,
                "{name} against the default"
            );
            attacked += 1;
        }
    }
    attacked
}

/// Another one in every run, as in every process.
fn rand_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0_u8)
}

/// Numbers without a pattern that a function might follow (Weyl's sequence, folded). They have 32 bits, as on the
/// paper's machines.
fn numbers() -> impl Iterator<Item = u64> + Clone {
    (1..4_000_000_u64).map(|number| {
        let turned = number.wrapping_mul(0xd129_0d3d_65e7_b1a5);
        (turned ^ (turned >> 32)) & 0xffff_ffff
    })
}

fn pairs<K: Numeric>() -> impl Iterator<Item = K> + Clone {
    numbers().map(|number| K::from_parts([number.rotate_left(7) & 0xffff_ffff, number]))
}

#[test]
fn chosen_keys_flood_every_unseeded_function_and_not_the_default() {
    let attacked = [
        attack::<Page>(pairs()),
        attack::<Block>(pairs()),
        attack::<Dentry>(pairs()),
        attack::<Inode>(pairs()),
        attack::<u64>(numbers().map(|number| number << 32 | number)),
    ];
    let texts: Vec<[u8; 8]> = numbers().take(1_000_000).map(u64::to_le_bytes).collect();
    let of_bytes = attack::<&[u8]>(texts.iter().map(|text| &text[..]));
    let registry = Registry::new(1);
    let unseeded = |kind| registry.taking(kind).filter(|entry| !entry.seeded).count();
    let kinds = [
        Kind::Page,
        Kind::Block,
        Kind::Dentry,
        Kind::Inode,
        Kind::Number,
    ];
    assert_eq!(attacked, kinds.map(unseeded));
    assert_eq!(of_bytes, unseeded(Kind::Bytes));
}
