//! Numbers that only have to differ: which bucket is looked at first, which item is pushed aside.

/// Marsaglia's xorshift, of 64 bits: no division, no table, and never 0 inside.
#[derive(Clone, Debug)]
pub struct Xorshift(u64);

impl Xorshift {
    /// Numbers that follow from a seed; any seed will do.
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// The next number below 2^53. The lowest bits, which are the poorest, are left out.
    #[expect(
        clippy::should_implement_trait,
        reason = "it never ends, and nobody iterates over it"
    )]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_spread_whatever_the_seed() {
        for seed in [0, 1, 2, u64::MAX] {
            let mut random = Xorshift::new(seed);
            let mut counts = [0; 16];
            // The first few still show the seed.
            (0..64).for_each(|_| _ = random.next());
            for _ in 0..16_000 {
                let number = random.next();
                assert!(number < 1 << 53);
                counts[(number % 16) as usize] += 1;
            }
            assert!(counts.iter().all(|count| (800..1200).contains(count)));
        }
    }
}
