//! Popularity: how often each key is requested.

use rand::Rng;
use rand_distr::{Distribution as _, Zipf};

use crate::seed::mix;

/// The shape of a workload's popularity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All keys equally often.
    Uniform,
    /// The key of rank r is requested in proportion to 1 / r^theta. YCSB's theta is 0.99.
    Zipf {
        /// The exponent, 0 or more.
        theta: f64,
    },
    /// The less popular half of the keys is requested evenly, and seldom; the other half by Zipf's law.
    Halves {
        /// The exponent, 0 or more.
        theta: f64,
        /// The share of requests for the less popular half.
        rare: f64,
    },
}

impl Distribution {
    /// YCSB's zipfian.
    pub const YCSB: Self = Self::Zipf { theta: 0.99 };
}

/// Draws key numbers below a count. Ranks are scattered over the numbers by a permutation, so that
/// popular keys are not neighbours, and each rank is exactly one key.
#[derive(Clone, Copy, Debug)]
pub struct Popularity {
    count: u64,
    ranks: Option<Zipf<f64>>,
    /// Ranks by Zipf's law, and the share of requests for those behind.
    head: u64,
    rare: f64,
}

impl Popularity {
    /// Key numbers from 0 to `count - 1`.
    ///
    /// Panics if there are none, or if theta is negative or not a number.
    pub fn new(distribution: Distribution, count: u64) -> Self {
        assert!(count > 0, "there must be a key to ask for");
        let (theta, head, rare) = match distribution {
            Distribution::Uniform => (None, count, 0.0),
            Distribution::Zipf { theta } => (Some(theta), count, 0.0),
            // A single key has no other half.
            Distribution::Halves { theta, rare } if count > 1 => {
                (Some(theta), count.div_ceil(2), rare)
            }
            Distribution::Halves { theta, .. } => (Some(theta), count, 0.0),
        };
        let zipf = |theta| Zipf::new(head as f64, theta).expect("theta is 0 or more");
        Self {
            count,
            ranks: theta.map(zipf),
            head,
            rare,
        }
    }

    /// How many keys there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number of the next key to request.
    pub fn draw(&self, random: &mut impl Rng) -> u64 {
        match &self.ranks {
            None => random.random_range(0..self.count),
            Some(_) if self.rare > 0.0 && random.random_bool(self.rare) => {
                self.key_of_rank(random.random_range(self.head..self.count) + 1)
            }
            Some(ranks) => {
                let rank = ranks.sample(random) as u64;
                self.key_of_rank(rank.clamp(1, self.head))
            }
        }
    }

    /// The number of the key with this rank, the first being 1.
    pub fn key_of_rank(&self, rank: u64) -> u64 {
        debug_assert!((1..=self.count).contains(&rank));
        // A permutation of the least power of two that holds all ranks. A number that falls outside is permuted again,
        // until it is inside, which it reaches because it started there.
        let bits = self.count.next_power_of_two().trailing_zeros().max(1);
        let mut number = rank - 1;
        loop {
            number = permute(number, bits);
            if number < self.count {
                return number;
            }
        }
    }
}

/// A permutation of the numbers of `bits` bits: each step can be undone within them.
fn permute(number: u64, bits: u32) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let shift = bits.div_ceil(2);
    let mut number = number;
    for round in 0..3 {
        number ^= number >> shift;
        number = number.wrapping_mul(mix(round + 1) | 1) & mask;
        number = number.wrapping_add(mix(round + 17)) & mask;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    #[test]
    fn ranks_are_scattered_over_all_keys() {
        for count in [1, 2, 3, 1000, 1024, 1025, 100_003] {
            let popularity = Popularity::new(Distribution::YCSB, count);
            let mut seen = vec![false; count as usize];
            let mut neighbours = 0;
            let mut last = None;
            for rank in 1..=count {
                let key = popularity.key_of_rank(rank);
                assert!(!std::mem::replace(&mut seen[key as usize], true));
                neighbours += u64::from(last == key.checked_sub(1));
                last = Some(key);
            }
            assert!(neighbours <= 2 + count / 20, "{neighbours} of {count}");
        }
    }

    /// Draws from a distribution and compares the shares of the first ranks with the formula's.
    fn shares_are_right(theta: f64, count: u64, sum: f64) {
        let popularity = Popularity::new(Distribution::Zipf { theta }, count);
        let mut random = Seed(1).thread(0);
        const DRAWS: u32 = 400_000;
        const TOP: usize = 10;
        let top: Vec<u64> = (1..=TOP as u64)
            .map(|r| popularity.key_of_rank(r))
            .collect();
        let mut hits = [0_u32; TOP];
        for _ in 0..DRAWS {
            let key = popularity.draw(&mut random);
            assert!(key < count);
            if let Some(rank) = top.iter().position(|&other| other == key) {
                hits[rank] += 1;
            }
        }
        for (index, &hits) in hits.iter().enumerate() {
            let expected = (index as f64 + 1.0).powf(-theta) / sum * f64::from(DRAWS);
            // Five standard deviations of a Poisson count.
            let slack = 5.0 * expected.sqrt() + 2.0;
            let off = (f64::from(hits) - expected).abs();
            assert!(
                off <= slack,
                "rank {}: {hits}, not {expected:.1}",
                index + 1
            );
        }
    }

    /// The sum of 1 / r^theta for r up to n: exact at first, then Euler and Maclaurin's formula.
    fn harmonic(count: u64, theta: f64) -> f64 {
        let exact = count.min(1000);
        let head: f64 = (1..=exact).map(|r| (r as f64).powf(-theta)).sum();
        let (a, b) = (exact as f64, count as f64);
        let integral = (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta);
        let edges = (b.powf(-theta) - a.powf(-theta)) / 2.0;
        head + integral + edges
    }

    #[test]
    fn zipf_has_the_frequencies_of_the_formula() {
        for theta in [0.0, 0.5, 0.99, 1.2] {
            for count in [10, 1000, 100_000_000] {
                shares_are_right(theta, count, harmonic(count, theta));
            }
        }
    }

    #[test]
    fn uniform_draws_every_key_alike() {
        let popularity = Popularity::new(Distribution::Uniform, 100);
        let mut random = Seed(2).thread(0);
        let mut hits = [0_u32; 100];
        for _ in 0..100_000 {
            hits[popularity.draw(&mut random) as usize] += 1;
        }
        assert!(hits.iter().all(|&hits| (840..1160).contains(&hits)));
    }
}
