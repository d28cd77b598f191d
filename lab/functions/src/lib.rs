//! Hash functions of other programs, and how keys spread under them: for the choice of a function. The engines have one
//! function of their own, in `nuthatch-hash`.
//!
//! * [`functions`]: the Linux paper's and later ones, by name
//! * [`key`]: the keys that they take; [`table`]: the tables that they spread keys over
//! * [`distribution`]: how they spread, and what a search costs

#![forbid(unsafe_code)]

pub mod distribution;
pub mod functions;
pub mod key;
pub mod table;
