//! One-sided operations on symmetric memory, on which the distributed store is built.
//!
//! * [`Fabric`]: what OpenSHMEM 1.4 offers, as a trait
//! * [`threads`]: PEs are threads of one process; a simulated network delays, reorders and tears what OpenSHMEM allows
//!   to be, from a seed
//! * `openshmem`: real OpenSHMEM, behind the feature of that name
//!
//! PE: a processing element, OpenSHMEM's word for one process of a job.

mod fabric;
mod forward;
#[cfg(feature = "openshmem")]
pub mod openshmem;
#[cfg(not(loom))]
pub mod threads;

pub use fabric::{Address, Fabric, Gone, NoMemory, Verified, WHOLE, Word};
