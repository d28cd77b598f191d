//! How keys spread over a table, and what a search there costs (sections 2 and 3 of the Linux paper).
//!
//! * [`Histogram`]: the paper's bucket-size histogram, and what it tells.
//! * [`Report`]: both as text, the one beside the other.
//! * [`Perfect`]: the same numbers for a perfect hash, after Poisson.
//! * [`ChiSquared`]: whether the difference is chance.
//! * [`avalanche`]: how many bits of the bucket turn with one bit of the key.
//! * [`chained`]: a table of chains whose searches are counted.
//! * [`cuckoo`], [`set_associative`]: tables whose buckets have a fixed number of slots.

pub mod avalanche;
#[cfg(feature = "analysis")]
pub mod chained;
mod chi_squared;
pub mod cuckoo;
mod histogram;
mod perfect;
pub mod set_associative;

pub use chi_squared::ChiSquared;
pub use histogram::{Histogram, Report, Row};
pub use perfect::Perfect;
