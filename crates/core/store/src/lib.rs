//! The item store of the engines: where items lie, how long they live, and which of them leave.
//!
//! Only engines use this crate. It trusts their chunks: an engine that writes to a chunk that it does not own, or frees
//! it twice, overwrites items that are read in place. So a program uses the library `nuthatch`, which exposes nothing
//! of this crate. No version guarantees these names to others.
//!
//! * [`slab`]: the arena, its pages, size classes and chunks
//! * [`log`]: the other way to lay items out: one behind the other, without size classes
//! * [`item`]: an item's bytes
//! * [`timestamps`]: sequences, expiry and flushes
//! * [`eviction`]: which items leave, and the reclaiming of their memory
//! * [`table`]: the common part of the tables of items in a store
//! * [`growth`], [`geometry`]: how an index doubles in place
//! * [`ages`], [`links`]: when sequences were taken; words in front of items
//! * [`count`]: the counters of the engines on a store
//! * [`prefetch`]: loading cache lines ahead of their use

pub mod ages;
pub mod count;
pub mod eviction;
pub mod geometry;
pub mod growth;
pub mod item;
pub mod links;
pub mod log;
pub mod prefetch;
pub mod slab;
pub mod table;
pub mod timestamps;
