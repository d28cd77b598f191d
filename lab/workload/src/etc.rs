//! Sizes of items as in ETC, the most general of the memcached pools in Atikoglu et al., "Workload analysis of a large-scale
//! key-value store", SIGMETRICS 2012: its fitted distributions (section 5).

use crate::Seed;
use rand::Rng;

/// Bytes of a key: the generalised extreme value distribution.
const KEY: ExtremeValue = ExtremeValue {
    location: 30.7984,
    scale: 8.20449,
    shape: 0.078688,
};

/// Fewer bytes could not tell ten million keys apart; the distribution has next to none of them.
const KEY_MIN: f64 = 8.0;
/// memcached's longest.
const KEY_MAX: f64 = 250.0;

/// The share of values of 0, 1, 2, ... bytes: the paper's table.
const SHORT: [f64; 15] = [
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837,
    0.00837, 0.08989, 0.00092, 0.00326, 0.01980,
];

/// Bytes of a value beyond the short ones: the generalised Pareto distribution.
const LONG: Pareto = Pareto {
    scale: 214.476,
    shape: 0.348238,
};

/// memcached's longest value is a mebibyte with its key and header.
const VALUE_MAX: f64 = 1_000_000.0;

struct ExtremeValue {
    location: f64,
    scale: f64,
    shape: f64,
}

struct Pareto {
    scale: f64,
    shape: f64,
}

/// Bytes of the key and of the value of the item with this number: always the same. A value has at least one byte.
pub fn sizes(number: u64) -> (usize, usize) {
    let mut random = Seed(0xE7C).thread(number as usize);
    // Neither 0 nor 1, which have no quantile.
    let mut share = || random.random_range(1e-12..1.0 - 1e-12);
    (key_size(share()), value_size(share()))
}

fn key_size(share: f64) -> usize {
    let ExtremeValue {
        location,
        scale,
        shape,
    } = KEY;
    let size = location + scale / shape * ((-share.ln()).powf(-shape) - 1.0);
    size.clamp(KEY_MIN, KEY_MAX) as usize
}

fn value_size(share: f64) -> usize {
    let mut below = 0.0;
    for (size, part) in SHORT.iter().enumerate() {
        below += part;
        if share < below {
            return size.max(1);
        }
    }
    let rest = (1.0 - share) / (1.0 - below);
    let Pareto { scale, shape } = LONG;
    let size = SHORT.len() as f64 + scale / shape * (rest.powf(-shape) - 1.0);
    size.min(VALUE_MAX) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_distributed_as_the_paper_says() {
        const ITEMS: u64 = 400_000;
        let all: Vec<_> = (0..ITEMS).map(sizes).collect();
        let share = |is: &dyn Fn(&(usize, usize)) -> bool| {
            all.iter().filter(|one| is(one)).count() as f64 / ITEMS as f64
        };
        for (found, expected) in [
            (share(&|one| one.1 == 2), SHORT[2]),
            (share(&|one| one.1 == 11), SHORT[11]),
            (share(&|one| one.1 < 15), SHORT.iter().sum()),
            // The distributions' medians.
            (share(&|one| one.0 < 33), 0.4645),
            (share(&|one| one.0 < 34), 0.506),
            (share(&|one| one.1 < 15 + 168), 0.4416 + 0.5584 * 0.5),
        ] {
            assert!((found - expected).abs() < 0.006, "{found}, not {expected}");
        }
        assert!(
            all.iter()
                .all(|&(key, value)| (8..=250).contains(&key) && value >= 1)
        );
        assert!(all.iter().any(|one| one.1 > 10_000));
        assert_eq!(sizes(77), sizes(77));
    }
}
