//! Checks that every engine must pass.
//!
//! * [`naive`]: the oracle, an engine so simple that it can be read: it defines the engine's interface.
//! * [`conformance`]: what every engine must do, case by case.
//! * [`sequence`]: random sequences of operations against the oracle, which shrink.
//! * [`stress`]: many threads on values that check themselves.
//! * [`zones`]: histories of values that are each written once, judged for values that come back.
//! * [`history`]: concurrent histories of batches, judged for linearizability key by key.
//! * [`suite`](mod@suite): all of these as tests of an engine in one configuration.
//! * [`answer`]: owned replies, and the ways tests ask for them.

/// The amount of a random check whose usual amount is `usual`: `usual` times the number in the environment variable
/// `NUTHATCH_SOAK`, which may be a fraction (`1/8`) for a slow build, but at least 1. It sets how much is tried, never
/// what is checked.
pub fn soak(usual: usize) -> usize {
    let wanted = std::env::var("NUTHATCH_SOAK").unwrap_or_default();
    times(usual, &wanted)
}

/// `usual` times `wanted`, or times 1 if that is no number.
fn times(usual: usize, wanted: &str) -> usize {
    let (times, part) = wanted.split_once('/').unwrap_or((wanted, "1"));
    let number = |text: &str| text.parse::<usize>().ok().filter(|&number| number > 0);
    match (number(times), number(part)) {
        (Some(times), Some(part)) => (usual * times).div_ceil(part),
        _ => usual,
    }
}

pub use nuthatch_engine::Engine;

pub mod answer;
pub mod conformance;
pub mod history;
pub mod naive;
pub mod sequence;
pub mod stress;
pub mod suite;
mod values;
pub mod zones;

#[cfg(test)]
mod tests {
    use super::times;

    #[test]
    fn a_soak_multiplies_and_a_part_of_one_leaves_something() {
        assert_eq!(times(60, "20"), 1200);
        assert_eq!(times(60, "1/8"), 8);
        assert_eq!(times(1, "1/8"), 1);
        for usual in ["", "1", "0", "1/0", "much", "1/8/8"] {
            assert_eq!(times(60, usual), 60, "{usual}");
        }
    }
}
