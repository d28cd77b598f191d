//! A socket that never waits, with TLS or without.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::address::Endpoint;
use crate::names;
#[cfg(feature = "tls")]
use crate::tls::Session;

/// A connected socket.
#[derive(Debug)]
pub(crate) struct Transport {
    socket: Socket,
    #[cfg(feature = "tls")]
    session: Option<Session>,
}

#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// tokio's own, which know when to wait.
    #[cfg(feature = "tokio")]
    TaskTcp(tokio::net::TcpStream),
    #[cfg(feature = "tokio")]
    TaskUnix(tokio::net::UnixStream),
}

/// What a socket is ready for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    pub to_read: bool,
    pub to_write: bool,
}

impl Socket {
    /// Connects, within this time, to the first of the host's addresses that lets it.
    pub fn connect(endpoint: &Endpoint, patience: Duration) -> io::Result<Self> {
        match endpoint {
            Endpoint::Unix(path) => Ok(Self::Unix(UnixStream::connect(path)?)),
            Endpoint::Tcp { host, port } => {
                let deadline = Instant::now() + patience;
                let mut failure = io::Error::new(ErrorKind::NotFound, "the host has no address");
                for address in names::addresses(host, *port, patience)? {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    match TcpStream::connect_timeout(&address, left) {
                        Ok(stream) => return Ok(Self::Tcp(stream)),
                        Err(error) => failure = error,
                    }
                }
                Err(failure)
            }
        }
    }

    fn set_up(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)
            }
            Self::Unix(stream) => stream.set_nonblocking(true),
            #[cfg(feature = "tokio")]
            Self::TaskTcp(stream) => stream.set_nodelay(true),
            #[cfg(feature = "tokio")]
            Self::TaskUnix(_) => Ok(()),
        }
    }

    /// Waits until there is something to be read. A read that finds nothing makes it wait again.
    #[cfg(feature = "tokio")]
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Self::TaskTcp(stream) => stream.readable().await,
            Self::TaskUnix(stream) => stream.readable().await,
            Self::Tcp(_) | Self::Unix(_) => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// Waits until the socket takes bytes.
    #[cfg(feature = "tokio")]
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            Self::TaskTcp(stream) => stream.writable().await,
            Self::TaskUnix(stream) => stream.writable().await,
            Self::Tcp(_) | Self::Unix(_) => Err(ErrorKind::Unsupported.into()),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&*stream).read(room),
            Socket::Unix(stream) => (&*stream).read(room),
            #[cfg(feature = "tokio")]
            Socket::TaskTcp(stream) => stream.try_read(room),
            #[cfg(feature = "tokio")]
            Socket::TaskUnix(stream) => stream.try_read(room),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&*stream).write(bytes),
            Socket::Unix(stream) => (&*stream).write(bytes),
            #[cfg(feature = "tokio")]
            Socket::TaskTcp(stream) => stream.try_write(bytes),
            #[cfg(feature = "tokio")]
            Socket::TaskUnix(stream) => stream.try_write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            #[cfg(feature = "tokio")]
            Self::TaskTcp(stream) => stream.as_fd(),
            #[cfg(feature = "tokio")]
            Self::TaskUnix(stream) => stream.as_fd(),
        }
    }
}

impl Transport {
    pub fn new(
        socket: Socket,
        #[cfg(feature = "tls")] session: Option<Session>,
    ) -> io::Result<Self> {
        socket.set_up()?;
        Ok(Self {
            socket,
            #[cfg(feature = "tls")]
            session,
        })
    }

    #[cfg(feature = "tokio")]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// No more is sent and received. What tokio's sockets wait for ends with their tasks.
    pub fn shut_down(&self) {
        // It may be over already.
        let _ = match &self.socket {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
            #[cfg(feature = "tokio")]
            Socket::TaskTcp(_) | Socket::TaskUnix(_) => Ok(()),
        };
    }

    /// Sends what the socket takes of these bytes, and returns how many it took. 0: none at present.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(session) = &self.session {
            return session.send(&self.socket, bytes);
        }
        at_present(|| (&self.socket).write(bytes)).map(|sent| sent.unwrap_or(0))
    }

    /// Sends what is left of bytes that were taken. True: nothing is.
    pub fn flush(&self) -> io::Result<bool> {
        #[cfg(feature = "tls")]
        if let Some(session) = &self.session {
            return session.flush(&self.socket);
        }
        Ok(true)
    }

    /// Reads what is there. None: nothing is at present. Some(0): the server has closed the connection.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        #[cfg(feature = "tls")]
        if let Some(session) = &self.session {
            return session.receive(&self.socket, room);
        }
        at_present(|| (&self.socket).read(room))
    }

    /// Whether there may be more after so many bytes of this room: then another read tells.
    pub fn may_have_more(&self, length: usize, room: usize) -> bool {
        // TLS reads a record at a time.
        #[cfg(feature = "tls")]
        if self.session.is_some() {
            return true;
        }
        length == room
    }

    /// Waits until the socket is ready for something of this, or until the deadline.
    pub fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::POLLIN, wanted.to_read);
        flags.set(PollFlags::POLLOUT, wanted.to_write);
        let mut sockets = [PollFd::new(self.socket.as_fd(), flags)];
        let left = deadline.saturating_duration_since(Instant::now());
        // Rounded up: else the last part of a millisecond would be spent in a busy loop.
        let timeout = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut sockets, timeout) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Ready::default()),
            Err(error) => return Err(error.into()),
        }
        let found = sockets[0].revents().unwrap_or(PollFlags::empty());
        // What has happened to the connection is told by the next read or write.
        let is_over =
            found.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL);
        Ok(Ready {
            to_read: wanted.to_read && (is_over || found.contains(PollFlags::POLLIN)),
            to_write: wanted.to_write && (is_over || found.contains(PollFlags::POLLOUT)),
        })
    }
}

/// Tries until it is not interrupted. None: the socket has to be waited for.
pub(crate) fn at_present(
    mut attempt: impl FnMut() -> io::Result<usize>,
) -> io::Result<Option<usize>> {
    loop {
        match attempt() {
            Ok(length) => return Ok(Some(length)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
