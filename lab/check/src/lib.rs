//! Judges of engines.
//!
//! * [`naive`]: the oracle, an engine so simple that it can be read: the definition of the seam.
//! * [`answer`]: owned replies, and the ways tests ask for them.

pub mod answer;
pub mod naive;
