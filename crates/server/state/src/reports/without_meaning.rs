//! Names of memcached 1.6.45's statistics that have no meaning in this server. The server reports them all the same,
//! with the value of a memcached in which the event never happened: exporters, dashboards and scripts take a server
//! that lacks a name for another program, or for one that is down. docs/statistics.md tells the meaning of each of the
//! others. (Those in `stats` stand in the [table of metrics](crate::metrics::declared).)

use crate::telemetry::Report;

/// Names of a class in `stats items`.
const ITEMS: [&str; 8] = [
    "tailrepairs",
    "crawler_items_checked",
    "lrutail_reflocked",
    "moves_to_cold",
    "hits_to_hot",
    "hits_to_warm",
    "hits_to_cold",
    "hits_to_temp",
];

/// Names in `stats settings`, with the value for a feature that is off.
const SETTINGS: [(&str, &str); 32] = [
    ("hashpower_init", "0"),
    ("slab_automove_ratio", "0.80"),
    ("slab_automove_window", "0"),
    ("slab_automove_freeratio", "0.010"),
    ("slab_chunk_max", "0"),
    ("lru_crawler_sleep", "0"),
    ("lru_crawler_tocrawl", "0"),
    ("tail_repair_time", "0"),
    ("hot_lru_pct", "0"),
    ("warm_lru_pct", "0"),
    ("hot_max_factor", "0.00"),
    ("warm_max_factor", "0.00"),
    ("temp_lru", "no"),
    ("temporary_ttl", "0"),
    ("worker_logbuf_size", "0"),
    ("inline_ascii_response", "no"),
    ("ext_item_size", "0"),
    ("ext_item_age", "0"),
    ("ext_low_ttl", "0"),
    ("ext_recache_rate", "0"),
    ("ext_wbuf_size", "0"),
    ("ext_compact_under", "0"),
    ("ext_drop_under", "0"),
    ("ext_max_sleep", "0"),
    ("ext_max_frag", "0.00"),
    ("ext_drop_unread", "no"),
    ("ssl_keyformat", "1"),
    ("ssl_ciphers", "NULL"),
    ("ssl_kernel_tls", "no"),
    ("num_napi_ids", "0"),
    ("client_flags_size", "4"),
    ("proxy_enabled", "no"),
];

pub fn items(report: &mut Report<'_, '_>, class: usize) {
    for name in ITEMS {
        report.line_of_items(class, name, 0);
    }
}

pub fn settings(report: &mut Report<'_, '_>) {
    for (name, value) in SETTINGS {
        report.line(name, value);
    }
}
