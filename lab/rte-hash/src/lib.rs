//! DPDK's `rte_hash` with bulk lookups, as a cache: the table that a packet engineer would use today.
//!
//! It has no eviction of its own, so `c/bounded.c` adds one: when there is no room, the oldest key or a random one is
//! evicted. Keys are 8 bytes, flows that a bench has numbered, and the caller's 64-bit hash serves as `rte_hash`'s
//! signature, so that both sides use the same hash.
//!
//! Everything but the declarations needs the feature `rte-hash`, which links libdpdk. Without it
//! [`RteHash::new`] is [`Error::NotBuilt`], so that callers need no `cfg`.

use std::{error, fmt};

#[cfg(feature = "rte-hash")]
mod dpdk;
#[cfg(feature = "rte-hash")]
pub use dpdk::RteHash;

#[cfg(not(feature = "rte-hash"))]
mod absent;
#[cfg(not(feature = "rte-hash"))]
pub use absent::RteHash;

/// Which key leaves when there is no room for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The one that was stored first.
    Oldest,
    /// Any, with equal chances.
    Random,
}

/// Why there is no table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// This program was built without the feature `rte-hash`.
    NotBuilt,
    /// DPDK does not start, or has no memory for the table; with its error message.
    Dpdk(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotBuilt => out.write_str("rte_hash: built without the feature rte-hash"),
            Error::Dpdk(reason) => write!(out, "rte_hash: {reason}"),
        }
    }
}

impl error::Error for Error {}
