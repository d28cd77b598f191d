//! Judges of engines.
//!
//! * [`naive`]: the oracle, an engine so simple that it can be read: the definition of the seam.
//! * [`conformance`]: what every engine must do, case by case.
//! * [`sequence`]: random sequences of operations against the oracle, which shrink.
//! * [`stress`]: many threads on values that check themselves.
//! * [`history`]: concurrent histories of one key, judged for linearizability.
//! * [`answer`]: owned replies, and the ways tests ask for them.

pub mod answer;
pub mod conformance;
pub mod history;
pub mod naive;
pub mod sequence;
pub mod stress;
