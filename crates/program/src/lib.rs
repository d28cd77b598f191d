//! Code that all programs share: failures and their exit codes, command lines, output, sizes as people type them, and progress.

#![forbid(unsafe_code)]

#[cfg(feature = "command-line")]
pub mod command_line;
mod failure;
pub mod output;
#[cfg(feature = "progress")]
pub mod progress;
pub mod size;

pub use failure::Failure;
