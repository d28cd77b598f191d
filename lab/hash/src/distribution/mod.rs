//! How keys spread over a table, and what a search there costs (sections 2 and 3 of the Linux paper).
//!
//! * [`ChiSquared`]: whether the difference from a perfect hash is chance.
//! * [`avalanche`]: how many bits of the bucket flip with one bit of the key.
//! * [`chained`]: a table of chains whose searches are counted.
//! * [`red_black`]: trees in its place, likewise.
//! * [`cuckoo`], [`set_associative`]: tables whose buckets have a fixed number of slots.

pub mod avalanche;
pub mod chained;
mod chi_squared;
pub mod cuckoo;
pub mod red_black;
pub mod set_associative;

pub use chi_squared::ChiSquared;
