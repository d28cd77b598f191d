//! What [`Stats`] counts, for the recorder that the program has chosen with the crate `metrics`.

use metrics::{SharedString, Unit, counter, describe_counter, describe_gauge, gauge};

use crate::stats::Stats;

/// A metric: its name, its unit, what it is, and its field.
type Metric = (&'static str, Unit, &'static str, fn(&Stats) -> u64);

/// What only grows.
const COUNTERS: &[Metric] = &[
    (
        "nuthatch_hits_total",
        Unit::Count,
        "Reads that found a value.",
        |stats| stats.hits,
    ),
    (
        "nuthatch_misses_total",
        Unit::Count,
        "Reads that found none.",
        |stats| stats.misses,
    ),
    (
        "nuthatch_insertions_total",
        Unit::Count,
        "Items stored.",
        |stats| stats.insertions,
    ),
    (
        "nuthatch_evictions_total",
        Unit::Count,
        "Items removed to make room.",
        |stats| stats.evictions,
    ),
    (
        "nuthatch_expirations_total",
        Unit::Count,
        "Items whose memory was taken back because they had expired or were invalidated.",
        |stats| stats.expirations,
    ),
    (
        "nuthatch_out_of_memory_total",
        Unit::Count,
        "Stores refused for lack of memory.",
        |stats| stats.out_of_memory,
    ),
    (
        "nuthatch_untold_total",
        Unit::Count,
        "Removed values that the listener was not called with.",
        |stats| stats.untold,
    ),
];

/// What may fall.
const GAUGES: &[Metric] = &[
    (
        "nuthatch_entries",
        Unit::Count,
        "Items in the cache.",
        |stats| stats.entry_count,
    ),
    (
        "nuthatch_item_bytes",
        Unit::Bytes,
        "Bytes of the items: header, key and value.",
        |stats| stats.weighted_size,
    ),
    (
        "nuthatch_memory_used_bytes",
        Unit::Bytes,
        "Memory taken: items, index and bookkeeping.",
        |stats| stats.memory_used,
    ),
    (
        "nuthatch_memory_limit_bytes",
        Unit::Bytes,
        "The limit of the memory taken.",
        |stats| stats.memory_limit,
    ),
    (
        "nuthatch_index_bytes",
        Unit::Bytes,
        "Bytes of the index.",
        |stats| stats.index_bytes,
    ),
];

impl Stats {
    /// Gives these numbers to the recorder of the crate [`metrics`]: with the feature `metrics`. The label `cache` says
    /// whose they are. Without a recorder nothing happens.
    ///
    /// The cache publishes nothing by itself. A program calls this when its numbers are asked for, or every few seconds:
    ///
    /// ```
    /// # fn main() -> Result<(), nuthatch::BuildError> {
    /// let users = nuthatch::Cache::new(16 << 20)?;
    /// nuthatch::describe_metrics();
    /// users.stats().publish("users");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Counters are `nuthatch_hits_total`, and so `misses`, `insertions`, `evictions`, `expirations`, `out_of_memory` and
    /// `untold`. Gauges are `nuthatch_entries`, and in bytes `nuthatch_item_bytes`, `nuthatch_memory_used_bytes`,
    /// `nuthatch_memory_limit_bytes` and `nuthatch_index_bytes`.
    pub fn publish(&self, cache: impl Into<SharedString>) {
        let cache = cache.into();
        for (name, _, _, of) in COUNTERS {
            counter!(*name, "cache" => cache.clone()).absolute(of(self));
        }
        for (name, _, _, of) in GAUGES {
            gauge!(*name, "cache" => cache.clone()).set(of(self) as f64);
        }
    }
}

/// Tells the recorder of the crate [`metrics`] the units of what [`Stats::publish`] gives it, and what it means: once, after
/// the recorder is installed.
pub fn describe_metrics() {
    for (name, unit, meaning, _) in COUNTERS {
        describe_counter!(*name, *unit, *meaning);
    }
    for (name, unit, meaning, _) in GAUGES {
        describe_gauge!(*name, *unit, *meaning);
    }
}
