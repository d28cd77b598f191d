//! `stats hits`: the uses of the memory, why items were evicted and how old they were, and what more memory would give.

use crate::shared::Shared;
use crate::telemetry::Report;
use nuthatch_engine::Engine;
use nuthatch_engine::stats::{AGES, EngineStats, LogStats, MORE_MEMORY, MemoryUse};

pub fn report(report: &mut Report<'_, '_>, shared: &Shared) {
    let stats = shared.engine.stats();
    report.line("memory_limit", stats.memory_limit);
    report.line("memory_used", stats.memory_used);
    let free = stats.memory_limit.saturating_sub(stats.memory_used);
    report.line("memory_free", free);
    if let Some(memory) = &stats.memory_use {
        memory_lines(report, memory);
    }
    report.line("item_bytes", stats.item_bytes);
    report.line("index_bytes", stats.index_bytes);
    report.line("items", stats.items);
    report.line("evictions", stats.evictions);
    report.line("evicted_unfetched", stats.evicted_unfetched);
    age_lines(report, &stats);
    let flushed = stats.flushed.unwrap_or(0);
    report.line("expired", stats.expired.saturating_sub(flushed));
    report.line("expired_unfetched", stats.expired_unfetched);
    if stats.flushed.is_some() {
        report.line("flushed", flushed);
    }
    if let Some(log) = &stats.log {
        log_lines(report, log);
    }
}

/// The parts of `memory_used`.
fn memory_lines(report: &mut Report<'_, '_>, memory: &MemoryUse) {
    report.line("memory_values", memory.values);
    report.line("memory_keys", memory.keys);
    report.line("memory_headers", memory.headers);
    report.line("memory_padding", memory.padding);
    report.line("memory_gaps", memory.gaps);
    report.line("memory_bookkeeping", memory.bookkeeping);
    report.line("memory_index", memory.index);
    report.line("memory_ghosts", memory.ghosts);
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

fn log_lines(report: &mut Report<'_, '_>, log: &LogStats) {
    report.line("page_bytes", log.page_bytes);
    report.line("probation_pages", log.probation_pages);
    report.line("main_pages", log.main_pages);
    report.line("ghost_bytes", log.ghost_bytes);
    report.line("evicted_probation", log.evicted_probation);
    report.line("evicted_main", log.evicted_main);
    report.line("evicted_slots", log.evicted_slots);
    report.line("ghost_hits", log.ghost_hits);
    for (percent, hits) in MORE_MEMORY.iter().zip(log.more_hits) {
        report.line(&format!("more_hits_{percent}"), hits);
    }
    report.line("pages_cleaned", log.pages_cleaned);
    report.line("bytes_moved", log.bytes_moved);
}
