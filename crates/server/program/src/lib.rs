//! Code that all programs share: failures and their exit codes, command lines, output, sizes as people
//! type them, progress, ignored signals, and the stack that they run on.

#![forbid(unsafe_code)]

#[cfg(feature = "command-line")]
pub mod command_line;
mod failure;
pub mod output;
#[cfg(feature = "progress")]
pub mod progress;
mod signal;
pub mod size;
mod stack;

pub use failure::Failure;
pub use signal::is_ignored;
pub use stack::on_own_stack;
