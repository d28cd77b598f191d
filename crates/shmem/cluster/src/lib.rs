//! The distributed store: key-value pairs in the symmetric memory of servers, read and written one-sidedly by clients
//! (SHMEMCache, CCGrid 2017).
//!
//! ```text
//!  session (client PE)                                    server PE
//!    directory: key -> block                                buckets -> blocks, in pages of size classes
//!    get, known:     one Get of the block  --------------->   (the server does nothing)
//!    set, known:     compare-swap, Put, set of the head -->   (nothing)
//!    anything else:  message in a ring  ------------------>   polls, locks, writes, evicts
//!                    reply in a ring    <------------------
//!    control words   <------------- Put -------------------   epoch, expiration bar, flushes, pages that moved
//! ```
//!
//! * `block`, `bucket`, `checksum`, `classes`, `layout`: the bytes
//! * `ring`, `message`, `control`, `poll`: messages and control words between PEs, and polls of single words of another
//!   PE
//! * `shift`: whose clock decides
//! * `client`: a session: direct operations first, messages for the rest
//! * `server`: a shard: the operations, memory, eviction, and how a page changes its class
//! * `report`: the statistics of the store that a PE shows its operator
//! * [`Member`], [`in_process`], [`on_network`]: they open a store; [`Cluster`]: the engine in front of it
//!
//! The invariants are numbered where they are kept: `block` (1 to 3, the read-friendly exclusive write), `bucket`, `ring`
//! (1 to 3), `server::pages` (1 to 3), `server::retire`. docs/cluster.md has the proofs.
//!
//! **Where an operation takes effect.** A direct set: when its head is stored. A direct get: at a moment between its reads
//! of head and tail at which the version was its key's. A miss by a bucket: at a moment while it was read. An active
//! operation: when the head of the block that it writes is stored, or, if it removes a pair or is refused, while it has
//! the block locked.
//!
//! **What a dead PE means.** A fabric may answer that a peer is gone (OpenSHMEM never does: it ends the job). Gets from
//! a server that is gone miss, and stores there are refused. If a writer is gone, the server drops the pairs that the
//! writer had locked.

mod agreement;
mod bars;
mod block;
mod bucket;
mod checksum;
mod classes;
mod client;
mod config;
mod control;
mod engine;
#[cfg(test)]
mod interposed;
mod layout;
mod message;
#[cfg(loom)]
mod modelled;
mod placement;
mod poll;
mod report;
mod ring;
mod server;
mod serving;
mod shift;
mod stats;
mod store;

/// A client's pointer directory by itself, for benches.
pub mod directory {
    pub use crate::bars::Bars;
    pub use crate::bucket::Pointer;
    pub use crate::client::directory::{At, Directory, Hint};
}

pub use agreement::agree;
pub use checksum::Checksum;
pub use config::{Clocks, Config, ConfigError, Difference, Fault, Operations};
pub use engine::{Cluster, ClusterHandle, LargeValue, Pending};
pub use placement::server as server_of;
pub use server::Server;
#[cfg(loom)]
pub use server::models;
pub use serving::{OnPanic, Serving};
pub use stats::{ClientStats, ServerStats};
pub use store::Member;
#[cfg(not(loom))]
pub use store::{in_process, on_network};
