//! The seed: one number that determines a whole run.

use rand::SeedableRng;
use rand::rngs::SmallRng;

/// The seed of a run. Print it, and the run can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The generator of one thread, which differs from those of all other threads of this seed.
    pub fn thread(self, thread: usize) -> SmallRng {
        // Multiplying by an odd number keeps distinct threads distinct; `mix` spreads them.
        let stream = (thread as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        SmallRng::seed_from_u64(mix(self.0 ^ mix(stream)))
    }
}

/// Spreads the bits of a number over all 64; every step can be undone, so no two numbers become the same.
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits ^= bits >> 30;
    bits = bits.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits ^= bits >> 27;
    bits = bits.wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use rand::RngCore;

    use super::*;

    #[test]
    fn a_seed_repeats_and_threads_differ() {
        let first = |seed: u64, thread| Seed(seed).thread(thread).next_u64();
        assert_eq!(first(7, 3), first(7, 3));
        assert_ne!(first(7, 3), first(7, 4));
        assert_ne!(first(7, 3), first(8, 3));
        assert_ne!(first(7, 0), first(0, 7));
    }
}
