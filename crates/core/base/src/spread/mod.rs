//! How full the buckets of a hash table are, and how full a perfect hash would make them with as many items (the Linux
//! paper, sections 2 and 3). This module contains neither tables nor keys: counts go in, numbers and text come out.
//!
//! * [`Histogram`]: how many buckets hold how many items, and the values that follow from it; [`Report`]: the same as
//!   text
//! * [`Perfect`]: the expected values of a perfect hash, after Poisson

#![forbid(unsafe_code)]

mod histogram;
mod perfect;

pub use histogram::{Histogram, Report, Row};
pub use perfect::Perfect;
