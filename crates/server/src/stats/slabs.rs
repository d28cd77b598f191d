//! `stats items` and `stats slabs`: the engine's size classes.

use nuthatch_engine::stats::EngineStats;

use crate::stats::{Report, without_meaning};

/// Commands are counted for all classes together, in `stats`: a counter a class would cost every
/// request something. The names stand here all the same, because the exporter of Prometheus takes
/// a memcached that lacks them for one that is down.
const COMMANDS: [&str; 8] = [
    "get_hits",
    "cmd_set",
    "delete_hits",
    "incr_hits",
    "decr_hits",
    "cas_hits",
    "cas_badval",
    "touch_hits",
];

/// Classes that hold items.
pub(crate) fn items(report: &mut Report<'_, '_>, stats: &EngineStats) {
    for class in stats.classes.iter().filter(|class| class.used_chunks > 0) {
        let mut line = |name, value| report.line_of_items(class.class, name, value);
        line("number", class.used_chunks as u64);
        line("mem_requested", class.requested_bytes);
        line("evicted", class.evictions);
        line("outofmemory", class.out_of_memory);
        line("evicted_unfetched", class.evicted_unfetched);
        // One order for all items: what memcached calls cold is all there is.
        line("number_cold", class.used_chunks as u64);
        line("moves_to_cold", 0);
        // Counted for all classes together, and so told where there is one. The age is the mean of what was evicted.
        let of_all = |count| if stats.classes.len() == 1 { count } else { 0 };
        let age = of_all(stats.evicted_seconds / stats.evictions.max(1));
        line("age", age);
        line("evicted_time", age);
        line("reclaimed", of_all(stats.expired));
        line("expired_unfetched", of_all(stats.expired_unfetched));
        line("crawler_reclaimed", of_all(stats.expired));
        without_meaning::items(report, class.class);
    }
}

/// Classes that have memory, and their sums.
pub(crate) fn slabs(report: &mut Report<'_, '_>, stats: &EngineStats) {
    let mut malloced = 0;
    for class in &stats.classes {
        let mut line = |name, value: usize| report.line_of(class.class, name, value);
        line("chunk_size", class.chunk_size);
        line("chunks_per_page", class.chunks_per_page);
        line("total_pages", class.pages);
        line("total_chunks", class.pages * class.chunks_per_page);
        line("used_chunks", class.used_chunks);
        line("free_chunks", class.free_chunks);
        line("free_chunks_end", 0);
        for name in COMMANDS {
            line(name, 0);
        }
        malloced += class.pages * class.chunks_per_page * class.chunk_size;
    }
    report.line("active_slabs", stats.classes.len());
    report.line("total_malloced", malloced);
}
