//! Fabrics under examination, with nothing on top of them.
//!
//! * [`conformance`]: checks of the trait's promises, on any fabric with any number of PEs
//! * [`idle`]: what a server without requests costs
//! * [`latency`]: how long a fabric's operations take, which is the measure for everything that is built on it

#![forbid(unsafe_code)]

pub mod conformance;
pub mod figure;
pub mod idle;
pub mod latency;
pub mod store;
