//! Workloads for caches: keys, their popularity, a mix of operations, and values that check themselves.
//!
//! Everything is made from one [`Seed`] and made before the clock starts: [`Mix::plan`] returns the
//! operations of a thread as a vector, and [`Ycsb::requests`] those of YCSB's workloads.

#![forbid(unsafe_code)]

pub mod distribution;
pub mod etc;
pub mod key;
pub mod mix;
pub mod seed;
pub mod value;
pub mod ycsb;

pub use distribution::{Distribution, Popularity};
pub use key::KeyMaker;
pub use mix::{Mix, Operation, Plan};
pub use seed::Seed;
pub use ycsb::Ycsb;
