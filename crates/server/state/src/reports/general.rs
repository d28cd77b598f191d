//! `stats`: the table of metrics.

use crate::metrics::Reading;
use crate::metrics::declared::GENERAL;
use crate::shared::Shared;
use crate::telemetry::Report;
use nuthatch_engine::Time;

/// Writes all lines.
pub fn report(report: &mut Report<'_, '_>, shared: &Shared, now: Time) {
    let at = Reading::take(shared, now);
    for metric in GENERAL {
        metric.report(report, &at);
    }
}
