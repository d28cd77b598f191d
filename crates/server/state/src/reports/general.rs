//! `stats`: the table of metrics.

use crate::metrics::Reading;
use crate::metrics::declared::GENERAL;
use crate::server_state::ServerState;
use crate::telemetry::Report;
use nuthatch_engine::Time;

/// Writes all lines.
pub fn report(report: &mut Report<'_, '_>, shared: &ServerState, now: Time) {
    let at = Reading::take(shared, now);
    for metric in GENERAL {
        metric.report(report, &at);
    }
}
