//! Code that all programs share: failures and their exit codes, command lines, output, sizes as people
//! type them, progress, the commands that they start, and the stack that they run on.

#![forbid(unsafe_code)]

#[cfg(feature = "children")]
pub mod child;
#[cfg(feature = "command-line")]
pub mod command_line;
mod failure;
pub mod output;
#[cfg(feature = "progress")]
pub mod progress;
pub mod signals;
pub mod size;
mod stack;

pub use failure::Failure;
pub use stack::on_own_stack;
