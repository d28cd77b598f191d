//! The item store of the engines: where items lie, how long they live, and which of them leave.
//!
//! Only engines use this crate. It trusts their addresses: an engine that writes to memory that it does not own, or
//! frees it twice, overwrites items that are read in place. So a program uses the library `nuthatch`, which exposes
//! nothing of this crate. No version guarantees these names to others.
//!
//! * [`memory`]: the arena, its pages, the pool, recency bits and pins
//! * [`item`]: an item's bytes, and items that are not in the index yet or no longer
//! * [`store`]: all of it, placed in one of two ways
//! * [`slab`], [`log`]: these ways: in size classes, or one behind the other
//! * [`eviction`]: the policies that decide which items leave
//! * [`reclaim`]: making room, and listeners
//! * [`timestamps`], [`ages`]: sequences, expiry and flushes; when sequences were taken
//! * [`table`]: the common part of the tables of items in a store
//! * [`growth`], [`geometry`]: how an index doubles in place
//! * [`count`]: the counters of the engines on a store
//! * [`prefetch`]: loading cache lines ahead of their use
//! * [`shared`]: memory that other processes read
//! * [`fault`]: protections that models take out

pub mod ages;
pub mod count;
pub mod eviction;
pub mod fault;
pub mod geometry;
pub mod growth;
pub mod item;
pub mod log;
pub mod memory;
pub mod prefetch;
pub mod reclaim;
pub mod shared;
pub mod slab;
pub mod store;
pub mod table;
pub mod timestamps;
