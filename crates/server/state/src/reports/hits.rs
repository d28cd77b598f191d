//! `stats hits`: the uses of the memory, why items were evicted and how old they were, and what more memory would give.

use crate::metrics::Reading;
use crate::metrics::declared::{HITS_MEMORY, HITS_REMOVED};
use crate::server_state::ServerState;
use crate::telemetry::Report;
use nuthatch_engine::Time;
use nuthatch_engine::stats::{AGES, EngineStats};

pub fn report(report: &mut Report<'_, '_>, shared: &ServerState, now: Time) {
    let at = Reading::take(shared, now);
    for metric in HITS_MEMORY {
        metric.report(report, &at);
    }
    age_lines(report, &at.engine);
    for metric in HITS_REMOVED {
        metric.report(report, &at);
    }
}

/// The ages of evicted items, counted from their store. Lines of 0 are left out.
fn age_lines(report: &mut Report<'_, '_>, stats: &EngineStats) {
    if stats.evicted_ages.is_empty() {
        return;
    }
    let mean = stats.evicted_seconds / stats.evictions.max(1);
    report.line("evicted_age_mean", mean);
    for (power, &evicted) in stats.evicted_ages.iter().enumerate() {
        let name = match power {
            _ if power + 1 < AGES => format!("evicted_age_below_{}", 1_u64 << power),
            _ => format!("evicted_age_from_{}", 1_u64 << (power - 1)),
        };
        if evicted > 0 {
            report.line(&name, evicted);
        }
    }
}
