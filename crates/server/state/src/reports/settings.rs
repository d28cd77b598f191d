//! `stats settings`: with memcached's names, if this server has such a setting. The lines of settings are declared with
//! them (`settings/table.rs`), where the functions here that find out a value are named; what cannot be set follows.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;

use nuthatch_engine::Engine;
use nuthatch_security::tls::TlsSettings;

use crate::config::{Actions, ListenAddress, Protocol};
use crate::reports::without_meaning;
use crate::settings::{FLAGS, OPTIONS};
use crate::shared::Shared;
use crate::telemetry::watch::QUEUE_BYTES;
use crate::telemetry::{Address, Report};

/// The most bytes that a session of TLS buffers for its client: rustls' own limit.
const TLS_BUFFER: usize = 64 << 10;

pub fn report(report: &mut Report<'_, '_>, shared: &Shared) {
    let flags = FLAGS.iter().flat_map(|setting| setting.about.stats);
    let options = OPTIONS.iter().flat_map(|setting| setting.about.stats);
    for (name, value) in flags.chain(options) {
        report.line(name, value(shared));
    }
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

/// What no flag changes.
fn facts(report: &mut Report<'_, '_>, shared: &Shared) {
    report.line("oldest", shared.flushed());
    report.line("watcher_logbuf_size", QUEUE_BYTES);
    report.line("maxconns_fast", "yes");
    // Every engine moves memory to where it is needed by itself. This cannot be switched off.
    report.line("slab_reassign", "yes");
    report.line("slab_automove", 1);
    // Relaxed: a switch that only lru_crawler sets.
    let crawls = shared.crawler_enabled.load(Ordering::Relaxed);
    report.line("lru_crawler", yes_no(crawls));
    report.line("hash_algorithm", "rapidhash");
    // Nor can the thread that sweeps be switched off. There are no segments.
    report.line("lru_maintainer_thread", "yes");
    report.line("lru_segmented", "no");
    report.line("read_buf_mem_limit", shared.account.bound());
    // `stats sizes` needs no tracking.
    report.line("track_sizes", "no");
    let buffer = shared.tls.as_ref().map_or(0, |_| TLS_BUFFER);
    report.line("ssl_wbuf_size", buffer);
}

/// The TCP addresses of memcached's clients.
fn tcp(shared: &Shared) -> impl Iterator<Item = &SocketAddr> {
    let all = shared.addresses_of(Protocol::is_memcached);
    all.filter_map(|address| match address {
        Address::Tcp(address) => Some(address),
        Address::Udp(_) | Address::Unix(_) => None,
    })
}

pub fn tcp_port(shared: &Shared) -> String {
    let first = tcp(shared).next();
    first.map_or(0, SocketAddr::port).to_string()
}

pub fn interfaces(shared: &Shared) -> String {
    let all: Vec<String> = tcp(shared)
        .map(|address| address.ip().to_string())
        .collect();
    match all.is_empty() {
        true => "NULL".to_owned(),
        false => all.join(","),
    }
}

/// The port of datagrams, if there are any.
fn udp(shared: &Shared) -> Option<u16> {
    let mut all = shared.addresses.iter();
    all.find_map(|(address, _)| match address {
        Address::Udp(address) => Some(address.port()),
        Address::Tcp(_) | Address::Unix(_) => None,
    })
}

pub fn udp_port(shared: &Shared) -> String {
    udp(shared).unwrap_or(0).to_string()
}

/// Each worker has a socket of its own.
pub fn threads_per_udp(shared: &Shared) -> String {
    let threads = udp(shared).map_or(0, |_| shared.config.threads.get());
    threads.to_string()
}

/// The unix socket of memcached's clients, and its permissions.
fn unix(shared: &Shared) -> Option<(&Path, u32)> {
    let mut all = shared.config.listeners.iter();
    all.find_map(|listen| match &listen.place {
        ListenAddress::Unix { path, mode } => Some((path.as_path(), *mode)),
        _ => None,
    })
}

pub fn unix_socket(shared: &Shared) -> String {
    unix(shared).map_or_else(null, |(path, _)| path.display().to_string())
}

pub fn unix_mask(shared: &Shared) -> String {
    let mode = unix(shared).map_or(0o700, |(_, mode)| mode);
    format!("{mode:o}")
}

pub fn memory_limit(shared: &Shared) -> String {
    shared.engine.stats().memory_limit.to_string()
}

pub fn item_size_max(shared: &Shared) -> String {
    shared.engine.item_size_max().to_string()
}

pub fn evictions(shared: &Shared) -> String {
    if shared.engine.evicts() { "on" } else { "off" }.to_owned()
}

pub fn counts_prefixes(shared: &Shared) -> String {
    yes_no(shared.prefixes.is_enabled())
}

pub fn auth_file(shared: &Shared) -> String {
    let file = shared.config.auth_file.as_ref();
    file.map_or_else(|| "no".to_owned(), |path| path.display().to_string())
}

pub fn memory_file(shared: &Shared) -> String {
    let file = shared.config.keeping.restart.as_ref();
    file.map_or_else(null, |path| path.display().to_string())
}

pub fn verbosity(shared: &Shared) -> String {
    // Relaxed: a switch for logging.
    shared.verbosity.load(Ordering::Relaxed).to_string()
}

pub fn idle_timeout(shared: &Shared) -> String {
    let limit = shared.live.load().idle_timeout;
    limit.map_or(0, |limit| limit.as_secs()).to_string()
}

pub fn address_connections_max(shared: &Shared) -> String {
    let most = shared.live.load().address_connections_max;
    most.map_or(0, NonZeroUsize::get).to_string()
}

pub fn disabled_actions(shared: &Shared) -> String {
    match shared.live.load().disabled_actions {
        none if none == Actions::default() => "no".to_owned(),
        some => some.to_string(),
    }
}

/// The protocols of memcached's clients, in memcached's words.
pub fn protocol(shared: &Shared) -> String {
    let spoken = |protocol| {
        let mut all = shared.config.listeners.iter();
        all.any(|listen| listen.protocol == protocol)
    };
    match (spoken(Protocol::Text), spoken(Protocol::Binary)) {
        (true, false) => "ascii",
        (false, true) => "binary",
        _ => "auto-negotiate",
    }
    .to_owned()
}

/// Of the present settings of TLS: after a SIGHUP the files may be others.
pub fn tls(shared: &Shared, show: fn(&TlsSettings) -> String) -> String {
    let settings = shared.tls.as_ref().map(|tls| tls.settings());
    show(&settings.unwrap_or_default())
}

/// A path, or memcached's word for a missing one.
pub fn path(path: &Path) -> String {
    match path.as_os_str().is_empty() {
        true => null(),
        false => path.display().to_string(),
    }
}

fn null() -> String {
    "NULL".to_owned()
}

pub fn yes_no(on: bool) -> String {
    if on { "yes" } else { "no" }.to_owned()
}
