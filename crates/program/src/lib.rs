//! Code that all programs share: failures and their exit codes, output, sizes as people type them, and progress.

#![forbid(unsafe_code)]

mod failure;
pub mod output;
#[cfg(feature = "progress")]
pub mod progress;
pub mod size;

pub use failure::Failure;
