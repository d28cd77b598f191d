//! Metrics for Prometheus: the page of `--metrics`.

mod exposition;

use std::sync::atomic::Ordering;

use crate::shared::Shared;
use crate::system;
use crate::telemetry::latency::{Group, Times};
use nuthatch_engine::Engine;
use nuthatch_engine::stats::{EngineStats, LogStats, MORE_MEMORY};

pub use self::exposition::Format;
use self::exposition::{Labels, Page};

const NONE: Labels<'static> = &[];

/// The whole page.
pub fn page(shared: &Shared, format: Format) -> String {
    let mut page = Page::new(format);
    process(&mut page, shared);
    connections(&mut page, shared);
    acceptance(&mut page, shared);
    commands(&mut page, shared);
    latencies(&mut page, shared);
    saves(&mut page, shared);
    datagrams(&mut page, shared);
    let stats = shared.engine.stats();
    memory(&mut page, &stats);
    items(&mut page, &stats);
    if let Some(log) = &stats.log {
        log_lines(&mut page, log);
    }
    page.end()
}

fn process(page: &mut Page, shared: &Shared) {
    let (version, engine) = (env!("CARGO_PKG_VERSION"), shared.engine.name());
    let labels = [("version", version), ("engine", engine)];
    page.gauge(
        "nuthatch_build_info",
        "1, with what runs.",
        [(&labels[..], 1)],
    );
    let start = shared.clock.started_unix();
    page.gauge(
        "nuthatch_start_time_seconds",
        "When it started, in unix time.",
        [(NONE, start)],
    );
    if let Some((user, system)) = system::cpu_time() {
        page.seconds(
            "nuthatch_cpu_seconds",
            "Processor time.",
            &[
                (&[("mode", "user")], user.as_secs_f64()),
                (&[("mode", "system")], system.as_secs_f64()),
            ],
        );
    }
    if let Some(resident) = system::resident_bytes() {
        page.gauge(
            "nuthatch_resident_memory_bytes",
            "Memory that the process holds.",
            [(NONE, resident)],
        );
    }
    page.gauge(
        "nuthatch_threads",
        "Worker threads.",
        [(NONE, shared.config.threads.get() as u64)],
    );
}

fn connections(page: &mut Page, shared: &Shared) {
    let (accepting, totals) = (&shared.accepting, shared.totals());
    page.gauge(
        "nuthatch_connections",
        "Open connections.",
        [(NONE, shared.connections() as u64)],
    );
    let most = shared.live.load().connections_max.get() as u64;
    page.gauge(
        "nuthatch_connections_limit",
        "Connections that may be open.",
        [(NONE, most)],
    );
    page.counter(
        "nuthatch_connections_opened",
        "Connections accepted.",
        [(NONE, accepting.total_connections.get())],
    );
    page.counter(
        "nuthatch_connections_refused",
        "Connections that were one too many.",
        [(NONE, accepting.rejected_connections.get())],
    );
    page.counter(
        "nuthatch_connections_refused_by_address",
        "Those of them that were one too many of their address.",
        [(NONE, accepting.rejected_by_address.get())],
    );
    page.counter(
        "nuthatch_connections_closed",
        "Connections that the server closed, by the reason.",
        [
            (&[("reason", "idle")][..], totals.idle_kicks),
            (&[("reason", "memory")], totals.read_buf_oom),
            (&[("reason", "upload")], totals.upload_kicks),
            (&[("reason", "reader")], totals.reader_kicks),
            (&[("reason", "panic")], totals.panic_kicks),
            (
                &[("reason", "tls")],
                totals.ssl_handshake_errors + totals.ssl_proto_errors,
            ),
        ],
    );
    page.counter(
        "nuthatch_logins",
        "Logins.",
        [
            (
                &[("result", "admitted")][..],
                totals.auth_cmds.saturating_sub(totals.auth_errors),
            ),
            (
                &[("result", "refused")],
                totals.auth_errors.saturating_sub(totals.auth_limited),
            ),
            (&[("result", "limited")], totals.auth_limited),
        ],
    );
    page.counter(
        "nuthatch_received_bytes",
        "Bytes received.",
        [(NONE, totals.bytes_read)],
    );
    page.counter(
        "nuthatch_sent_bytes",
        "Bytes sent.",
        [(NONE, totals.bytes_written)],
    );
    let held = shared.account.held() as u64;
    page.gauge(
        "nuthatch_buffers_bytes",
        "Buffers of connections.",
        [(NONE, held)],
    );
    let bound = shared.account.bound() as u64;
    page.gauge(
        "nuthatch_buffers_limit_bytes",
        "What they may hold.",
        [(NONE, bound)],
    );
}

/// Refused connections, and watchers.
fn acceptance(page: &mut Page, shared: &Shared) {
    let accepting = &shared.accepting;
    page.counter(
        "nuthatch_accepting_suspended",
        "How often no connection was accepted for a while, for want of descriptors.",
        [(NONE, accepting.listen_disabled_num.get())],
    );
    page.seconds(
        "nuthatch_accepting_suspended_seconds",
        "For how long in all.",
        &[(NONE, accepting.listen_disabled_us.get() as f64 / 1e6)],
    );
    let watch = shared.watch.totals();
    page.gauge(
        "nuthatch_watchers",
        "Connections that are told what happens (watch).",
        [(NONE, watch.watchers as u64)],
    );
    page.counter(
        "nuthatch_watchers_lines_skipped",
        "Lines that watchers were not told because they do not read.",
        [(NONE, watch.skipped)],
    );
    page.counter(
        "nuthatch_log_lines_lost",
        "Lines of the log that could not be written, or not in time.",
        [(NONE, shared.config.log_lost.load(Ordering::Relaxed))],
    );
    if let Some(valid) = shared.tls.as_ref().and_then(|tls| tls.validity()) {
        page.gauge(
            "nuthatch_tls_certificate_begin_seconds",
            "From when on all of the certificates are valid, in unix time.",
            [(NONE, *valid.start())],
        );
        page.gauge(
            "nuthatch_tls_certificate_end_seconds",
            "When the first of the certificates ends, in unix time.",
            [(NONE, *valid.end())],
        );
    }
}

/// Copies of all items (--save).
fn saves(page: &mut Page, shared: &Shared) {
    if shared.config.keeping.save.is_none() {
        return;
    }
    let saves = *shared.saves.lock();
    page.counter(
        "nuthatch_saves",
        "Copies of all items that were to be taken.",
        [
            (&[("result", "done")][..], saves.done),
            (&[("result", "failed")], saves.failed),
        ],
    );
    page.gauge(
        "nuthatch_last_save_failed",
        "1 if the last of them failed.",
        [(NONE, u64::from(saves.last_failed))],
    );
    page.gauge(
        "nuthatch_last_save_done_seconds",
        "When the last one was done that did not, in unix time; 0 if there is none.",
        [(NONE, saves.last_done)],
    );
    page.gauge(
        "nuthatch_last_save_items",
        "Items in that one.",
        [(NONE, saves.last_items)],
    );
    page.gauge(
        "nuthatch_last_save_duration_seconds",
        "How long the last one took.",
        [(NONE, saves.last_took.as_secs_f64())],
    );
}

/// UDP (-U).
fn datagrams(page: &mut Page, shared: &Shared) {
    if !shared.addresses.iter().any(|(address, _)| address.is_udp()) {
        return;
    }
    let totals = shared.totals();
    page.counter(
        "nuthatch_datagrams_received",
        "Datagrams received.",
        [(NONE, totals.udp_datagrams)],
    );
    page.counter(
        "nuthatch_datagrams_failed",
        "Requests that got no whole answer by UDP, by the reason.",
        [
            (&[("reason", "cut")][..], totals.udp_dropped),
            (&[("reason", "too_large")], totals.udp_too_large),
            (&[("reason", "unsent")], totals.udp_unsent),
        ],
    );
}

fn commands(page: &mut Page, shared: &Shared) {
    let totals = shared.totals();
    let samples: [([(&str, &str); 2], u64); 19] = [
        ([("command", "get"), ("result", "hit")], totals.get_hits),
        ([("command", "get"), ("result", "miss")], totals.get_misses),
        ([("command", "touch"), ("result", "hit")], totals.touch_hits),
        (
            [("command", "touch"), ("result", "miss")],
            totals.touch_misses,
        ),
        (
            [("command", "delete"), ("result", "hit")],
            totals.delete_hits,
        ),
        (
            [("command", "delete"), ("result", "miss")],
            totals.delete_misses,
        ),
        ([("command", "incr"), ("result", "hit")], totals.incr_hits),
        (
            [("command", "incr"), ("result", "miss")],
            totals.incr_misses,
        ),
        ([("command", "decr"), ("result", "hit")], totals.decr_hits),
        (
            [("command", "decr"), ("result", "miss")],
            totals.decr_misses,
        ),
        ([("command", "cas"), ("result", "hit")], totals.cas_hits),
        ([("command", "cas"), ("result", "miss")], totals.cas_misses),
        (
            [("command", "cas"), ("result", "badval")],
            totals.cas_badval,
        ),
        ([("command", "look"), ("result", "hit")], totals.look_hits),
        (
            [("command", "look"), ("result", "miss")],
            totals.look_misses,
        ),
        ([("command", "set"), ("result", "any")], totals.cmd_set),
        (
            [("command", "set"), ("result", "too_large")],
            totals.store_too_large,
        ),
        (
            [("command", "set"), ("result", "no_memory")],
            totals.store_no_memory,
        ),
        ([("command", "flush"), ("result", "any")], totals.cmd_flush),
    ];
    let samples = samples.iter().map(|(labels, value)| (&labels[..], *value));
    page.counter(
        "nuthatch_commands",
        "Commands, by what became of them.",
        samples,
    );
    page.counter(
        "nuthatch_keys_refused",
        "Keys of Redis' clients that no item can have, by the reason.",
        [(&[("reason", "too_long")][..], totals.key_too_long)],
    );
}

fn latencies(page: &mut Page, shared: &Shared) {
    let name = "nuthatch_request_duration_seconds";
    page.histograms(
        name,
        "From the read that brought a request to the write of its answer.",
    );
    for group in Group::all() {
        let times = Times::of(shared.inboxes.iter().map(|inbox| &inbox.latencies), group);
        let (count, sum) = (times.count(), times.seconds());
        let (command, size) = group.names();
        let labels = [("command", command), ("size", size)];
        page.histogram(name, labels, times.cumulated(), count, sum);
    }
}

fn memory(page: &mut Page, stats: &EngineStats) {
    page.gauge(
        "nuthatch_memory_limit_bytes",
        "The limit (-m).",
        [(NONE, stats.memory_limit)],
    );
    page.gauge(
        "nuthatch_memory_used_bytes",
        "What is taken of it.",
        [(NONE, stats.memory_used)],
    );
    if let Some(memory) = &stats.memory_use {
        page.gauge(
            "nuthatch_memory_bytes",
            "What the memory in use is used for.",
            [
                (&[("use", "values")][..], memory.values),
                (&[("use", "keys")], memory.keys),
                (&[("use", "headers")], memory.headers),
                (&[("use", "padding")], memory.padding),
                (&[("use", "gaps")], memory.gaps),
                (&[("use", "bookkeeping")], memory.bookkeeping),
                (&[("use", "index")], memory.index),
                (&[("use", "ghosts")], memory.ghosts),
            ],
        );
    }
    page.gauge(
        "nuthatch_index_slots",
        "Slots of the index.",
        [(NONE, stats.index_slots)],
    );
    page.gauge(
        "nuthatch_index_bytes",
        "Bytes of the index.",
        [(NONE, stats.index_bytes)],
    );
}

fn items(page: &mut Page, stats: &EngineStats) {
    page.gauge("nuthatch_items", "Items.", [(NONE, stats.items)]);
    page.gauge(
        "nuthatch_items_bytes",
        "Headers, keys and values of items.",
        [(NONE, stats.item_bytes)],
    );
    page.counter(
        "nuthatch_items_stored",
        "Items stored.",
        [(NONE, stats.total_items)],
    );
    let flushed = stats.flushed.unwrap_or(0);
    page.counter(
        "nuthatch_items_removed",
        "Items that left without being asked to, by the reason.",
        [
            (&[("reason", "evicted")][..], stats.evictions),
            (
                &[("reason", "expired")],
                stats.expired.saturating_sub(flushed),
            ),
            (&[("reason", "flushed")], flushed),
        ],
    );
    page.counter(
        "nuthatch_items_removed_unfetched",
        "Those of them that no get had hit, by the reason.",
        [
            (&[("reason", "evicted")][..], stats.evicted_unfetched),
            (&[("reason", "expired")], stats.expired_unfetched),
        ],
    );
    page.counter(
        "nuthatch_stores_without_memory",
        "Stores that found no memory.",
        [(NONE, stats.out_of_memory)],
    );
}

fn log_lines(page: &mut Page, log: &LogStats) {
    page.gauge(
        "nuthatch_log_pages",
        "Pages of the log, by their queue.",
        [
            (&[("queue", "probation")][..], log.probation_pages),
            (&[("queue", "main")], log.main_pages),
        ],
    );
    page.counter(
        "nuthatch_log_evictions",
        "Live items evicted, by the queue of their page; bucket: both buckets of a new key were full.",
        [
            (&[("queue", "probation")][..], log.evicted_probation),
            (&[("queue", "main")], log.evicted_main),
            (&[("queue", "bucket")], log.evicted_slots),
        ],
    );
    page.counter(
        "nuthatch_log_kept_items",
        "Items in use that stayed when their page was emptied, by its queue.",
        [
            (&[("queue", "probation")][..], log.moved_to_main),
            (&[("queue", "main")], log.moved_within_main),
        ],
    );
    page.counter(
        "nuthatch_log_pages_cleaned",
        "Pages emptied.",
        [(NONE, log.pages_cleaned)],
    );
    page.counter(
        "nuthatch_log_moved_bytes",
        "Bytes of items moved to free pages.",
        [(NONE, log.bytes_moved)],
    );
    page.counter(
        "nuthatch_ghost_hits",
        "Items stored again soon after they left.",
        [(NONE, log.ghost_hits)],
    );
    let more = MORE_MEMORY.map(|percent| percent.to_string());
    let labels: Vec<[(&str, &str); 1]> = more
        .iter()
        .map(|percent| [("percent", &**percent)])
        .collect();
    let samples = labels.iter().zip(log.more_hits);
    page.counter(
        "nuthatch_more_memory_hits",
        "An estimate: hits that so much more memory would have given.",
        samples.map(|(labels, hits)| (&labels[..], hits)),
    );
}
