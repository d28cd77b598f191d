//! The listeners of a server, each with its address and protocol: from flags, or from sockets that systemd has bound.
//!
//! An address of `-l` may have words in front, as memcached's: `notls:`, `btls:` or `mtls:`, then `proto[NAME]:`, then
//! `tag[NAME]:` or `tag_NAME_:`.

use nuthatch_protocol::cpserver;
use nuthatch_server::address::TypedAddress;
use nuthatch_server::config::{self, Listen, ListenAddress, Protocol, Verify};

use crate::flags::Flags;
use crate::settings::absolute;

/// memcached's permissions of a unix socket.
const UNIX_MODE: u32 = 0o700;
/// The port of memcached's exporter, which this takes the place of.
const METRICS_PORT: u16 = 9150;
/// Redis' port, for an address of Redis' clients without one.
const REDIS_PORT: u16 = 6379;
/// Bytes of a tag in front of an address, at most: memcached's.
const TAG_MAX: usize = 8;

/// Every listener, and the warnings about them.
#[derive(Debug)]
pub struct Listeners {
    pub listeners: Vec<Listen>,
    pub warnings: Vec<String>,
}

impl Listeners {
    /// The listeners of these flags, and those for CPServer's clients, if the program serves them. `verify` says which
    /// certificates TLS demands of clients, if there is TLS.
    pub fn of(
        flags: &Flags,
        cpserver: Option<&[String]>,
        verify: Option<Verify>,
    ) -> Result<Self, String> {
        let protocol = match flags.protocol.as_deref() {
            None => Protocol::Memcached,
            Some(name) => protocol_named(name).ok_or("-B: ascii, binary, auto or any")?,
        };
        let mut warnings = elsewhere(flags, verify);
        let said = ListenDefaults {
            flags,
            verify,
            protocol,
        };
        let mut listeners = said.memcached()?;
        listeners.extend(said.udp()?);
        listeners.extend(said.cpserver(cpserver)?);
        listeners.extend(said.redis(&mut warnings)?);
        Ok(Self {
            listeners,
            warnings,
        })
    }
}

/// The same flags with an address in place of each host's name, for a server that listens already. A change of these
/// addresses needs a restart, so names are not resolved then. To resolve them would block a thread that has other work
/// for an unbounded time, and `-o drop_privileges` forbids it.
pub fn without_names(flags: &Flags) -> Flags {
    let mut flags = flags.clone();
    for list in &mut flags.listen {
        let typed = each_typed(list).map(|typed| match Words::read(typed) {
            Ok(words) => {
                let (words_in_front, address) = typed.split_at(typed.len() - words.address.len());
                words_in_front.to_owned() + &without_name(address)
            }
            // The code that parses the list reports this error.
            Err(_) => typed.to_owned(),
        });
        *list = typed.collect::<Vec<_>>().join(";");
    }
    flags.metrics = flags.metrics.as_deref().map(without_name);
    flags
}

/// [`without_names`] for CPServer's addresses.
pub fn cpserver_without_names(typed: Vec<String>) -> Vec<String> {
    let known = typed.into_iter().map(|typed| {
        let (_, address) = tls_word(&typed);
        let (word, address) = typed.split_at(typed.len() - address.len());
        word.to_owned() + &without_name(address)
    });
    known.collect()
}

/// The addresses in a list of `-l`. memcached takes both signs between them.
fn each_typed(list: &str) -> impl Iterator<Item = &str> {
    let typed = list.split([';', ',']).map(str::trim);
    typed.filter(|typed| !typed.is_empty())
}

/// An address as typed, with the unspecified one in place of a name.
fn without_name(typed: &str) -> String {
    match TypedAddress::parse(typed) {
        Ok(address) if address.asks_system() => match address.port() {
            Some(port) => format!("0.0.0.0:{port}"),
            None => "0.0.0.0".to_owned(),
        },
        // The code that takes the address reports an error.
        _ => typed.to_owned(),
    }
}

/// Flags about listening that have no effect, because another flag or systemd decides.
fn elsewhere(flags: &Flags, verify: Option<Verify>) -> Vec<String> {
    let is_inherited = !inherited_as(None).is_empty();
    let says_where =
        !flags.listen.is_empty() || flags.port.is_some() || flags.unix_socket.is_some();
    let mut warnings = Vec::new();
    if is_inherited && says_where {
        warnings.push("-l, -p, -s: systemd's sockets are used instead".to_owned());
    }
    if !is_inherited && verify.is_some() && flags.unix_socket.is_some() {
        warnings.push("-Z: a unix socket has no TLS".to_owned());
    }
    warnings
}

/// The flags, and the defaults of a listener for which nothing else is set.
struct ListenDefaults<'f> {
    flags: &'f Flags,
    verify: Option<Verify>,
    protocol: Protocol,
}

impl ListenDefaults<'_> {
    /// Listeners for memcached's clients.
    fn memcached(&self) -> Result<Vec<Listen>, String> {
        let inherited = inherited_as(None);
        if !inherited.is_empty() {
            return Ok(self.inherited(inherited));
        }
        if let Some(path) = &self.flags.unix_socket {
            let address = ListenAddress::Unix {
                path: absolute(path)?,
                mode: self.flags.unix_mask.unwrap_or(UNIX_MODE),
            };
            return Ok(vec![address.of(self.protocol)]);
        }
        let port = match self.flags.port {
            None => config::PORT,
            Some(port) => port_of("-p", port)?,
        };
        self.tcp(port)
    }

    /// Listeners for datagrams, if UDP is on: the addresses of `-l`, whatever ports those have.
    fn udp(&self) -> Result<Vec<Listen>, String> {
        let inherited = inherited_as(Some("udp")).into_iter();
        let inherited = inherited.map(|address| match address {
            ListenAddress::Inherited(fd) => ListenAddress::InheritedUdp(fd),
            other => other,
        });
        let mut found: Vec<Listen> = inherited.map(|address| address.of(self.protocol)).collect();
        if found.is_empty() {
            let port = match self.flags.udp_port {
                None | Some(0) => return Ok(Vec::new()),
                Some(port) => port_of("-U", port)?,
            };
            for listen in self.of_memcached(port)? {
                let ListenAddress::Tcp(mut address) = listen.address else {
                    continue;
                };
                address.set_port(port);
                let address = ListenAddress::Udp(address);
                match found.iter_mut().find(|other| other.address == address) {
                    None => found.push(Listen {
                        address,
                        tls: None,
                        ..listen
                    }),
                    // The first byte of a datagram decides the protocol.
                    Some(other) if other.protocol != listen.protocol => {
                        other.protocol = Protocol::Memcached;
                    }
                    Some(_) => {}
                }
            }
        }
        for listen in &mut found {
            // Redis has no datagrams: one that begins as a request of Redis is none.
            if listen.protocol == Protocol::Any {
                listen.protocol = Protocol::Memcached;
            }
        }
        Ok(found)
    }

    /// Listeners for CPServer's clients.
    fn cpserver(&self, typed: Option<&[String]>) -> Result<Vec<Listen>, String> {
        let mut listeners = self.inherited(inherited_as(Some(CPSERVER)));
        let Some(all) = typed else {
            return match listeners.is_empty() {
                true => Ok(listeners),
                false => Err(format!(
                    "systemd's socket {CPSERVER}: its clients are served by `nuthatch-lab serve`"
                )),
            };
        };
        if listeners.is_empty() {
            for typed in all {
                let (word, address) = tls_word(typed);
                let tls = self.tls("--cpserver", typed, word)?;
                let found = addresses("--cpserver", address, cpserver::PORT)?.into_iter();
                Listen::add_new(&mut listeners, found.map(|listen| Listen { tls, ..listen }));
            }
        }
        let listeners = listeners.into_iter();
        Ok(listeners
            .map(|listen| listen.of(Protocol::CpServer))
            .collect())
    }

    /// Listeners for Redis' clients, if they are served: the addresses for memcached's clients, whatever ports those have.
    /// An address that stands there more than once is served as securely as the most secure of them.
    fn redis(&self, warnings: &mut Vec<String>) -> Result<Vec<Listen>, String> {
        let inherited = inherited_as(Some("redis"));
        if !inherited.is_empty() {
            let all = self.inherited(inherited).into_iter();
            return Ok(all.map(|listen| listen.of(Protocol::Redis)).collect());
        }
        let Some(port) = self.flags.redis_port else {
            return Ok(Vec::new());
        };
        let port = port_of("--redis-port", port)?;
        let mut found: Vec<Listen> = Vec::new();
        for mut listen in self.of_memcached(port)? {
            if let ListenAddress::Tcp(address) = &mut listen.address {
                address.set_port(port);
            }
            let same = found
                .iter_mut()
                .find(|other| other.address == listen.address);
            let Some(other) = same else {
                found.push(listen.of(Protocol::Redis));
                continue;
            };
            if other.tls != listen.tls
                && let ListenAddress::Tcp(address) = listen.address
            {
                other.tls = other.tls.max(listen.tls);
                warnings.push(format!(
                    "--redis-port: -l has {} with several kinds of TLS; {address} has the strictest",
                    address.ip()
                ));
            }
        }
        Ok(found)
    }

    /// Systemd's sockets with the defaults.
    fn inherited(&self, addresses: Vec<ListenAddress>) -> Vec<Listen> {
        let listen = |address: ListenAddress| Listen {
            tls: self.verify,
            ..address.of(self.protocol)
        };
        addresses.into_iter().map(listen).collect()
    }

    /// The addresses of `-l` that are for memcached's clients.
    fn of_memcached(&self, port: u16) -> Result<Vec<Listen>, String> {
        let mut found = self.tcp(port)?;
        found.retain(|listen| !listen.protocol.is_redis());
        Ok(found)
    }

    /// The TLS of an address with this word in front.
    fn tls(&self, flag: &str, typed: &str, word: TlsWord) -> Result<Option<Verify>, String> {
        match word {
            None => Ok(self.verify),
            Some(None) => Ok(None),
            Some(asked) if self.verify.is_some() => Ok(asked),
            Some(Some(_)) => Err(format!("{flag} {typed}: needs TLS (-Z)")),
        }
    }

    /// The port of an address of `-l` for Redis' clients that has none.
    fn redis_port(&self) -> Result<u16, String> {
        let port = self.flags.redis_port;
        port.map_or(Ok(REDIS_PORT), |port| port_of("--redis-port", port))
    }

    /// The addresses of `-l`.
    fn tcp(&self, port: u16) -> Result<Vec<Listen>, String> {
        if self.flags.listen.is_empty() {
            let all = Listen::everywhere(port).into_iter();
            let all = all.map(|listen| Listen {
                protocol: self.protocol,
                tls: self.verify,
                ..listen
            });
            return Ok(all.collect());
        }
        let mut found: Vec<Listen> = Vec::new();
        for typed in self.flags.listen.iter().flat_map(|list| each_typed(list)) {
            let words = Words::read(typed)?;
            let tls = self.tls("-l", typed, words.tls)?;
            let protocol = words.protocol.unwrap_or(self.protocol);
            let port = match protocol.is_redis() {
                true => self.redis_port()?,
                false => port,
            };
            let more = addresses("-l", words.address, port)?.into_iter();
            let more = more.map(|listen| Listen {
                protocol,
                tls,
                ..listen
            });
            Listen::add_new(&mut found, more);
        }
        match found.is_empty() {
            true => Err("-l: no address".to_owned()),
            false => Ok(found),
        }
    }
}

/// The TLS that a word in front of an address asks for, if there is one. `Some(None)` is without TLS.
type TlsWord = Option<Option<Verify>>;

/// The word about TLS in front of an address, and what is behind it.
fn tls_word(typed: &str) -> (TlsWord, &str) {
    let words = [
        ("notls:", None),
        ("btls:", Some(Verify::Nothing)),
        ("mtls:", Some(Verify::Always)),
    ];
    let mut words = words.into_iter();
    let found = words.find_map(|(word, tls)| Some((Some(tls), typed.strip_prefix(word)?)));
    found.unwrap_or((None, typed))
}

/// The words in front of an address. A tag is for a proxy's rules: nothing here uses it.
struct Words<'t> {
    tls: TlsWord,
    protocol: Option<Protocol>,
    address: &'t str,
}

impl<'t> Words<'t> {
    fn read(typed: &'t str) -> Result<Self, String> {
        let (tls, address) = tls_word(typed);
        let mut words = Self {
            tls,
            protocol: None,
            address,
        };
        if let Some(rest) = words.address.strip_prefix("proto[") {
            let (name, rest) = rest
                .split_once("]:")
                .ok_or_else(|| format!("-l {typed}: a protocol as in proto[ascii]:"))?;
            let protocol = match name {
                "redis" => Some(Protocol::Redis),
                name => protocol_named(name),
            };
            let protocol = protocol.ok_or_else(|| {
                format!("-l {typed}: ascii, binary, negotiating (as auto), any or redis")
            })?;
            (words.protocol, words.address) = (Some(protocol), rest);
        }
        for (begin, end) in [("tag[", "]:"), ("tag_", "_:")] {
            if let Some(rest) = words.address.strip_prefix(begin) {
                let tag = rest.split_once(end);
                let tag = tag.filter(|(tag, _)| (1..=TAG_MAX).contains(&tag.len()));
                let (_, rest) = tag.ok_or_else(|| {
                    format!("-l {typed}: a tag of 1 to {TAG_MAX} characters, as in tag[name]:")
                })?;
                words.address = rest;
                break;
            }
        }
        Ok(words)
    }
}

/// A protocol of memcached's clients, by its name.
fn protocol_named(name: &str) -> Option<Protocol> {
    match name {
        "auto" | "negotiating" => Some(Protocol::Memcached),
        "ascii" => Some(Protocol::Text),
        "binary" => Some(Protocol::Binary),
        "any" => Some(Protocol::Any),
        _ => None,
    }
}

/// A port as it is typed: -1 and 0 are any free one.
fn port_of(flag: &str, port: i32) -> Result<u16, String> {
    match port {
        -1 => Ok(0),
        port => u16::try_from(port).map_err(|_| format!("{flag}: -1 to 65535")),
    }
}

/// The addresses of what was typed behind a flag.
fn addresses(flag: &str, typed: &str, port: u16) -> Result<Vec<Listen>, String> {
    Listen::typed(typed, port).map_err(|error| format!("{flag} {typed}: {error}"))
}

/// Where metrics are served.
pub fn metrics(flags: &Flags) -> Result<Vec<Listen>, String> {
    let inherited = inherited_as(Some("metrics"));
    if !inherited.is_empty() {
        let all = inherited.into_iter();
        return Ok(all.map(|address| address.of(Protocol::Memcached)).collect());
    }
    match &flags.metrics {
        Some(typed) => addresses("--metrics", typed, METRICS_PORT),
        None => Ok(Vec::new()),
    }
}

/// A socket that systemd has bound, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Inherited {
    fd: i32,
    /// FileDescriptorName of its unit.
    name: String,
}

/// The names of sockets for other purposes; a socket of any other name is for memcached's clients.
const PURPOSES: [&str; 4] = ["redis", CPSERVER, "udp", "metrics"];

const CPSERVER: &str = "cpserver";

/// Sockets that systemd has bound (sd_listen_fds_with_names(3)): from descriptor 3 on, if they are meant for this process.
fn inherited() -> Vec<Inherited> {
    let said = |name| std::env::var(name).ok();
    let number = |name| said(name)?.parse::<u32>().ok();
    match (number("LISTEN_PID"), number("LISTEN_FDS")) {
        (Some(pid), Some(count)) if pid == std::process::id() => {
            with_names(count, &said("LISTEN_FDNAMES").unwrap_or_default())
        }
        _ => Vec::new(),
    }
}

fn with_names(count: u32, names: &str) -> Vec<Inherited> {
    let names = names.split(':').chain(std::iter::repeat(""));
    let named = (3..3 + count.min(64) as i32).zip(names);
    let named = named.map(|(fd, name)| (fd, name.to_owned()));
    named.map(|(fd, name)| Inherited { fd, name }).collect()
}

/// The inherited sockets of a purpose; for `None`, those for memcached's protocols.
fn inherited_as(purpose: Option<&str>) -> Vec<ListenAddress> {
    let is_it = |inherited: &Inherited| match purpose {
        Some(purpose) => inherited.name == purpose,
        None => !PURPOSES.contains(&inherited.name.as_str()),
    };
    let ours = inherited().into_iter().filter(is_it);
    ours.map(|inherited| ListenAddress::Inherited(inherited.fd))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_not_looked_up_again() {
        let mut flags = flags(&[
            "no.such.host",
            "notls:proto[ascii]:no.such.host:5;::1",
            "[::1]:7;127.0.0.1:8",
            "no.such.host:none",
            "no.such.host:9, 127.0.0.1 ,",
            "fe80::1%nosuch;[fe80::1%nosuch]:7;fe80::1%3",
        ]);
        flags.metrics = Some("no.such.host:9".to_owned());
        let known = without_names(&flags);
        assert_eq!(
            known.listen,
            [
                "0.0.0.0",
                "notls:proto[ascii]:0.0.0.0:5;::1",
                "[::1]:7;127.0.0.1:8",
                "no.such.host:none",
                "0.0.0.0:9;127.0.0.1",
                "0.0.0.0;0.0.0.0:7;0.0.0.0"
            ]
        );
        let cpserver = ["notls:no.such.host", "no.such.host:9", "::1"].map(str::to_owned);
        let known_cpserver = cpserver_without_names(cpserver.to_vec());
        assert_eq!(known_cpserver, ["notls:0.0.0.0", "0.0.0.0:9", "::1"]);
        assert_eq!(known.metrics.as_deref(), Some("0.0.0.0:9"));
    }

    fn flags(listen: &[&str]) -> Flags {
        Flags {
            listen: listen.iter().map(|&typed| typed.to_owned()).collect(),
            ..Flags::default()
        }
    }

    /// Each listener's address with its protocol, and the certificates that TLS demands there.
    fn listening(flags: &Flags, verify: Option<Verify>) -> Result<Vec<String>, String> {
        listening_with(flags, None, verify)
    }

    fn listening_with(
        flags: &Flags,
        cpserver: Option<&[&str]>,
        verify: Option<Verify>,
    ) -> Result<Vec<String>, String> {
        let cpserver: Option<Vec<String>> =
            cpserver.map(|all| all.iter().map(|&typed| typed.to_owned()).collect());
        let all = Listeners::of(flags, cpserver.as_deref(), verify)?
            .listeners
            .into_iter();
        let shown = all.map(|listen| {
            let address = match &listen.address {
                ListenAddress::Tcp(address) => address.to_string(),
                ListenAddress::Udp(address) => format!("udp {address}"),
                ListenAddress::Unix { path, mode } => format!("{} {mode:o}", path.display()),
                ListenAddress::Inherited(fd) => format!("fd {fd}"),
                ListenAddress::InheritedUdp(fd) => format!("udp fd {fd}"),
            };
            let protocol = match listen.protocol {
                Protocol::Memcached => String::new(),
                other => format!(" {other:?}"),
            };
            let tls = listen.tls.map_or(String::new(), |tls| format!(" {tls:?}"));
            address + &protocol + &tls
        });
        Ok(shown.collect())
    }

    #[test]
    fn redis_clients_find_their_port_at_the_same_addresses() {
        let flags = Flags {
            redis_port: Some(6379),
            ..flags(&["127.0.0.1:5", "notls:127.0.0.2"])
        };
        let plain = listening(&flags, None).unwrap();
        assert_eq!(plain[2..], ["127.0.0.1:6379 Redis", "127.0.0.2:6379 Redis"]);
        let secured = listening(&flags, Some(Verify::Nothing)).unwrap();
        assert_eq!(
            secured[2..],
            ["127.0.0.1:6379 Redis Nothing", "127.0.0.2:6379 Redis"]
        );
    }

    #[test]
    fn an_address_with_several_ports_has_one_for_redis_and_one_for_datagrams() {
        let several = ["127.0.0.1:5", "127.0.0.2:5", "127.0.0.1:6"];
        let flags = Flags {
            redis_port: Some(7),
            udp_port: Some(8),
            ..flags(&several)
        };
        assert_eq!(
            listening(&flags, None).unwrap()[3..],
            [
                "udp 127.0.0.1:8",
                "udp 127.0.0.2:8",
                "127.0.0.1:7 Redis",
                "127.0.0.2:7 Redis"
            ]
        );
    }

    #[test]
    fn of_several_kinds_of_tls_redis_has_the_strictest_and_it_is_said() {
        for listen in [
            ["127.0.0.1:5", "notls:127.0.0.1:6"],
            ["notls:127.0.0.1:5", "127.0.0.1:6"],
        ] {
            let flags = Flags {
                redis_port: Some(7),
                ..flags(&listen)
            };
            let found = Listeners::of(&flags, None, Some(Verify::Nothing)).unwrap();
            assert_eq!(found.listeners.len(), 3);
            assert_eq!(found.listeners[2].tls, Some(Verify::Nothing));
            assert!(found.warnings[0].contains("127.0.0.1:7 has the strictest"));
        }
    }

    #[test]
    fn places_to_listen() {
        let listening = |port, listen: &[&str]| {
            let flags = Flags {
                port,
                ..flags(listen)
            };
            listening(&flags, None)
        };
        let addresses = ["127.0.0.1", "127.0.0.1:5", "::1;[::1]:6"];
        assert_eq!(
            listening(Some(9), &addresses).unwrap(),
            ["127.0.0.1:9", "127.0.0.1:5", "[::1]:9", "[::1]:6"]
        );
        for free in [0, -1] {
            assert_eq!(
                listening(Some(free), &["127.0.0.1"]).unwrap(),
                ["127.0.0.1:0"]
            );
        }
        for (port, address) in [
            (1, "127.0.0.1:x"),
            (1, "1.2.3:9:9"),
            (65_536, "::1"),
            (-2, "::1"),
        ] {
            assert!(
                listening(Some(port), &[address]).is_err(),
                "{port} {address}"
            );
        }
    }

    #[test]
    fn lists_may_have_blanks_and_the_same_address_twice() {
        let addresses = |listen: &[&str]| listening(&flags(listen), None).unwrap();
        let two = ["127.0.0.1:11211", "[::1]:7"];
        assert_eq!(addresses(&[" 127.0.0.1 ,, [::1]:7;"]), two);
        assert_eq!(addresses(&["127.0.0.1", " 127.0.0.1", "[::1]:7"]), two);
        // Another kind of clients cannot share it: the check of a start tells that.
        assert_eq!(addresses(&["127.0.0.1", "proto[ascii]:127.0.0.1"]).len(), 2);
        assert!(listening(&flags(&[" ,;"]), None).is_err());
        let cpserver = ["127.0.0.1:8", "127.1:8", "127.0.0.1:9"];
        let all = listening_with(&flags(&["127.0.0.1"]), Some(&cpserver), None);
        assert_eq!(all.unwrap().len(), 3);
    }

    #[test]
    fn every_flag_takes_an_address_in_every_spelling() {
        let all = |port| {
            let all = Listen::everywhere(port).into_iter();
            all.map(|listen| listen.address).collect::<Vec<_>>()
        };
        for typed in ["*:7", ":7", "7"] {
            let flags = Flags {
                metrics: Some(typed.replace('7', "9")),
                ..flags(&[typed])
            };
            let cpserver = [typed.replace('7', "8")];
            let found = Listeners::of(&flags, Some(&cpserver), None).unwrap();
            let addresses = found.listeners.into_iter();
            let addresses: Vec<_> = addresses.map(|listen| listen.address).collect();
            assert_eq!(addresses, [all(7), all(8)].concat(), "{typed}");
            let metrics = metrics(&flags).unwrap().into_iter();
            let metrics: Vec<_> = metrics.map(|listen| listen.address).collect();
            assert_eq!(metrics, all(9), "{typed}");
        }
    }

    #[test]
    fn an_error_repeats_what_was_typed() {
        for wrong in ["[::1", "127.0.0.1:x", "fe80::1", "fe80::1%none", "a b"] {
            let begins = |flag: &str| format!("{flag} {wrong}: ");
            let error = listening(&flags(&[wrong]), None).unwrap_err();
            assert!(error.starts_with(&begins("-l")), "{error}");
            let others = Flags {
                metrics: Some(wrong.to_owned()),
                ..flags(&["127.0.0.1"])
            };
            let error = listening_with(&others, Some(&[wrong]), None).unwrap_err();
            assert!(error.starts_with(&begins("--cpserver")), "{error}");
            let error = metrics(&others).unwrap_err();
            assert!(error.starts_with(&begins("--metrics")), "{error}");
        }
    }

    #[test]
    fn addresses_may_have_memcacheds_words_in_front() {
        let secured = flags(&[
            "127.0.0.1:1",
            "notls:127.0.0.1:2",
            "btls:127.0.0.1:3",
            "mtls:proto[ascii]:tag_tools_:127.0.0.1:4",
            "proto[binary]:tag[services]:[::1]:5",
            "tag_x_:127.0.0.1:6",
            "proto[negotiating]:127.0.0.1:7",
        ]);
        assert_eq!(
            listening(&secured, Some(Verify::IfPresent)).unwrap(),
            [
                "127.0.0.1:1 IfPresent",
                "127.0.0.1:2",
                "127.0.0.1:3 Nothing",
                "127.0.0.1:4 Text Always",
                "[::1]:5 Binary IfPresent",
                "127.0.0.1:6 IfPresent",
                "127.0.0.1:7 IfPresent",
            ]
        );
        for wrong in [
            "mtls:127.0.0.1",
            "btls:127.0.0.1",
            "proto[rot13]:127.0.0.1",
            "proto[proxy]:127.0.0.1",
            "proto[ascii:127.0.0.1",
            "tag[]:127.0.0.1",
            "tag[toolonger]:127.0.0.1",
            "tag_x:127.0.0.1",
        ] {
            let error = listening(&flags(&[wrong]), None).unwrap_err();
            assert!(error.starts_with(&format!("-l {wrong}: ")), "{error}");
        }
    }

    #[test]
    fn datagrams_follow_the_protocol_of_their_address() {
        let flags = Flags {
            udp_port: Some(9),
            ..flags(&[
                "proto[ascii]:127.0.0.1:1",
                "proto[ascii]:127.0.0.2:2",
                "proto[binary]:127.0.0.2:3",
                "proto[any]:127.0.0.3:4",
            ])
        };
        assert_eq!(
            listening(&flags, None).unwrap()[4..],
            ["udp 127.0.0.1:9 Text", "udp 127.0.0.2:9", "udp 127.0.0.3:9"]
        );
    }

    #[test]
    fn cpservers_clients_have_the_same_words_for_tls() {
        let address = |typed: &str, tls| {
            let addresses = listening_with(&flags(&["127.0.0.1"]), Some(&[typed]), tls);
            addresses.map(|mut addresses| addresses.remove(1))
        };
        let tls = Some(Verify::IfPresent);
        for (typed, has) in [
            ("127.0.0.1:5", " IfPresent"),
            ("notls:127.0.0.1:5", ""),
            ("btls:127.0.0.1:5", " Nothing"),
            ("mtls:127.0.0.1:5", " Always"),
        ] {
            let expected = format!("127.0.0.1:5 CpServer{has}");
            assert_eq!(address(typed, tls), Ok(expected), "{typed}");
        }
        assert_eq!(
            address("127.0.0.1", None).unwrap(),
            "127.0.0.1:2117 CpServer"
        );
        let error = address("btls:127.0.0.1", None).unwrap_err();
        assert_eq!(error, "--cpserver btls:127.0.0.1: needs TLS (-Z)");
    }

    #[test]
    fn redis_clients_may_have_addresses_of_their_own() {
        let typed = [
            "127.0.0.1:1",
            "notls:proto[redis]:127.0.0.2",
            "mtls:proto[redis]:127.0.0.3:4",
        ];
        let tls = Some(Verify::Nothing);
        let own = [
            "127.0.0.1:1 Nothing",
            "127.0.0.2:6379 Redis",
            "127.0.0.3:4 Redis Always",
        ];
        assert_eq!(listening(&flags(&typed), tls).unwrap(), own);
        // The port of all addresses is for memcached's addresses, and datagrams are none of Redis'.
        let more = Flags {
            redis_port: Some(7),
            ..flags(&typed)
        };
        let addresses = listening(&more, tls).unwrap();
        assert_eq!(
            addresses[1..],
            ["127.0.0.2:7 Redis", own[2], "127.0.0.1:7 Redis Nothing"]
        );
        let datagrams = Flags {
            udp_port: Some(9),
            ..flags(&typed)
        };
        assert_eq!(
            listening(&datagrams, tls).unwrap()[3..],
            ["udp 127.0.0.1:9"]
        );
    }

    #[test]
    fn sockets_of_systemds_have_names() {
        let named = |count, names: &str| {
            let named = with_names(count, names).into_iter();
            named.map(|one| (one.fd, one.name)).collect::<Vec<_>>()
        };
        let of = |fd, name: &str| (fd, name.to_owned());
        let two = [of(3, "memcached"), of(4, "redis")];
        assert_eq!(named(2, "memcached:redis"), two);
        assert_eq!(named(2, ""), [of(3, ""), of(4, "")]);
        assert_eq!(named(1, "udp:more"), [of(3, "udp")]);
    }

    #[test]
    fn a_unix_socket_stands_alone() {
        let flags = Flags {
            unix_socket: Some("/tmp/s".into()),
            ..flags(&["127.0.0.1"])
        };
        let tls = Some(Verify::Nothing);
        assert_eq!(listening(&flags, tls).unwrap(), ["/tmp/s 700"]);
        let flags = Flags {
            unix_mask: Some(0o666),
            ..flags
        };
        assert_eq!(listening(&flags, None).unwrap(), ["/tmp/s 666"]);
    }
}
