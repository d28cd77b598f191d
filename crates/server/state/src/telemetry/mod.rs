//! The telemetry of a server: counters with one writer each, latencies, hot keys, prefixes, connections, and clients
//! that `watch`.

mod address;
pub mod connections;
pub mod counters;
pub mod front;
pub mod histogram;
pub mod hot;
pub mod latency;
pub mod prefixes;
mod report;
pub mod sizes;
pub mod watch;

use std::fmt;
use std::sync::Arc;

use nuthatch_engine::counters::Counter;

pub use address::Address;
pub use report::{Report, StatSink};

use connections::Registry;
use counters::AcceptorCounters;
use prefixes::Prefixes;
use watch::{Hub, line};

/// The telemetry of a server, but for what each worker counts ([`SharedWorker`](crate::worker::SharedWorker)).
pub struct Telemetry {
    /// Open connections.
    pub registry: Registry,
    /// The counts by prefix (`stats detail`).
    pub prefixes: Prefixes,
    /// The clients that `watch`.
    pub watchers: Arc<Hub>,
    /// The acceptor's counters.
    pub accepting: AcceptorCounters,
    /// Steps of the maintenance thread, which alone counts them.
    pub maintenance_steps: Counter,
}

impl Telemetry {
    /// Of a server that begins. `count_prefixes`: prefixes are counted from the start.
    pub fn new(count_prefixes: bool) -> Self {
        Self {
            registry: Registry::default(),
            prefixes: Prefixes::new(count_prefixes),
            watchers: Arc::default(),
            accepting: AcceptorCounters::default(),
            maintenance_steps: Counter::default(),
        }
    }

    /// Publishes an event of the server itself to the clients that watch it.
    pub fn notify_watchers(&self, event: fmt::Arguments<'_>) {
        line::system(&self.watchers, event);
    }
}
