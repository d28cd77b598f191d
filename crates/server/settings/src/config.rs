//! The settings of a server: checked values, whose fields and defaults come from the declarations in
//! [`settings`](crate); and what of them is more than a number or a word.

use std::fmt::{self, Display};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nuthatch_security::SettingsError;
use nuthatch_security::passwords::Passwords;
use nuthatch_security::tls::{NO_CA, Tls};

use crate::address::{self, AddressError, TypedAddress};

pub use crate::Config;
pub use crate::administration::Actions;
pub use crate::persistence::Persistence;
pub use nuthatch_security::tls::{TlsSettings, Verify};

/// memcached's port.
pub const PORT: u16 = 11211;

/// The version of the memcached whose protocol this is, and the whole answer to `version`: clients conclude from it what
/// a server supports. They read nothing but three numbers without harm. Behind a dash, `memcached` of Node takes the last
/// three numbers, or throws; behind a space, aiomcache, mcd and the `stats` of pymemcache raise. The server's own version
/// is the statistic `nuthatch_version`.
pub const MEMCACHED_VERSION: &str = "1.6.45";

/// Finds the files that have the certificates now: the program that read the settings can read them again. By default
/// the files are the same as before.
#[derive(Clone)]
pub struct NewestTls(Arc<dyn Fn() -> Option<TlsSettings> + Send + Sync>);

impl NewestTls {
    /// `find` is called on the thread that reads certificates for clients. It returns `None` if no change is known.
    pub fn new(find: impl Fn() -> Option<TlsSettings> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// Calls the function.
    pub fn find(&self) -> Option<TlsSettings> {
        (self.0)()
    }
}

impl Default for NewestTls {
    fn default() -> Self {
        Self::new(|| None)
    }
}

impl fmt::Debug for NewestTls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("NewestTls")
    }
}

/// Who changes a setting of a running server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Who runs it.
    Operator,
    /// A client, by a command.
    Client,
}

/// A function that is called with each new verbosity: the program that set up the log can change its level. By default
/// it does nothing.
#[derive(Clone)]
pub struct OnVerbosity(Arc<dyn Fn(u32, By) + Send + Sync>);

impl OnVerbosity {
    /// `notify` is called with each new level, for a client on the thread of the worker that got the command.
    pub fn new(notify: impl Fn(u32, By) + Send + Sync + 'static) -> Self {
        Self(Arc::new(notify))
    }

    /// Calls the function.
    pub fn notify(&self, level: u32, by: By) {
        (self.0)(level, by);
    }
}

impl Default for OnVerbosity {
    fn default() -> Self {
        Self::new(|_, _| {})
    }
}

impl fmt::Debug for OnVerbosity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("OnVerbosity")
    }
}

impl Config {
    /// Errors: settings contradict each other.
    pub fn check(&self) -> Result<(), SettingsError> {
        let contradiction = |words| Err(SettingsError::Contradiction(words));
        let listeners = &self.listeners;
        if listeners.is_empty() {
            return contradiction("a server must listen somewhere");
        }
        let is_cpserver = |listen: &Listen| listen.protocol.is_cpserver();
        if self.auth_file.is_some() && listeners.iter().any(is_cpserver) {
            return contradiction("-Y: CPServer's protocol has no words for a password");
        }
        let udp: Vec<&Listen> = listeners
            .iter()
            .filter(|listen| listen.address.is_udp())
            .collect();
        if !udp.is_empty() && self.auth_file.is_some() {
            return contradiction("-U: a datagram has no room for a password (-Y)");
        }
        if !udp.is_empty() && self.tls.is_some() {
            return contradiction(
                "-U: datagrams are not encrypted; another server without -Z can take them",
            );
        }
        let is_memcached = |listen: &&Listen| listen.protocol.is_memcached();
        if !udp.iter().all(is_memcached) {
            return contradiction("-U: datagrams are for memcached's protocols");
        }
        if udp.len() == listeners.len() {
            return contradiction("a server must listen for connections somewhere");
        }
        let asked = self.asked_of_clients();
        let Some(tls) = &self.tls else {
            return match asked.is_empty() {
                true => Ok(()),
                false => contradiction("TLS needs a certificate"),
            };
        };
        if asked.contains(&Verify::Always) && tls.ca_cert.is_none() {
            return contradiction(NO_CA);
        }
        Ok(())
    }

    /// How the listeners with TLS verify their clients.
    pub fn asked_of_clients(&self) -> Vec<Verify> {
        self.listeners
            .iter()
            .filter_map(|listen| listen.tls)
            .collect()
    }

    /// Reads certificates and key, unless that is done. A start does this itself. A process that gives its rights up
    /// does it before: often only root may read the key.
    pub fn read_certificates(&mut self) -> Result<(), SettingsError> {
        if self.certificates.is_none()
            && let Some(tls) = &self.tls
        {
            let read = Tls::read(tls, self.asked_of_clients())?;
            self.certificates = Some(Arc::new(read));
        }
        Ok(())
    }

    /// Reads the file of passwords, unless that is done. A start does this itself, or finds what a check has read: a
    /// pipe that the process was given can be read only once.
    pub fn read_passwords(&mut self) -> Result<(), SettingsError> {
        if self.passwords.is_none()
            && let Some(path) = &self.auth_file
        {
            self.passwords = Some(Arc::new(Passwords::read(path)?));
        }
        Ok(())
    }

    /// Checks that settings do not contradict each other, and reads the files that a server reads at its start. Errors:
    /// the same as at a start.
    pub fn check_files(&mut self) -> Result<(), SettingsError> {
        self.check()?;
        self.read_certificates()?;
        self.read_passwords()
    }
}

/// An address to listen at, and the protocol of its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address.
    pub address: ListenAddress,
    /// The protocol.
    pub protocol: Protocol,
    /// TLS, and how clients are verified, if it is used. A unix socket never has TLS.
    pub tls: Option<Verify>,
    /// What was typed for this address and perhaps others, of which one is enough: a name, or `*`. `None` for an
    /// address that was typed itself.
    pub name: Option<Arc<str>>,
}

impl Listen {
    /// A TCP address for memcached's clients; port 0 lets the system pick one.
    pub fn tcp(address: impl Into<SocketAddr>) -> Self {
        Self {
            address: ListenAddress::Tcp(address.into()),
            protocol: Protocol::Memcached,
            tls: None,
            name: None,
        }
    }

    /// Every address, at memcached's port: the listeners of a server of which nothing is said.
    pub(crate) fn everywhere_alone() -> Vec<Self> {
        let addresses: [SocketAddr; 2] = [
            (Ipv4Addr::UNSPECIFIED, PORT).into(),
            (Ipv6Addr::UNSPECIFIED, PORT).into(),
        ];
        addresses.into_iter().map(Self::tcp).collect()
    }

    /// All addresses of this machine, for memcached's clients.
    pub fn everywhere(port: u16) -> Vec<Self> {
        let name: Arc<str> = "all addresses".into();
        let all = address::everywhere(port).into_iter();
        all.map(|address| Self {
            name: Some(Arc::clone(&name)),
            ..Self::tcp(address)
        })
        .collect()
    }

    /// The addresses of what was typed, for memcached's clients. `port` is for one that was typed without.
    pub fn typed(typed: &str, port: u16) -> Result<Vec<Self>, AddressError> {
        let address = TypedAddress::parse(typed)?;
        let name: Option<Arc<str>> = address.name().map(Into::into);
        let addresses = address.addresses(port)?.into_iter();
        let named = addresses.map(|address| Self {
            name: name.clone(),
            ..Self::tcp(address)
        });
        Ok(named.collect())
    }

    /// A unix socket for memcached's clients, made with these permission bits.
    pub fn unix(path: impl Into<PathBuf>, mode: u32) -> Self {
        Self {
            address: ListenAddress::Unix {
                path: path.into(),
                mode,
            },
            protocol: Protocol::Memcached,
            tls: None,
            name: None,
        }
    }

    /// The same address for the clients of another protocol.
    pub fn of(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    /// Adds those that are not there yet: two names may have the same address.
    pub fn add_new(found: &mut Vec<Self>, more: impl IntoIterator<Item = Self>) {
        for listen in more {
            if !found.iter().any(|other| other.is_same_as(&listen)) {
                found.push(listen);
            }
        }
    }

    /// True if both are the same address for the same clients.
    fn is_same_as(&self, other: &Self) -> bool {
        let clients = |listen: &Self| (listen.protocol, listen.tls);
        self.address == other.address && clients(self) == clients(other)
    }

    /// The path of a unix socket.
    pub fn path(&self) -> Option<&Path> {
        match &self.address {
            ListenAddress::Unix { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The same with TLS, which needs [`Config::tls`].
    pub fn with_tls(self, verify: Verify) -> Self {
        Self {
            tls: Some(verify),
            ..self
        }
    }
}

/// The protocol of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// memcached's: the first byte selects binary, or text and meta (`-B auto`).
    Memcached,
    /// memcached's text and meta commands alone (`-B ascii`).
    Text,
    /// memcached's binary protocol alone (`-B binary`).
    Binary,
    /// CPServer's binary requests (CPHash, section 4).
    CpServer,
    /// Redis' requests, RESP2 and RESP3 (`--redis-port`).
    Redis,
    /// memcached's or Redis': the first byte selects (`-B any`).
    Any,
}

impl Protocol {
    /// The name of its sockets: systemd's FileDescriptorName, and in a handover.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memcached | Self::Text | Self::Binary | Self::Any => "memcached",
            Self::CpServer => "cpserver",
            Self::Redis => "redis",
        }
    }

    /// True if it is one of memcached's.
    pub fn is_memcached(self) -> bool {
        matches!(
            self,
            Self::Memcached | Self::Text | Self::Binary | Self::Any
        )
    }

    /// True if it is CPServer's.
    pub fn is_cpserver(self) -> bool {
        self == Self::CpServer
    }

    /// True if it is Redis' alone.
    pub fn is_redis(self) -> bool {
        self == Self::Redis
    }
}

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP address; port 0 lets the system pick one.
    Tcp(SocketAddr),
    /// An address to which clients send datagrams (`-U`), for memcached's protocols, without TLS and passwords.
    Udp(SocketAddr),
    /// A unix socket, made with these permission bits (`-s`, `-a`).
    Unix {
        /// Its path.
        path: PathBuf,
        /// Permission bits, as in chmod: memcached's default is 0o700.
        mode: u32,
    },
    /// The descriptor of a listening socket that the parent process has bound (systemd's sockets). The socket stays
    /// when the server ends, and clients that connect meanwhile wait for the next server.
    Inherited(i32),
    /// The same for datagrams.
    InheritedUdp(i32),
}

impl ListenAddress {
    /// True if two sockets cannot have these addresses at once: they are the same, or one is every address and the other
    /// an address of the same family and port. Ports that the system chooses differ.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (one, other) = match (self, other) {
            (Self::Tcp(one), Self::Tcp(other)) | (Self::Udp(one), Self::Udp(other)) => (one, other),
            _ => return self == other,
        };
        one.port() != 0
            && one.port() == other.port()
            && one.is_ipv4() == other.is_ipv4()
            && (one == other || one.ip().is_unspecified() || other.ip().is_unspecified())
    }

    /// True if it is for datagrams.
    pub fn is_udp(&self) -> bool {
        matches!(self, Self::Udp(_) | Self::InheritedUdp(_))
    }

    /// A listener at this address for the clients of a protocol.
    pub fn of(self, protocol: Protocol) -> Listen {
        Listen {
            address: self,
            protocol,
            tls: None,
            name: None,
        }
    }
}

impl Display for ListenAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(out, "{address}"),
            Self::Udp(address) => write!(out, "UDP {address}"),
            Self::Unix { path, .. } => write!(out, "{}", path.display()),
            Self::Inherited(fd) | Self::InheritedUdp(fd) => write!(out, "descriptor {fd}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_overlaps_with_each_of_its_family() {
        for (one, other, do_overlap) in [
            ("127.0.0.1:5", "127.0.0.1:5", true),
            ("127.0.0.1:5", "127.0.0.1:6", false),
            ("127.0.0.1:5", "127.0.0.2:5", false),
            ("0.0.0.0:5", "127.0.0.1:5", true),
            ("[::]:5", "[::1]:5", true),
            ("[fe80::1%1]:5", "[fe80::1%2]:5", false),
            // A socket of IPv6 takes no clients of IPv4.
            ("[::]:5", "0.0.0.0:5", false),
            ("0.0.0.0:0", "0.0.0.0:0", false),
        ] {
            for address in [ListenAddress::Tcp, ListenAddress::Udp] {
                let addresses = [one, other].map(|text| address(text.parse().unwrap()));
                assert_eq!(
                    addresses[0].overlaps(&addresses[1]),
                    do_overlap,
                    "{one} {other}"
                );
                assert_eq!(
                    addresses[1].overlaps(&addresses[0]),
                    do_overlap,
                    "{other} {one}"
                );
            }
            let [tcp, udp] = [ListenAddress::Tcp, ListenAddress::Udp];
            assert!(!tcp(one.parse().unwrap()).overlaps(&udp(one.parse().unwrap())));
        }
    }
}
