//! `stats items` and `stats slabs`: the engine's size classes.

use crate::telemetry::Report;
use crate::telemetry::counters::{ClassTotals, Totals};
use nuthatch_engine::Time;
use nuthatch_engine::stats::{ClassStats, EngineStats, LogStats};

use crate::reports::without_meaning;

/// The queues of pages, in memcached's words: new items are hot, and used items are warm.
#[derive(Clone, Copy, Default)]
struct Queues {
    hot_age: u64,
    warm_age: u64,
    /// The share of pages with new items, from 0 to 1.
    hot_share: f64,
}

impl Queues {
    fn of(log: &LogStats, now: Time) -> Self {
        let pages = log.probation_pages + log.main_pages;
        Self {
            hot_age: age(log.probation_since, now),
            warm_age: age(log.main_since, now),
            hot_share: log.probation_pages as f64 / pages.max(1) as f64,
        }
    }
}

/// Seconds since `since`.
fn age(since: Option<Time>, now: Time) -> u64 {
    since.map_or(0, |since| now.since(since).as_secs())
}

/// Classes that hold items.
pub fn items(report: &mut Report<'_, '_>, stats: &EngineStats, now: Time) {
    let queues = stats.log.as_ref().map(|log| Queues::of(log, now));
    for class in stats.classes.iter().filter(|class| class.items > 0) {
        let mut line = |name: &str, value: u64| report.line_of_items(class.class, name, value);
        let number = class.items;
        line("number", number);
        // Queues have pages of all sizes, so their parts of a class are estimates.
        let hot = queues.map_or(0, |queues| (number as f64 * queues.hot_share) as u64);
        let cold = if queues.is_some() { 0 } else { number };
        line("number_hot", hot);
        line("number_warm", number - hot - cold);
        line("number_cold", cold);
        let queues = queues.unwrap_or_default();
        line("age_hot", queues.hot_age);
        line("age_warm", queues.warm_age);
        line("age", oldest(class, queues, now));
        line("mem_requested", class.requested_bytes);
        removals(&mut line, class);
        without_meaning::items(report, class.class);
    }
}

/// The age of the oldest item if it is known, else the age of the queues, else that of the last evicted item.
fn oldest(class: &ClassStats, queues: Queues, now: Time) -> u64 {
    let known = queues.hot_age.max(queues.warm_age);
    match class.oldest {
        Some(_) => age(class.oldest, now),
        None if known > 0 => known,
        None => class.evicted_age,
    }
}

/// Counts of items that were removed or moved.
fn removals(line: &mut impl FnMut(&str, u64), class: &ClassStats) {
    line("evicted", class.evictions);
    line("evicted_nonzero", class.evicted_expiring);
    line("evicted_time", class.evicted_age);
    line("evicted_unfetched", class.evicted_unfetched);
    line("evicted_active", class.evicted_main);
    line("outofmemory", class.out_of_memory);
    line("reclaimed", class.expired);
    line("expired_unfetched", class.expired_unfetched);
    line("crawler_reclaimed", class.expired);
    line("moves_to_warm", class.moved_to_main);
    line("moves_within_lru", class.moved_within_main);
    // The thread that stores an item also evicts.
    line("direct_reclaims", class.evictions);
}

/// Classes that have memory, and classes without items that have counts: a counter, which only rises, must not vanish.
/// And their sums.
pub fn slabs(report: &mut Report<'_, '_>, stats: &EngineStats, totals: &Totals) {
    let counted = |class: &ClassStats| totals.classes.get(class.class).copied().unwrap_or_default();
    let vacant = stats.vacant_classes.iter();
    let counted_of =
        |class: &&ClassStats| class.removed > 0 || counted(class) != ClassTotals::default();
    let mut classes: Vec<_> = stats
        .classes
        .iter()
        .chain(vacant.filter(counted_of))
        .collect();
    classes.sort_unstable_by_key(|class| class.class);
    let is_one = stats.classes.len() == 1 && stats.vacant_classes.is_empty();
    let mut malloced = 0;
    for class in &classes {
        let mut line = |name: &str, value: u64| report.line_of(class.class, name, value);
        line("chunk_size", class.chunk_size as u64);
        line("chunks_per_page", class.chunks_per_page as u64);
        line("total_pages", class.pages as u64);
        line("total_chunks", (class.pages * class.chunks_per_page) as u64);
        line("used_chunks", class.used_chunks as u64);
        line("free_chunks", class.free_chunks as u64);
        line("free_chunks_end", 0);
        // An engine of one class counts no removals by class.
        let deleted = match is_one {
            true => totals.delete_hits,
            false => class.removed,
        };
        commands(&mut line, &counted(class), deleted);
        malloced += class.pages * class.chunks_per_page * class.chunk_size;
    }
    report.line("active_slabs", classes.len());
    report.line("total_malloced", malloced);
}

fn commands(line: &mut impl FnMut(&str, u64), counted: &ClassTotals, deleted: u64) {
    line("get_hits", counted.get_hits);
    line("cmd_set", counted.cmd_set);
    line("delete_hits", deleted);
    line("incr_hits", counted.incr_hits);
    line("decr_hits", counted.decr_hits);
    line("cas_hits", counted.cas_hits);
    line("cas_badval", counted.cas_badval);
    line("touch_hits", counted.touch_hits);
}
