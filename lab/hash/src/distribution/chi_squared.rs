//! The chi-squared test: whether keys spread as evenly as at random.

use nuthatch_base::spread::Histogram;

/// Pearson's statistic of the sizes of all buckets against the mean size.
///
/// A perfect hash gives about one for each degree of freedom, give or take the square root of twice
/// as many. Much more means that keys crowd together; much less that they avoid one another, as
/// consecutive numbers do under a function that keeps their order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChiSquared {
    /// The statistic.
    pub value: f64,
    /// Buckets less one.
    pub degrees: u64,
    /// The distance from what is expected, in standard deviations (after Wilson and Hilferty).
    pub z: f64,
    /// The chance that a perfect hash gives as much or more.
    pub p: f64,
}

impl ChiSquared {
    /// The statistic of a histogram. A table of one bucket, or without items, has no degree of freedom: z 0, p 1.
    pub fn of(histogram: &Histogram) -> Self {
        let (mean, degrees) = (histogram.mean(), histogram.buckets().saturating_sub(1));
        if mean == 0.0 || degrees == 0 {
            return Self {
                value: 0.0,
                degrees,
                z: 0.0,
                p: 1.0,
            };
        }
        let value: f64 = histogram
            .sizes()
            .iter()
            .map(|&(size, buckets)| (size as f64 - mean).powi(2) / mean * buckets as f64)
            .sum();
        let ninth = 2.0 / (9.0 * degrees as f64);
        let z = ((value / degrees as f64).cbrt() - (1.0 - ninth)) / ninth.sqrt();
        let p = libm::erfc(z / std::f64::consts::SQRT_2) / 2.0;
        Self {
            value,
            degrees,
            z,
            p,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Sizes 3, 0, 1, 0 with a mean of 1: 4 + 1 + 0 + 1.
        let chi = ChiSquared::of(&Histogram::of_counts([3, 0, 1, 0]));
        assert_eq!((chi.value, chi.degrees), (6.0, 3));
        // The tables' p for 6.0 and 3 degrees is 0.1116.
        assert!((chi.p - 0.1116).abs() < 0.002, "{}", chi.p);
    }

    #[test]
    fn the_tables_percentiles() {
        // Chi-squared of 100 degrees passes 124.342 with a chance of 0.05 and 77.929 with 0.95
        // (Abramowitz and Stegun, table 26.8).
        let p_of = |value: f64| {
            let ninth: f64 = 2.0 / 900.0;
            let z = ((value / 100.0).cbrt() - (1.0 - ninth)) / ninth.sqrt();
            libm::erfc(z / std::f64::consts::SQRT_2) / 2.0
        };
        assert!((p_of(124.342) - 0.05).abs() < 0.0005);
        assert!((p_of(77.929) - 0.95).abs() < 0.0005);
    }

    #[test]
    fn even_crowded_and_by_chance() {
        let even = ChiSquared::of(&Histogram::of_counts(vec![8; 1000]));
        assert!(even.z < -20.0 && even.p > 0.999);
        let crowded = ChiSquared::of(&Histogram::of_counts((0..1000).map(|at| (at % 4) * 8)));
        assert!(crowded.z > 20.0 && crowded.p < 1e-9);
        let hasher = nuthatch_base::hash::KeyHasher::seeded(5);
        let mut counts = vec![0_u64; 1024];
        for number in 0..8192_u64 {
            counts[(hasher.hash(&number.to_le_bytes()) & 1023) as usize] += 1;
        }
        let chance = ChiSquared::of(&Histogram::of_counts(counts));
        assert!(chance.z.abs() < 4.0, "{chance:?}");
    }

    #[test]
    fn nothing_to_judge() {
        for counts in [vec![], vec![5], vec![0, 0]] {
            let chi = ChiSquared::of(&Histogram::of_counts(counts));
            assert_eq!((chi.z, chi.p), (0.0, 1.0));
        }
    }
}
