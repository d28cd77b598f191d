//! Systems like macOS and FreeBSD.

pub mod clock;
pub mod files;
pub mod links;
pub mod pages;

/// Only Linux tells a process of its own mappings.
#[path = "../portable/program.rs"]
pub mod program;
