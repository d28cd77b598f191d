//! The configuration of one gateway of many. The command line is the same for all, and each gateway has ports of its
//! own.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use nuthatch_program::Failure;
use nuthatch_server::address::{AddressError, TypedAddress};
use nuthatch_server::{Config, Listen, ListenAddress, Protocol, TlsSettings, Verify};

use crate::options::Options;

/// The default port of the first gateway's metrics: the server's.
const METRICS_PORT: u16 = 9150;

/// Checks the ports of the last gateway, which are the highest. Errors: one of them would be beyond the last port. No
/// name is resolved: a name may be known on another host only.
pub fn check_ports(options: &Options, last: usize) -> Result<(), Failure> {
    let everywhere = options.listen.is_empty().then_some(options.port);
    let typed = options.listen.iter();
    let listen = typed.map(|address| ("-p", port_of(address).unwrap_or(options.port)));
    let metrics = options.metrics.iter();
    let metrics = metrics.map(|address| ("--metrics", port_of(address).unwrap_or(METRICS_PORT)));
    let others = [
        ("-p", everywhere),
        ("-U", Some(options.udp_port)),
        ("--redis-port", options.redis_port),
    ];
    let others = (others.into_iter()).filter_map(|(flag, port)| Some((flag, port?)));
    for (flag, port) in listen.chain(metrics).chain(others) {
        port_of_gateway(flag, port, last)?;
    }
    Ok(())
}

/// The configuration of the `number`th gateway.
pub fn config(options: &Options, number: usize) -> Result<Config, Failure> {
    let addresses = addresses(options)?;
    let tls = tls(options);
    let verify = tls.as_ref().map(|tls| tls.verify);
    let secured = |listen| Listen {
        tls: verify,
        ..listen
    };
    let mut listeners = Vec::new();
    for listen in &addresses {
        listeners.push(secured(of_gateway("-p", listen, number)?));
    }
    if options.udp_port != 0 {
        for listen in at_port(&addresses, options.udp_port, ListenAddress::Udp) {
            listeners.push(of_gateway("-U", &listen, number)?);
        }
    }
    if let Some(port) = options.redis_port {
        for listen in at_port(&addresses, port, ListenAddress::Tcp) {
            let listen = of_gateway("--redis-port", &listen, number)?;
            listeners.push(secured(listen.of(Protocol::Redis)));
        }
    }
    let mut config = Config {
        listeners,
        tls,
        metrics: metrics(options, number)?,
        threads: options.threads,
        connections_max: options.conn_limit,
        backlog: options.listen_backlog,
        commands_per_turn: options.max_reqs_per_event,
        idle_timeout: (options.idle_timeout > 0)
            .then(|| Duration::from_secs(options.idle_timeout.into())),
        auth_file: options.auth_file.clone(),
        allow_flush: !options.disable_flush_all,
        disabled_actions: options.disable_admin.unwrap_or_default(),
        address_connections_max: NonZeroUsize::new(options.conns_per_address),
        allow_dump: !options.disable_dumping,
        allow_watch: !options.disable_watch,
        allow_shutdown: options.enable_shutdown,
        verbosity: options.verbose.into(),
        ..Config::default()
    };
    let checked = config.check_files();
    checked.map_err(|error| Failure::usage(error.to_string()))?;
    // The start reads them again: by then there is a log for the warning that everybody can read them.
    config.passwords = None;
    Ok(config)
}

/// Certificates for TLS.
fn tls(options: &Options) -> Option<TlsSettings> {
    let (chain_cert, key) = options
        .ssl_chain_cert
        .clone()
        .zip(options.ssl_key.clone())?;
    Some(TlsSettings {
        chain_cert,
        key,
        ca_cert: options.ssl_ca_cert.clone(),
        verify: match options.ssl_ca_cert {
            Some(_) => Verify::Always,
            None => Verify::Nothing,
        },
        ciphers: None,
        only_1_3: false,
        session_cache: false,
    })
}

/// The addresses of the first gateway.
fn addresses(options: &Options) -> Result<Vec<Listen>, Failure> {
    if options.listen.is_empty() {
        return Ok(Listen::everywhere(options.port));
    }
    let mut addresses = Vec::new();
    for typed in &options.listen {
        let found = Listen::typed(typed, options.port);
        let found = found.map_err(|error| wrong("-l", typed, &error))?;
        Listen::add_new(&mut addresses, found);
    }
    Ok(addresses)
}

/// Where the `number`th gateway serves metrics.
fn metrics(options: &Options, number: usize) -> Result<Vec<Listen>, Failure> {
    let Some(typed) = &options.metrics else {
        return Ok(Vec::new());
    };
    let found = Listen::typed(typed, METRICS_PORT);
    let found = found.map_err(|error| wrong("--metrics", typed, &error))?;
    let found = found.iter();
    found
        .map(|listen| of_gateway("--metrics", listen, number))
        .collect()
}

fn wrong(flag: &str, typed: &str, error: &AddressError) -> Failure {
    Failure::usage(format!("{flag} {typed}: {error}"))
}

/// The same addresses with another port, each once.
fn at_port(addresses: &[Listen], port: u16, kind: fn(SocketAddr) -> ListenAddress) -> Vec<Listen> {
    let mut found: Vec<Listen> = Vec::new();
    for listen in addresses {
        let ListenAddress::Tcp(mut address) = listen.address else {
            continue;
        };
        address.set_port(port);
        let address = kind(address);
        if !found.iter().any(|other| other.address == address) {
            found.push(Listen {
                address,
                ..listen.clone()
            });
        }
    }
    found
}

/// The address of the `number`th gateway, if the first has this one.
fn of_gateway(flag: &str, listen: &Listen, number: usize) -> Result<Listen, Failure> {
    let mut listen = listen.clone();
    if let ListenAddress::Tcp(address) | ListenAddress::Udp(address) = &mut listen.address {
        address.set_port(port_of_gateway(flag, address.port(), number)?);
    }
    Ok(listen)
}

/// The port of the `number`th gateway, if the first has this one. 0 stays: the system chooses.
fn port_of_gateway(flag: &str, first: u16, number: usize) -> Result<u16, Failure> {
    let port = match first {
        0 => 0,
        first => usize::from(first) + number,
    };
    u16::try_from(port)
        .map_err(|_| Failure::usage(format!("{flag}: gateway {number} would have port {port}")))
}

/// The port in an address, if the address has one.
fn port_of(typed: &str) -> Option<u16> {
    TypedAddress::parse(typed).ok()?.port()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn options(line: &str) -> Options {
        let words = std::iter::once("nuthatch-pe").chain(line.split_whitespace());
        Options::try_parse_from(words).unwrap()
    }

    #[test]
    fn each_gateway_has_ports_of_its_own_for_all_that_it_serves() {
        let line = "-l 127.0.0.1 -l 127.0.0.1:80 -l 127.1 -p 9000 -U 100 --redis-port 6379 --metrics 127.0.0.1";
        let second = config(&options(line), 1).unwrap();
        let addresses: Vec<_> = second
            .listeners
            .iter()
            .map(|listen| &listen.address)
            .collect();
        let tcp = |port| ListenAddress::Tcp(([127, 0, 0, 1], port).into());
        let udp = |port| ListenAddress::Udp(([127, 0, 0, 1], port).into());
        // An address and port that come up twice are listened on once.
        assert_eq!(addresses, [&tcp(9001), &tcp(81), &udp(101), &tcp(6380)]);
        assert_eq!(second.listeners[3].protocol, Protocol::Redis);
        assert_eq!(second.metrics[0].address, tcp(9151));
        let free = config(&options("-l ::1 -p 0 --metrics ::1 --redis-port 0"), 7).unwrap();
        assert_eq!(
            free.listeners[1].address,
            ListenAddress::Tcp("[::1]:0".parse().unwrap())
        );
        assert_eq!(
            free.metrics[0].address,
            ListenAddress::Tcp("[::1]:9157".parse().unwrap())
        );
    }

    #[test]
    fn a_port_past_the_last_one_is_told_with_its_flag() {
        for (line, flag) in [
            ("-p 65535", "-p"),
            ("-U 65535", "-U"),
            ("--redis-port 65535", "--redis-port"),
            ("--metrics 127.0.0.1:65535", "--metrics"),
            ("--metrics [::1]:65535", "--metrics"),
        ] {
            assert!(check_ports(&options(line), 0).is_ok(), "{line}");
            let error = check_ports(&options(line), 1).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{flag}: gateway 1")), "{error}");
        }
    }

    #[test]
    fn tls_needs_its_files_and_they_need_it() {
        for line in [
            "-Z",
            "-Z --ssl-key k",
            "--ssl-key k --ssl-chain-cert c",
            "--ssl-ca-cert a",
        ] {
            let words = std::iter::once("nuthatch-pe").chain(line.split_whitespace());
            assert!(Options::try_parse_from(words).is_err(), "{line}");
        }
        let refused = |line: &str| config(&options(line), 0).unwrap_err().to_string();
        let error = refused("-p 0 -Z --ssl-chain-cert /none/c --ssl-key /none/k");
        assert!(error.contains("/none/c"), "{error}");
        assert!(refused("-p 0 -Y /none/p").contains("/none/p"));
        assert!(refused("-U 1 -Y p").contains("-U"));
    }
}
