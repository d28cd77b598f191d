//! Random numbers that only have to differ: for the first bucket to look at, and the item to push aside.

/// Marsaglia's xorshift, of 64 bits: no division, no table, and its state is never 0.
#[derive(Clone, Debug)]
pub struct Xorshift(u64);

impl Xorshift {
    /// The numbers of a seed. Any seed is good enough.
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
