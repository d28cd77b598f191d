//! Fabrics under examination, with nothing on top of them.
//!
//! * [`conformance`]: what the trait promises, checked on any fabric with any number of PEs
//! * [`idle`]: what a server costs that nobody asks
//! * [`latency`]: how long its operations take, which is the measure for what is built on it

#![forbid(unsafe_code)]

pub mod conformance;
pub mod figure;
pub mod idle;
pub mod latency;
pub mod store;
