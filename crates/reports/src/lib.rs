//! What a server says of itself: the topics of the `stats` commands, a file each where they are long, and the page of
//! metrics.

mod general;
mod hash;
mod hits;
pub mod metrics;
mod settings;
mod slabs;
mod without_meaning;

use nuthatch_context::account::Level;
use nuthatch_context::shared::Shared;
use nuthatch_engine::{Engine, Inspect, Time};
use nuthatch_telemetry::connections::Info;
use nuthatch_telemetry::{Report, StatSink, hot, latency};

/// What became of a wish for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// They were told.
    All,
    /// There is no such topic.
    Unknown,
    /// Their length is bounded by nothing, and buffers are many.
    NoMemory,
    /// They show keys, which `-X` forbids.
    Forbidden,
}

/// True for a topic that is told in answer to a datagram: numbers alone, which cost little.
pub fn is_for_datagrams(topic: &[u8]) -> bool {
    matches!(topic, b"" | b"settings" | b"items" | b"slabs" | b"latency")
}

/// Tells the statistics of a topic; the general ones if it is empty.
pub fn tell(
    shared: &Shared,
    asker: &Info,
    now: Time,
    topic: &[u8],
    hear: &mut StatSink<'_>,
) -> Outcome {
    let report = &mut Report::new(hear);
    match topic {
        b"" => general::report(report, shared, now),
        b"settings" => settings::report(report, shared),
        b"hash" => hash::report(report, shared),
        b"hits" => hits::report(report, shared),
        b"latency" => latency::report(report, shared.inboxes.iter().map(|inbox| &inbox.latencies)),
        b"latency_buckets" => {
            latency::buckets(report, shared.inboxes.iter().map(|inbox| &inbox.latencies));
        }
        b"hotkeys" if !shared.live.allow_dump() => return Outcome::Forbidden,
        b"hotkeys" => hot::report(report, shared.inboxes.iter().map(|inbox| &inbox.hot)),
        b"items" => slabs::items(report, &shared.engine.stats(), now),
        b"slabs" => slabs::slabs(report, &shared.engine.stats(), &shared.totals()),
        // Only the text protocol has time to count them: see `command`.
        b"sizes" => report.line("sizes_status", "disabled"),
        b"conns" if shared.account.level() >= Level::Full => return Outcome::NoMemory,
        b"conns" => shared.registry.report(
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

/// What only this engine has to tell, if it has anything.
fn own(report: &mut Report<'_, '_>, shared: &Shared) -> Outcome {
    let lines = shared.engine.own_lines();
    if lines.is_empty() {
        return Outcome::Unknown;
    }
    for (name, value) in lines {
        report.line(&name, value);
    }
    Outcome::All
}

/// `stats detail` with `on`, `off` or `dump`, which tells lines to their `END`.
pub fn detail(shared: &Shared, word: &[u8], hear: &mut dyn FnMut(&[u8])) -> Outcome {
    let prefixes = &shared.prefixes;
    match word {
        _ if !shared.live.allow_dump() => return Outcome::Forbidden,
        b"on" => prefixes.enable(true),
        b"off" => prefixes.enable(false),
        b"dump" if shared.account.level() >= Level::Full => return Outcome::NoMemory,
        b"dump" => hear(&prefixes.dump(shared.inboxes.iter().map(|inbox| &inbox.prefixes))),
        _ => return Outcome::Unknown,
    }
    Outcome::All
}
