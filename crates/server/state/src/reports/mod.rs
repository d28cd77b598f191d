//! The reports of a server: the topics of the `stats` commands, with a file for each long one.
//! Those about the whole server are tables of [metrics](crate::metrics).

mod general;
mod hash;
mod hits;
mod settings;
mod slabs;
mod without_meaning;

use crate::buffers::Level;
use crate::server_state::ServerState;
use crate::telemetry::connections::Info;
use crate::telemetry::{Report, StatSink, hot, latency};
use nuthatch_engine::{Engine, Inspect, Time};

/// The outcome of a request for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The statistics were written.
    All,
    /// There is no such topic.
    Unknown,
    /// Their length is unbounded, and the connections' buffers hold much.
    NoMemory,
    /// They show keys, which `-X` forbids.
    Forbidden,
}

/// True for a topic that datagrams may ask for: it has numbers only, and costs little.
pub fn is_for_datagrams(topic: &[u8]) -> bool {
    matches!(topic, b"" | b"settings" | b"items" | b"slabs" | b"latency")
}

/// Writes the statistics of a topic. If it is empty, the general ones.
pub fn write(
    shared: &ServerState,
    asker: &Info,
    now: Time,
    topic: &[u8],
    sink: &mut StatSink<'_>,
) -> Outcome {
    let report = &mut Report::new(sink);
    match topic {
        b"" => general::report(report, shared, now),
        b"settings" => settings::report(report, shared),
        b"hash" => hash::report(report, shared),
        b"hits" => hits::report(report, shared, now),
        b"latency" => latency::report(
            report,
            shared.workers.iter().map(|worker| &worker.latencies),
        ),
        b"latency_buckets" => {
            latency::buckets(
                report,
                shared.workers.iter().map(|worker| &worker.latencies),
            );
        }
        b"hotkeys" if !shared.live.load().allow_dump => return Outcome::Forbidden,
        b"hotkeys" => hot::report(report, shared.workers.iter().map(|worker| &worker.hot)),
        b"items" => slabs::items(report, &shared.engine.stats(), now),
        b"slabs" => slabs::slabs(report, &shared.engine.stats(), &shared.totals()),
        // Only the text protocol counts sizes, turn by turn: see its `stats`.
        b"sizes" => report.line("sizes_status", "disabled"),
        b"conns" if shared.accounts.buffers.level() >= Level::Full => return Outcome::NoMemory,
        b"conns" => shared.telemetry.registry.report(
            report,
            shared.addresses.iter().map(|(address, _)| address),
            asker,
            now,
        ),
        b"extstore" => {}
        name if name == shared.engine.name().as_bytes() => return own(report, shared),
        _ => return Outcome::Unknown,
    }
    Outcome::All
}

/// The statistics that only this engine has, if there are any.
fn own(report: &mut Report<'_, '_>, shared: &ServerState) -> Outcome {
    let lines = shared.engine.own_lines();
    if lines.is_empty() {
        return Outcome::Unknown;
    }
    for (name, value) in lines {
        report.line(&name, value);
    }
    Outcome::All
}

/// `stats detail` with `on`, `off` or `dump`. `dump` writes its lines and the `END`.
pub fn detail(shared: &ServerState, word: &[u8], sink: &mut dyn FnMut(&[u8])) -> Outcome {
    let prefixes = &shared.telemetry.prefixes;
    match word {
        _ if !shared.live.load().allow_dump => return Outcome::Forbidden,
        b"on" => prefixes.enable(true),
        b"off" => prefixes.enable(false),
        b"dump" if shared.accounts.buffers.level() >= Level::Full => return Outcome::NoMemory,
        b"dump" => sink(&prefixes.dump(shared.workers.iter().map(|worker| &worker.prefixes))),
        _ => return Outcome::Unknown,
    }
    Outcome::All
}
