//! A connection's socket, TCP, unix or a ring in shared memory, with TLS or without, behind one interface.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nuthatch_ring::Served;
use nuthatch_security::tls::Session;

/// A connected, non-blocking socket.
pub struct Stream {
    socket: Socket,
    tls: Option<Session>,
}

/// The socket of the operating system.
pub enum Socket {
    /// TCP.
    Tcp(mio::net::TcpStream),
    /// A unix socket.
    Unix(mio::net::UnixStream),
    /// A ring pair in memory that the client has mapped.
    Ring(Box<Served>),
}

impl Socket {
    /// The address of this side. `None` for a unix socket.
    pub fn local(&self) -> Option<SocketAddr> {
        match self {
            Socket::Tcp(stream) => stream.local_addr().ok(),
            Socket::Unix(_) | Socket::Ring(_) => None,
        }
    }
}

impl Stream {
    /// A connected socket, with a session of TLS or without.
    pub fn new(socket: Socket, tls: Option<Session>) -> Self {
        Self { socket, tls }
    }

    /// Registers the socket with the poll for input, under this token.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE;
        match &mut self.socket {
            Socket::Tcp(stream) => registry.register(stream, token, interest),
            Socket::Unix(stream) => registry.register(stream, token, interest),
            Socket::Ring(ring) => {
                let bell = ring.end.bell().as_raw_fd();
                registry.register(&mut SourceFd(&bell), token, interest)
            }
        }
    }

    /// Makes the poll watch for room for output, or stop watching. Only a connection whose output is blocked does this:
    /// a unix socket would otherwise wake the worker for every reply that its peer reads.
    pub fn watch_writable(
        &mut self,
        registry: &Registry,
        token: Token,
        watch: bool,
    ) -> io::Result<()> {
        let interest = if watch {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        match &mut self.socket {
            Socket::Tcp(stream) => registry.reregister(stream, token, interest),
            Socket::Unix(stream) => registry.reregister(stream, token, interest),
            Socket::Ring(ring) => {
                ring.wants_room = watch;
                Ok(())
            }
        }
    }

    /// Shuts down the sending side.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.finish(&mut self.socket)?;
        }
        match &self.socket {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
            Socket::Ring(ring) => ring.end.finish(),
        }
    }

    /// Sends the end of the stream within TLS only, if the socket takes it: so a client can tell an end from a cut
    /// connection.
    pub fn say_end(&mut self) {
        if let Some(tls) = &mut self.tls {
            // The connection is about to be closed in any case.
            let _ = tls.finish(&mut self.socket);
        }
    }

    /// True if its client is on this machine for certain.
    pub fn is_local(&self) -> bool {
        !matches!(self.socket, Socket::Tcp(_))
    }

    /// The ring, if it is one.
    #[inline]
    pub fn ring(&mut self) -> Option<&mut Served> {
        match &mut self.socket {
            Socket::Ring(ring) => Some(ring),
            Socket::Tcp(_) | Socket::Unix(_) => None,
        }
    }

    /// True if it can carry requests: there is no TLS, or its handshake is done.
    pub fn is_ready(&self) -> bool {
        self.tls.as_ref().is_none_or(Session::is_ready)
    }

    /// True if its client has begun a new session of TLS.
    pub fn has_new_session(&self) -> bool {
        self.tls.as_ref().is_some_and(Session::is_new)
    }

    /// True if bytes that TLS has accepted still wait for the socket.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(Session::has_unsent)
    }

    /// Sends bytes that TLS has accepted. False if the socket does not take all of them.
    #[inline]
    pub fn send_rest(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => tls.send(&mut self.socket),
        }
    }

    /// True if a read that returned `count` bytes of `room` emptied the socket: later bytes make an event.
    #[inline]
    pub fn was_emptied(&self, count: usize, room: usize) -> bool {
        match &self.tls {
            None => count < room,
            Some(tls) => tls.is_dry(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Ring(ring) => ring.end.bell(),
        }
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(room),
            Some(tls) => tls.read(&mut self.socket, room),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write(bytes),
            Some(tls) => tls.write(&mut self.socket, &[IoSlice::new(bytes)]),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write_vectored(pieces),
            Some(tls) => tls.write(&mut self.socket, pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(room),
            Socket::Unix(stream) => stream.read(room),
            Socket::Ring(ring) => ring.end.read(room),
        }
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
            Socket::Ring(ring) => ring.end.write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write_vectored(pieces),
            Socket::Unix(stream) => stream.write_vectored(pieces),
            Socket::Ring(ring) => ring.end.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
