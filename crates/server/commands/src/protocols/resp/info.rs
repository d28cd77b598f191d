//! INFO: the lines that Redis' programs and users look for, and where to find more.

use std::env::consts;
use std::hash::{BuildHasher, RandomState};
use std::process;
use std::sync::LazyLock;

use nuthatch_engine::Engine;
use nuthatch_resp::{ChannelKind, HumanBytes, InfoLines as Lines, Values};
use nuthatch_settings::config::Protocol;
use nuthatch_state::telemetry::Address;
use nuthatch_state::{keyspace, system};

use super::walk::{self, Purpose, Walk};
use crate::context::Context;

/// The version of Redis that clients are told. Its answers are those of 7.0, but redis-py has no near cache below 7.4.
pub const REDIS_VERSION: &str = "7.4.0";

/// The sections, in their order.
const SECTIONS: [Section; 9] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("CPU", processor),
    ("Cluster", cluster),
    (KEYSPACE, |_, _| ()),
];

/// The last section, whose lines may need a walk over all items.
const KEYSPACE: &str = "Keyspace";

/// A section's name, and the function that writes it.
type Section = (&'static str, fn(&mut Lines, &Context<'_, '_>));

/// What INFO tells.
pub enum Told {
    /// This.
    Now(String),
    /// What a walk over all items will find, as well.
    After(Box<Walk>),
}

/// The sections that the request names, or all of them if it names none.
pub fn info(cx: &Context<'_, '_>, asked: Values<'_>) -> Told {
    let all = asked.len() == 0
        || asked.into_iter().any(|name| {
            [&b"all"[..], b"default", b"everything"]
                .iter()
                .any(|word| name.eq_ignore_ascii_case(word))
        });
    let mut lines = Lines::default();
    let is_asked = |name: &str| {
        let mut asked = asked;
        all || asked.any(|asked| asked.eq_ignore_ascii_case(name.as_bytes()))
    };
    for (name, write) in SECTIONS {
        if is_asked(name) {
            lines.section(name);
            write(&mut lines, cx);
        }
    }
    let text = lines.into_text();
    match is_asked(KEYSPACE) {
        true => with_items(cx, text),
        false => Told::Now(text),
    }
}

/// A text, and behind it the items of each database.
fn with_items(cx: &Context<'_, '_>, text: String) -> Told {
    match keyspace::known(cx.shared, cx.now) {
        Some(live) => Told::Now(text + &keyspace::lines(&live)),
        None => Told::After(Box::new(walk::each(cx, Purpose::Info(text)))),
    }
}

fn server(lines: &mut Lines, cx: &Context<'_, '_>) {
    lines.line("redis_version", REDIS_VERSION);
    lines.line("redis_mode", "standalone");
    lines.line("server_name", "nuthatch");
    lines.line("nuthatch_version", env!("CARGO_PKG_VERSION"));
    lines.line("nuthatch_engine", cx.shared.engine.name());
    lines.line("arch_bits", usize::BITS);
    lines.line("os", format_args!("{} {}", consts::OS, consts::ARCH));
    lines.line("process_id", process::id());
    lines.line("run_id", &*RUN_ID);
    lines.line("tcp_port", port(cx));
    lines.line("uptime_in_seconds", cx.now.seconds());
    lines.line("uptime_in_days", cx.now.seconds() / 86_400);
}

/// A name of this run of the server: 40 hexadecimal digits, as clients expect.
static RUN_ID: LazyLock<String> = LazyLock::new(|| {
    // Each state of the standard library's maps has a seed of its own, from the system's random numbers.
    let number = || RandomState::new().hash_one(process::id());
    format!("{:016x}{:016x}{:08x}", number(), number(), number() as u32)
});

/// The first TCP port for Redis' clients. 0 if they have none of their own.
fn port(cx: &Context<'_, '_>) -> u16 {
    let mut addresses = cx.shared.addresses_of(Protocol::is_redis);
    let port = addresses.find_map(|address| match address {
        Address::Tcp(address) => Some(address.port()),
        _ => None,
    });
    port.unwrap_or(0)
}

fn clients(lines: &mut Lines, cx: &Context<'_, '_>) {
    lines.line("connected_clients", cx.shared.connections());
    lines.line("maxclients", cx.shared.live.load().connections_max);
    lines.line("blocked_clients", 0);
    lines.line(
        "client_output_waiting_bytes",
        cx.shared.mail_bounds.waiting(),
    );
}

fn memory(lines: &mut Lines, cx: &Context<'_, '_>) {
    let stats = cx.shared.engine.stats();
    let policy = match cx.shared.engine.evicts() {
        true => "allkeys-lru",
        false => "noeviction",
    };
    lines.line("used_memory", stats.memory_used);
    lines.line("used_memory_human", HumanBytes(stats.memory_used));
    if let Some(resident) = system::resident_bytes() {
        lines.line("used_memory_rss", resident);
        lines.line("used_memory_rss_human", HumanBytes(resident));
    }
    lines.line("used_memory_dataset", stats.item_bytes);
    lines.line("maxmemory", stats.memory_limit);
    lines.line("maxmemory_human", HumanBytes(stats.memory_limit));
    lines.line("maxmemory_policy", policy);
}

fn persistence(lines: &mut Lines, cx: &Context<'_, '_>) {
    let saves = cx.shared.saves.stats();
    lines.line("rdb_last_save_time", saves.last_done);
    let status = if saves.last_failed { "err" } else { "ok" };
    lines.line("rdb_last_bgsave_status", status);
    lines.line("loading", 0);
    lines.line("rdb_changes_since_last_save", 0);
    lines.line("aof_enabled", 0);
}

fn stats(lines: &mut Lines, cx: &Context<'_, '_>) {
    let (shared, stats) = (cx.shared, cx.shared.engine.stats());
    let totals = shared.totals();
    lines.line(
        "total_connections_received",
        shared.telemetry.accepting.total_connections.get(),
    );
    lines.line(
        "rejected_connections",
        shared.telemetry.accepting.rejected_connections.get(),
    );
    lines.line("total_net_input_bytes", totals.bytes_read);
    lines.line("total_net_output_bytes", totals.bytes_written);
    lines.line("total_commands_processed", totals.redis_commands);
    lines.line("keyspace_hits", totals.get_hits + totals.look_hits);
    lines.line("keyspace_misses", totals.get_misses + totals.look_misses);
    lines.line("expired_keys", stats.expired);
    lines.line("evicted_keys", stats.evictions);
    let channels = &cx.shared.channels;
    lines.line("pubsub_channels", channels.count(ChannelKind::Channel));
    lines.line("pubsub_patterns", channels.count(ChannelKind::Pattern));
    lines.line("pubsubshard_channels", channels.count(ChannelKind::Shard));
    let tracked = cx.shared.tracking.totals();
    lines.line("tracking_clients", tracked.clients);
    lines.line("tracking_total_keys", tracked.keys);
    lines.line("tracking_total_items", tracked.pairs);
    lines.line("tracking_total_prefixes", tracked.prefixes);
    lines.line(
        "client_output_buffer_limit_disconnections",
        totals.slow_subscribers,
    );
    lines.line("key_too_long", totals.key_too_long);
    lines.line("store_too_large", totals.store_too_large);
    lines.line("store_no_memory", totals.store_no_memory);
}

fn replication(lines: &mut Lines, _: &Context<'_, '_>) {
    lines.line("role", "master");
    lines.line("connected_slaves", 0);
}

fn processor(lines: &mut Lines, _: &Context<'_, '_>) {
    if let Some((user, system)) = system::cpu_time() {
        lines.line("used_cpu_sys", format_args!("{:.6}", system.as_secs_f64()));
        lines.line("used_cpu_user", format_args!("{:.6}", user.as_secs_f64()));
    }
}

fn cluster(lines: &mut Lines, _: &Context<'_, '_>) {
    lines.line("cluster_enabled", 0);
}
