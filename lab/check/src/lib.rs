//! Judges of engines.
//!
//! * [`naive`]: the oracle, an engine so simple that it can be read: the definition of the seam.
//! * [`conformance`]: what every engine must do, case by case.
//! * [`sequence`]: random sequences of operations against the oracle, which shrink.
//! * [`stress`]: many threads on values that check themselves.
//! * [`history`]: concurrent histories of one key, judged for linearizability.
//! * [`suite`](mod@suite): all of these as tests of an engine in one configuration.
//! * [`answer`]: owned replies, and the ways tests ask for them.

/// How often the usual amount of random checking is wanted: the number in the environment variable
/// `NUTHATCH_SOAK`, or once. What is multiplied is how much is tried, never what is asked.
pub fn soak() -> usize {
    let wanted = std::env::var("NUTHATCH_SOAK").ok();
    wanted.and_then(|number| number.parse().ok()).unwrap_or(1)
}

pub mod answer;
pub mod conformance;
#[cfg(feature = "history")]
pub mod history;
pub mod naive;
pub mod sequence;
pub mod stress;
#[cfg(feature = "history")]
pub mod suite;
