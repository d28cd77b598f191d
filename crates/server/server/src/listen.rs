//! Listening sockets: how the server binds, takes over, registers and removes them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::Path;

use mio::event::Source;
use mio::{Interest, Registry, Token};
use nix::sys::socket::{getsockopt, sockopt};
use nuthatch_settings::config::{Listen, ListenAddress, Protocol, Verify};
use nuthatch_state::stream::Socket as Connected;
use nuthatch_state::telemetry::Address;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::handover::Named;
use crate::handover::taking::Successor;
use crate::unix_path::{Replaced, UnixPath};

/// The error with the address that it is about, and what was typed for it.
pub(crate) fn named(address: &ListenAddress, typed: Option<&str>, error: &io::Error) -> io::Error {
    let typed = typed.map_or(String::new(), |typed| format!(" ({typed})"));
    io::Error::new(
        kind(error),
        format!("cannot listen at {address}{typed}: {error}"),
    )
}

/// The kind of an error of binding, where a family that the machine has not is a kind too.
fn kind(error: &io::Error) -> io::ErrorKind {
    match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT) => io::ErrorKind::Unsupported,
        _ => error.kind(),
    }
}

/// Binds each address, in order. A server does without an address that is in use, or that this machine has not, if it
/// listens for the same clients at another address of what was typed; memcached does without the first kind. It does
/// without every IPv6 address on a machine without IPv6, if it listens anywhere. Returns what is bound, and the errors
/// of the rest.
pub fn bind_each<'c, T>(
    listeners: impl Iterator<Item = &'c Listen>,
    mut bind: impl FnMut(&'c Listen) -> io::Result<T>,
) -> io::Result<(Vec<T>, Vec<io::Error>)> {
    let (mut addresses, mut bound, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for listen in listeners {
        match bind(listen) {
            Ok(socket) => {
                addresses.push(listen);
                bound.push(socket);
            }
            Err(error) => failed.push((listen, error)),
        }
    }
    let mut without = Vec::new();
    for (listen, error) in failed {
        let is_other =
            |other: &&Listen| other.name == listen.name && other.protocol == listen.protocol;
        let has_other = match &listen.name {
            Some(_) => is_absent(&error) && addresses.iter().any(is_other),
            None => {
                is_every_ipv6(&listen.address) && has_no_address(&error) && !addresses.is_empty()
            }
        };
        if !has_other {
            return Err(error);
        }
        without.push(error);
    }
    Ok((bound, without))
}

/// Binds each address, and warns of those that the server does without.
pub(crate) fn bind_and_warn<'c, T>(
    listeners: impl Iterator<Item = &'c Listen>,
    bind: impl FnMut(&'c Listen) -> io::Result<T>,
) -> io::Result<Vec<T>> {
    let (bound, without) = bind_each(listeners, bind)?;
    for error in without {
        tracing::warn!(%error, "going on without");
    }
    Ok(bound)
}

/// True if the error is of this address alone.
fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse || has_no_address(error)
}

/// True if this machine has no such address, or no address of its family.
fn has_no_address(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported | io::ErrorKind::AddrNotAvailable
    )
}

fn is_every_ipv6(address: &ListenAddress) -> bool {
    matches!(
        address,
        ListenAddress::Tcp(SocketAddr::V6(address)) | ListenAddress::Udp(SocketAddr::V6(address)) if address.ip().is_unspecified()
    )
}

/// A bound, listening socket.
pub(crate) struct Listener {
    socket: ListenerSocket,
    address: Address,
    /// The file to remove at the end. `None` for a socket that another process bound and keeps.
    file: Option<UnixPath>,
    /// The socket that had this path before, until this server serves.
    replaced: Option<Replaced>,
    protocol: Protocol,
    tls: Option<Verify>,
}

enum ListenerSocket {
    Tcp(mio::net::TcpListener),
    Unix(mio::net::UnixListener),
}

impl Listener {
    /// Binds and listens; errors name the address.
    pub(crate) fn bind(
        listen: &Listen,
        backlog: u32,
        successor: Option<&mut Successor>,
    ) -> io::Result<Self> {
        let Listen {
            address,
            protocol,
            tls,
            name,
        } = listen;
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        let takes_over = successor.is_some();
        let given = successor.and_then(|successor| match address {
            ListenAddress::Tcp(address) => {
                let socket = successor.tcp(protocol.name(), *address)?;
                Some((socket, None))
            }
            ListenAddress::Unix { path, .. } => {
                let (socket, file) = successor.unix(path)?;
                Some((socket, Some(file)))
            }
            _ => None,
        });
        let mut replaced = None;
        let bound = match (given, address) {
            (Some((socket, file)), _) => take(socket, backlog).map(|bound| (bound, file)),
            (None, ListenAddress::Tcp(address)) => without_file(bind_tcp(*address, backlog)),
            (None, ListenAddress::Unix { path, mode }) => Replaced::make_room(path, takes_over)
                .and_then(|moved| {
                    replaced = moved;
                    bind_unix(path, *mode, backlog)
                }),
            (None, ListenAddress::Inherited(fd)) => without_file(inherit(*fd).and_then(adopt)),
            (None, ListenAddress::Udp(_) | ListenAddress::InheritedUdp(_)) => {
                Err(io::Error::other("datagrams come without connections"))
            }
        };
        bound
            .map_err(|error| named(address, name.as_deref(), &error))
            .map(|((socket, address), file)| Self {
                socket,
                file,
                replaced,
                protocol: *protocol,
                // No one can eavesdrop on a unix socket, also if the process inherited it.
                tls: tls.filter(|_| !matches!(address, Address::Unix(_))),
                address,
            })
    }

    /// The protocol of its clients.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// How it verifies its clients, if they use TLS.
    pub(crate) fn tls(&self) -> Option<Verify> {
        self.tls
    }

    /// Takes the socket that had this path before. Dropping it puts the socket back, unless it is given up.
    pub(crate) fn take_replaced(&mut self) -> Option<Replaced> {
        self.replaced.take()
    }

    /// Where clients find it.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Accepts the next connection as a non-blocking socket, with the options set that a cache's socket needs.
    pub(crate) fn accept(&self) -> io::Result<(Connected, Option<SocketAddr>)> {
        match &self.socket {
            ListenerSocket::Tcp(socket) => {
                let (stream, peer) = socket.accept()?;
                // If the connection broke meanwhile, this fails, and its first read reports that.
                let _ = stream.set_nodelay(true);
                let _ = socket2::SockRef::from(&stream).set_keepalive(true);
                Ok((Connected::Tcp(stream), Some(peer)))
            }
            ListenerSocket::Unix(socket) => {
                let (stream, _) = socket.accept()?;
                Ok((Connected::Unix(stream), None))
            }
        }
    }

    /// Its socket, for another process.
    pub(crate) fn copy(&self) -> io::Result<Named> {
        let socket = match &self.socket {
            ListenerSocket::Tcp(socket) => socket.as_fd(),
            ListenerSocket::Unix(socket) => socket.as_fd(),
        };
        Ok(Named {
            name: self.protocol.name(),
            socket: socket.try_clone_to_owned()?,
        })
    }

    /// Closes the socket in this process only: another process has it, and the file stays.
    pub(crate) fn leave(mut self) {
        self.file = None;
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
        if let Some(file) = &self.file {
            file.remove();
        }
    }
}

/// A socket that listens, and where.
type Bound = (ListenerSocket, Address);

fn without_file(bound: io::Result<Bound>) -> io::Result<(Bound, Option<UnixPath>)> {
    bound.map(|bound| (bound, None))
}

fn bind_tcp(address: SocketAddr, backlog: i32) -> io::Result<Bound> {
    let socket = mio::net::TcpListener::from_std(listen_at(address, backlog)?.into());
    let address = Address::Tcp(socket.local_addr()?);
    Ok((ListenerSocket::Tcp(socket), address))
}

/// A new socket that listens at a TCP address.
pub(crate) fn listen_at(address: SocketAddr, backlog: i32) -> io::Result<Socket> {
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
    Ok(socket)
}

fn bind_unix(path: &Path, mode: u32, backlog: i32) -> io::Result<(Bound, Option<UnixPath>)> {
    let (socket, file) = UnixPath::listen(path, mode, backlog)?;
    let socket = mio::net::UnixListener::from_std(socket.into());
    let address = Address::Unix(path.to_owned());
    Ok(((ListenerSocket::Unix(socket), address), Some(file)))
}

/// Takes a socket at which another process listened.
fn take(socket: Socket, backlog: i32) -> io::Result<Bound> {
    socket.listen(backlog)?;
    adopt(socket)
}

/// Takes a socket that was bound before the process began.
pub(crate) fn inherit(fd: i32) -> io::Result<Socket> {
    // SAFETY: fcntl with F_GETFD touches no memory.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, as was just checked, and the process that started this one left it to this server
    // alone: no other part of this process has its number.
    let socket = Socket::from(unsafe { OwnedFd::from_raw_fd(fd) });
    socket.set_cloexec(true)?;
    Ok(socket)
}

/// Takes an inherited socket that listens by TCP.
pub(crate) fn inherit_tcp(fd: i32) -> io::Result<mio::net::TcpListener> {
    match adopt(inherit(fd)?)? {
        (ListenerSocket::Tcp(socket), _) => Ok(socket),
        (ListenerSocket::Unix(_), _) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a unix socket, and this is served by TCP",
        )),
    }
}

/// Listens by a socket that another process has bound.
fn adopt(socket: Socket) -> io::Result<Bound> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
    if !getsockopt(&socket, sockopt::AcceptConn)? {
        return Err(wrong("not a listening socket"));
    }
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    if let Some(address) = address.as_socket() {
        let socket = mio::net::TcpListener::from_std(socket.into());
        return Ok((ListenerSocket::Tcp(socket), Address::Tcp(address)));
    }
    let Some(path) = address.as_pathname().map(Path::to_owned) else {
        return Err(wrong("neither TCP nor a unix socket with a path"));
    };
    let socket = mio::net::UnixListener::from_std(socket.into());
    Ok((ListenerSocket::Unix(socket), Address::Unix(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied, Unsupported};

    /// Binds these addresses, of which those with `error` fail. Returns how many are bound.
    fn bound(listeners: &[(&str, Option<&str>, Option<io::ErrorKind>)]) -> io::Result<usize> {
        let typed: Vec<Listen> = listeners
            .iter()
            .map(|(address, name, _)| Listen {
                name: name.map(Into::into),
                ..Listen::tcp(address.parse::<SocketAddr>().unwrap())
            })
            .collect();
        let mut errors = listeners.iter().map(|(_, _, error)| *error);
        let bind = |_: &Listen| match errors.next().flatten() {
            Some(kind) => Err(io::Error::from(kind)),
            None => Ok(()),
        };
        bind_each(typed.iter(), bind).map(|(bound, _)| bound.len())
    }

    #[test]
    fn one_address_of_a_name_is_enough() {
        let name = Some("localhost");
        for kind in [AddrInUse, AddrNotAvailable, Unsupported] {
            // The first or the last.
            let first = [("[::1]:5", name, Some(kind)), ("127.0.0.1:5", name, None)];
            assert_eq!(bound(&first).unwrap(), 1);
            let last = [("127.0.0.1:5", name, None), ("[::1]:5", name, Some(kind))];
            assert_eq!(bound(&last).unwrap(), 1);
            // Another name, and an address that was typed itself.
            let other = [
                ("[::1]:5", name, Some(kind)),
                ("127.0.0.1:5", Some("b"), None),
            ];
            assert_eq!(bound(&other).unwrap_err().kind(), kind);
            let typed = [("[::1]:5", None, Some(kind)), ("127.0.0.1:5", None, None)];
            assert_eq!(bound(&typed).unwrap_err().kind(), kind);
            let none = [
                ("[::1]:5", name, Some(kind)),
                ("127.0.0.1:5", name, Some(kind)),
            ];
            assert_eq!(bound(&none).unwrap_err().kind(), kind);
        }
        let denied = [
            ("[::1]:5", name, Some(PermissionDenied)),
            ("127.0.0.1:5", name, None),
        ];
        assert_eq!(bound(&denied).unwrap_err().kind(), PermissionDenied);
    }

    #[test]
    fn what_overlaps_cannot_be_bound_together() {
        const PORTS_TRIED: usize = 20;
        for (one, other) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1", "127.0.0.2"),
            ("0.0.0.0", "127.0.0.1"),
            ("127.0.0.1", "0.0.0.0"),
            ("0.0.0.0", "::"),
            ("::", "0.0.0.0"),
            ("::", "::1"),
        ] {
            let at = |host: &str, port| SocketAddr::new(host.parse().unwrap(), port);
            let Ok(probe) = listen_at(at(one, 0), 1) else {
                continue; // This machine has no IPv6.
            };
            drop(probe);
            let (mut expected, mut both) = (false, false);
            // Somebody else may have a port at the other address.
            for _ in 0..PORTS_TRIED {
                let first = listen_at(at(one, 0), 1).unwrap();
                let port = first.local_addr().unwrap().as_socket().unwrap().port();
                let second = at(other, port);
                let addresses = [at(one, port), second].map(ListenAddress::Tcp);
                expected = !addresses[0].overlaps(&addresses[1]);
                both |= listen_at(second, 1).is_ok();
            }
            assert_eq!(both, expected, "{one} {other}");
        }
    }

    #[test]
    fn every_ipv6_address_may_be_missing_on_a_machine_without_ipv6() {
        let without = |kind| [("[::]:5", None, Some(kind)), ("0.0.0.0:5", None, None)];
        assert_eq!(bound(&without(Unsupported)).unwrap(), 1);
        assert_eq!(bound(&without(AddrInUse)).unwrap_err().kind(), AddrInUse);
        assert!(bound(&without(Unsupported)[..1]).is_err());
    }
}
