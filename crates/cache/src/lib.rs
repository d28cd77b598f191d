//! Nuthatch as a library: an in-memory cache at the speed of memory, with a hard memory bound.
//!
//! [`Cache`] is the face for programs that want a cache. Below it lies the seam that the server
//! drives too: an [`Engine`] shared by all threads, a [`Handle`] for each, batches of
//! [`Request`]s in, [`Replies`] out.
//!
//! * [`cache`](Cache): get, set, counters, single flight, iteration
//! * [`engine`], [`request`], [`reply`], [`stats`], [`index_stats`]: the seam
//! * [`cuckoo`]: optimistic cuckoo hashing with CLOCK (MemC3)
//! * [`chained`]: chaining under locks, with strict LRU or CLOCK (classic memcached)
//! * [`partition`]: CPHash's partitions, and LockHash: each behind a lock
//!
//! Where items live and who has to go (`slab`, `eviction`) is the engines' own: they believe what they are told
//! of chunks, so no caller may tell them.
//!
//! ```compile_fail,E0603
//! use nuthatch::slab::fresh::Reserved;
//! ```

#[cfg(not(loom))]
mod ages;
#[cfg(not(loom))]
mod builder;
#[cfg(not(loom))]
mod cache;
// Public for the models.
#[cfg(loom)]
pub mod ages;
pub mod chained;
mod count;
mod counters;
pub mod cuckoo;
mod departures;
pub mod engine;
mod eviction;
#[cfg(not(loom))]
mod flight;
mod geometry;
pub mod index_stats;
mod item;
#[cfg(not(loom))]
mod lifetime;
#[cfg(loom)]
pub mod lifetime;
mod number;
pub mod partition;
mod prefetch;
pub mod reply;
pub mod request;
mod semantics;
// Not public but for the models: whoever can name a chunk can write over an item that is read in place.
#[cfg(loom)]
pub mod slab;
#[cfg(not(loom))]
mod slab;
pub mod stats;
mod table;

#[cfg(not(loom))]
pub use builder::Builder;
#[cfg(not(loom))]
pub use cache::{Cache, CasOutcome, Error, LoadError};
pub use chained::Chained;
pub use chained::config::{ChainedConfig, ChainedEviction, Locks};
pub use cuckoo::Cuckoo;
pub use cuckoo::config::{CuckooConfig, Departure, Listener};
pub use engine::{Engine, Handle, Value};
pub use nuthatch_hash::KeyHasher;
pub use nuthatch_sync::clock::{Clock, Time};
pub use partition::lockhash::LockHash;
pub use partition::lockhash::config::LockHashConfig;
pub use reply::{Item, Replies, Reply};
pub use request::{Condition, Delta, Expiry, Key, Op, Read, Removal, Request, Store, StoreMode};
