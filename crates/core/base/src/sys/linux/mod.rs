//! Linux.

pub mod clock;
pub mod files;
mod fork;
pub mod links;
pub mod pages;
pub mod program;
pub mod shared;
