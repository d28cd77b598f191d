//! Measures how many requests find their item in a cache, which is what a cache is for.
//!
//! * [`mod@hit_ratio`]: traces on policies at several sizes, as tables, JSON, and pictures.
//! * [`items_held`]: how many items caches hold.
//! * [`live`]: engines and servers that hold real items.
//! * [`policy`]: eviction policies, simulated.
//! * [`trace`]: recorded requests, in order.

#![forbid(unsafe_code)]

pub mod hit_ratio;
pub mod items_held;
pub mod live;
pub mod policy;
pub mod simulate;
pub mod size;
pub mod trace;

pub use nuthatch_program::Failure;
