//! Flow caches of fixed entries, after "Bounded Linear Probing" (USENIX ATC 2020).
//!
//! A flow cache stands before an expensive classifier and remembers its verdicts: a few bytes a
//! flow, a lookup of one or two cache lines, and when it is full somebody leaves. This crate has
//! the paper's table, its rivals, and its evictions as one generic table:
//!
//! * [`Layout`]: which slots may hold a key; bounded linear probing is two neighbouring buckets.
//! * [`Eviction`]: who leaves; Probabilistic Bubble LRU keeps order without a bit of extra space.
//! * [`Entry`]: what a slot holds: 4, 8 or 16 bytes.
//!
//! [`FlowCache`] is any of them, chosen at run time by a [`Config`]; [`Table`] is one of them, its
//! layout and entry being types. [`SharedFlowCache`] and [`SharedTable`] are the same for threads.
//! [`FiveTuple`] names and hashes flows, [`FlowTable`] verifies them in full, and [`theory`] says which hit rate to expect.
//!
//! Invariants:
//! 1. A key has at most one entry: an insert tests all candidates' tags before it takes an empty slot,
//!    and of several that match (neighbours may share a tag) it leaves one. A removal leaves none.
//! 2. An insert stores into slots of one of the key's buckets only. No key ever changes its bucket.
//! 3. Who is evicted makes room for who comes: evictions leave the occupancy as it is.
//! 4. No key spills behind the spare buckets, and none wraps around into the first.

mod buckets;
mod cache;
mod config;
mod entry;
mod eviction;
mod five_tuple;
mod flow_table;
mod insert;
mod layout;
mod lookup;
mod matching;
mod memory;
mod name;
mod policy;
mod prefetch;
mod shared;
mod shared_cache;
mod stats;
mod table;
pub mod theory;

pub use cache::FlowCache;
pub use config::{Config, ConfigError, ENTRIES_MAX};
pub use entry::{Content, Entry, Slot};
pub use eviction::{Eviction, InsertAt, Probability};
pub use five_tuple::{FiveTuple, PACKED};
pub use flow_table::{FlowInserted, FlowTable};
pub use insert::{Inserted, ValueTooWide};
pub use layout::{Layout, Shape};
pub use matching::Vector;
pub use name::UnknownName;
pub use nuthatch_hash::KeyHasher;
pub use nuthatch_hash::split::widen;
pub use shared::{SharedHandle, SharedTable};
pub use shared_cache::{FlowHandle, SharedFlowCache};
pub use stats::Stats;
pub use table::Table;

/// Layouts and entries as types, for [`Table`].
pub mod types {
    pub use crate::entry::{Hash64, Tag16, Tag32};
    pub use crate::layout::{Blp2x4, Blp2x8, CuckooLite, EightWay, FourWay, Window};
}
