//! An address of a server, as its statistics write it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An address at which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address with its real port.
    Tcp(SocketAddr),
    /// A UDP address with its real port.
    Udp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    /// As `stats conns` writes it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address @ SocketAddr::V4(_)) => write!(out, "tcp:{address}"),
            Address::Tcp(address @ SocketAddr::V6(_)) => write!(out, "tcp6:{address}"),
            Address::Udp(address @ SocketAddr::V4(_)) => write!(out, "udp:{address}"),
            Address::Udp(address @ SocketAddr::V6(_)) => write!(out, "udp6:{address}"),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// True if it is for datagrams.
    pub fn is_udp(&self) -> bool {
        matches!(self, Self::Udp(_))
    }
}
