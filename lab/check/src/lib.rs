//! Judges of engines.
//!
//! * [`naive`]: the oracle, an engine so simple that it can be read: the definition of the seam.
//! * [`conformance`]: what every engine must do, case by case.
//! * [`sequence`]: random sequences of operations against the oracle, which shrink.
//! * [`answer`]: owned replies, and the ways tests ask for them.

pub mod answer;
pub mod conformance;
pub mod naive;
pub mod sequence;
