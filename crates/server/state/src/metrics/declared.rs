//! The tables of metrics: a line here, and the line that counts or a place to read it from, is all that a metric needs.
//!
//! [`GENERAL`] is `stats` in memcached's order, which clients may rely on; [`HITS_MEMORY`] and [`HITS_REMOVED`] are
//! `stats hits`; [`PAGE_ONLY`] is what only Prometheus gets. A metric that is in two of them, since clients know it by
//! two names, has its place for Prometheus in the first.

use std::process;
use std::sync::atomic::Ordering;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::Engine;
use nuthatch_engine::counters::Counter;

use super::counters_macro::metrics;
use super::families::*;
use super::{Metric, Unit, Value, counter, gauge, never, text};
use crate::system;
use crate::telemetry::counters::ResettableCounter;
use crate::telemetry::latency::Pending;
use crate::telemetry::sizes::{CLASSES, SizeClasses};
use nuthatch_settings::config::MEMCACHED_VERSION;

metrics! {
    // The process.
    stat "pid": gauge("The number of the process.").read(|_| process::id().into()),
    stat "uptime": gauge("Seconds since the start.").unit(Unit::Seconds).read(|at| at.now.seconds().into()),
    stat "time": gauge("The unix time.").unit(Unit::Seconds)
        .read(|at| at.shared.clock.wall().unix().as_secs().into()),
    stat "version": text("The version of the memcached whose protocol this is, and nothing else: clients read it as three numbers.")
        .read(|_| MEMCACHED_VERSION.into()),
    stat "nuthatch_version": text("The version of Nuthatch.").read(|_| env!("CARGO_PKG_VERSION").into()),
    stat "libevent": text("`none`: the server does not use it.").read(|_| "none".into()),
    stat "pointer_size": gauge("Bits of a pointer.").read(|_| usize::BITS.into()),
    stat "rusage_user": counter("Processor time in the program.").unit(Unit::Seconds).of(&CPU, &[("mode", "user")])
        .read(|at| at.cpu.map(|(user, _)| user.as_secs_f64()).into()),
    stat "rusage_system": counter("Processor time in the kernel.").unit(Unit::Seconds).of(&CPU, &[("mode", "system")])
        .read(|at| at.cpu.map(|(_, system)| system.as_secs_f64()).into()),

    // Connections.
    stat "max_connections": gauge("Connections that may be open.").page("nuthatch_connections_limit")
        .note("Less than `-c` where the file descriptors do not suffice.")
        .read(|at| at.shared.live.load().connections_max.get().into()),
    stat "curr_connections": gauge("Open connections.").page("nuthatch_connections")
        .read(|at| at.connections.into()),
    count_accepting total_connections: counter("Connections accepted.").page("nuthatch_connections_opened")
        .note("Not those by rings in shared memory: `total_rings`."),
    count_accepting rejected_connections: counter("Connections that were one too many.")
        .page("nuthatch_connections_refused").note("Or whose user may not connect."),
    count_accepting rejected_by_address: counter("Those of them that were one too many of their address.")
        .page("nuthatch_connections_refused_by_address").note("By `-o conns_per_address`."),
    stat "shared_readers": gauge("Processes that read the memory by `--shared`.").page("nuthatch_shared_readers")
        .read(|at| at.shared.telemetry.accepting.readers.get().into()),
    count_accepting total_shared_readers: counter("Processes that have got the memory.")
        .page("nuthatch_shared_readers_opened"),
    count_accepting rejected_shared_readers: counter("Processes that were refused it, or dropped.")
        .page("nuthatch_shared_readers_refused"),
    count_accepting shared_uses: counter("Uses of items that readers have told, which keep these from eviction.")
        .page("nuthatch_shared_uses"),
    count_accepting total_rings: counter("Connections by rings in shared memory.").page("nuthatch_rings_opened"),
    stat "connection_structures": gauge("Equals `curr_connections`.").read(|at| at.connections.into()),
    stat "reserved_fds": gauge("File descriptors for other files than connections.")
        .read(|_| system::OTHER_FILES.into()),
    stat "read_buf_count": gauge("Connections that have buffers.").read(|at| at.connections.into()),
    stat "read_buf_bytes": gauge("Buffers of connections.").unit(Unit::Bytes).page("nuthatch_buffers_bytes")
        .note("Input and output.").read(|at| at.shared.accounts.buffers.held().into()),
    stat "read_buf_bytes_free": gauge("Empty buffers that the workers keep.").unit(Unit::Bytes)
        .read(|at| at.idle.buffers.into()),
    count read_buf_oom: counter("Connections closed because they held too much buffer memory.")
        .of(&CLOSED, &[("reason", "memory")]).note("Or because the system gave none for their input."),
    stat "upload_bytes": gauge("Memory of items for values over 16 KB that have not arrived completely.")
        .unit(Unit::Bytes).read(|at| at.shared.accounts.uploads.reserved().into()),
    count upload_kicks: counter("Connections closed because they did not bring such a value while these took much of the memory.")
        .of(&CLOSED, &[("reason", "upload")]),
    count reader_kicks: counter("Connections closed because they did not take their large values while stores found no memory.")
        .of(&CLOSED, &[("reason", "reader")]),
    count panic_kicks: counter("Connections, and datagrams, that were given up because a command of theirs met a fault of the server (a panic).")
        .of(&CLOSED, &[("reason", "panic")]).note("The log has the place; please report it."),
    stat "response_obj_count": gauge("Answers for which the workers' batches have room.")
        .read(|at| at.idle.answers.into()),
    stat "response_obj_bytes": gauge("The memory of this room.").unit(Unit::Bytes)
        .read(|at| at.idle.answers_bytes.into()),

    // Commands, in all protocols.
    stat "cmd_get": counter("Keys that were to be read, in every protocol.")
        .note("Redis: by GET, MGET, GETRANGE, GETDEL, GETEX.").read(|at| at.totals.cmd_get().into()),
    count_by_class cmd_set: counter("Values that were to be stored, by the class of the item.")
        .of(&COMMANDS, &[("command", "set"), ("result", "any")])
        .note("Those that reached the engine, or whose data block has a bad end. Redis: by SET and its variants, MSET, MSETNX, SETNX, APPEND, SETRANGE."),
    count cmd_flush: counter("Flushes.").of(&COMMANDS, &[("command", "flush"), ("result", "any")])
        .note("Also those that `-F` refuses, except in the binary protocol, and those with a bad time."),
    count cmd_touch: counter("touch, gat, mg with T.")
        .note("Redis: EXPIRE and its variants, PERSIST, TOUCH. One whose condition does not hold is neither a hit nor a miss."),
    count cmd_meta: counter("Meta commands.").note("1.6.45 counts `me` alone."),
    count_by_class get_hits: counter("Gets that found an item.")
        .of(&COMMANDS, &[("command", "get"), ("result", "hit")]),
    count get_misses: counter("Gets that found none.").of(&COMMANDS, &[("command", "get"), ("result", "miss")]),
    stat "get_expired": counter("Misses on an item that was still in memory, but had expired.")
        .read(|at| at.engine.read_expired.into()),
    stat "get_flushed": counter("The same of an item that was flushed.")
        .note("memcached does not count those stored in the second of a `flush_all`.")
        .read(|at| at.engine.read_flushed.into()),
    count delete_misses: counter("Deletes that found no item.")
        .of(&COMMANDS, &[("command", "delete"), ("result", "miss")]),
    count delete_hits: counter("Deletes of an item.").of(&COMMANDS, &[("command", "delete"), ("result", "hit")]),
    count incr_misses: counter("Additions that found no item.")
        .of(&COMMANDS, &[("command", "incr"), ("result", "miss")])
        .note("Redis' INCR of a missing key is one, and stores the key."),
    count_by_class incr_hits: counter("Additions.").of(&COMMANDS, &[("command", "incr"), ("result", "hit")])
        .note("One that stores its first number (`ma` with N, the binary protocol) is neither a hit nor a miss."),
    count decr_misses: counter("Subtractions that found no item.")
        .of(&COMMANDS, &[("command", "decr"), ("result", "miss")]),
    count_by_class decr_hits: counter("Subtractions.").of(&COMMANDS, &[("command", "decr"), ("result", "hit")]),
    count cas_misses: counter("Stores with a cas that found no item.")
        .of(&COMMANDS, &[("command", "cas"), ("result", "miss")]).note("Here and below also `ms` with `C`."),
    count_by_class cas_hits: counter("Stores with a cas that was the item's.")
        .of(&COMMANDS, &[("command", "cas"), ("result", "hit")]),
    count_by_class cas_badval: counter("Stores with a cas that was not, by the class of the item to be stored.")
        .of(&COMMANDS, &[("command", "cas"), ("result", "badval")]),
    count_by_class touch_hits: counter("Touches of an item.")
        .of(&COMMANDS, &[("command", "touch"), ("result", "hit")]),
    count touch_misses: counter("Touches that found none.")
        .of(&COMMANDS, &[("command", "touch"), ("result", "miss")]),
    count key_too_long: counter("Keys over the limit (64 KiB, less with a small `-m` or `-I`) that Redis' clients sent: each was refused.")
        .of(&KEYS_REFUSED, &[("reason", "too_long")]).note("The log has the first."),
    count store_too_large: counter("Stores that were refused as too large, in every protocol.")
        .of(&COMMANDS, &[("command", "set"), ("result", "too_large")]).note("The log has the first."),
    count store_no_memory: counter("Stores that were refused for want of memory, in every protocol.")
        .of(&COMMANDS, &[("command", "set"), ("result", "no_memory")]),
    count auth_cmds: counter("Logins, and attempts."),
    count auth_errors: counter("Failed logins."),
    count auth_limited: counter("Those of them that were not checked, because their address had guessed too often.")
        .of(&LOGINS, &[("result", "limited")]),
    count idle_kicks: counter("Connections closed by `-o idle_timeout`.").of(&CLOSED, &[("reason", "idle")]),
    count bytes_read: counter("Bytes received.").unit(Unit::Bytes).page("nuthatch_received_bytes"),
    count bytes_written: counter("Bytes sent.").unit(Unit::Bytes).page("nuthatch_sent_bytes"),

    stat "limit_maxbytes": gauge("The limit (-m).").unit(Unit::Bytes).page("nuthatch_memory_limit_bytes")
        .note("For items, index and bookkeeping together.").read(|at| at.engine.memory_limit.into()),
    stat "accepting_conns": gauge("0 while the server accepts no connections, for want of descriptors.")
        .read(|at| (1 - at.shared.telemetry.accepting.suspended.get().min(1)).into()),
    count_accepting listen_disabled_num: counter("How often no connection was accepted for a while, for want of descriptors.")
        .page("nuthatch_accepting_suspended"),
    count_accepting time_in_listen_disabled_us: counter("For how long in all.").unit(Unit::Microseconds)
        .page("nuthatch_accepting_suspended_seconds"),
    stat "threads": gauge("Worker threads.").page("nuthatch_threads")
        .read(|at| at.shared.config.threads.get().into()),
    count conn_yields: counter("How often a connection had to stop for the others after `-R` requests."),

    count udp_datagrams: counter("Datagrams received.").page("nuthatch_datagrams_received").when(WITH_UDP),
    count udp_dropped: counter("Datagrams that are truncated, or a part of something longer.")
        .of(&DATAGRAMS_FAILED, &[("reason", "cut")]).when(WITH_UDP),
    count udp_too_large: counter("Answers that no datagram has room for.")
        .of(&DATAGRAMS_FAILED, &[("reason", "too_large")]).when(WITH_UDP),
    count udp_unsent: counter("Answers of which the kernel refused a part.")
        .of(&DATAGRAMS_FAILED, &[("reason", "unsent")]).when(WITH_UDP),

    count ssl_new_sessions: counter("Handshakes that did not resume an earlier session.").when(WITH_TLS_SESSIONS),
    count ssl_handshake_errors: counter("Connections closed because the client's handshake is no valid TLS.")
        .when(WITH_TLS),
    count ssl_proto_errors: counter("Connections closed for an invalid record after the handshake.").when(WITH_TLS),
    stat "time_since_server_cert_refresh": gauge("Seconds since the certificates were read.").unit(Unit::Seconds)
        .when(WITH_TLS).read(|at| at.shared.security.tls.as_ref().map(|tls| tls.seconds_since_refresh()).into()),
    stat "ssl_certificate_begin": gauge("From when on all of the certificates are valid, in unix time.")
        .unit(Unit::Seconds).page("nuthatch_tls_certificate_begin_seconds").when(WITH_TLS)
        .read(|at| at.certificates().map(|valid| *valid.start()).into()),
    stat "ssl_certificate_end": gauge("When the first of the certificates ends, in unix time.")
        .unit(Unit::Seconds).page("nuthatch_tls_certificate_end_seconds").when(WITH_TLS)
        .read(|at| at.certificates().map(|valid| *valid.end()).into()),
    stat "ssl_certificate_days_left": gauge("Days until then: less than 0 when it has passed.").when(WITH_TLS)
        .read(|at| at.shared.security.tls.as_ref().and_then(|tls| tls.days_left()).into()),

    // The engine.
    stat "hash_power_level": gauge("The base-2 logarithm of the index's slots.")
        .read(|at| at.engine.index_slots.max(1).ilog2().into()),
    stat "hash_bytes": gauge("Bytes of the index.").unit(Unit::Bytes).page("nuthatch_index_bytes")
        .read(|at| at.engine.index_bytes.into()),
    stat "hash_is_expanding": gauge("1 while the index grows.").read(|at| at.engine.index_growing.into()),
    stat "slabs_moved": counter("Pages moved between classes, or, in a log, pages emptied.")
        .read(|at| at.engine.pages_moved.into()),
    // Relaxed, here and below: statistics.
    stat "lru_crawler_running": gauge("1 while a walk over all items is running (metadump, mgdump, `stats sizes`).")
        .read(|at| at.shared.walks.is_dumping().into()),
    stat "lru_crawler_starts": counter("Such walks.").read(|at| at.shared.walks.dumps().into()),
    stat "lru_maintainer_juggles": counter("Iterations of the maintenance thread.")
        .read(|at| at.shared.telemetry.maintenance_steps.get().into()),
    stat "malloc_fails": counter("Stores that found no memory.").page("nuthatch_stores_without_memory")
        .read(|at| at.engine.out_of_memory.into()),
    stat "bytes": gauge("Headers, keys and values of items.").unit(Unit::Bytes).page("nuthatch_items_bytes")
        .read(|at| at.engine.item_bytes.into()),
    stat "curr_items": gauge("Items.").page("nuthatch_items").read(|at| at.engine.items.into()),
    stat "total_items": counter("Items stored.").page("nuthatch_items_stored")
        .note("Not a number that gets another digit, which memcached counts. Redis' INCR of a number below 0 is one.")
        .read(|at| at.engine.total_items.into()),
    stat "expired_unfetched": counter("Items that had expired when their memory was freed, and that no get had hit.")
        .of(&ITEMS_REMOVED_UNFETCHED, &[("reason", "expired")]).read(|at| at.engine.expired_unfetched.into()),
    stat "evicted_unfetched": counter("Evicted items that no get had hit.")
        .of(&ITEMS_REMOVED_UNFETCHED, &[("reason", "evicted")]).read(|at| at.engine.evicted_unfetched.into()),
    stat "evictions": counter("Live items evicted to make room.").of(&ITEMS_REMOVED, &[("reason", "evicted")])
        .read(|at| at.engine.evictions.into()),
    stat "reclaimed": counter("Items that were dead when the server freed their memory, by any thread.")
        .read(|at| at.engine.expired.into()),
    stat "crawler_items_checked": counter("Items checked in the search for dead items.")
        .read(|at| at.engine.swept.into()),
    // Memory moves between uses by pages. Memory outside of pages is free for any use.
    stat "slab_global_page_pool": gauge("Free memory, in MiB.")
        .read(|at| (at.engine.memory_limit.saturating_sub(at.engine.memory_used) >> 20).into()),
    stat "crawler_reclaimed": counter("Equals `reclaimed`.").read(|at| at.engine.expired.into()),
    stat "evicted_active": counter("Items evicted from the main queue, which they entered by a use or as small items.")
        .read(|at| at.log.evicted_main.into()),
    stat "direct_reclaims": counter("Equals `evictions`: the thread that stores an item also evicts.")
        .read(|at| at.engine.evictions.into()),
    stat "moves_to_cold": never(),
    stat "moves_to_warm": counter("Items moved from the probation queue to the main one.")
        .of(&LOG_KEPT_ITEMS, &[("queue", "probation")]).read(|at| at.log.moved_to_main.into()),
    stat "moves_within_lru": counter("Items that stayed in the main queue when their turn to leave came.")
        .of(&LOG_KEPT_ITEMS, &[("queue", "main")]).read(|at| at.log.moved_within_main.into()),
    stat "log_worker_dropped": never(),
    stat "log_worker_written": counter("Lines that a client which watches wanted.").read(|at| at.watch.written.into()),
    stat "log_watcher_skipped": counter("Lines left out because a watcher did not read.")
        .page("nuthatch_watchers_lines_skipped").read(|at| at.watch.skipped.into()),
    stat "log_watcher_sent": counter("Lines that were sent to them.").read(|at| at.watch.sent.into()),
    stat "log_watchers": gauge("Connections that watch events (watch).").page("nuthatch_watchers")
        .read(|at| at.watch.watchers.into()),
    stat "response_obj_oom": never(),
    stat "slab_reassign_rescues": never(),
    stat "slab_reassign_chunk_rescues": never(),
    stat "slab_reassign_inline_reclaim": never(),
    stat "slab_reassign_busy_items": never(),
    stat "slab_reassign_busy_deletes": never(),
    stat "slab_reassign_busy_nomem": never(),
    stat "slab_reassign_running": never(),
    stat "unexpected_napi_ids": never(),
    stat "round_robin_fallback": never(),
    stat "lrutail_reflocked": never(),
    stat "lru_bumps_dropped": never(),
    stat "slab_reassign_last_busy_status": text("Always `none`.").read(|_| "none".into()),

    // Names of our own, behind all that memcached has. New ones go here.
    count look_hits: counter("Redis' queries about an item, without its value (EXISTS, TTL, STRLEN, TYPE).")
        .of(&COMMANDS, &[("command", "look"), ("result", "hit")]),
    count look_misses: counter("The same about a key that has none.")
        .of(&COMMANDS, &[("command", "look"), ("result", "miss")]),
    count redis_commands: counter("Commands of Redis' protocol."),
    count slow_subscribers: counter("Connections that were closed because messages of channels, or of changed keys, had no room for them any more."),
    stat "saves": counter("Copies of all items that were written.").of(&SAVES, &[("result", "done")])
        .when(WITH_SAVE).read(|at| at.saves.done.into()),
    stat "saves_failed": counter("Copies that failed.").of(&SAVES, &[("result", "failed")])
        .when(WITH_SAVE).read(|at| at.saves.failed.into()),
    stat "last_save_time": gauge("When the last one was done that did not, in unix time; 0 if there is none.")
        .unit(Unit::Seconds).page("nuthatch_last_save_done_seconds")
        .when(WITH_SAVE).read(|at| at.saves.last_done.into()),
    stat "last_save_failed": gauge("1 if the last of them failed.").page("nuthatch_last_save_failed")
        .when(WITH_SAVE).read(|at| at.saves.last_failed.into()),
    stat "log_lines_lost": counter("Lines of the log that could not be written, or not in time.")
        .page("nuthatch_log_lines_lost").note("See [the log](running.md#the-log).")
        .read(|at| at.shared.config.log_lost.load(Ordering::Relaxed).into()),
    stat "engine": text("The engine.").read(|at| at.shared.engine.name().into()),
    stat "memory_used": gauge("What is taken of it.").unit(Unit::Bytes).page("nuthatch_memory_used_bytes")
        .note("Of `limit_maxbytes`.").read(|at| at.engine.memory_used.into()),
    stat "outofmemory": counter("Equals `malloc_fails`.").read(|at| at.engine.out_of_memory.into()),
    stat "read_retries": counter("Reads that met a change under way and read again.")
        .read(|at| at.engine.read_retries.into()),
    stat "false_tags": counter("Tags of the index that matched although the key did not.")
        .read(|at| at.engine.false_tags.into()),
    stat "displacements": counter("Items whose place in the index was moved by the store of another one.")
        .read(|at| at.engine.displacements.into()),

    count login_kicks: counter("Connections closed because their clients were not admitted in time (`-o login_timeout`).")
        .of(&CLOSED, &[("reason", "login")]),

    // Servers behind this one.
    stat "upstream_reads": counter("Reads that the servers behind this one were asked for.").when(WITH_UPSTREAM)
        .read(|at| at.upstream.map(|all| all.reads).into()),
    stat "upstream_found": counter("Those of them that found an item.").when(WITH_UPSTREAM)
        .read(|at| at.upstream.map(|all| all.found).into()),
    stat "upstream_joined": counter("Reads that waited for the same read of another connection.").when(WITH_UPSTREAM)
        .read(|at| at.upstream.map(|all| all.joined).into()),
    stat "upstream_kept": counter("Copies that were stored.").when(WITH_UPSTREAM)
        .read(|at| at.upstream.map(|all| all.kept).into()),
    stat "upstream_changes": counter("Changes that the servers behind this one were asked for.").when(WITH_UPSTREAM)
        .read(|at| at.upstream.map(|all| all.changes).into()),
    stat "upstream_failed": counter("Reads and changes that got no answer.").when(WITH_UPSTREAM)
        .read(|at| at.upstream.map(|all| all.failed).into()),

    // Messages inside of an engine.
    stat "server_threads_active": gauge("Server threads that own partitions.").when(WITH_SERVER_THREADS)
        .read(|at| at.messages.map(|all| all.server_threads).into()),
    stat "messages_sent": counter("Messages that clients sent.").when(WITH_SERVER_THREADS)
        .read(|at| at.messages.map(|all| all.messages_sent).into()),
    stat "message_lines_sent": counter("The cache lines of these.").when(WITH_SERVER_THREADS)
        .read(|at| at.messages.map(|all| all.lines_sent).into()),
    stat "message_lines_received": counter("Cache lines of answers.").when(WITH_SERVER_THREADS)
        .read(|at| at.messages.map(|all| all.lines_received).into()),
    stat "messages_served": counter("Messages that server threads took.").when(WITH_SERVER_THREADS)
        .read(|at| at.messages.map(|all| all.messages_served).into()),
    stat "messages_self_served": counter("Messages that clients took themselves, while a partition's owner slept.")
        .when(WITH_SERVER_THREADS).read(|at| at.messages.map(|all| all.self_served).into()),
    stat "serving_us": counter("Time that server threads spent serving, summed over them.").unit(Unit::Microseconds)
        .when(WITH_SERVER_THREADS).read(|at| at.messages.map(|all| all.busy_nanos / 1000).into()),
    stat "polling_us": counter("Time that they looked for work and found none.").unit(Unit::Microseconds)
        .when(WITH_SERVER_THREADS).read(|at| at.messages.map(|all| all.polling_nanos / 1000).into()),
    stat "hand_overs": counter("How often a partition changed its owner.").when(WITH_SERVER_THREADS)
        .read(|at| at.messages.map(|all| all.hand_overs).into()),
}

/// A use of the memory.
const fn memory(name: &'static str, labels: super::Labels<'static>, help: &'static str) -> Metric {
    let metric = gauge(help).named(name).unit(Unit::Bytes);
    metric.of(&MEMORY, labels).when(WITH_MEMORY_USE)
}

/// `stats hits`, up to the ages of evicted items.
pub const HITS_MEMORY: &[Metric] = &[
    gauge("Equals `limit_maxbytes`.").named("memory_limit").unit(Unit::Bytes)
        .read(|at| at.engine.memory_limit.into()),
    gauge("What is taken of it.").named("memory_used").unit(Unit::Bytes)
        .read(|at| at.engine.memory_used.into()),
    gauge("The rest.").named("memory_free").unit(Unit::Bytes)
        .read(|at| at.engine.memory_limit.saturating_sub(at.engine.memory_used).into()),
    memory("memory_values", &[("use", "values")], "Values.").read(|at| at.memory.values.into()),
    memory("memory_keys", &[("use", "keys")], "Keys.").read(|at| at.memory.keys.into()),
    memory("memory_headers", &[("use", "headers")], "Headers of items.")
        .read(|at| at.memory.headers.into()),
    memory(
        "memory_padding",
        &[("use", "padding")],
        "The rest of the memory of items: rounding, links, tables and headers of the pieces of large values, \
         values that are still arriving.",
    )
    .read(|at| at.memory.padding.into()),
    memory("memory_gaps", &[("use", "gaps")], "The unused part of pages in use.")
        .read(|at| at.memory.gaps.into()),
    memory("memory_bookkeeping", &[("use", "bookkeeping")], "Bits and counters of the pages in use.")
        .read(|at| at.memory.bookkeeping.into()),
    memory("memory_index", &[("use", "index")], "The index and its locks.")
        .read(|at| at.memory.index.into()),
    memory("memory_ghosts", &[("use", "ghosts")], "What is remembered of evicted items.")
        .read(|at| at.memory.ghosts.into()),
    gauge("Equals `bytes`.").named("item_bytes").unit(Unit::Bytes)
        .read(|at| at.engine.item_bytes.into()),
    gauge("Equals `hash_bytes`.").named("index_bytes").unit(Unit::Bytes)
        .read(|at| at.engine.index_bytes.into()),
    gauge("Equals `curr_items`.").named("items").read(|at| at.engine.items.into()),
    counter("As in `stats`.").named("evictions").read(|at| at.engine.evictions.into()),
    counter("As in `stats`.").named("evicted_unfetched")
        .read(|at| at.engine.evicted_unfetched.into()),
];

/// `stats hits`, behind them.
pub const HITS_REMOVED: &[Metric] = &[
    counter("Items that had expired when their memory was freed.")
        .named("expired")
        .of(&ITEMS_REMOVED, &[("reason", "expired")])
        .read(|at| {
            at.engine
                .expired
                .saturating_sub(at.engine.flushed.unwrap_or(0))
                .into()
        }),
    counter("As in `stats`.")
        .named("expired_unfetched")
        .read(|at| at.engine.expired_unfetched.into()),
    counter("Items that were flushed, and had not expired.")
        .named("flushed")
        .note("Where the engine counts them.")
        .read(|at| at.engine.flushed.into()),
    gauge("Bytes of a page of the log.")
        .named("page_bytes")
        .unit(Unit::Bytes)
        .when(WITH_LOG)
        .read(|at| at.log.page_bytes.into()),
    gauge("Pages of new items.")
        .named("probation_pages")
        .when(WITH_LOG)
        .of(&LOG_PAGES, &[("queue", "probation")])
        .read(|at| at.log.probation_pages.into()),
    gauge("Pages of items that were used.")
        .named("main_pages")
        .when(WITH_LOG)
        .of(&LOG_PAGES, &[("queue", "main")])
        .read(|at| at.log.main_pages.into()),
    gauge("Bytes of the table of ghosts.")
        .named("ghost_bytes")
        .unit(Unit::Bytes)
        .when(WITH_LOG)
        .read(|at| at.log.ghost_bytes.into()),
    counter("Live items evicted from the probation queue.")
        .named("evicted_probation")
        .when(WITH_LOG)
        .of(&LOG_EVICTIONS, &[("queue", "probation")])
        .read(|at| at.log.evicted_probation.into()),
    counter("Live items evicted from the main queue.")
        .named("evicted_main")
        .when(WITH_LOG)
        .of(&LOG_EVICTIONS, &[("queue", "main")])
        .read(|at| at.log.evicted_main.into()),
    counter("Live items evicted because both of a new key's buckets were full.")
        .named("evicted_slots")
        .of(&LOG_EVICTIONS, &[("queue", "bucket")])
        .when(WITH_LOG)
        .read(|at| at.log.evicted_slots.into()),
    counter("Items stored again soon after they left.")
        .named("ghost_hits")
        .when(WITH_LOG)
        .page("nuthatch_ghost_hits")
        .read(|at| at.log.ghost_hits.into()),
    more_hits("more_hits_10", &[("percent", "10")]).read(|at| at.log.more_hits[0].into()),
    more_hits("more_hits_25", &[("percent", "25")]).read(|at| at.log.more_hits[1].into()),
    more_hits("more_hits_50", &[("percent", "50")]).read(|at| at.log.more_hits[2].into()),
    more_hits("more_hits_100", &[("percent", "100")]).read(|at| at.log.more_hits[3].into()),
    counter("Pages emptied.")
        .named("pages_cleaned")
        .when(WITH_LOG)
        .page("nuthatch_log_pages_cleaned")
        .read(|at| at.log.pages_cleaned.into()),
    counter("Bytes of items moved to free pages.")
        .named("bytes_moved")
        .unit(Unit::Bytes)
        .when(WITH_LOG)
        .page("nuthatch_log_moved_bytes")
        .read(|at| at.log.bytes_moved.into()),
];

/// An estimate for a percentage of [`nuthatch_engine::stats::MORE_MEMORY`].
const fn more_hits(name: &'static str, labels: super::Labels<'static>) -> Metric {
    let metric = counter("An estimate: hits that so many percent more memory would have given.");
    metric
        .named(name)
        .of(&MORE_MEMORY_HITS, labels)
        .when(WITH_LOG)
}

/// What only Prometheus gets: what `stats` leaves to a sum or a difference of its reader, and what memcached does not
/// report.
pub const PAGE_ONLY: &[Metric] = &[
    gauge("When it started, in unix time.")
        .unit(Unit::Seconds)
        .page("nuthatch_start_time_seconds")
        .read(|at| at.shared.clock.started_unix().into()),
    gauge("Memory that the process holds.")
        .unit(Unit::Bytes)
        .page("nuthatch_resident_memory_bytes")
        .read(|_| system::resident_bytes().into()),
    counter("Errors of TLS, before and after the handshake.")
        .of(&CLOSED, &[("reason", "tls")])
        .read(|at| (at.totals.ssl_handshake_errors + at.totals.ssl_proto_errors).into()),
    counter("Logins that succeeded.")
        .of(&LOGINS, &[("result", "admitted")])
        .read(|at| {
            at.totals
                .auth_cmds
                .saturating_sub(at.totals.auth_errors)
                .into()
        }),
    counter("Logins that failed after a check.")
        .of(&LOGINS, &[("result", "refused")])
        .read(|at| {
            at.totals
                .auth_errors
                .saturating_sub(at.totals.auth_limited)
                .into()
        }),
    gauge("What they may hold.")
        .unit(Unit::Bytes)
        .page("nuthatch_buffers_limit_bytes")
        .note("Of `read_buf_bytes`.")
        .read(|at| at.shared.accounts.buffers.bound().into()),
    gauge("Items in that one.")
        .page("nuthatch_last_save_items")
        .when(WITH_SAVE)
        .note("In the last copy that did not fail.")
        .read(|at| at.saves.last_items.into()),
    gauge("How long the last one took.")
        .unit(Unit::Seconds)
        .page("nuthatch_last_save_duration_seconds")
        .when(WITH_SAVE)
        .note("The last copy.")
        .read(|at| at.saves.last_took.as_secs_f64().into()),
    gauge("Slots of the index.")
        .page("nuthatch_index_slots")
        .read(|at| at.engine.index_slots.into()),
    // 0, not absent, of an engine that does not count them.
    counter("Items that were flushed, and had not expired.")
        .of(&ITEMS_REMOVED, &[("reason", "flushed")])
        .read(|at| at.engine.flushed.unwrap_or(0).into()),
];

/// All tables.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    [GENERAL, HITS_MEMORY, HITS_REMOVED, PAGE_ONLY]
        .into_iter()
        .flatten()
}
