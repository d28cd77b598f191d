//! `stats hash`: statistics of the running server's index. (The Linux paper's instrumentation, which wrote to the
//! console, and its wish for something better: sections 2 and 6.)
//!
//! Work and output are bounded: of a large index only some buckets are sampled, and the number of lines for sizes is
//! limited.

use crate::server_state::ServerState;
use crate::telemetry::Report;
use nuthatch_base::spread::{Histogram, Perfect};
use nuthatch_engine::index_stats::{BucketKind, IndexHistogram};
use nuthatch_engine::stats::EngineStats;
use nuthatch_engine::{Engine, Inspect};

/// About this many buckets of a larger index are sampled: the worker's other clients wait meanwhile, and each bucket
/// may cost a few cache misses.
const SAMPLE: u64 = 4096;

/// Up to this size there is a line for each size, and above it only for sizes that occur.
const DENSE_MAX: u64 = 15;

/// The most sizes that have lines.
const SIZES_MAX: usize = 64;

/// Writes all lines.
pub fn report(report: &mut Report<'_, '_>, shared: &ServerState) {
    let stats = shared.engine.stats();
    report.line("engine", shared.engine.name());
    report.line("items", stats.items);
    report.line("index_slots", stats.index_slots);
    report.line("index_bytes", stats.index_bytes);
    report.line("index_is_expanding", u8::from(stats.index_growing));
    searches(report, &stats);
    if let Some(seen) = shared.engine.index_histogram(SAMPLE) {
        buckets(report, &seen);
    }
}

/// The counts since the start or `stats reset`.
fn searches(report: &mut Report<'_, '_>, stats: &EngineStats) {
    let misses = stats.lookups.saturating_sub(stats.lookup_hits);
    report.line("lookups", stats.lookups);
    report.line("lookup_hits", stats.lookup_hits);
    report.line("lookup_misses", misses);
    report.line("searched_hit", stats.searched_hit);
    report.line("searched_miss", stats.searched_miss);
    let mut mean = |name, searched: u64, lookups: u64| {
        if lookups > 0 {
            let mean = searched as f64 / lookups as f64;
            report.line(name, format_args!("{mean:.6}"));
        }
    };
    mean("searched_per_hit", stats.searched_hit, stats.lookup_hits);
    mean("searched_per_miss", stats.searched_miss, misses);
    report.line("false_tags", stats.false_tags);
    report.line("read_retries", stats.read_retries);
    report.line("displacements", stats.displacements);
    for (length, &paths) in stats.path_lengths.iter().enumerate().skip(1) {
        report.line(&format!("path_length:{length}"), paths);
    }
}

/// Sizes of buckets, and beside them the sizes that a perfect hash would give as many items and buckets.
fn buckets(report: &mut Report<'_, '_>, index: &IndexHistogram) {
    let seen = Histogram::of_sizes((0..).zip(index.sizes.iter().copied()));
    let (items, looked_at) = (seen.items(), seen.buckets());
    report.line("buckets", index.buckets);
    report.line("buckets_sampled", looked_at);
    report.line("is_sample", u8::from(index.is_sample()));
    let searched = |mean: f64| format!("{mean:.6}");
    let perfect = match index.bucket {
        BucketKind::Chain => {
            report.line("chain_searched_per_hit", searched(seen.searched_hit()));
            report.line("chain_searched_per_miss", searched(seen.searched_miss()));
            Perfect::of(items, looked_at)
        }
        BucketKind::Slots { slots, tag_bits } => {
            report.line("bucket_slots", slots);
            report.line("tag_bits", tag_bits);
            Perfect::in_slots(items, looked_at, slots, tag_bits)
        }
    };
    report.line("sampled_items", items);
    report.line("largest", seen.largest());
    report.line("perfect_largest", perfect.largest());
    let share = |part: f64| format!("{:.2}", 100.0 * part);
    let used = seen.used_buckets() as f64 / looked_at.max(1) as f64;
    report.line("used_pct", share(used));
    report.line("perfect_used_pct", share(perfect.used_share()));
    report.line("up_to_mean_pct", share(seen.share_up_to_mean()));
    report.line("perfect_up_to_mean_pct", share(perfect.share_up_to_mean()));
    report.line("perfect_searched_per_hit", searched(perfect.searched_hit()));
    report.line(
        "perfect_searched_per_miss",
        searched(perfect.searched_miss()),
    );
    sizes(report, &seen, &perfect);
}

/// The paper's columns, each a line.
fn sizes(report: &mut Report<'_, '_>, seen: &Histogram, perfect: &Perfect) {
    let rows = seen.rows(DENSE_MAX);
    for row in rows.iter().take(SIZES_MAX) {
        let size = row.size;
        let mut line = |name, value: String| report.line(&format!("size:{size}:{name}"), value);
        line("buckets", row.buckets.to_string());
        line("items", row.items.to_string());
        line("sum_pct", format!("{:.2}", row.sum_pct));
        let expected = perfect.buckets_of(size);
        line("perfect_buckets", format!("{expected:.1}"));
    }
    report.line("sizes_left_out", rows.len().saturating_sub(SIZES_MAX));
}
