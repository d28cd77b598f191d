//! A server's life: from settings to the last connection's end.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::SocketAddr;

use nuthatch_engine::Engine;
use nuthatch_engine::stats::EngineStats;
use nuthatch_server::{Address, OnVerbosity, Protocol, Server, ServerHandle, Signals};

use crate::check;
use crate::command::Serve;
use crate::confine::{self, Confinement};
use crate::daemon::{self, Launch};
use crate::log::{Log, LogTo};
use crate::process::{self, PidFile};
use crate::reload::Reload;
use crate::settings::{PORT_FILE, ProcessSettings, Settings};
use nuthatch_engines::EngineName;
use nuthatch_program::{Failure, output};

/// Serves until it is told to stop.
pub fn run(serve: Serve) -> Result<(), Failure> {
    let serve = serve.absolute().map_err(Failure::Usage)?;
    let flags = serve.clone().flags().map_err(Failure::Usage)?;
    let port_file = std::env::var_os(PORT_FILE).map(Into::into);
    let mut settings = Settings::check(&flags, port_file).map_err(Failure::Usage)?;
    if serve.check {
        check::all(&settings).map_err(Failure::Usage)?;
        settings
            .warnings
            .iter()
            .for_each(|warning| output::note(warning));
        return output::print("the settings are fine\n");
    }
    // First, as it must be done by the only thread.
    let launch = settings.process.daemon.then(daemon::launch).transpose();
    let launch = launch.map_err(Failure::Run)?;
    let connections = settings.server.connections_max.get();
    let warnings = process::prepare(&settings.process, connections).map_err(Failure::Run)?;
    let confinement = Confinement::new(&settings, serve.config.as_deref());
    let verbosity = settings.server.verbosity;
    let log = Log::begin(
        &settings.process.log,
        settings.process.log_format,
        verbosity,
    )
    .map_err(Failure::Run)?;
    for warning in settings.warnings.iter().chain(&warnings) {
        log.warn(warning);
    }
    let turned = log.clone();
    settings.server.on_verbosity = OnVerbosity::new(move |level| turned.set_verbosity(level));
    // Threads that are started from here on are confined with it.
    if settings.process.confined
        && let Some(warning) = confinement.files().map_err(Failure::Run)?
    {
        log.warn(&warning);
    }
    let reload = Reload::new(serve, &flags, log.clone()).map_err(Failure::Usage)?;
    let outcome = live(settings, launch, reload);
    if let Err(Failure::Usage(error) | Failure::Run(error)) = &outcome {
        log.error(error);
    }
    outcome
}

/// The server's life. `launch` is set if it runs in the background.
fn live(settings: Settings, launch: Option<Launch>, reload: Reload) -> Result<(), Failure> {
    let engine = EngineName::build(&settings.engine)?;
    let (name, index) = (engine.name(), index(&engine.stats()));
    let (threads, limit) = (settings.server.threads, settings.engine.memory_limit >> 20);
    let process = settings.process;
    let keeps_stderr = process.log == LogTo::Stderr && settings.server.verbosity > 0;
    let signals = Signals::catch().map_err(|error| Failure::Run(format!("signals: {error}")))?;
    let has_passwords = settings.server.auth_file.is_some();
    let server =
        Server::start(settings.server, engine).map_err(|error| Failure::Run(error.to_string()))?;
    let begun = begin(&server, &process, signals, reload).and_then(|pid_file| {
        if process.confined {
            confine::calls()?;
        }
        let places = places(&server);
        let says = format!("engine {name}, {limit} MiB, {threads} threads, {index}at {places}");
        let addresses = server.addresses().iter().map(|(address, _)| address);
        for open in open_to_all(addresses, has_passwords, server.metrics_address()) {
            tracing::warn!("{open}");
        }
        if process.daemon || process.log != LogTo::Stderr {
            tracing::info!("{says}");
        }
        // For systemd's Type=notify; without systemd there is nobody to tell.
        if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
            tracing::debug!(%error, "sd_notify");
        }
        if let Some(launch) = launch {
            let done = launch.done(keeps_stderr);
            done.map_err(|error| format!("-d: {error}"))?;
        } else {
            announce(&says, server.addresses_of(Protocol::is_memcached).next());
        }
        Ok(pid_file)
    });
    // If the start failed, the server is stopped: that removes the sockets it has bound.
    if begun.is_err() {
        server.shutdown();
    }
    let ended = server.join().map_err(|error| error.to_string());
    // The file is removed when this returns.
    let _pid_file = begun.map_err(Failure::Run)?;
    ended.map_err(Failure::Run)
}

/// Writes the process id and begins to serve signals.
fn begin(
    server: &ServerHandle,
    process: &ProcessSettings,
    signals: Signals,
    mut reload: Reload,
) -> Result<Option<PidFile>, String> {
    let pid_file = process.pid_file.as_deref();
    let pid_file = pid_file.map(PidFile::write).transpose()?;
    let controls = server.controls();
    let saves = server.controls();
    let save = move || match saves.save() {
        true => tracing::info!("SIGUSR2: a copy of all items"),
        false => tracing::warn!("SIGUSR2: there is no file for a copy (--save)"),
    };
    signals
        .serve(server.stopper(), move || reload.run(&controls), save)
        .map_err(|error| format!("signals: {error}"))?;
    Ok(pid_file)
}

/// What other machines reach without a password, a sentence for each kind of it. The sockets of systemd are among the
/// addresses; metrics have no password.
fn open_to_all<'a>(
    addresses: impl Iterator<Item = &'a Address>,
    has_passwords: bool,
    metrics: Option<SocketAddr>,
) -> Vec<String> {
    let is_open = |address: &&Address| match address {
        Address::Tcp(address) | Address::Udp(address) => !address.ip().is_loopback(),
        Address::Unix(_) => false,
    };
    let mut sentences = Vec::new();
    let open = list(addresses.filter(|_| !has_passwords).filter(is_open));
    if !open.is_empty() {
        sentences.push(format!(
            "everybody who reaches {open} may read and write: -l 127.0.0.1, or passwords (-Y)"
        ));
    }
    if let Some(address) = metrics.filter(|address| !address.ip().is_loopback()) {
        sentences.push(format!(
            "everybody who reaches {address} may read the metrics: --metrics 127.0.0.1"
        ));
    }
    sentences
}

/// Where it listens.
fn places(server: &ServerHandle) -> String {
    let memcached = list(server.addresses_of(Protocol::is_memcached));
    let mut places = memcached;
    // Writing to a String does not fail.
    for (name, others) in [
        ("CPServer", list(server.addresses_of(Protocol::is_cpserver))),
        ("Redis", list(server.addresses_of(Protocol::is_redis))),
    ] {
        if !others.is_empty() {
            let _ = write!(places, ", {name} at {others}");
        }
    }
    if let Some(address) = server.metrics_address() {
        let _ = write!(places, ", metrics at http://{address}/metrics");
    }
    places
}

/// Tells a person what runs, and what to type next.
fn announce(says: &str, address: Option<&Address>) {
    let version = env!("CARGO_PKG_VERSION");
    let next = what_next(address);
    // There is no other place for the message.
    let _ = write!(io::stderr(), "nuthatch {version}: {says}\n{next}\n");
}

/// The index's size and the rule that chose it; nothing for an engine without such a rule.
fn index(stats: &EngineStats) -> String {
    match stats.index_rule {
        Some(rule) => format!("index of {} slots ({rule}), ", stats.index_slots),
        None => String::new(),
    }
}

fn list<'a>(addresses: impl IntoIterator<Item = &'a Address>) -> String {
    let mut text = String::new();
    for address in addresses {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a String does not fail.
        let _ = match address {
            Address::Tcp(address) => write!(text, "{space}{address}"),
            Address::Udp(address) => write!(text, "{space}UDP {address}"),
            Address::Unix(path) => write!(text, "{space}{}", path.display()),
        };
    }
    text
}

/// What a newcomer types next.
fn what_next(address: Option<&Address>) -> String {
    let to = match address {
        Some(Address::Tcp(address)) if address.ip().is_unspecified() => {
            format!("localhost {}", address.port())
        }
        Some(Address::Tcp(address)) => format!("{} {}", address.ip(), address.port()),
        Some(Address::Udp(address)) => format!("-u {} {}", address.ip(), address.port()),
        Some(Address::Unix(path)) => format!("-U {}", path.display()),
        None => String::new(),
    };
    format!(
        r"try: printf 'set seed 0 0 5\r\nacorn\r\nget seed\r\nquit\r\n' | nc {to}   (Ctrl-C ends the server)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_reach_is_told() {
        let tcp = |text: &str| Address::Tcp(text.parse().unwrap());
        let inner = [
            tcp("127.0.0.1:5"),
            tcp("[::1]:5"),
            Address::Unix("/s".into()),
        ];
        let outer = [
            tcp("0.0.0.0:5"),
            Address::Udp("10.0.0.1:6".parse().unwrap()),
        ];
        let metrics = |text: &str| Some(text.parse().unwrap());
        let loopback = metrics("127.0.0.1:9150");
        assert!(open_to_all(inner.iter(), false, loopback).is_empty());
        assert!(open_to_all(outer.iter(), true, loopback).is_empty());
        let told = open_to_all(inner.iter().chain(&outer), false, metrics("[::]:9150"));
        assert!(told[0].contains("0.0.0.0:5 UDP 10.0.0.1:6 may read and write"));
        assert!(told[1].contains("[::]:9150 may read the metrics"));
        // A password does not keep anybody from the metrics.
        assert_eq!(
            open_to_all(outer.iter(), true, metrics("10.0.0.1:1")).len(),
            1
        );
    }

    #[test]
    fn what_next_reaches_the_server() {
        let tcp = |text: &str| Address::Tcp(text.parse().unwrap());
        for (address, to) in [
            (tcp("0.0.0.0:5"), "| nc localhost 5 "),
            (tcp("127.0.0.1:6"), "| nc 127.0.0.1 6 "),
            (tcp("[::1]:7"), "| nc ::1 7 "),
            (Address::Unix("/s".into()), "| nc -U /s "),
        ] {
            assert!(what_next(Some(&address)).contains(to), "{to}");
        }
        assert_eq!(list(&[tcp("1.2.3.4:5"), tcp("[::]:5")]), "1.2.3.4:5 [::]:5");
    }
}
