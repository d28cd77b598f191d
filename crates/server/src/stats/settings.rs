//! `stats settings`: memcached's names, where this server has such a setting.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use nuthatch_engine::Engine;

use crate::config::Listen;
use crate::listen::Address;
use crate::shared::Shared;
use crate::stats::Report;

pub(crate) fn report(report: &mut Report<'_>, shared: &Shared) {
    let (config, live) = (&shared.config, &shared.live);
    let tcp: Vec<SocketAddr> = shared
        .memcached_addresses()
        .iter()
        .filter_map(|address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        })
        .collect();
    report.line("maxbytes", shared.engine.stats().memory_limit);
    report.line("maxconns", live.connections_max());
    report.line("tcpport", tcp.first().map_or(0, SocketAddr::port));
    report.line("udpport", 0);
    let inter: Vec<String> = tcp.iter().map(|address| address.ip().to_string()).collect();
    report.line(
        "inter",
        if inter.is_empty() {
            "NULL".to_owned()
        } else {
            inter.join(",")
        },
    );
    // Relaxed: a switch for logging.
    report.line("verbosity", shared.verbosity.load(Ordering::Relaxed));
    report.line("evictions", on_off(shared.engine.evicts()));
    let unix = config.listeners.iter().find_map(|place| match place {
        Listen::Unix { path, mode } => Some((path, mode)),
        Listen::Tcp(_) => None,
    });
    match unix {
        Some((path, mode)) => {
            report.line("domain_socket", path.display());
            report.line("umask", format_args!("{mode:o}"));
        }
        None => report.line("domain_socket", "NULL"),
    }
    report.line("shutdown_command", yes_no(live.allow_shutdown()));
    report.line("num_threads", config.threads);
    report.line("stat_key_prefix", ":");
    report.line("detail_enabled", yes_no(shared.prefixes.is_enabled()));
    report.line("reqs_per_event", live.commands_per_slice());
    report.line("cas_enabled", yes_no(live.cas()));
    report.line("tcp_backlog", config.backlog);
    report.line("binding_protocol", "ascii");
    report.line("auth_enabled_sasl", "no");
    report.line("auth_enabled_ascii", "no");
    report.line("item_size_max", shared.engine.item_size_max());
    report.line("maxconns_fast", "yes");
    // Every engine moves memory to where it is needed, by itself and always.
    report.line("slab_reassign", "yes");
    report.line("slab_automove", 1);
    // Relaxed: a switch that only lru_crawler sets.
    report.line(
        "lru_crawler",
        yes_no(shared.crawler_enabled.load(Ordering::Relaxed)),
    );
    report.line("flush_enabled", yes_no(live.allow_flush()));
    report.line("dump_enabled", yes_no(live.allow_dump()));
    report.line("hash_algorithm", "rapidhash");
    // Nor can the thread that sweeps be turned off. It knows no segments.
    report.line("lru_maintainer_thread", "yes");
    report.line("lru_segmented", "no");
    report.line(
        "idle_timeout",
        live.idle_timeout().map_or(0, |limit| limit.as_secs()),
    );
    report.line("read_buf_mem_limit", shared.account.bound());
    report.line("track_sizes", "no");
    report.line("ssl_enabled", "no");
    let cpserver: Vec<String> = shared
        .cpserver_addresses()
        .iter()
        .map(Address::to_string)
        .collect();
    if !cpserver.is_empty() {
        report.line("cpserver", cpserver.join(","));
    }
    report.line("batch_max", config.batch_max);
    report.line("engine", shared.engine.name());
    for (name, value) in &config.engine_settings {
        report.line(name, value);
    }
}

fn yes_no(on: bool) -> &'static str {
    if on { "yes" } else { "no" }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
