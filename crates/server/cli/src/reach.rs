//! How the server that a file of settings starts is reached from the same machine: for `nuthatch ping`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use nuthatch_server::config::{Listen, ListenAddress, Protocol};

use crate::engine::EngineFlags;
use crate::file;
use crate::settings::Settings;

/// One of the addresses of a server, and what is spoken there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// ADDRESS:PORT, or the path of a unix socket.
    pub server: String,
    /// The protocol.
    pub protocol: Protocol,
    /// Under TLS.
    pub tls: bool,
}

impl Reach {
    /// The way to the server of this file: the first of its addresses that demands least of its clients. Errors: the file is
    /// no valid one, or leaves the port to the system.
    pub fn of_file<E: EngineFlags>(path: &Path) -> Result<Self, String> {
        let (flags, own) = file::read::<E>(path)?;
        let settings = Settings::check(&flags.without_empty(), &own, None)?;
        let listeners = settings.server.listeners.iter();
        // Without TLS before TLS, and that before a client's certificate; of equals the first.
        let ways = listeners.filter(|listen| !listen.address.is_udp());
        let way = ways.min_by_key(|listen| listen.tls);
        way.and_then(Self::of)
            .ok_or_else(|| format!("{}: the port is one of the system's choice", path.display()))
    }

    fn of(listen: &Listen) -> Option<Self> {
        let server = match &listen.address {
            ListenAddress::Tcp(address) if address.port() > 0 => {
                let mut address = *address;
                if address.ip().is_unspecified() {
                    address.set_ip(match address.ip() {
                        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
                    });
                }
                address.to_string()
            }
            ListenAddress::Unix { path, .. } => path.display().to_string(),
            _ => return None,
        };
        Some(Self {
            server,
            protocol: listen.protocol,
            tls: listen.tls.is_some() && !matches!(listen.address, ListenAddress::Unix { .. }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuckoo::DefaultEngine;

    fn reach(text: &str) -> Result<Reach, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nuthatch.toml");
        std::fs::write(&path, text).unwrap();
        Reach::of_file::<DefaultEngine>(&path)
    }

    fn way(server: &str, protocol: Protocol, tls: bool) -> Result<Reach, String> {
        Ok(Reach {
            server: server.to_owned(),
            protocol,
            tls,
        })
    }

    #[test]
    fn the_way_that_demands_least_is_chosen() {
        let tls = "enable-ssl = true\nextended = \"ssl_chain_cert=c,ssl_key=k,ssl_ca_cert=a,ssl_verify_mode=2\"\n";
        for (text, expected) in [
            ("", way("127.0.0.1:11211", Protocol::Memcached, false)),
            (
                "listen = \"[::]\"\nport = 5\n",
                way("[::1]:5", Protocol::Memcached, false),
            ),
            (
                "listen = \"10.1.2.3:7\"\nprotocol = \"binary\"\nudp-port = 7",
                way("10.1.2.3:7", Protocol::Binary, false),
            ),
            (
                "listen = \"proto[redis]:127.0.0.1\"",
                way("127.0.0.1:6379", Protocol::Redis, false),
            ),
            (
                "unix-socket = \"/run/s\"",
                way("/run/s", Protocol::Memcached, false),
            ),
            (tls, way("127.0.0.1:11211", Protocol::Memcached, true)),
            (
                &format!("{tls}listen = [\"10.0.0.1\", \"btls:10.0.0.1:2\", \"notls:10.0.0.1:3\"]"),
                way("10.0.0.1:3", Protocol::Memcached, false),
            ),
        ] {
            assert_eq!(reach(text), expected, "{text}");
        }
        assert!(reach("port = 0").unwrap_err().contains("system's choice"));
        assert!(reach("no-such = 1").unwrap_err().contains("no-such"));
    }
}
