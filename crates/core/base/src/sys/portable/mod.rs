//! Every system that the standard library and memmap2 know, with what these two offer.

pub mod clock;
pub mod files;
pub mod pages;
pub mod program;
