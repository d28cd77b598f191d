//! How many requests find their item in a cache: the only thing that a cache is bought for.
//!
//! * [`trace`]: who asked for what, in order.

#![forbid(unsafe_code)]

pub mod trace;

pub use nuthatch_program::Failure;
