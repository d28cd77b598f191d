//! `stats settings`: with memcached's names, if this server has such a setting.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::config::{Actions, Config, ListenAddress, Protocol};
use crate::shared::Shared;
use crate::telemetry::Address;
use crate::telemetry::Report;
use crate::telemetry::watch::QUEUE_BYTES;
use nuthatch_engine::Engine;

use crate::reports::without_meaning;

/// The most bytes that a session of TLS buffers for its client: rustls' own limit.
const TLS_BUFFER: usize = 64 << 10;

pub fn report(report: &mut Report<'_, '_>, shared: &Shared) {
    let (config, live) = (&shared.config, &shared.live);
    let tcp: Vec<SocketAddr> = shared
        .addresses_of(Protocol::is_memcached)
        .filter_map(|address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Udp(_) | Address::Unix(_) => None,
        })
        .collect();
    let udp = shared
        .addresses
        .iter()
        .find_map(|(address, _)| match address {
            Address::Udp(address) => Some(address.port()),
            Address::Tcp(_) | Address::Unix(_) => None,
        });
    report.line("maxbytes", shared.engine.stats().memory_limit);
    report.line("maxconns", live.connections_max());
    report.line("tcpport", tcp.first().map_or(0, SocketAddr::port));
    report.line("udpport", udp.unwrap_or(0));
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
    report.line("oldest", shared.flushed());
    report.line("verbosity", shared.verbosity.load(Ordering::Relaxed));
    report.line("evictions", on_off(shared.engine.evicts()));
    let unix = config
        .listeners
        .iter()
        .find_map(|listen| match &listen.place {
            ListenAddress::Unix { path, mode } => Some((path, mode)),
            _ => None,
        });
    match unix {
        Some((path, _)) => report.line("domain_socket", path.display()),
        None => report.line("domain_socket", "NULL"),
    }
    let mode = unix.map_or(0o700, |(_, mode)| *mode);
    report.line("umask", format_args!("{mode:o}"));
    report.line("shutdown_command", yes_no(live.allow_shutdown()));
    match live.disabled_actions() {
        none if none == Actions::default() => report.line("disable_admin", "no"),
        some => report.line("disable_admin", some),
    }
    let of_address = live.address_connections_max();
    report.line("conns_per_address", of_address.map_or(0, NonZeroUsize::get));
    report.line("num_threads", config.threads);
    // Each worker has a socket of its own.
    report.line(
        "num_threads_per_udp",
        udp.map_or(0, |_| config.threads.get()),
    );
    report.line("watcher_logbuf_size", QUEUE_BYTES);
    report.line("stat_key_prefix", ":");
    report.line("detail_enabled", yes_no(shared.prefixes.is_enabled()));
    report.line("reqs_per_event", live.commands_per_slice());
    report.line("cas_enabled", yes_no(live.cas()));
    report.line("tcp_backlog", config.backlog);
    report.line("binding_protocol", binding_protocol(config));
    report.line("auth_enabled_sasl", yes_no(shared.has_passwords()));
    report.line(
        "auth_enabled_ascii",
        config
            .auth_file
            .as_ref()
            .map_or_else(|| "no".to_owned(), |path| path.display().to_string()),
    );
    report.line("item_size_max", shared.engine.item_size_max());
    report.line("maxconns_fast", "yes");
    // Every engine moves memory to where it is needed by itself. This cannot be switched off.
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
    // Nor can the thread that sweeps be switched off. There are no segments.
    report.line("lru_maintainer_thread", "yes");
    report.line("lru_segmented", "no");
    report.line(
        "idle_timeout",
        live.idle_timeout().map_or(0, |limit| limit.as_secs()),
    );
    report.line("read_buf_mem_limit", shared.account.bound());
    // `stats sizes` needs no tracking.
    report.line("track_sizes", "no");
    tls(report, shared);
    let memory_file = config.keeping.restart.as_ref();
    report.line(
        "memory_file",
        memory_file.map_or_else(|| "NULL".to_owned(), |path| path.display().to_string()),
    );
    without_meaning::settings(report);
    let cpserver: Vec<String> = shared
        .addresses_of(Protocol::is_cpserver)
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

fn tls(report: &mut Report<'_, '_>, shared: &Shared) {
    report.line("ssl_enabled", yes_no(shared.tls.is_some()));
    let buffer = shared.tls.as_ref().map_or(0, |_| TLS_BUFFER);
    report.line("ssl_wbuf_size", buffer);
    // The present settings: after a SIGHUP the files may be others.
    let tls = shared.tls.as_ref().map(|tls| tls.settings());
    let tls = tls.unwrap_or_default();
    report.line("ssl_chain_cert", or_null(&tls.chain_cert));
    report.line("ssl_key", or_null(&tls.key));
    report.line("ssl_verify_mode", tls.verify as u8);
    report.line(
        "ssl_ca_cert",
        or_null(tls.ca_cert.as_deref().unwrap_or(Path::new(""))),
    );
    report.line("ssl_session_cache", yes_no(tls.session_cache));
    report.line(
        "ssl_min_version",
        if tls.only_1_3 { "tlsv1.3" } else { "tlsv1.2" },
    );
}

/// A path, or memcached's word for a missing one.
fn or_null(path: &Path) -> String {
    match path.as_os_str().is_empty() {
        true => "NULL".to_owned(),
        false => path.display().to_string(),
    }
}

/// The protocols of memcached's clients, in memcached's words.
fn binding_protocol(config: &Config) -> &'static str {
    let spoken = |protocol| {
        config
            .listeners
            .iter()
            .any(|listen| listen.protocol == protocol)
    };
    match (spoken(Protocol::Text), spoken(Protocol::Binary)) {
        (true, false) => "ascii",
        (false, true) => "binary",
        _ => "auto-negotiate",
    }
}

fn yes_no(on: bool) -> &'static str {
    if on { "yes" } else { "no" }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
