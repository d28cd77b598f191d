//! `stats settings`: with memcached's names, if this server has such a setting. The lines that settings alone decide are
//! declared with them (`crates/server/settings`); what the running server knows better, and what cannot be set, follows.

use std::net::SocketAddr;

use nuthatch_engine::Engine;
use nuthatch_settings::{FLAGS, Now, OPTIONS, yes_no};

use crate::reports::without_meaning;
use crate::server_state::ServerState;
use crate::telemetry::watch::QUEUE_BYTES;
use crate::telemetry::{Address, Report};
use nuthatch_settings::config::Protocol;

/// The most bytes that a session of TLS buffers for its client: rustls' own limit.
const TLS_BUFFER: usize = 64 << 10;

pub fn report(report: &mut Report<'_, '_>, shared: &ServerState) {
    // The present settings of TLS: after a SIGHUP the files may be others.
    let tls = shared.security.tls.as_ref().map(|tls| tls.settings());
    let now = Now {
        config: &shared.config,
        live: &shared.live.load(),
        tls: &tls.unwrap_or_default(),
    };
    let flags = FLAGS.iter().flat_map(|setting| setting.about.stats);
    let options = OPTIONS.iter().flat_map(|setting| setting.about.stats);
    for (name, value) in flags.chain(options) {
        report.line(name, value(&now));
    }
    of_server(report, shared);
    facts(report, shared);
    without_meaning::settings(report);
    let cpserver: Vec<String> = shared
        .addresses_of(Protocol::is_cpserver)
        .map(Address::to_string)
        .collect();
    if !cpserver.is_empty() {
        report.line("cpserver", cpserver.join(","));
    }
    report.line("engine", shared.engine.name());
    for (name, value) in &shared.config.engine_settings {
        report.line(name, value);
    }
}

/// What came of settings: the engine has decided, a client has changed it, or the system has chosen.
fn of_server(report: &mut Report<'_, '_>, shared: &ServerState) {
    report.line("maxbytes", shared.engine.stats().memory_limit);
    report.line("item_size_max", shared.engine.item_size_max());
    report.line(
        "evictions",
        if shared.engine.evicts() { "on" } else { "off" },
    );
    // Relaxed: a switch for logging.
    report.line("verbosity", shared.verbosity());
    report.line(
        "detail_enabled",
        yes_no(shared.telemetry.prefixes.is_enabled()),
    );
    let tcp: Vec<SocketAddr> = shared
        .addresses_of(Protocol::is_memcached)
        .filter_map(|address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Udp(_) | Address::Unix(_) => None,
        })
        .collect();
    report.line("tcpport", tcp.first().map_or(0, SocketAddr::port));
    let inter: Vec<String> = tcp.iter().map(|address| address.ip().to_string()).collect();
    report.line(
        "inter",
        match inter.is_empty() {
            true => "NULL".to_owned(),
            false => inter.join(","),
        },
    );
    let mut all = shared.addresses.iter();
    let udp = all.find_map(|(address, _)| match address {
        Address::Udp(address) => Some(address.port()),
        Address::Tcp(_) | Address::Unix(_) => None,
    });
    report.line("udpport", udp.unwrap_or(0));
    // Each worker has a socket of its own.
    let threads_per_udp = udp.map_or(0, |_| shared.config.threads.get());
    report.line("num_threads_per_udp", threads_per_udp);
}

/// What no flag changes.
fn facts(report: &mut Report<'_, '_>, shared: &ServerState) {
    report.line("oldest", shared.last_flush.seconds());
    report.line("watcher_logbuf_size", QUEUE_BYTES);
    report.line("maxconns_fast", "yes");
    // Every engine moves memory to where it is needed by itself. This cannot be switched off.
    report.line("slab_reassign", "yes");
    report.line("slab_automove", 1);
    // Relaxed: a switch that only lru_crawler sets.
    let crawls = shared.walks.are_dumps_enabled();
    report.line("lru_crawler", yes_no(crawls));
    report.line("hash_algorithm", "rapidhash");
    // Nor can the thread that sweeps be switched off. There are no segments.
    report.line("lru_maintainer_thread", "yes");
    report.line("lru_segmented", "no");
    report.line("read_buf_mem_limit", shared.accounts.buffers.bound());
    // `stats sizes` needs no tracking.
    report.line("track_sizes", "no");
    let buffer = shared.security.tls.as_ref().map_or(0, |_| TLS_BUFFER);
    report.line("ssl_wbuf_size", buffer);
}
