//! The telemetry of a server: counters with one writer each, latencies, hot keys, prefixes, connections, and clients
//! that `watch`.

mod address;
pub mod connections;
pub mod counters;
pub mod histogram;
pub mod hot;
pub mod latency;
pub mod prefixes;
mod report;
pub mod sizes;
pub mod watch;

pub use address::Address;
pub use report::{Report, StatSink};
