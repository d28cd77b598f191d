//! How full the buckets of a hash table are, and what a perfect hash would make of as many items (the Linux paper,
//! sections 2 and 3). It knows neither tables nor keys: counts go in, numbers and text come out.
//!
//! * [`Histogram`]: how many buckets hold how many items, and what follows from it; [`Report`]: the same as text
//! * [`Perfect`]: what is to be expected of a perfect hash, after Poisson

#![forbid(unsafe_code)]

mod histogram;
mod perfect;

pub use histogram::{Histogram, Report, Row};
pub use perfect::Perfect;
