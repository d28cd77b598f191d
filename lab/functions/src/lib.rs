//! Hash functions that others use, and how keys spread under them: for those who choose a function. The engines have
//! one function of their own, in `nuthatch-hash`.
//!
//! * [`functions`]: the Linux paper's and those that came after, by name
//! * [`key`]: the keys that they take; [`table`]: the tables that they spread keys over
//! * [`distribution`]: how they spread, and what a search costs

#![forbid(unsafe_code)]

pub mod distribution;
pub mod functions;
pub mod key;
pub mod table;
