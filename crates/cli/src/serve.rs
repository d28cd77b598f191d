//! A server's life: from settings to the last connection's end.

use std::fmt::Write;

use nuthatch::Engine;
use nuthatch_server::{Address, OnVerbosity, Server, on_signals};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

use crate::Failure;
use crate::command::Serve;
use crate::engine::{Build, Job};
use crate::process::{self, PidFile};
use crate::settings::{PORT_FILE, Settings};

/// Serves until it is told to stop.
pub fn run(serve: Serve) -> Result<(), Failure> {
    let flags = serve.flags().map_err(Failure::Usage)?;
    let port_file = std::env::var_os(PORT_FILE).map(Into::into);
    let settings = Settings::check(&flags, port_file).map_err(Failure::Usage)?;
    start(settings).map_err(Failure::Runtime)
}

fn start(mut settings: Settings) -> Result<(), String> {
    let verbosity = settings.server.verbosity;
    let connections = settings.server.connections_max.get();
    let warnings = process::prepare(&settings.process, connections, verbosity)?;
    for warning in settings.warnings.iter().chain(&warnings) {
        eprintln!("nuthatch: {warning}");
    }
    settings.server.on_verbosity = log_to_stderr(verbosity);
    settings.engine.name.choose(settings)
}

/// Begins to log, and returns what changes how much.
fn log_to_stderr(verbosity: u32) -> OnVerbosity {
    let (filter, handle) = reload::Layer::new(level(verbosity));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .init();
    OnVerbosity::new(move |verbosity| {
        // It fails only when the subscriber is gone, and that lives as long as the process.
        let _ = handle.reload(level(verbosity));
    })
}

/// Warnings in any case; more as -v or `verbosity` asks for.
fn level(verbosity: u32) -> LevelFilter {
    match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

impl Job for Settings {
    type Output = Result<(), String>;

    fn run<E: Engine>(self, build: Build<E>) -> Result<(), String> {
        let engine = build(&self.engine)?;
        let name = engine.name();
        let threads = self.server.threads;
        let server = Server::start(self.server, engine).map_err(|error| error.to_string())?;
        on_signals(server.stopper()).map_err(|error| format!("signals: {error}"))?;
        let pid_file = self.process.pid_file.as_deref();
        let _pid_file = pid_file.map(PidFile::write).transpose()?;
        let cpserver = match server.cpserver_addresses() {
            [] => String::new(),
            addresses => format!(", CPServer at {}", list(addresses)),
        };
        eprint!(
            "nuthatch {}: engine {name}, {} MiB, {threads} threads, at {}{cpserver}\n{}\n",
            env!("CARGO_PKG_VERSION"),
            self.engine.memory_limit >> 20,
            list(server.addresses()),
            what_next(server.addresses())
        );
        server.join().map_err(|error| error.to_string())
    }
}

fn list(addresses: &[Address]) -> String {
    let mut text = String::new();
    for address in addresses {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a String does not fail.
        let _ = match address {
            Address::Tcp(address) => write!(text, "{space}{address}"),
            Address::Unix(path) => write!(text, "{space}{}", path.display()),
        };
    }
    text
}

/// What a newcomer types next.
fn what_next(addresses: &[Address]) -> String {
    let to = match addresses.first() {
        Some(Address::Tcp(address)) if address.ip().is_unspecified() => {
            format!("localhost {}", address.port())
        }
        Some(Address::Tcp(address)) => format!("{} {}", address.ip(), address.port()),
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
    fn what_next_reaches_the_server() {
        let tcp = |text: &str| Address::Tcp(text.parse().unwrap());
        for (address, to) in [
            (tcp("0.0.0.0:5"), "| nc localhost 5 "),
            (tcp("127.0.0.1:6"), "| nc 127.0.0.1 6 "),
            (tcp("[::1]:7"), "| nc ::1 7 "),
            (Address::Unix("/s".into()), "| nc -U /s "),
        ] {
            assert!(what_next(&[address]).contains(to), "{to}");
        }
        assert_eq!(list(&[tcp("1.2.3.4:5"), tcp("[::]:5")]), "1.2.3.4:5 [::]:5");
    }
}
