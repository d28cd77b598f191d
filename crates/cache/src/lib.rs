//! Nuthatch as a library: an in-memory cache with a hard memory bound.

pub mod engine;
pub mod reply;
pub mod request;
pub mod stats;

pub use engine::{Engine, Handle, Value};
pub use nuthatch_hash::KeyHasher;
pub use nuthatch_sync::clock::{Clock, Time};
pub use reply::{Item, Replies, Reply};
pub use request::{Condition, Delta, Expiry, Key, Op, Read, Removal, Request, Store, StoreMode};
