//! `stats hits`: what the memory is used for, and why items left it.

use nuthatch_engine::Engine;

use crate::shared::Shared;
use crate::stats::Report;

pub(crate) fn report(report: &mut Report<'_>, shared: &Shared) {
    let stats = shared.engine.stats();
    report.line("memory_limit", stats.memory_limit);
    report.line("memory_used", stats.memory_used);
    report.line("item_bytes", stats.item_bytes);
    report.line("index_bytes", stats.index_bytes);
    report.line("items", stats.items);
    report.line("evictions", stats.evictions);
    report.line("evicted_unfetched", stats.evicted_unfetched);
    report.line("expired", stats.expired);
    report.line("expired_unfetched", stats.expired_unfetched);
    let Some(log) = stats.log else { return };
    report.line("page_bytes", log.page_bytes);
    report.line("probation_pages", log.probation_pages);
    report.line("main_pages", log.main_pages);
    report.line("ghost_bytes", log.ghost_bytes);
    report.line("evicted_probation", log.evicted_probation);
    report.line("evicted_main", log.evicted_main);
    report.line("ghost_hits", log.ghost_hits);
    report.line("pages_cleaned", log.pages_cleaned);
    report.line("bytes_moved", log.bytes_moved);
}
