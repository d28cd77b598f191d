//! The mix and order of operations, planned before the clock starts.

use rand::Rng;

use crate::distribution::Popularity;
use crate::seed::Seed;

/// One planned operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Get the key with this number.
    Get(u64),
    /// Set the key with this number.
    Set(u64),
}

/// The share of gets among operations; the rest are sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    get_ratio: f64,
}

impl Mix {
    /// YCSB's workload A: update heavy.
    pub const YCSB_A: Self = Self { get_ratio: 0.5 };
    /// YCSB's workload B: read mostly.
    pub const YCSB_B: Self = Self { get_ratio: 0.95 };
    /// YCSB's workload C: read only.
    pub const YCSB_C: Self = Self { get_ratio: 1.0 };

    /// A share from 0 to 1. Panics outside of it.
    pub fn new(get_ratio: f64) -> Self {
        assert!((0.0..=1.0).contains(&get_ratio), "a ratio is from 0 to 1");
        Self { get_ratio }
    }

    /// Draws the operations of one thread.
    pub fn plan(&self, popularity: &Popularity, seed: Seed, thread: usize, count: usize) -> Plan {
        let mut random = seed.thread(thread);
        let mut packed = Vec::with_capacity(count);
        for _ in 0..count {
            let number = popularity.draw(&mut random);
            let is_set = !random.random_bool(self.get_ratio);
            packed.push(number << 1 | u64::from(is_set));
        }
        Plan { packed }
    }
}

/// The operations of one thread, 8 bytes each: reading them must not disturb the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The key's number shifted left by one; the lowest bit is set for a set.
    packed: Vec<u64>,
}

impl Plan {
    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// The operations in order.
    pub fn iter(&self) -> impl Iterator<Item = Operation> + '_ {
        self.packed.iter().copied().map(unpack)
    }

    /// The operations cut into batches of `size`; the last may be shorter.
    pub fn batches(&self, size: usize) -> impl Iterator<Item = impl Iterator<Item = Operation>> {
        self.packed
            .chunks(size)
            .map(|batch| batch.iter().copied().map(unpack))
    }
}

fn unpack(packed: u64) -> Operation {
    if packed & 1 == 0 {
        Operation::Get(packed >> 1)
    } else {
        Operation::Set(packed >> 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Distribution;

    #[test]
    fn a_plan_has_the_ratio_and_repeats_by_seed() {
        let popularity = Popularity::new(Distribution::YCSB, 1000);
        let plan = |seed, thread| Mix::YCSB_B.plan(&popularity, Seed(seed), thread, 20_000);
        assert_eq!(plan(1, 0), plan(1, 0));
        assert_ne!(plan(1, 0), plan(1, 1));
        assert_ne!(plan(1, 0), plan(2, 0));
        let planned = plan(1, 0);
        let gets = planned.iter().filter(|op| matches!(op, Operation::Get(_)));
        assert!((18_800..19_200).contains(&gets.count()));
    }

    #[test]
    fn extreme_mixes_are_pure() {
        let popularity = Popularity::new(Distribution::Uniform, 10);
        let all = |mix: Mix, kind: fn(Operation) -> bool| {
            let plan = mix.plan(&popularity, Seed(1), 0, 1000);
            plan.len() == 1000 && plan.iter().all(kind)
        };
        assert!(all(Mix::YCSB_C, |op| matches!(op, Operation::Get(0..10))));
        assert!(all(Mix::new(0.0), |op| matches!(op, Operation::Set(0..10))));
    }

    #[test]
    fn batches_are_the_plan_in_pieces() {
        let popularity = Popularity::new(Distribution::Uniform, 10);
        let plan = Mix::YCSB_A.plan(&popularity, Seed(1), 0, 100);
        let whole: Vec<_> = plan.iter().collect();
        let pieces: Vec<Vec<_>> = plan.batches(32).map(Iterator::collect).collect();
        assert_eq!(
            pieces.iter().map(Vec::len).collect::<Vec<_>>(),
            [32, 32, 32, 4]
        );
        assert_eq!(pieces.concat(), whole);
    }
}
