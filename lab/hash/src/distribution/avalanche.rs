//! Avalanche: each bit of a key should flip each bit of the bucket with a chance of a half.

/// The results of flipping bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Avalanche {
    /// The mean chance, over all pairs of a bit in and a bit out. 0.5 is perfect.
    pub mean: f64,
    /// The chance that is furthest from 0.5: 0 where a bit of the key never reaches a bit of the
    /// bucket, 1 where it always does.
    pub worst: f64,
    /// The share of the pairs within 0.05 of 0.5.
    pub good: f64,
}

/// Flips each of the bits `bits_in` of each key, and observes the low `bits_out` bits of the result of `hash`.
///
/// The precision of the chances depends on the number of keys: with 1000, about 0.016. `None` if there are no keys or
/// no bits.
pub fn avalanche<K: Copy>(
    keys: &[K],
    bits_in: &[u32],
    bits_out: u32,
    flip: impl Fn(K, u32) -> K,
    hash: impl Fn(K) -> u64,
) -> Option<Avalanche> {
    if keys.is_empty() || bits_in.is_empty() || bits_out == 0 {
        return None;
    }
    let mut turned = vec![0_u32; bits_in.len() * bits_out as usize];
    for &key in keys {
        let before = hash(key);
        let turned = turned.chunks_exact_mut(bits_out as usize);
        for (&bit, turned) in bits_in.iter().zip(turned) {
            let difference = before ^ hash(flip(key, bit));
            for (out, turned) in turned.iter_mut().enumerate() {
                *turned += (difference >> out & 1) as u32;
            }
        }
    }
    let chance = |&turned: &u32| f64::from(turned) / keys.len() as f64;
    let from_half = |chance: &f64| (chance - 0.5).abs();
    let chances = || turned.iter().map(chance);
    let pairs = turned.len() as f64;
    Some(Avalanche {
        mean: chances().sum::<f64>() / pairs,
        worst: chances().max_by(|one, other| from_half(one).total_cmp(&from_half(other)))?,
        good: chances().filter(|chance| from_half(chance) <= 0.05).count() as f64 / pairs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::flipped;
    use nuthatch_base::hash::KeyHasher;

    const ALL: [u32; 64] = {
        let mut bits = [0; 64];
        let mut bit = 0;
        while bit < 64 {
            bits[bit as usize] = bit;
            bit += 1;
        }
        bits
    };

    #[test]
    fn identity_passes_one_bit_on() {
        let keys: Vec<u64> = (0..100).collect();
        let seen = avalanche(&keys, &ALL, 8, flipped::<u64>, |key| key).unwrap();
        // 8 of 512 pairs always flip, the others never.
        assert_eq!(seen.mean, 8.0 / 512.0);
        assert_eq!((seen.worst - 0.5).abs(), 0.5);
        assert_eq!(seen.good, 0.0);
    }

    #[test]
    fn the_default_function_turns_half_of_all() {
        let hasher = KeyHasher::seeded(9);
        let keys: Vec<u64> = (0..4000).collect();
        let hash = |key: u64| hasher.hash(&key.to_le_bytes());
        let seen = avalanche(&keys, &ALL, 64, flipped::<u64>, hash).unwrap();
        assert!((seen.mean - 0.5).abs() < 0.002, "{seen:?}");
        // Five and a half standard deviations for the worst of 4096.
        assert!((seen.worst - 0.5).abs() < 0.044, "{seen:?}");
        assert_eq!(seen.good, 1.0);
    }

    #[test]
    fn nothing_to_turn() {
        let none: [u64; 0] = [];
        assert_eq!(avalanche(&none, &ALL, 8, flipped::<u64>, |key| key), None);
        assert_eq!(
            avalanche(&[1_u64], &ALL, 0, flipped::<u64>, |key| key),
            None
        );
    }
}
