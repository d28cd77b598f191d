//! What the programs share: why one ends and with which exit code, where it writes, sizes as people type
//! them, and progress.

#![forbid(unsafe_code)]

mod failure;
pub mod output;
#[cfg(feature = "progress")]
pub mod progress;
pub mod size;

pub use failure::Failure;
