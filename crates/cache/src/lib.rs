//! Nuthatch as a library: an in-memory cache with a hard memory bound.

mod counters;
pub mod cuckoo;
pub mod engine;
pub mod eviction;
mod item;
mod number;
mod prefetch;
pub mod reply;
pub mod request;
pub mod slab;
pub mod stats;

pub use cuckoo::Cuckoo;
pub use cuckoo::config::{CuckooConfig, Departure, Listener};
pub use engine::{Engine, Handle, Value};
pub use nuthatch_hash::KeyHasher;
pub use nuthatch_sync::clock::{Clock, Time};
pub use reply::{Item, Replies, Reply};
pub use request::{Condition, Delta, Expiry, Key, Op, Read, Removal, Request, Store, StoreMode};
