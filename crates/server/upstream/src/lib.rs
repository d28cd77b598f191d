//! A near cache of other memcached servers, as an engine: behind it a server is the sidecar of a pool.
//!
//! ```text
//!   programs of this machine --- shared memory, sockets ---> server --- requests ---> Upstream
//!                                                                                       |    \
//!                                                                copies, for a lifetime |     \  what has no copy, and changes
//!                                                                                     near     client ---> the pool
//! ```
//!
//! * A plain read is answered by a copy, if there is one. Otherwise one reader asks for all who want the key then
//!   ([`coherence`]), and what it finds stays as a copy.
//! * A copy is used for the lifetime at most, counted from before its request went out: what others than this server change is
//!   seen so much later. Reads of more than value and flags (`gets`, `mg` with `c`, `t`, `h` or `l`) always ask,
//!   and nobody gets an older copy after that.
//! * A change goes through, and its answer is the server's. From then on no reader of this machine gets what was before it.
//! * If a server does not answer, its items are missing, and changes of them fail ([`Reply::Unavailable`]).
//!
//! [`Reply::Unavailable`]: nuthatch_engine::Reply::Unavailable

#![forbid(unsafe_code)]

#[cfg(loom)]
pub mod coherence;
#[cfg(not(loom))]
mod coherence;
mod conditional;
mod copies;
mod counters;
mod engine;
mod exchange;
mod handle;
mod probe;
mod translate;
mod value;

pub use engine::Upstream;
pub use handle::UpstreamHandle;
pub use value::{UpstreamReservation, UpstreamValue};
