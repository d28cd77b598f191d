//! Eviction: the policies that decide which items leave when memory is short.
//!
//! * [`log`]: of a [log](crate::log), where items leave by the page
//! * [`slab`]: of [size classes](crate::slab), where items leave one by one
//!
//! What every engine does with their decisions is in [`reclaim`](crate::reclaim).

pub mod log;
pub mod slab;
