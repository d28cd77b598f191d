//! Fabrics under examination, with nothing on top of them.
//!
//! * [`conformance`]: checks of the trait's promises, on any fabric with any number of PEs
//! * [`idle`]: what a server without requests costs
//! * [`latency`]: how long a fabric's operations take, which is the measure for everything that is built on it
//! * [`store`], [`throughput`]: how long the store's operations take, and how many there are a second
//! * [`memcached`]: a client of what the store is measured beside

#![forbid(unsafe_code)]

pub mod conformance;
pub mod figure;
pub mod idle;
pub mod latency;
pub mod memcached;
pub mod store;
pub mod throughput;
