//! Linux.

pub mod clock;
pub mod files;
pub mod links;
pub mod pages;
pub mod program;
