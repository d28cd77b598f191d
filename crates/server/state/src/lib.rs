//! The state that all threads of a server share ([`server_state::ServerState`]): its engine, its settings, its passwords,
//! its counters, and the ways in which its threads reach each other.
//!
//! Reading order: [`live`] (settings that can change while it runs), [`server_state`], [`security`] (who is admitted),
//! [`accounts`] (what clients can make grow: [`buffers`], [`uploads`] of values, connections by their [`origins`]),
//! [`worker`] (how threads reach a worker), [`stream`] (a connection's socket), [`shutdown`] and [`pause`] (how all
//! threads stop, for good or for a while), [`hold`] (how clients wait by CLIENT PAUSE), [`isolation`] (how one worker has the engine to itself for a moment),
//! [`refreshes`] (certificates that clients let it read again), [`saves`] and [`walks`] (what goes over all items). What
//! it counts is declared in [`metrics`]; [`telemetry`] counts it, and [`reports`] show it. The settings are declared in
//! `nuthatch_settings`.

pub mod accounts;
pub mod buffers;
pub mod changes;
pub mod databases;
pub mod hold;
pub mod isolation;
pub mod keyspace;
pub mod last_flush;
pub mod limits;
pub mod live;
pub mod metrics;
pub mod noted;
pub mod origins;
pub mod pause;
pub mod refreshes;
pub mod reports;
pub mod saves;
pub mod scans;
pub mod scripting;
pub mod security;
pub mod server_state;
pub mod shutdown;
pub mod stream;
mod sys;
pub mod system;
pub mod telemetry;
pub mod uploads;
pub mod walks;
pub mod witness;
pub mod worker;
