//! The C interface of the distributed store. `include/nuthatch_shmem.h` is generated from these functions, and their
//! documentation is written for readers of the header.
//!
//! What C passes is checked before it is used: a NULL pointer becomes a `Status`, and so does a panic,
//! which never unwinds into C. Without the feature `openshmem` there is nothing here.

#[cfg(feature = "openshmem")]
mod status;
#[cfg(feature = "openshmem")]
mod store;

#[cfg(feature = "openshmem")]
pub use status::{Status, nuthatch_shmem_error_string};
#[cfg(feature = "openshmem")]
pub use store::*;
