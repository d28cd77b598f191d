//! What all threads of a server share ([`shared::Shared`]): its engine, its settings, who may use it, what it counts, and
//! how its threads reach each other.
//!
//! Reading order: [`config`] (what can be set), [`live`] (what of it can change while it runs), [`shared`], [`inbox`] (how
//! a worker is reached), [`stream`] (a connection's socket), [`account`] (what buffers may hold), [`shutdown`] and
//! [`pause`] (how all threads stop, for good or for a while), [`isolation`] (how one worker has the engine to itself for a
//! moment).

pub mod account;
pub mod config;
pub mod inbox;
pub mod isolation;
pub mod keeping;
pub mod live;
pub mod pause;
pub mod scans;
pub mod shared;
pub mod shutdown;
pub mod stream;
pub mod system;
