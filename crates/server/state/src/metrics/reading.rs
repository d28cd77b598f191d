//! What metrics are read from: everything that is summed or locked for it, once for all of them.

use std::ops::RangeInclusive;
use std::time::Duration;

use nuthatch_engine::stats::{EngineStats, LogStats, MemoryUse, MessageStats, UpstreamStats};
use nuthatch_engine::{Engine, Inspect, Time};

use crate::saves::SaveStats;
use crate::server_state::ServerState;
use crate::system;
use crate::telemetry::counters::Totals;
use crate::telemetry::watch;

/// A server at one moment.
pub struct Reading<'s> {
    /// The server.
    pub shared: &'s ServerState,
    /// The moment.
    pub now: Time,
    /// The counters of all workers, summed.
    pub totals: Totals,
    /// Its engine's statistics.
    pub engine: EngineStats,
    /// The engine's log. All 0 if it has none.
    pub log: LogStats,
    /// The uses of the engine's memory. All 0 if it does not report them.
    pub memory: MemoryUse,
    /// Messages inside of the engine, if it has server threads.
    pub messages: Option<MessageStats>,
    /// What was asked of the servers behind this one, if there are some.
    pub upstream: Option<UpstreamStats>,
    /// Copies of all items.
    pub saves: SaveStats,
    /// Clients that watch.
    pub watch: watch::Totals,
    /// Processor time: user, system.
    pub cpu: Option<(Duration, Duration)>,
    /// Open connections.
    pub connections: usize,
    /// Memory that workers keep for their next requests.
    pub idle: Idle,
}

/// Memory that all workers keep for their next requests.
#[derive(Default)]
pub struct Idle {
    /// Bytes of empty buffers.
    pub buffers: usize,
    /// Answers that batches have room for.
    pub answers: usize,
    /// The bytes of these.
    pub answers_bytes: usize,
}

impl<'s> Reading<'s> {
    /// Reads it all.
    pub fn take(shared: &'s ServerState, now: Time) -> Self {
        let engine = shared.engine.stats();
        Self {
            shared,
            now,
            totals: shared.totals(),
            log: engine.log.unwrap_or_default(),
            memory: engine.memory_use.unwrap_or_default(),
            engine,
            messages: shared.engine.message_stats(),
            upstream: shared.engine.upstream_stats(),
            saves: shared.saves.stats(),
            watch: shared.telemetry.watchers.totals(),
            cpu: system::cpu_time(),
            connections: shared.connections(),
            idle: Idle::of(shared),
        }
    }

    /// The time in which all certificates are valid, in unix time, if it is known.
    pub fn certificates(&self) -> Option<RangeInclusive<u64>> {
        self.shared.security.tls.as_ref()?.validity()
    }
}

impl Idle {
    fn of(shared: &ServerState) -> Self {
        let mut sum = Self::default();
        for worker in &shared.workers {
            let (answers, bytes) = worker.idle.answers();
            sum.buffers += worker.idle.buffers();
            sum.answers += answers;
            sum.answers_bytes += bytes;
        }
        sum
    }
}
