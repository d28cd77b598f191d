//! `stats`: with memcached's names, if they have a meaning in this server.

use std::process;
use std::sync::atomic::Ordering;

use crate::config::MEMCACHED_VERSION;
use crate::inbox::IdleMemory;
use crate::shared::Shared;
use crate::system;
use crate::telemetry::Report;
use nuthatch_engine::{Engine, Inspect, Time};

use crate::reports::without_meaning;

/// Writes all lines, in memcached's order.
pub fn report(report: &mut Report<'_, '_>, shared: &Shared, now: Time) {
    process_lines(report, shared, now);
    connection_lines(report, shared);
    command_lines(report, shared);
    engine_lines(report, shared);
}

fn process_lines(report: &mut Report<'_, '_>, shared: &Shared, now: Time) {
    report.line("pid", process::id());
    report.line("uptime", now.seconds());
    report.line("time", shared.clock.wall().unix().as_secs());
    report.line("version", MEMCACHED_VERSION);
    report.line("nuthatch_version", env!("CARGO_PKG_VERSION"));
    // This server uses no libevent.
    report.line("libevent", "none");
    report.line("pointer_size", usize::BITS);
    if let Some((user, system)) = system::cpu_time() {
        report.line("rusage_user", format_args!("{:.6}", user.as_secs_f64()));
        report.line("rusage_system", format_args!("{:.6}", system.as_secs_f64()));
    }
}

fn connection_lines(report: &mut Report<'_, '_>, shared: &Shared) {
    let accepting = &shared.accepting;
    let open = shared.connections();
    report.line("max_connections", shared.live.load().connections_max);
    report.line("curr_connections", open);
    report.line("total_connections", accepting.total_connections.get());
    report.line("rejected_connections", accepting.rejected_connections.get());
    report.line("rejected_by_address", accepting.rejected_by_address.get());
    report.line("connection_structures", open);
    report.line("reserved_fds", system::OTHER_FILES);
    report.line("read_buf_count", open);
    // Buffers of input and output together.
    report.line("read_buf_bytes", shared.account.held());
    let idle = shared.inboxes.iter().map(|inbox| &inbox.idle);
    let free: usize = idle.clone().map(IdleMemory::buffers).sum();
    report.line("read_buf_bytes_free", free);
    let totals = shared.totals();
    report.line("read_buf_oom", totals.read_buf_oom);
    report.line("upload_bytes", shared.uploads.reserved());
    report.line("upload_kicks", totals.upload_kicks);
    report.line("reader_kicks", totals.reader_kicks);
    report.line("panic_kicks", totals.panic_kicks);
    let answers = idle.map(IdleMemory::answers);
    let (count, bytes) = answers.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    report.line("response_obj_count", count);
    report.line("response_obj_bytes", bytes);
}

fn command_lines(report: &mut Report<'_, '_>, shared: &Shared) {
    let totals = shared.totals();
    report.line("cmd_get", totals.cmd_get());
    report.line("cmd_set", totals.cmd_set);
    report.line("cmd_flush", totals.cmd_flush);
    report.line("cmd_touch", totals.cmd_touch);
    report.line("cmd_meta", totals.cmd_meta);
    report.line("get_hits", totals.get_hits);
    report.line("get_misses", totals.get_misses);
    let engine = shared.engine.stats();
    report.line("get_expired", engine.read_expired);
    report.line("get_flushed", engine.read_flushed);
    report.line("delete_misses", totals.delete_misses);
    report.line("delete_hits", totals.delete_hits);
    report.line("incr_misses", totals.incr_misses);
    report.line("incr_hits", totals.incr_hits);
    report.line("decr_misses", totals.decr_misses);
    report.line("decr_hits", totals.decr_hits);
    report.line("cas_misses", totals.cas_misses);
    report.line("cas_hits", totals.cas_hits);
    report.line("cas_badval", totals.cas_badval);
    report.line("touch_hits", totals.touch_hits);
    report.line("touch_misses", totals.touch_misses);
    report.line("key_too_long", totals.key_too_long);
    report.line("store_too_large", totals.store_too_large);
    report.line("store_no_memory", totals.store_no_memory);
    report.line("auth_cmds", totals.auth_cmds);
    report.line("auth_errors", totals.auth_errors);
    report.line("auth_limited", totals.auth_limited);
    report.line("idle_kicks", totals.idle_kicks);
    report.line("bytes_read", totals.bytes_read);
    report.line("bytes_written", totals.bytes_written);

    let accepting = &shared.accepting;
    report.line("limit_maxbytes", engine.memory_limit);
    report.line("accepting_conns", 1 - accepting.suspended.get().min(1));
    report.line("listen_disabled_num", accepting.listen_disabled_num.get());
    report.line(
        "time_in_listen_disabled_us",
        accepting.listen_disabled_us.get(),
    );
    report.line("threads", shared.config.threads);
    report.line("conn_yields", totals.conn_yields);
    if shared.addresses.iter().any(|(address, _)| address.is_udp()) {
        report.line("udp_datagrams", totals.udp_datagrams);
        report.line("udp_dropped", totals.udp_dropped);
        report.line("udp_too_large", totals.udp_too_large);
        report.line("udp_unsent", totals.udp_unsent);
    }
    if let Some(tls) = &shared.tls {
        let settings = shared.config.tls.as_ref();
        if settings.is_some_and(|settings| settings.session_cache) {
            report.line("ssl_new_sessions", totals.ssl_new_sessions);
        }
        report.line("ssl_handshake_errors", totals.ssl_handshake_errors);
        report.line("ssl_proto_errors", totals.ssl_proto_errors);
        report.line(
            "time_since_server_cert_refresh",
            tls.seconds_since_refresh(),
        );
        if let Some(valid) = tls.validity() {
            report.line("ssl_certificate_begin", valid.start());
            report.line("ssl_certificate_end", valid.end());
        }
        if let Some(days) = tls.days_left() {
            report.line("ssl_certificate_days_left", days);
        }
    }
}

fn engine_lines(report: &mut Report<'_, '_>, shared: &Shared) {
    let stats = shared.engine.stats();
    report.line("hash_power_level", stats.index_slots.max(1).ilog2());
    report.line("hash_bytes", stats.index_bytes);
    report.line("hash_is_expanding", u8::from(stats.index_growing));
    report.line("slabs_moved", stats.pages_moved);
    let dumping = shared.dumping.load(Ordering::Relaxed);
    report.line("lru_crawler_running", u8::from(dumping));
    // Relaxed: a statistic.
    let dumps = shared.dumps.load(Ordering::Relaxed);
    report.line("lru_crawler_starts", dumps);
    report.line("lru_maintainer_juggles", shared.maintained.get());
    report.line("malloc_fails", stats.out_of_memory);
    report.line("bytes", stats.item_bytes);
    report.line("curr_items", stats.items);
    report.line("total_items", stats.total_items);
    report.line("expired_unfetched", stats.expired_unfetched);
    report.line("evicted_unfetched", stats.evicted_unfetched);
    report.line("evictions", stats.evictions);
    report.line("reclaimed", stats.expired);
    report.line("crawler_items_checked", stats.swept);

    // Memory moves between uses by pages. Memory outside of pages is free for any use.
    let free = stats.memory_limit.saturating_sub(stats.memory_used);
    report.line("slab_global_page_pool", free >> 20);
    report.line("crawler_reclaimed", stats.expired);
    let log = stats.log.unwrap_or_default();
    report.line("evicted_active", log.evicted_main);
    // The thread that stores an item also evicts.
    report.line("direct_reclaims", stats.evictions);
    report.line("moves_to_cold", 0);
    report.line("moves_to_warm", log.moved_to_main);
    report.line("moves_within_lru", log.moved_within_main);
    let watch = shared.watch.totals();
    report.line("log_worker_dropped", 0);
    report.line("log_worker_written", watch.written);
    report.line("log_watcher_skipped", watch.skipped);
    report.line("log_watcher_sent", watch.sent);
    report.line("log_watchers", watch.watchers);
    without_meaning::general(report);

    // Names of our own, behind all that memcached has.
    report.line("look_hits", shared.totals().look_hits);
    report.line("look_misses", shared.totals().look_misses);
    report.line("redis_commands", shared.totals().redis_commands);
    if shared.config.keeping.save.is_some() {
        let saves = *shared.saves.lock();
        report.line("saves", saves.done);
        report.line("saves_failed", saves.failed);
        report.line("last_save_time", saves.last_done);
        report.line("last_save_failed", u8::from(saves.last_failed));
    }
    // Relaxed: a statistic.
    let lost = shared.config.log_lost.load(Ordering::Relaxed);
    report.line("log_lines_lost", lost);
    report.line("engine", shared.engine.name());
    report.line("memory_used", stats.memory_used);
    report.line("outofmemory", stats.out_of_memory);
    report.line("read_retries", stats.read_retries);
    report.line("false_tags", stats.false_tags);
    report.line("displacements", stats.displacements);
    if let Some(messages) = shared.engine.message_stats() {
        report.line("server_threads_active", messages.server_threads);
        report.line("messages_sent", messages.messages_sent);
        report.line("message_lines_sent", messages.lines_sent);
        report.line("message_lines_received", messages.lines_received);
        report.line("messages_served", messages.messages_served);
        report.line("messages_self_served", messages.self_served);
        report.line("serving_us", messages.busy_nanos / 1000);
        report.line("polling_us", messages.polling_nanos / 1000);
        report.line("hand_overs", messages.hand_overs);
    }
}
