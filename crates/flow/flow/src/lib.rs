//! Flow caches of fixed entries, after "Bounded Linear Probing" (USENIX ATC 2020).
//!
//! A flow cache stores the decisions of an expensive classifier: a few bytes for each flow, a lookup of
//! one or two cache lines, and an insert that evicts another flow if there is no empty slot. This crate
//! has the paper's table, the designs that it is compared with, and all evictions, as one generic table:
//!
//! * [`Layout`]: which slots may hold a key; bounded linear probing is two neighbouring buckets.
//! * [`Eviction`]: which entry is replaced; Probabilistic Bubble LRU orders entries without extra space.
//! * [`Entry`]: the format of an entry: 4, 8 or 16 bytes.
//!
//! [`FlowCache`] is any of them, chosen at run time by a [`Config`]; [`Table`] has its layout and entry as
//! types. [`SharedFlowCache`] and [`SharedTable`] are the same for many threads. [`FiveTuple`] is the key
//! of a flow and hashes it, [`FlowTable`] stores whole keys and compares them, and [`theory`] computes
//! expected hit rates.
//!
//! Invariants:
//! 1. A key has at most one entry: an insert compares all candidates' tags before it takes an empty slot,
//!    and of several that match (neighbours may have the same tag) it leaves one. A removal leaves none.
//! 2. An insert stores into slots of one of the key's buckets only. No entry ever changes its bucket.
//! 3. An eviction replaces one entry by another: it does not change the occupancy.
//! 4. No entry is behind the spare buckets, and none wraps around into the first bucket.

mod buckets;
// All its types take most of what the models' build would spend on this crate.
#[cfg(not(loom))]
mod cache;
mod config;
mod entry;
mod eviction;
mod five_tuple;
#[cfg(not(loom))]
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

#[cfg(not(loom))]
pub use cache::FlowCache;
pub use config::{Config, ConfigError, ENTRIES_MAX};
pub use entry::{Content, Entry, Slot};
pub use eviction::{Eviction, InsertAt, Probability};
pub use five_tuple::{FiveTuple, PACKED};
#[cfg(not(loom))]
pub use flow_table::{FlowInserted, FlowTable};
pub use insert::{Inserted, ValueTooWide};
pub use layout::{Layout, Shape};
pub use matching::Vector;
pub use name::UnknownName;
pub use nuthatch_base::hash::KeyHasher;
pub use nuthatch_base::hash::split::widen;
pub use shared::{SharedHandle, SharedTable};
pub use shared_cache::{FlowHandle, SharedFlowCache};
pub use stats::{Stats, StatsReader};
pub use table::Table;

/// Layouts and entries as types, for [`Table`].
pub mod types {
    pub use crate::entry::{Hash64, Tag16, Tag32};
    pub use crate::layout::{Blp2x4, Blp2x8, CuckooLite, EightWay, FourWay, Window};
}

/// The README's examples are run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
