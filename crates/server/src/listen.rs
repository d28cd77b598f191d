//! Listening sockets: bound, announced, and removed again.

use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use mio::event::Source;
use mio::{Interest, Registry, Token};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::config::Listen;
use crate::stream::Stream;

/// Where a server can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address with its real port.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    /// As `stats conns` writes it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address @ SocketAddr::V4(_)) => write!(out, "tcp:{address}"),
            Address::Tcp(address @ SocketAddr::V6(_)) => write!(out, "tcp6:{address}"),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// What the clients of a listener speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// memcached's text and meta commands.
    Memcached,
    /// CPServer's binary requests.
    CpServer,
}

/// A bound, listening socket.
pub(crate) struct Listener {
    socket: ListenerSocket,
    address: Address,
    protocol: Protocol,
}

enum ListenerSocket {
    Tcp(mio::net::TcpListener),
    Unix(mio::net::UnixListener),
}

impl Listener {
    /// Binds and listens; errors name the address.
    pub(crate) fn bind(place: &Listen, protocol: Protocol, backlog: u32) -> io::Result<Self> {
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        let bound = match place {
            Listen::Tcp(address) => bind_tcp(*address, backlog),
            Listen::Unix { path, mode } => bind_unix(path, *mode, backlog),
        };
        let named = bound.map_err(|error| {
            let place = match place {
                Listen::Tcp(address) => address.to_string(),
                Listen::Unix { path, .. } => path.display().to_string(),
            };
            let kind = match error.raw_os_error() {
                Some(libc::EAFNOSUPPORT) => io::ErrorKind::Unsupported,
                _ => error.kind(),
            };
            io::Error::new(kind, format!("cannot listen at {place}: {error}"))
        });
        named.map(|(socket, address)| Self {
            socket,
            address,
            protocol,
        })
    }

    /// True if `error` says that the machine has no IPv6, and `place` is every IPv6 address: then
    /// nobody misses it who can listen elsewhere.
    pub(crate) fn is_dispensable(place: &Listen, error: &io::Error) -> bool {
        let without_ipv6 = matches!(
            error.kind(),
            io::ErrorKind::Unsupported | io::ErrorKind::AddrNotAvailable
        );
        let every_ipv6 = matches!(
            place,
            Listen::Tcp(SocketAddr::V6(address)) if address.ip().is_unspecified()
        );
        without_ipv6 && every_ipv6
    }

    /// What its clients speak.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Where clients find it.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The next connection, not blocking, with the options of a cache's socket set.
    pub(crate) fn accept(&self) -> io::Result<(Stream, Option<SocketAddr>)> {
        match &self.socket {
            ListenerSocket::Tcp(socket) => {
                let (stream, peer) = socket.accept()?;
                // A connection that died meanwhile fails here and is noticed at its first read.
                let _ = stream.set_nodelay(true);
                let _ = socket2::SockRef::from(&stream).set_keepalive(true);
                Ok((Stream::Tcp(stream), Some(peer)))
            }
            ListenerSocket::Unix(socket) => {
                let (stream, _) = socket.accept()?;
                Ok((Stream::Unix(stream), None))
            }
        }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let source: &mut dyn Source = match &mut self.socket {
            ListenerSocket::Tcp(socket) => socket,
            ListenerSocket::Unix(socket) => socket,
        };
        registry.register(source, token, Interest::READABLE)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            // Nobody can connect to it any more; a leftover would only confuse.
            let _ = fs::remove_file(path);
        }
    }
}

fn bind_tcp(address: SocketAddr, backlog: i32) -> io::Result<(ListenerSocket, Address)> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(socket2::Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if domain == Domain::IPV6 {
        // So that the same port can be bound for IPv4 beside it.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(backlog)?;
    let socket = mio::net::TcpListener::from_std(socket.into());
    let address = Address::Tcp(socket.local_addr()?);
    Ok((ListenerSocket::Tcp(socket), address))
}

fn bind_unix(path: &Path, mode: u32, backlog: i32) -> io::Result<(ListenerSocket, Address)> {
    // A socket left by a server that was killed must not keep the next from starting.
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) {
        fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Before it listens nobody can connect, so there is no moment with looser permissions.
    fs::set_permissions(path, Permissions::from_mode(mode & 0o777))?;
    socket.listen(backlog)?;
    let socket = mio::net::UnixListener::from_std(socket.into());
    Ok((ListenerSocket::Unix(socket), Address::Unix(path.to_owned())))
}

/// Tells the bound TCP ports by a file, as memcached does for MEMCACHED_PORT_FILENAME: it appears
/// complete or not at all.
pub(crate) fn write_port_file(path: &Path, addresses: &[Address]) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".lck");
    let unfinished = PathBuf::from(unfinished);
    let mut file = fs::File::create(&unfinished)?;
    for address in addresses {
        match address {
            Address::Tcp(SocketAddr::V4(address)) => writeln!(file, "TCP INET: {}", address.port()),
            Address::Tcp(SocketAddr::V6(address)) => {
                writeln!(file, "TCP INET6: {}", address.port())
            }
            Address::Unix(_) => Ok(()),
        }?;
    }
    file.sync_all()?;
    fs::rename(&unfinished, path)
}
