//! Workloads for caches: keys, their popularity, a mix of operations, and values that check themselves.
//!
//! Everything is made from one [`Seed`]. What is measured in process is made before the clock starts: [`Mix::plan`] returns
//! the operations of a thread as a vector, and [`Ycsb::requests`] those of YCSB's workloads.
//!
//! [`Workload`] has workloads by name: YCSB's, those of Facebook's pools ([`facebook`]) and of Twitter's clusters
//! ([`twitter`]), by what is published of them. [`Arrivals`] says when requests come.

#![forbid(unsafe_code)]

pub mod arrival;
pub mod distribution;
pub mod etc;
pub mod facebook;
pub mod key;
pub mod mix;
pub mod named;
pub mod proof;
pub mod seed;
pub mod traffic;
pub mod twitter;
pub mod value;
pub mod ycsb;

pub use arrival::Arrivals;
pub use distribution::{Distribution, Popularity};
pub use key::KeyMaker;
pub use mix::{Mix, Operation, Plan};
pub use named::{Action, Workload};
pub use seed::Seed;
pub use traffic::ItemShape;
pub use ycsb::Ycsb;
